"""`tune`: delay, rates and path length for a workload, from the measured frontier, and a simulated run of them.

Asked for are an advantage ε that no adversary of single packets may exceed, and the bytes a second a node may send.

1. For each path length, the least hold (`frontier`) whose measured advantage is ε at most, between points by
   interpolation.
2. All the bandwidth is used: cover fills what messages leave. With the packet's size and K that gives the rates, and
   the hold then gives the delay: at a given hold, more bandwidth buys less delay.
3. Of all path lengths, the one whose exchange is over first, by the same law as `check`.
4. That deployment is run in virtual time, with as many nodes and fragments as the scenario has, and attacked. The
   frontier was measured with 32 nodes; where the run finds more than ε, the hold is raised and 2 to 4 are done again.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from unlinkabledfl.analysis.adversaries import FlowAdversary
from unlinkabledfl.analysis.adversaries.route import route_prior
from unlinkabledfl.analysis.attack import published_candidates
from unlinkabledfl.analysis.score import score
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment import expectations
from unlinkabledfl.experiment.graphs import build_topology
from unlinkabledfl.experiment.indicators import indicators
from unlinkabledfl.experiment.linking.board import Tell
from unlinkabledfl.experiment.linking.configurations import deployment_of
from unlinkabledfl.experiment.linking.deployment import record
from unlinkabledfl.experiment.linking.frontier import LOOP_SHARE, Point
from unlinkabledfl.experiment.records.surroundings import describe
from unlinkabledfl.experiment.scenario import Scenario, validate_scenario

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["Proposal", "proposals", "render", "tune"]

TARGETS: Final = 2_000

_RUNS_MAX: Final = 4
_RAISE: Final = 1.5
_DELAY_MAX_S: Final = 100.0
_RATE_MAX_PER_S: Final = 10_000.0
_TIME_TOLERANCE: Final = 0.15
_RATE_TOLERANCE: Final = 0.05  # emissions are random, and the run is short
_NEEDS_NODES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Settings that should do, and what to expect of them."""

    scenario: Scenario
    hold: float
    advantage: float
    exchange_s: float


def tune(
    scenario: Scenario,
    *,
    target_advantage: float,
    bandwidth_bytes_per_s: float,
    points: Sequence[Point],
    tell: Tell,
    targets: int = TARGETS,
) -> dict[str, Any]:
    """Propose settings, confirm them by a run, and return the document."""
    started_s = time.perf_counter()
    _check(scenario, target_advantage)
    runs, factor = 0, 1.0
    while True:
        found = proposals(
            scenario, points, target=target_advantage, bandwidth_bytes_per_s=bandwidth_bytes_per_s, factor=factor
        )
        best = min(found, key=lambda proposal: proposal.exchange_s)
        mixnet = best.scenario.mixnet
        runs += 1
        tell(f"run {runs}: K={mixnet.path_length}, delays of {mixnet.delay_mean_s:.2f} s")
        confirmed = _confirm(best, bandwidth_bytes_per_s, target_advantage, targets=targets)
        if confirmed["advantage_holds"] or runs == _RUNS_MAX:
            break
        factor *= _RAISE
    return {
        "target_advantage": target_advantage,
        "bandwidth_bytes_per_s": bandwidth_bytes_per_s,
        "scenario": scenario.run.name,
        "nodes": scenario.topology.nodes,
        "proposal": _settings(best),
        "overrides": [f"mixnet.{key}={_literal(value)}" for key, value in _settings(best).items()],
        "expected": _expected(best),
        "considered": [_expected(proposal) for proposal in found],
        "confirmed": confirmed,
        "runs": runs,
        "seconds": time.perf_counter() - started_s,
        **describe("numpy"),
    }


def _check(scenario: Scenario, target: float) -> None:
    if not 0.0 < target < 1.0:
        raise ConfigError(
            key="--target-advantage",
            got=target,
            takes="a probability between 0 and 1",
            hint="by how much the best guess at a sender may beat a uniform one, such as 0.02",
        )
    if scenario.mixnet.exchange != "reach":
        raise ConfigError(
            key="mixnet.exchange",
            got=scenario.mixnet.exchange,
            takes="reach",
            hint="who writes to few is one of few who could have written, whatever the delays;"
            " --set mixnet.exchange=reach",
        )
    if scenario.topology.nodes < _NEEDS_NODES + 1:
        raise ConfigError(
            key="topology.nodes", got=scenario.topology.nodes, takes=f"at least {_NEEDS_NODES + 1}: relays are others"
        )


