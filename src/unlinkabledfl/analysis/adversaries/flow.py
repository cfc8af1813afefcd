"""`flow`: route prior and all observed timings together.

A target is the last of K crossings. Its predecessor is one of the packets that came to its last relay before, each with
the probability that the delay law gives it; the predecessor of that one likewise; and the first of the chain was made
by its source. Summing over all chains that end in the target, without listing any, gives each sender a weight. That
weight already holds a prior of its own, how often chains lead to a sender whatever the times; it is replaced by the
exact one of `route`.

| mixer | a departure came from this arrival with probability |
|---|---|
| Poisson | density of its delay, over the densities of all arrivals before plus the rate of fresh packets |
| outbox | 1/O for what came in the cycle before; a full queue makes some wait for more, which share is estimated |

What a compromised relay passed on has a known predecessor, and what it made itself ends a chain.

Known limits: relays are kept apart from the last relay and the destination but not from each other, and chains of
different packets are weighed as if they did not compete for the same departures. One target in a hundred is taken to
have no chain at all within the time that is looked at, and keeps the prior.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from unlinkabledfl.analysis.adversaries.protocol import Posteriors, normalized
from unlinkabledfl.analysis.adversaries.route import route_prior
from unlinkabledfl.analysis.trace import UNKNOWN, Indices, Trace
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.mixnet.mixers import OffSettings, OutboxSettings, PoissonSettings

Floats = npt.NDArray[np.float64]

_BLOCK_TARGETS = 64
_TRIED_TARGETS = 200
_LOST = 0.01
_LEAST = 1e-12  # what no probability here comes near


class FlowAdversary:
    """Follows every target backwards through all relays at once."""

    name = "flow"

    def posteriors(self, trace: Trace) -> Posteriors:
        prior = route_prior(trace)
        settings = trace.settings
        if settings.route == "direct" or settings.path_length == 1 or not len(trace.targets):
            return prior
        if settings.route not in {"overlay", "walk"}:
            takes = "overlay, walk or direct"
            raise ConfigError(key="attack.route", got=settings.route, takes=takes, hint="its path lengths vary")
        evidence = _Evidence(trace, prior, steps=settings.path_length - 1)
        laws = _laws(trace)
        if len(laws) > 1:
            some = np.linspace(0, len(trace.targets) - 1, min(_TRIED_TARGETS, len(trace.targets))).astype(np.int64)
            laws = [max(laws, key=lambda law: evidence.support(law, np.unique(some)))]
        return evidence.posteriors(laws[0])


class _Evidence:
    """The targets of one trace, their prior, and what the times add under some law of delays."""

    def __init__(self, trace: Trace, prior: Posteriors, *, steps: int) -> None:
        self._trace = trace
        self._prior = prior
        self._steps = steps
        self._blind = _blind(trace, steps)

    def support(self, law: "_Law", rows: Indices) -> float:
        """Return how well this law explains some of the targets: the mean logarithm of their likelihood."""
        return float(np.log(self._joint(law, rows).sum(axis=1) + _LEAST).mean())

    def posteriors(self, law: "_Law") -> Posteriors:
        """Return prior times likelihood, with a little of the prior for chains that were not looked at."""
        joint = self._joint(law, np.arange(len(self._prior)))
        lost = ~(joint.sum(axis=1) > 0.0)
        joint[lost] = self._prior[lost]
        return (1.0 - _LOST) * normalized(joint) + _LOST * self._prior

    def _joint(self, law: "_Law", rows: Indices) -> Posteriors:
        found = np.empty((len(rows), self._trace.nodes))
        targets = self._trace.targets[rows]
        for part, view in _blocks(self._trace, targets, law, self._steps):
            weights = view.trace_back(targets[part], steps=self._steps)
            blind = self._blind[self._trace.crossings.source[targets[part]]]
            found[part] = self._prior[rows[part]] * weights / np.maximum(blind, _LEAST)
        return found


def _blind(trace: Trace, steps: int) -> Posteriors:
    """Return, for every last relay, how chains of this length lead back to senders whatever the times."""
    crossings = trace.crossings
    counts = np.zeros((trace.nodes, trace.nodes))
    np.add.at(counts, (crossings.target, crossings.source), 1.0)
    back = normalized(counts)
    return np.linalg.matrix_power(back, steps)


def _blocks(trace: Trace, targets: Indices, law: "_Law", steps: int) -> Iterator[tuple[slice, "_View"]]:
    """Yield neighbouring targets with the part of the trace that they can come from."""
    left = trace.crossings.left_at_s
    start = 0
    while start < len(targets):
        stop = min(start + _BLOCK_TARGETS, len(targets))
        # Targets far apart in time would share a stretch of which each uses little.
        until_s = float(left[targets[start]]) + law.longest_s(steps) / 2
        stop = start + max(1, int(np.searchsorted(left[targets[start:stop]], until_s)))
        begin = int(np.searchsorted(left, float(left[targets[start]]) - law.longest_s(steps)))
        yield slice(start, stop), _View(trace, law, begin=begin, end=int(targets[stop - 1]) + 1)
        start = stop


class _Law(Protocol):
    """How a relay's departures come from its arrivals."""

    def longest_s(self, steps: int) -> float:
        """Return how long a packet takes through that many relays at most, nearly."""
        ...

    def prepare(self, places: "_Places") -> None:
        """Compute what depends on the times alone."""
        ...

    def arrivals(self, departures: Floats) -> Floats:
        """Carry weights from departures, by target, node and order, back to arrivals, likewise."""
        ...

    def fresh(self) -> Floats:
        """Return the probability of every departure to be a packet that its node made."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Departures and arrivals of every node in the order of time, padded to equal length."""

    left_at_s: Floats  # [node, place]; infinite where padded
    arrived_at_s: Floats  # likewise
    ranks: Indices  # [node, place]: how many departures the node had before this one, since the trace began
    until_s: float


