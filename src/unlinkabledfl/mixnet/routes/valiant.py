"""A uniform middle relay, random shortest legs: indirection for sparse graphs whose nodes cannot dial freely.

The middle is uniform over all nodes but the two ends and knows nothing of them, so what happens after it is independent
of who sent. Each leg is uniform over the shortest paths of the transport graph, and each of its nodes mixes.

A packet may pass a node twice, once on each leg, and even one of its ends: excluding that would make the middle depend
on the ends. It never passes a node twice in a row.

With peers to avoid, middle and legs are drawn again until they miss them: the same law, given that it misses them.
Should that fail many times over, shortest legs in what is left of the graph take their place.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from unlinkabledfl.errors import ConfigError, NoRouteError
from unlinkabledfl.mixnet.draw import Draw
from unlinkabledfl.mixnet.routes.bounded_cache import BoundedCache
from unlinkabledfl.mixnet.routes.protocol import HOPS_LIMIT, NOBODY, TransportGraph
from unlinkabledfl.mixnet.topology import UNREACHABLE, Topology
from unlinkabledfl.sphinx import NodeId

_ATTEMPTS = 64
_NODES_MIN = 3
_KEPT_DISTANCES = 1 << 21
_NOT_BLOCKED: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class _Field:
    """For every node, how far one node is, and by how many shortest paths."""

    distances: Sequence[int]
    paths: Sequence[int]


class ValiantRoutes:
    """Two uniform shortest legs that meet in a uniform middle relay."""

    __slots__ = ("_fields", "_graph")

    def __init__(self, *, graph: TransportGraph) -> None:
        self._graph = graph
        self._fields: BoundedCache[int, _Field] = BoundedCache(bound=_KEPT_DISTANCES)

    @property
    def hops_min(self) -> int:
        """The fewest hops that a route has: the middle may neighbour both ends."""
        return 2

    @property
    def hops_max(self) -> int:
        """The most hops that a route has."""
        return 2 * self._graph.topology.diameter()

    def route(
        self, *, source: NodeId, destination: NodeId, draw: Draw, avoid: AbstractSet[NodeId] = NOBODY
    ) -> tuple[NodeId, ...]:
        """Return the rest of both legs, destination last; the middle is not marked."""
        graph = self._graph
        start, end = graph.index_of(source), graph.index_of(destination)
        if destination != source and destination in avoid:
            raise NoRouteError(f"the destination {destination.hex()[:16]} is to be avoided")
        ends = len({start, end})
        if graph.topology.nodes <= ends:
            raise NoRouteError("a middle relay needs a node besides the two ends")
        blocked = _NOT_BLOCKED
        if avoid:
            blocked = frozenset([graph.index_of(node_id) for node_id in avoid if node_id in graph]) - {
                start,
                end,
            }
        from_start, from_end = self._field(start), self._field(end)
        for _ in range(_ATTEMPTS):
            middle = draw.below(graph.topology.nodes)
            if middle in (start, end):
                continue
            path = self._legs(middle, from_start, from_end, draw)
            if path is not None and blocked.isdisjoint(path):
                return graph.named(path)
        return graph.named(self._legs_in_remainder(start, end, blocked, draw))

    def destination(self, *, source: NodeId, draw: Draw, avoid: AbstractSet[NodeId] = NOBODY) -> NodeId:
        """Return a destination, uniform over all other nodes."""
        node_ids = self._graph.node_ids
        for _ in range(8):
            node_id = node_ids[draw.below(len(node_ids))]
            if node_id != source and node_id not in avoid:
                return node_id
        still_open = [node_id for node_id in self.reach(source) if node_id not in avoid]
        if not still_open:
            raise NoRouteError("no other node is usable as a destination")
        return draw.choice(still_open)

    def reach(self, source: NodeId) -> tuple[NodeId, ...]:
        """Return all other nodes."""
        return tuple([node_id for node_id in self._graph.node_ids if node_id != source])

    def reaches(self, source: NodeId, destination: NodeId) -> bool:
        """Return whether the destination is another node of the graph."""
        return source != destination and destination in self._graph

    def check(self) -> None:
        """Raise `ConfigError` when the graph has no room for two legs, or a packet none for their hops."""
        topology = self._graph.topology
        if topology.nodes < _NODES_MIN:
            raise ConfigError(
                key="topology.nodes", got=topology.nodes, takes=f"at least {_NODES_MIN} nodes for `valiant` routes"
            )
        if not topology.is_connected():
            raise ConfigError(key="mixnet.routes", got="valiant", takes="a connected topology")
        if self.hops_max > HOPS_LIMIT:
            raise ConfigError(
                key="mixnet.routes",
                got="valiant",
                takes=f"a topology of diameter at most {HOPS_LIMIT // 2}; this one has {topology.diameter()}",
                hint="a higher degree brings nodes closer; `walk` and `overlay` routes do not depend on the diameter",
            )

    def _field(self, node: int) -> _Field:
        try:
            return self._fields.entries[node]
        except KeyError:
            field = _measure(self._graph.topology, node, _NOT_BLOCKED)
            self._fields.store(node, field, weight=2 * self._graph.topology.nodes)
            return field

    def _legs(self, middle: int, from_start: _Field, from_end: _Field, draw: Draw) -> list[int] | None:
        if from_start.distances[middle] == UNREACHABLE or from_end.distances[middle] == UNREACHABLE:
            return None
        # Both legs are walked from the middle down to their end: a field then needs to be known of the ends only.
        path = self._descend(middle, from_start, draw)
        path.pop()
        path.reverse()
        path.append(middle)
        path += self._descend(middle, from_end, draw)
        return path

    def _descend(self, node: int, field: _Field, draw: Draw) -> list[int]:
        """Return the nodes after this one on a uniform shortest path to where the field originates."""
        neighbours, distances, paths = self._graph.topology.neighbours, field.distances, field.paths
        path: list[int] = []
        for distance in range(distances[node] - 1, -1, -1):
            ticket = draw.below(paths[node])
            for near in neighbours(node):
                if distances[near] == distance:
                    ticket -= paths[near]
                    if ticket < 0:
                        node = near
                        break
            path.append(node)
        return path

    def _legs_in_remainder(self, start: int, end: int, blocked: frozenset[int], draw: Draw) -> list[int]:
        topology = self._graph.topology
        from_start, from_end = _measure(topology, start, blocked), _measure(topology, end, blocked)
        longest = self.hops_max if topology.is_connected() else HOPS_LIMIT
        middles = [
            middle
            for middle in range(topology.nodes)
            if middle not in (start, end)
            and from_start.distances[middle] != UNREACHABLE
            and from_end.distances[middle] != UNREACHABLE
            and from_start.distances[middle] + from_end.distances[middle] <= longest
        ]
        if middles:
            path = self._legs(draw.choice(middles), from_start, from_end, draw)
            if path is not None:
                return path
        raise NoRouteError(f"no open middle relay lies within {longest} hops of both ends")


def _measure(topology: Topology, origin: int, blocked: AbstractSet[int]) -> _Field:
    distances = [UNREACHABLE] * topology.nodes
    paths = [0] * topology.nodes
    distances[origin], paths[origin] = 0, 1
    frontier = [origin]
    while frontier:
        found: list[int] = []
        distance = distances[frontier[0]] + 1
        for near in frontier:
            ways = paths[near]
            for far in topology.neighbours(near):
                if distances[far] == distance:
                    paths[far] += ways
                elif distances[far] == UNREACHABLE and far not in blocked:
                    distances[far] = distance
                    paths[far] = ways
                    found.append(far)
        frontier = found
    return _Field(distances, paths)
