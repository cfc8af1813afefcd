"""A stretch of a trace, arranged by node, through which `flow` carries weights from crossing to crossing."""

import numpy as np

from unlinkabledfl.analysis.adversaries.flow_laws import Floats, FlowLaw, Places, Weights
from unlinkabledfl.analysis.trace import UNKNOWN, Indices, Nodes, Trace


class View:
    """The crossings from `begin` to before `end`, and how weights move between them under a law of delays."""

    def __init__(self, trace: Trace, law: FlowLaw, *, begin: int, end: int) -> None:
        crossings, nodes = trace.crossings, trace.nodes
        left, arrived = crossings.left_at_s[begin:end], crossings.arrived_at_s[begin:end]
        self._begin = begin
        self._nodes = nodes
        self._source, self._target = crossings.source[begin:end], crossings.target[begin:end]
        # For every crossing its flat place among departures, and among arrivals.
        self._departure, departures = _arrange(self._source, left, nodes)
        self._arrival, arrivals = _arrange(self._target, np.where(np.isnan(arrived), np.inf, arrived), nodes)
        self._departures_shape, self._arrivals_shape = departures.shape, arrivals.shape
        earlier = np.bincount(crossings.source[:begin], minlength=nodes)
        self._law = law
        law.prepare(
            Places(
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
        # Of K arrivals of a packet K − 1 are passed on. A law of delays leaves that share out, as it is the same for
        # all that it links; what is known to have been passed on weighs more by as much.
        hops = trace.settings.path_length
        self._known = np.float32(hops / (hops - 1))
        # What a compromised relay made itself begins a chain for certain, and nothing else of it does.
        self._made_by_owned = self._from_owned & (before == UNKNOWN)
        self._fresh = np.where(self._from_owned, self._made_by_owned, self._fresh).astype(np.float32)

    def trace_back(self, targets: Indices, *, steps: int) -> Weights:
        """Return the weight of every sender for every target, so many relays before."""
        local = targets - self._begin
        weights = self._one_each(local)
        # Neither the last relay nor the destination is passed before.
        apart = self._source != self._source[local][:, None]
        apart &= self._source != self._target[local][:, None]
        for _ in range(steps):
            weights = self._step_back(weights)
            weights *= apart
        weights *= self._fresh
        return self._by_node(weights, self._source)

    def trace_on(self, targets: Indices, *, steps: int) -> Weights:
        """Return the weight of every node to be where the acknowledgements of these targets end."""
        local = targets - self._begin
        weights = self._one_each(local)
        # The destination is not passed again.
        apart = self._target != self._target[local][:, None]
        for step in range(steps):
            weights = self._answer(weights) if step == 0 else self._step_on(weights)
            weights *= apart
        return self._by_node(weights, self._target)

    def _one_each(self, local: Indices) -> Weights:
        weights = np.zeros((len(local), len(self._source)), dtype=np.float32)
        weights[np.arange(len(local)), local] = 1.0
        return weights

    def _by_node(self, weights: Weights, nodes: Nodes) -> Weights:
        found: Weights = weights @ (nodes[:, None] == np.arange(self._nodes)).astype(np.float32)
        return found

    def _step_back(self, weights: Weights) -> Weights:
        """Carry weights from crossings to those that they may have come from."""
        placed = np.zeros((len(weights), self._departures_shape[0] * self._departures_shape[1]), dtype=np.float32)
        placed[:, self._departure] = weights * ~self._from_owned
        carried = self._law.arrivals(placed.reshape(len(weights), *self._departures_shape))
        back: Weights = carried.reshape(len(weights), -1)[:, self._arrival]
        back[:, self._into_owned] = 0.0
        back[:, self._known_before] += self._known * weights[:, self._known_after]
        return back

    def _step_on(self, weights: Weights) -> Weights:
        """Carry weights from crossings to those that they may have become."""
        on = self._departures(weights * ~self._into_owned)
        on[:, self._from_owned] = 0.0
        on[:, self._known_after] += self._known * weights[:, self._known_before]
        return on

    def _answer(self, weights: Weights) -> Weights:
        """Carry weights from targets to what may answer them; what compromised nodes only passed on does not."""
        on = self._departures(weights)
        on[:, self._from_owned & ~self._made_by_owned] = 0.0
        return on

    def _departures(self, weights: Weights) -> Weights:
        placed = np.zeros((len(weights), self._arrivals_shape[0] * self._arrivals_shape[1]), dtype=np.float32)
        placed[:, self._arrival] = weights
        carried = self._law.departures(placed.reshape(len(weights), *self._arrivals_shape))
        on: Weights = carried.reshape(len(weights), -1)[:, self._departure]
        return on


def _arrange(owners: Nodes, times: Floats, nodes: int) -> tuple[Indices, Floats]:
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