class _View:
    """A stretch of the trace, arranged by node."""

    def __init__(self, trace: Trace, law: _Law, *, begin: int, end: int) -> None:
        crossings, nodes = trace.crossings, trace.nodes
        left, arrived = crossings.left_at_s[begin:end], crossings.arrived_at_s[begin:end]
        self._begin = begin
        self._nodes = nodes
        self._source, self._target = crossings.source[begin:end], crossings.target[begin:end]
        # For every crossing its flat place among departures, and among arrivals.
        self._departure, departures = _arrange(self._source, left, nodes)
        self._arrival, arrivals = _arrange(self._target, np.where(np.isnan(arrived), np.inf, arrived), nodes)
        self._shape = departures.shape
        earlier = np.bincount(crossings.source[:begin], minlength=nodes)
        self._law = law
        law.prepare(
            _Places(
                left_at_s=departures,
                arrived_at_s=arrivals,
                ranks=earlier[:, None] + np.arange(departures.shape[1]),
                until_s=float(left[-1]),
            )
        )
        self._fresh = law.fresh().reshape(-1)[self._departure]
        self._learn_from_compromised(trace, end)

    def _learn_from_compromised(self, trace: Trace, end: int) -> None:
        owned = np.asarray(trace.compromised, dtype=np.int64)
        self._from_owned, self._into_owned = np.isin(self._source, owned), np.isin(self._target, owned)
        before = trace.before[self._begin : end]
        linked = self._from_owned & (before >= self._begin)
        self._known_after = np.flatnonzero(linked)
        self._known_before = before[linked] - self._begin
        # What a compromised relay made itself ends a chain for certain, and nothing else of it does.
        self._fresh = np.where(self._from_owned, (before == UNKNOWN).astype(np.float64), self._fresh)

    def trace_back(self, targets: Indices, *, steps: int) -> Posteriors:
        """Return the weight of every sender for every target."""
        local = targets - self._begin
        weights = np.zeros((len(local), len(self._source)))
        weights[np.arange(len(local)), local] = 1.0
        ends = self._source[local], self._target[local]
        for _ in range(steps):
            weights = self._step(weights)
            # Neither the last relay nor the destination is passed before.
            for end in ends:
                weights[self._source[None, :] == end[:, None]] = 0.0
        weights *= self._fresh
        by_source = (self._source[:, None] == np.arange(self._nodes)).astype(np.float64)
        found: Posteriors = weights @ by_source
        return found

    def _step(self, weights: Floats) -> Floats:
        """Carry weights from crossings to those that they may have come from."""
        placed = np.zeros((len(weights), self._shape[0] * self._shape[1]))
        placed[:, self._departure] = np.where(self._from_owned, 0.0, weights)
        carried = self._law.arrivals(placed.reshape(len(weights), *self._shape))
        back: Floats = carried.reshape(len(weights), -1)[:, self._arrival]
        back[:, self._into_owned] = 0.0
        back[:, self._known_before] += weights[:, self._known_after]
        return back