def proposals(
    scenario: Scenario, points: Sequence[Point], *, target: float, bandwidth_bytes_per_s: float, factor: float
) -> list[Proposal]:
    """Return what would do for every path length; ConfigError where nothing does."""
    lengths = sorted({point.path_length for point in points if point.path_length < scenario.topology.nodes})
    holds = {length: hold for length in lengths if (hold := _hold(points, length, target)) is not None}
    if not holds:
        least = min(point.advantage for point in points)
        raise ConfigError(
            key="--target-advantage",
            got=target,
            takes=f"at least {least:.4f}, the least on the measured frontier",
            hint="a last hop that is not the sender is worth something by itself; more nodes make a guess worth less",
        )
    found, slowest_s = [], 0.0
    for length, hold in holds.items():
        settings = _with(scenario, length, hold * factor, bandwidth_bytes_per_s)
        slowest_s = max(slowest_s, settings["delay_mean_s"])
        if settings["delay_mean_s"] > _DELAY_MAX_S:
            continue
        tuned = _changed(scenario, settings)
        graph = build_topology(tuned)
        exchange_s = expectations.exchange_s(tuned, expectations.traffic_of(tuned, graph))
        if exchange_s is None:
            raise ConfigError(
                key="learning.factory",
                got=scenario.learning.factory,
                takes="a built-in model",
                hint="how many packets a model of your own fills is known only when it runs",
            )
        advantage = _advantage(points, length, hold * factor)
        found.append(Proposal(scenario=tuned, hold=hold * factor, advantage=advantage, exchange_s=exchange_s))
    if not found:
        least_bytes = bandwidth_bytes_per_s * slowest_s / _DELAY_MAX_S
        raise ConfigError(
            key="--bandwidth",
            got=f"{bandwidth_bytes_per_s:.0f} bytes/s",
            takes=f"about {least_bytes:.0f} bytes/s or more for this target",
            hint=f"with less, delays exceed {_DELAY_MAX_S:.0f} s",
        )
    return found


def _with(scenario: Scenario, length: int, hold: float, bandwidth_bytes_per_s: float) -> dict[str, Any]:
    """Return settings that use the bandwidth: a message and its answer cross 2K links, a loop K."""
    known = _changed(scenario, {"route": "overlay", "path_length": length, "mixer": "poisson"})
    packet_bytes = expectations.traffic_of(known, build_topology(known)).geometry.packet_bytes
    rate = min(bandwidth_bytes_per_s / packet_bytes / (length * (2.0 + LOOP_SHARE)), _RATE_MAX_PER_S)
    return {
        "route": "overlay",
        "path_length": length,
        "mixer": "poisson",
        "cover": True,
        "delay_mean_s": _rounded_up(hold / rate),
        "emission_rate_per_s": rate,
        "loop_rate_per_s": rate * LOOP_SHARE,
    }


def _changed(scenario: Scenario, settings: dict[str, Any]) -> Scenario:
    tables = scenario.model_dump(mode="json")
    tables["mixnet"].update(settings)
    return validate_scenario(tables)


def _rounded_up(seconds: float) -> float:
    """Two digits are enough to say, and less delay than was found is not."""
    digits = 10.0 ** np.floor(np.log10(seconds) - 1.0)
    return float(round(np.ceil(seconds / digits - 1e-9) * digits, 9))


def _hold(points: Sequence[Point], length: int, target: float) -> float | None:
    """Return the least hold at which the advantage is the target; None if no measured one reaches it."""
    mine = sorted((point for point in points if point.path_length == length), key=lambda point: point.hold)
    if not mine or min(point.advantage for point in mine) > target:
        return None
    if mine[0].advantage <= target:
        return mine[0].hold
    for low, high in pairwise(mine):
        if high.advantage <= target:
            share = log(low.advantage / target) / log(low.advantage / high.advantage)
            return exp(log(low.hold) + share * log(high.hold / low.hold))
    return None


def _advantage(points: Sequence[Point], length: int, hold: float) -> float:
    """Return the advantage at a hold, between the measured ones."""
    mine = sorted((point for point in points if point.path_length == length), key=lambda point: point.hold)
    return float(
        np.exp(np.interp(log(hold), [log(point.hold) for point in mine], [log(point.advantage) for point in mine]))
    )


