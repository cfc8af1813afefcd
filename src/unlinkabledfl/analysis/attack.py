"""All adversaries against one trace, and the scores that they get.

Adversaries are given the trace; the truth is opened afterwards, to score what they said. Targets that a compromised
node sent are no secret to it, and are left out of the scores.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

import numpy as np

from unlinkabledfl.analysis.adversaries import (
    Adversary,
    DisclosureAdversary,
    FlowAdversary,
    GroupingAdversary,
    PaperAdversary,
    Posteriors,
    RouteAdversary,
)
from unlinkabledfl.analysis.adversaries.flow import follows
from unlinkabledfl.analysis.adversaries.protocol import Remembering, normalized
from unlinkabledfl.analysis.adversaries.route import route_prior
from unlinkabledfl.analysis.score import Score, score
from unlinkabledfl.analysis.trace import Indices, Nodes, Oracle, Trace
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.mixnet.mixers import OffSettings

__all__ = ["ADVERSARIES", "Refusal", "all_relays_compromised", "attack", "line_up", "published_candidates"]

ADVERSARIES: Final = ("paper", "route", "flow", "grouping", "disclosure")

_NODES_MAX: Final = 512
"""The exact posteriors of the last hop are a table of N³ numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An adversary that does not know this deployment, and why."""

    adversary: str
    reason: str


def line_up(trace: Trace, groups: Indices | None) -> list[Adversary]:
    """Return the adversaries that there are against such a trace."""
    flow = Remembering(FlowAdversary())
    found: list[Adversary] = [PaperAdversary(), RouteAdversary()]
    if not isinstance(trace.settings.mixer, OffSettings):
        found.append(flow)
    if groups is not None:
        # It multiplies what `flow` says, which has been asked already; where that knows nothing, what `route` says.
        found.append(GroupingAdversary(flow if follows(trace.settings) else RouteAdversary(), groups))
    return [*found, DisclosureAdversary()]


def attack(
    trace: Trace, oracle: Oracle, *, groups: Indices | None, names: Sequence[str] = ()
) -> Iterator[Score | Refusal]:
    """Score every adversary, or those of these names: one that was asked for by name and refuses is an error."""
    _check(trace, names)
    there = line_up(trace, groups)
    for name in names:
        if name not in {adversary.name for adversary in there}:
            hint = "`flow` follows delays, and `grouping` needs to know which fragments belong together"
            takes = ", ".join(adversary.name for adversary in there)
            raise ConfigError(key="--adversary", got=name, takes=f"{takes} for this run", hint=hint)
    sought = np.flatnonzero(~np.isin(oracle.origin, np.asarray(trace.compromised, dtype=np.int64)))
    if not len(sought):
        raise ConfigError(key="attack.targets", got=0, takes="a trace in which honest nodes' fragments arrived")
    answers = Oracle(origin=oracle.origin[sought], path=tuple(oracle.path[row] for row in sought))
    feasible, candidates = _feasible(trace)[sought], published_candidates(trace)[sought]
    for adversary in there:
        if names and adversary.name not in names:
            continue
        try:
            posteriors = _believed(adversary, trace)
        except ConfigError as refusal:
            if names:
                raise
            yield Refusal(adversary=adversary.name, reason=str(refusal))
            continue
        yield score(adversary.name, posteriors[sought], answers, feasible=feasible, published_candidates=candidates)


def _believed(adversary: Adversary, trace: Trace) -> Posteriors:
    """Return what it believes; ConfigError where a deployment, such as one without delays, gives it no numbers."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = adversary.posteriors(trace)
    if not np.isfinite(found).all():
        raise ConfigError(
            key=f"attack.{adversary.name}",
            got="beliefs that are no numbers",
            takes="a deployment that delays packets and sends some",
            hint="the settings in the trace leave it nothing to divide by",
        )
    return found


def published_candidates(trace: Trace) -> Nodes:
    """Return for every target how many nodes lie within K hops of its destination: the published baseline."""
    settings = trace.settings
    if settings.route in {"overlay", "valiant"}:
        return np.full(len(trace.targets), trace.nodes - 1, dtype=np.int32)
    reach = [len(settings.topology.reach_within(node, settings.path_length)) for node in range(trace.nodes)]
    return np.array([reach[node] for node in trace.crossings.target[trace.targets]], dtype=np.int32)


def all_relays_compromised(oracle: Oracle, owned: Sequence[int]) -> float:
    """Return how often every relay of a target is owned; where there is no relay, nothing is hidden to begin with."""
    return fmean(set(path[:-1]).issubset(owned) for path in oracle.path)


def _feasible(trace: Trace) -> Posteriors:
    """Return who is possible at all, given route and last hop; where no law of the route is known, who writes there."""
    try:
        return route_prior(trace)
    except ConfigError:
        writes = np.zeros((trace.nodes, trace.nodes))
        for sender, destinations in enumerate(trace.settings.destinations):
            writes[list(destinations), sender] = 1.0
        writes[:, list(trace.compromised)] = 0.0
        return normalized(writes[trace.crossings.target[trace.targets]])


def _check(trace: Trace, names: Sequence[str]) -> None:
    for name in names:
        if name not in ADVERSARIES:
            raise ConfigError(key="--adversary", got=name, takes=", ".join(ADVERSARIES))
    if trace.nodes > _NODES_MAX:
        raise ConfigError(key="topology.nodes", got=trace.nodes, takes=f"at most {_NODES_MAX} nodes for an attack")
    if not len(trace.targets):
        hint = "a fragment has to arrive before it can be attacked: run more rounds, or longer ones"
        raise ConfigError(key="attack.targets", got=0, takes="a trace in which fragments arrived", hint=hint)