class _PoissonLaw:
    """Exponential delays: the density of a delay d is e^(−d/m)/m, whatever else happens in the relay.

    A sum over all earlier arrivals of e^(−(t − a)/m) is e^(−t/m) times a running sum, so that carrying a thousand
    crossings back costs a thousand steps and not a million. Times count from the end of the stretch, where the
    exponentials are largest: the running sums then only add what is small to what is smaller.
    """

    _TAIL_MEANS = 11.0  # beyond one mean a relay; three relays take longer once in five thousand times

    def __init__(self, settings: PoissonSettings, *, own_rate_per_s: float, caused_share: float) -> None:
        self._mean_s = settings.delay_mean_s
        self._own_rate_per_s = own_rate_per_s
        self._caused_share = caused_share

    def longest_s(self, steps: int) -> float:
        return (steps + self._TAIL_MEANS) * self._mean_s

    def prepare(self, places: _Places) -> None:
        left = (places.left_at_s - places.until_s) / self._mean_s
        arrived = (places.arrived_at_s - places.until_s) / self._mean_s
        after = np.where(np.isfinite(arrived), np.exp(np.minimum(arrived, 0.0)), 0.0)
        self._after_arrival = after
        self._from = _places_after(places.arrived_at_s, places.left_at_s)
        running = np.concatenate([np.zeros((len(after), 1)), np.cumsum(after, axis=1)], axis=1)
        held = np.take_along_axis(running, _places_after(places.left_at_s, places.arrived_at_s, closed=True), axis=1)
        is_real = np.isfinite(left)
        decay = np.where(is_real, np.exp(-np.where(is_real, left, 0.0)), 0.0)
        density = self._caused_share * held * decay / self._mean_s
        total = self._own_rate_per_s + density
        self._per_density = np.where(is_real, decay / self._mean_s / total, 0.0)
        self._fresh = self._own_rate_per_s / total

    def fresh(self) -> Floats:
        return self._fresh

    def arrivals(self, departures: Floats) -> Floats:
        weighed = departures * self._per_density
        later = np.cumsum(weighed[:, :, ::-1], axis=2)[:, :, ::-1]
        later = np.concatenate([later, np.zeros((*later.shape[:2], 1))], axis=2)
        gathered = np.take_along_axis(later, self._from[None, :, :], axis=2)
        found: Floats = gathered * self._after_arrival
        return found


