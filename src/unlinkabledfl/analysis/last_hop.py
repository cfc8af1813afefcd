"""What the last hop alone tells of the sender, exactly.

Whoever sees a packet arrive sees its destination d and the neighbour p that handed it over. With the topology and the
routing strategy, which are public, that gives the posterior

    P(u | d, p)  ∝  P(u) · P(u writes to d) · P(last hop is p | u, d)

without a single clock being read. Senders are equally busy and write to each of their destinations equally often.

Under `walk` routes this names the sender half of the time at K = 2 on the published graph: no delay and no cover packet
helps against it, because no packet is observed. Under `overlay` routes of two or more hops the last factor does not
depend on u.

Invariant: the probabilities are enumerated, not sampled; `accuracy` is what the adversary achieves on average.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from unlinkabledfl.analysis.entropy import Posterior
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.mixnet.routes import TransportGraph, WalkRoutes
from unlinkabledfl.mixnet.topology import UNREACHABLE, Topology
from unlinkabledfl.sphinx import NodeId

LastHopLaw = Callable[[int, int], npt.NDArray[np.float64]]
"""Of a sender and a destination, the probability of every node to be the last hop; the sender itself where direct."""

_NAME_BYTES: Final = 32


def direct_law(nodes: int) -> LastHopLaw:
    """Return the law of direct delivery: the last hop is the sender."""

    def law(sender: int, destination: int) -> npt.NDArray[np.float64]:
        _ = destination
        return _at(nodes, sender)

    return law


def overlay_law(nodes: int, *, path_length: int) -> LastHopLaw:
    """Return the law of relays drawn uniformly from everybody but the two ends."""
    if path_length == 1:
        return direct_law(nodes)

    def law(sender: int, destination: int) -> npt.NDArray[np.float64]:
        found = np.full(nodes, 1.0 / (nodes - 2))
        found[[sender, destination]] = 0.0
        return found

    return law


def walk_law(topology: Topology, *, path_length: int, up_to: bool = False) -> LastHopLaw:
    """Return the law of uniform simple paths of exactly, or up to, K edges."""
    nodes = topology.nodes
    names = tuple(NodeId(index.to_bytes(_NAME_BYTES)) for index in range(nodes))
    graph = TransportGraph(topology=topology, node_ids=names)
    routes = WalkRoutes(graph=graph, path_length=path_length, up_to=up_to)

    def law(sender: int, destination: int) -> npt.NDArray[np.float64]:
        paths = routes.paths(names[sender], names[destination])
        if paths is None:
            raise ConfigError(
                key="mixnet.path_length",
                got=path_length,
                takes="a path length at which the paths of a pair can be listed",
                hint="the last hop's share of longer paths is close to that of the longest listed",
            )
        found = np.zeros(nodes)
        for path in paths:
            found[graph.index_of(path[-2]) if len(path) > 1 else sender] += 1.0
        return found / len(paths) if paths else found

    return law


def valiant_law(graph: Topology) -> LastHopLaw:
    """Return the law of two uniform shortest legs that meet in a uniform middle."""
    nodes = graph.nodes
    last_hops: dict[int, npt.NDArray[np.float64]] = {}

    def of_destination(destination: int) -> npt.NDArray[np.float64]:
        """Row m: the law of the last hop on the leg from the middle m."""
        if destination not in last_hops:
            found = np.zeros((nodes, nodes))
            distances = graph.distances_from(destination)
            # In the order of their distance each node's law is the mix of those one step closer, by their paths.
            paths = np.zeros(nodes)
            paths[destination] = 1.0
            for node in sorted(range(nodes), key=lambda each: distances[each]):
                if node == destination or distances[node] == UNREACHABLE:
                    continue
                closer = [near for near in graph.neighbours(node) if distances[near] == distances[node] - 1]
                paths[node] = sum(paths[near] for near in closer)
                if distances[node] == 1:
                    found[node, node] = 1.0
                else:
                    found[node] = sum(paths[near] * found[near] for near in closer) / paths[node]
            last_hops[destination] = found
        return last_hops[destination]

    def law(sender: int, destination: int) -> npt.NDArray[np.float64]:
        found = of_destination(destination)
        mean: npt.NDArray[np.float64] = (found.sum(axis=0) - found[sender]) / (nodes - 2)
        return mean

    return law


class LastHop:
    """The exact posteriors of one network."""

    __slots__ = ("_by_destination", "_nodes")

    def __init__(self, law: LastHopLaw, destinations: Sequence[Sequence[int]]) -> None:
        """`destinations` says for every node to whom it writes."""
        nodes = len(destinations)
        self._nodes = nodes
        # joint[d][p, u]: probability of this sender, destination and last hop.
        self._by_destination = np.zeros((nodes, nodes, nodes))
        for sender, writes_to in enumerate(destinations):
            for destination in writes_to:
                share = 1.0 / (nodes * len(writes_to))
                self._by_destination[destination, :, sender] = share * law(sender, destination)

    def posterior(self, destination: int, last_hop: int) -> Posterior:
        """Return what is known of the sender from these two; ConfigError if no route ends so."""
        joint = self._by_destination[destination, last_hop]
        total = joint.sum()
        if not total > 0.0:
            raise ConfigError(
                key="trace.targets",
                got=f"a fragment for {destination} by way of {last_hop}",
                takes="fragments that travelled by the stated routes",
                hint="the settings in this trace are not those of its run",
            )
        found: Posterior = joint / total
        return found

    @property
    def accuracy(self) -> float:
        """How often the best guess is right: the mean over everything that can be seen."""
        return float(self._by_destination.max(axis=2).sum() / self._by_destination.sum())

    @property
    def blind_accuracy(self) -> float:
        """How often the best guess is right that knows the destination only."""
        return float(self._by_destination.sum(axis=1).max(axis=1).sum() / self._by_destination.sum())

    def candidates(self, destination: int, last_hop: int) -> int:
        """Return how many senders are possible."""
        return int(np.count_nonzero(self._by_destination[destination, last_hop]))


def _at(nodes: int, index: int) -> npt.NDArray[np.float64]:
    found = np.zeros(nodes)
    found[index] = 1.0
    return found