def _settings(proposal: Proposal) -> dict[str, Any]:
    mixnet = proposal.scenario.mixnet
    return {
        "route": mixnet.route,
        "path_length": mixnet.path_length,
        "mixer": mixnet.mixer,
        "delay_mean_s": mixnet.delay_mean_s,
        "emission_rate_per_s": mixnet.emission_rate_per_s,
        "loop_rate_per_s": mixnet.loop_rate_per_s,
        "cover": mixnet.cover,
    }


def _literal(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _expected(proposal: Proposal) -> dict[str, Any]:
    found = indicators(proposal.scenario)
    return {
        "path_length": proposal.scenario.mixnet.path_length,
        "delay_mean_s": proposal.scenario.mixnet.delay_mean_s,
        "hold": proposal.hold,
        "advantage": proposal.advantage,
        "rtt_s": found.time.round_trip_s,
        "exchange_s": proposal.exchange_s,
        "round_s": found.time.round_s,
        "packets_per_s": found.traffic.packets_per_s,
        "bytes_per_s": found.traffic.packets_per_s * found.traffic.packet_bytes,
    }


def _confirm(proposal: Proposal, bandwidth_bytes_per_s: float, target: float, *, targets: int) -> dict[str, Any]:
    """Run the proposal in virtual time, attack it, and say whether it holds."""
    scenario = proposal.scenario
    deployment = deployment_of(scenario, name="tuned", targets=targets)
    recorded = record(deployment, seed=scenario.run.seed)
    recording = recorded.recording
    rows = np.unique(np.linspace(0, len(recording.targets) - 1, min(targets, len(recording.targets))).astype(np.int64))
    trace, oracle = recording.of_targets(rows).observed()
    found = score(
        "flow",
        FlowAdversary().posteriors(trace),
        oracle,
        feasible=route_prior(trace),
        published_candidates=published_candidates(trace),
    )
    bytes_per_s = recorded.bytes_per_node_round / deployment.round_s
    exchange_s = recorded.exchange_s_mean
    return {
        "adversary": "flow",
        "targets": found.targets,
        "advantage": found.advantage,
        "p_link_mean": found.p_link_mean,
        "accuracy": found.accuracy,
        "ci_low": found.ci_low,
        "ci_high": found.ci_high,
        "baseline": found.baseline,
        "rtt_s_mean": recorded.rtt_s_mean,
        "exchange_s": exchange_s,
        "bytes_per_s": bytes_per_s,
        "advantage_holds": found.advantage <= target,
        "bandwidth_holds": bytes_per_s <= (1.0 + _RATE_TOLERANCE) * bandwidth_bytes_per_s,
        "time_holds": exchange_s is not None
        and abs(exchange_s - proposal.exchange_s) <= _TIME_TOLERANCE * proposal.exchange_s,
    }


def render(document: dict[str, Any]) -> "RenderableType":
    """Return what people see of it."""
    from rich.console import Group  # noqa: PLC0415 -- readers of JSON need no tables
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    expected, confirmed = document["expected"], document["confirmed"]
    table = Table(
        title=f"{document['scenario']}: advantage of at most {document['target_advantage']:g}, "
        f"{document['bandwidth_bytes_per_s'] / 1e6:g} MB/s a node",
        title_justify="left",
    )
    for heading in ("", "expected", "simulated", "holds"):
        table.add_column(heading, justify="left" if not heading else "right")
    rows = (
        ("advantage", expected["advantage"], confirmed["advantage"], "advantage_holds", 1.0, "{:.4f}"),
        ("exchange, s", expected["exchange_s"], confirmed["exchange_s"], "time_holds", 1.0, "{:.1f}"),
        ("sent, MB/s", expected["bytes_per_s"], confirmed["bytes_per_s"], "bandwidth_holds", 1e6, "{:.3f}"),
        ("round trip, s", expected["rtt_s"], confirmed["rtt_s_mean"], None, 1.0, "{:.1f}"),
        ("round, s", expected["round_s"], None, None, 1.0, "{:.1f}"),
    )
    for name, one, other, key, unit, form in rows:
        shown = ["–" if value is None else form.format(value / unit) for value in (one, other)]
        holds = "" if key is None else "yes" if confirmed[key] else "[bold red]no"
        table.add_row(name, *shown, holds)
    options = " ".join(f"--set {override}" for override in document["overrides"])
    return Group(table, Text(f"unlinkabledfl run {document['scenario']} {options}", style="bold"))