class _OutboxLaw:
    """The outbox leaves traces of its cycles: every O departures it is filled with what came since the last filling.

    So a departure came from the arrivals of one known interval, each with the same probability 1/O. Where bursts of a
    node's own fill its outbox, a share of what came waits for one cycle more, and of that the same share again. How
    many of a cycle's places are fresh depends on those bursts too, which nobody sees; it is left out.
    """

    _CYCLES = 4  # within which a packet passes a relay, nearly always

    def __init__(self, settings: OutboxSettings, *, waits: float) -> None:
        self._size = settings.outbox_size
        self._cycle_s = settings.outbox_size * settings.delay_mean_s
        self._waits = waits

    def longest_s(self, steps: int) -> float:
        return (self._CYCLES * steps + 1) * self._cycle_s

    def prepare(self, places: _Places) -> None:
        cycles = places.ranks // self._size
        self._first = cycles[:, :1]
        # Cycle c is filled when the last packet of cycle c − 1 leaves. Of the stretch's first cycle that is not seen.
        self._cycle = cycles - self._first
        count = int(self._cycle.max()) + 1
        is_last = (places.ranks % self._size == self._size - 1) & np.isfinite(places.left_at_s)
        filled = np.full((len(cycles), count + 1), np.inf)
        filled[:, 0] = -np.inf
        node, place = np.nonzero(is_last)
        filled[node, self._cycle[node, place] + 1] = places.left_at_s[node, place]
        # An arrival takes part in the first filling that is not before it.
        self._joins = _places_after(places.arrived_at_s, filled)
        self._cycles = count + 1
        self._fresh = np.ones_like(places.left_at_s)

    def fresh(self) -> Floats:
        return self._fresh

    def arrivals(self, departures: Floats) -> Floats:
        sums = np.zeros((*departures.shape[:2], self._cycles + 2))
        nodes = np.arange(departures.shape[1])[:, None]
        for row, weights in enumerate(departures):
            used = weights > 0.0
            np.add.at(sums[row], (np.broadcast_to(nodes, weights.shape)[used], self._cycle[used]), weights[used])
        sums /= self._size
        # What joins in cycle c leaves in c, or waits and is as what joins in c + 1.
        for cycle in range(sums.shape[2] - 2, -1, -1):
            sums[:, :, cycle] = (1.0 - self._waits) * sums[:, :, cycle] + self._waits * sums[:, :, cycle + 1]
        return np.take_along_axis(sums, self._joins[None, :, :], axis=2)


def _laws(trace: Trace) -> "list[_Law]":
    """Return the laws of delay that the settings allow: one for each of some values of what is not public."""
    settings = trace.settings
    match settings.mixer:
        case PoissonSettings():
            own_rate_per_s = settings.own_rate_per_s
            return [_PoissonLaw(settings.mixer, own_rate_per_s=own_rate_per_s, caused_share=_caused_share(trace))]
        case OutboxSettings():
            return [_OutboxLaw(settings.mixer, waits=waits) for waits in (0.02, 0.2, 0.4, 0.6, 0.8)]
        case OffSettings():
            takes = "a mixer that delays"
            hint = "without delays a packet leaves when it came: `route` and the order of crossings say all"
            raise ConfigError(key="attack.mixer", got="off", takes=takes, hint=hint)


def _caused_share(trace: Trace) -> float:
    """Return how many departures an arrival causes on average: relayed packets, and acknowledgements."""
    crossings = trace.crossings
    duration_s = float(crossings.left_at_s[-1] - crossings.left_at_s[0])
    arrivals = int(np.count_nonzero(~np.isnan(crossings.arrived_at_s)))
    fresh = trace.settings.own_rate_per_s * duration_s * trace.nodes
    return min(1.0, max(len(crossings) - fresh, 1.0) / max(arrivals, 1))


def _arrange(owners: npt.NDArray[np.int32], times: Floats, nodes: int) -> tuple[Indices, Floats]:
    """Return the flat place of every crossing in a table by node and time, and the table of times."""
    order = np.lexsort((times, owners))
    counts = np.bincount(owners, minlength=nodes)
    width = max(int(counts.max()), 1)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    places = np.empty(len(owners), dtype=np.int64)
    places[order] = owners[order] * width + np.arange(len(owners)) - starts[owners[order]]
    table = np.full(nodes * width, np.inf)
    table[places] = times
    return places, table.reshape(nodes, width)


def _places_after(times: Floats, table: Floats, *, closed: bool = False) -> Indices:
    """Return, row by row, the place in `table` before which as many of its times lie as are smaller (or equal)."""
    side: Literal["left", "right"] = "right" if closed else "left"
    return np.stack([np.searchsorted(row, wanted, side=side) for wanted, row in zip(times, table, strict=True)])
