"""`flow`: route prior and all observed timings together, there and back.

A target is the last of K crossings. Its predecessor is one of the packets that came to its last relay before, each with
the probability that the delay law gives it; the predecessor of that one likewise; and the first of the chain was made
by its source. Summing over all chains that end in the target, without listing any, gives each sender a weight.

The target is answered: an acknowledgement leaves the destination later, over K crossings of its own, and the last of
these ends at the sender. Summing over all chains that begin at the destination gives each sender a second weight. The
two ways are drawn independently, so the weights multiply.

Either weight holds a prior of its own, how often chains lead to a node whatever the times. It is divided out, and
replaced by the exact prior of `route`.

| mixer | a departure came from this arrival with probability |
|---|---|
| Poisson | density of its delay, over the densities of all arrivals before plus the rate of fresh packets |
| outbox | 1/O for what came in the cycle before; a full queue makes some wait for more, which share is estimated |

What a compromised relay passed on has a known predecessor, and what it made itself begins a chain.

Known limits: relays are kept apart from the two ends and the last relay but not from each other; chains of different
packets are weighed as if they did not compete for the same departures; a compromised destination is not asked which of
its packets answered the target. One target in a hundred is taken to have no chain within the time that is looked at.
"""

from collections.abc import Iterator

import numpy as np

from unlinkabledfl.analysis.adversaries.flow_laws import Floats, FlowLaw, flow_laws, has_cycles
from unlinkabledfl.analysis.adversaries.flow_view import View
from unlinkabledfl.analysis.adversaries.protocol import Posteriors, normalized
from unlinkabledfl.analysis.adversaries.route import route_prior
from unlinkabledfl.analysis.trace import Indices, Nodes, PublicSettings, Trace
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.mixnet.mixers import OffSettings

ROUTES = ("overlay", "walk", "direct")
"""Strategies whose paths all have one length."""

_BLOCK_TARGETS = 64
_TRIED_TARGETS = 200
_LOST = 0.01
_LEAST = 1e-12  # what no probability here comes near


def follows(settings: PublicSettings) -> bool:
    """Return whether `flow` knows such a deployment."""
    return settings.route in ROUTES and not isinstance(settings.mixer, OffSettings) and has_cycles(settings.mixer)


class FlowAdversary:
    """Follows every target backwards to its sender, and its acknowledgement forwards to the same."""

    name = "flow"

    def __init__(self, *, follows_answers: bool = True) -> None:
        """Without `follows_answers` only the way there is looked at."""
        self._follows_answers = follows_answers

    def posteriors(self, trace: Trace) -> Posteriors:
        prior = route_prior(trace)
        settings = trace.settings
        if settings.route == "direct" or settings.path_length == 1 or not len(trace.targets):
            return prior
        if settings.route not in ROUTES:
            takes = ", ".join(ROUTES)
            hint = "its path lengths vary, and chains here have one length; `route` handles it exactly"
            raise ConfigError(key="attack.route", got=settings.route, takes=takes, hint=hint)
        laws = flow_laws(trace)
        there = _There(trace)
        if len(laws) > 1:
            some = np.linspace(0, len(trace.targets) - 1, min(_TRIED_TARGETS, len(trace.targets))).astype(np.int64)
            rows = np.unique(some)
            laws = [max(laws, key=lambda law: _support(prior[rows], there.weights(law, trace.targets[rows])))]
        found = _with_evidence(prior, there.weights(laws[0], trace.targets))
        if self._follows_answers:
            found = _with_evidence(found, _Back(trace).weights(laws[0], trace.targets))
        return found


def _with_evidence(prior: Posteriors, weights: Floats) -> Posteriors:
    """Return prior times weights, with a little of the prior for chains that were not looked at."""
    joint = prior * weights
    lost = ~(joint.sum(axis=1) > 0.0)
    joint[lost] = prior[lost]
    return (1.0 - _LOST) * normalized(joint) + _LOST * prior


def _support(prior: Posteriors, weights: Floats) -> float:
    """Return how well a law explains these targets: the mean logarithm of their likelihood."""
    return float(np.log((prior * weights).sum(axis=1) + _LEAST).mean())


class _There:
    """From a target back to its sender."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._steps = trace.settings.path_length - 1
        self._back = _transitions(trace.crossings.target, trace.crossings.source, trace.nodes)

    def weights(self, law: FlowLaw, targets: Indices) -> Floats:
        """Return a weight for every sender, for each of these targets."""
        trace, steps = self._trace, self._steps
        left, longest_s = trace.crossings.left_at_s, law.longest_s(steps)
        found = np.empty((len(targets), trace.nodes))
        for part in _blocks(left[targets], longest_s):
            some = targets[part]
            begin = int(np.searchsorted(left, float(left[some[0]]) - longest_s))
            view = View(trace, law, begin=begin, end=int(some[-1]) + 1)
            found[part] = view.trace_back(some, steps=steps)
        last, end = trace.crossings.source[targets], trace.crossings.target[targets]
        return found / _blind(self._back, last, passed=(last, end), steps=steps)


class _Back:
    """From a target's destination, over its acknowledgement, on to its sender."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._steps = trace.settings.path_length
        self._on = _transitions(trace.crossings.source, trace.crossings.target, trace.nodes)

    def weights(self, law: FlowLaw, targets: Indices) -> Floats:
        """Return a weight for every sender, for each of these targets."""
        trace, steps = self._trace, self._steps
        left, longest_s = trace.crossings.left_at_s, law.longest_s(steps)
        found = np.empty((len(targets), trace.nodes))
        for part in _blocks(left[targets], longest_s):
            some = targets[part]
            end = int(np.searchsorted(left, float(left[some[-1]]) + longest_s))
            # A relay's state is known only after some packets of before have been seen.
            begin = int(np.searchsorted(left, float(left[some[0]]) - law.longest_s(0)))
            found[part] = View(trace, law, begin=begin, end=end).trace_on(some, steps=steps)
        start = trace.crossings.target[targets]
        return found / _blind(self._on, start, passed=(start,), steps=steps)


def _transitions(from_nodes: Nodes, to_nodes: Nodes, nodes: int) -> Posteriors:
    """Return where one step over a crossing leads from every node, whatever its time."""
    counts = np.zeros((nodes, nodes))
    np.add.at(counts, (from_nodes, to_nodes), 1.0)
    return normalized(counts)


def _blind(transitions: Posteriors, start: Nodes, *, passed: tuple[Nodes, ...], steps: int) -> Floats:
    """Return, for every target, where its chains lead whatever the times, if they avoid the nodes that it passed."""
    rows = np.arange(len(start))
    found = np.zeros((len(start), len(transitions)))
    found[rows, start] = 1.0
    for _ in range(steps):
        found = found @ transitions
        for nodes in passed:
            found[rows, nodes] = 0.0
    return np.maximum(found, _LEAST)


def _blocks(left_at_s: Floats, longest_s: float) -> Iterator[slice]:
    """Yield slices of neighbouring targets: those far apart in time would share a stretch of which each uses little."""
    start = 0
    while start < len(left_at_s):
        stop = min(start + _BLOCK_TARGETS, len(left_at_s))
        until_s = float(left_at_s[start]) + longest_s / 2
        stop = start + max(1, int(np.searchsorted(left_at_s[start:stop], until_s)))
        yield slice(start, stop)
        start = stop
