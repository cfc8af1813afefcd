"""Simple paths over the transport graph: the paper's routes.

A route is uniform over all simple paths of exactly K edges from source to destination; with `up_to`, over all those of
at most K edges together, so that direct delivery is as rare as it can be. A simple path visits no node twice.

Where a pair has few paths they are listed once and drawn from the list. Where it has many, walks of the right length
are drawn uniformly, by counting how many ways lead on from each node, until one is simple: that is uniform over simple
paths too, without listing them.

Who sees the last hop learns much about the sender: on a circulant of 32 nodes and degree 4, knowing the destination,
the last hop and the graph names the sender with probability 1/2 at K = 2, and still 0.116 at K = 5. `overlay` does not
have this leak.

A loop comes back to its source through distinct relays in exactly K hops. Where the graph has no cycle of K edges, an
odd K takes a cycle of K + 1; where that is missing too, the loop goes out along a simple path and returns the same way.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from unlinkabledfl.errors import ConfigError, NoRouteError
from unlinkabledfl.mixnet.draw import Draw
from unlinkabledfl.mixnet.routes.bounded_cache import BoundedCache
from unlinkabledfl.mixnet.routes.protocol import (
    NOBODY,
    TransportGraph,
    check_path_length,
    draw_open,
)
from unlinkabledfl.mixnet.topology import Topology
from unlinkabledfl.sphinx import NodeId

# More paths than this are sampled, not listed: beside so many, rejection soon finds one.
_LISTED_PATHS = 512
_LISTING_STEPS = 50_000
_SAMPLING_ATTEMPTS = 20_000

# Bounds of what is kept: listed paths (about 10 MB), and counts of walks (about 100 MB, only for many paths).
_KEPT_PATHS = 1 << 16
_KEPT_COUNTS = 1 << 20

Paths = tuple[tuple[NodeId, ...], ...]
_Listed = tuple[tuple[int, ...], ...]


class WalkRoutes:
    """Simple paths of exactly (or up to) `path_length` edges over a transport graph."""

    __slots__ = ("_back_and_forth", "_counts", "_graph", "_paths", "_reach", "path_length", "up_to")

    def __init__(self, *, graph: TransportGraph, path_length: int, up_to: bool = False) -> None:
        check_path_length(path_length)
        self.path_length = path_length
        self.up_to = up_to
        self._graph = graph
        # None stands for more paths than are listed.
        self._paths: BoundedCache[tuple[int, int], _Listed | None] = BoundedCache(bound=_KEPT_PATHS)
        self._counts: BoundedCache[tuple[int, int], list[dict[int, int]]] = BoundedCache(bound=_KEPT_COUNTS)
        self._reach: dict[NodeId, tuple[NodeId, ...]] = {}
        self._back_and_forth: WalkRoutes | None = None

    @property
    def hops_min(self) -> int:
        """The fewest hops that a route has."""
        return 1 if self.up_to else self.path_length

    @property
    def hops_max(self) -> int:
        """The most hops that a route has; a loop of odd length may have to take one more."""
        if self.path_length % 2 == 0 or (self.up_to and self.path_length > 1):
            return self.path_length
        topology = self._graph.topology
        if topology.is_circulant and _list_paths(topology, 0, 0, self.path_length, limit=1)[0]:
            return self.path_length
        return self.path_length + 1

    def route(
        self, *, source: NodeId, destination: NodeId, draw: Draw, avoid: AbstractSet[NodeId] = NOBODY
    ) -> tuple[NodeId, ...]:
        """Return the rest of a simple path that starts at the source, uniform over those that `avoid` leaves."""
        paths, shift = self._listed(source, destination)
        if avoid:
            return self._route_around(source, destination, paths, shift, draw, avoid)
        if paths:
            return self._named(paths[draw.below(len(paths))], shift)
        return self._route_unlisted(source, destination, paths, draw, avoid)

    def destination(self, *, source: NodeId, draw: Draw, avoid: AbstractSet[NodeId] = NOBODY) -> NodeId:
        """Return a destination, uniform over the ends of the source's paths."""
        return draw_open(self.reach(source), draw, avoid)

    def reach(self, source: NodeId) -> tuple[NodeId, ...]:
        """Return the ends of the simple paths that start at the source."""
        try:
            return self._reach[source]
        except KeyError:
            topology, index = self._graph.topology, self._graph.index_of(source)
            measure = topology.reach_within if self.up_to else topology.reach_exactly
            self._reach[source] = ends = self._graph.named(measure(index, self.path_length))
            return ends

    def reaches(self, source: NodeId, destination: NodeId) -> bool:
        """Return whether a path leads to the destination."""
        return destination in self.reach(source)

    def check(self) -> None:
        """Raise `ConfigError` when some node starts no path of this length."""
        needed = 1 if self.up_to else self.path_length
        if _carries(self._graph.topology, needed):
            return
        largest = needed - 1
        while largest and not _carries(self._graph.topology, largest):
            largest -= 1
        raise ConfigError(
            key="mixnet.path_length",
            got=self.path_length,
            takes=f"at most {largest} on this topology"
            if largest
            else "a topology in which every node has a neighbour",
            hint=f"some node starts no simple path of {needed} edges; more links or `overlay` routes carry more",
        )

    def paths(self, source: NodeId, destination: NodeId) -> Paths | None:
        """Return every route of this pair, each as likely as the others; None when they are too many to list."""
        paths, shift = self._listed(source, destination)
        return None if paths is None else tuple([self._named(path, shift) for path in paths])

    def _listed(self, source: NodeId, destination: NodeId) -> tuple[_Listed | None, int]:
        """Return the paths of this pair, and by how much to move their nodes on."""
        graph = self._graph
        start, end = graph.index_of(source), graph.index_of(destination)
        shift = 0
        if graph.topology.is_circulant:
            # The paths from the first node, moved on, are those from any other: one list serves all.
            shift, start, end = start, 0, (end - start) % graph.topology.nodes
        try:
            return self._paths.entries[start, end], shift
        except KeyError:
            return self._list(start, end), shift

    def _named(self, path: tuple[int, ...], shift: int) -> tuple[NodeId, ...]:
        node_ids = self._graph.node_ids
        if not shift:
            return tuple([node_ids[node] for node in path])
        nodes = len(node_ids)
        return tuple([node_ids[(node + shift) % nodes] for node in path])

    def _list(self, start: int, end: int) -> _Listed | None:
        topology = self._graph.topology
        listed: list[tuple[int, ...]] = []
        complete = True
        for length in self._lengths(start, end):
            found, all_found = _list_paths(topology, start, end, length, limit=_LISTED_PATHS)
            listed += found
            complete = complete and all_found
        paths = tuple(listed) if complete and len(listed) <= _LISTED_PATHS else None
        self._paths.store((start, end), paths, weight=1 + len(paths or ()))
        return paths

    def _lengths(self, start: int, end: int) -> Sequence[int]:
        """Return how many edges a path between these nodes may have."""
        if start != end:
            return range(1, self.path_length + 1) if self.up_to else (self.path_length,)
        if self.up_to or self.path_length == 1:
            return range(2, max(self.path_length, 2) + 1)
        if self.path_length % 2 and not _list_paths(self._graph.topology, start, start, self.path_length, limit=1)[0]:
            return (self.path_length + 1,)
        return (self.path_length,)

    def _route_around(  # noqa: PLR0917 -- of one call site
        self,
        source: NodeId,
        destination: NodeId,
        paths: _Listed | None,
        shift: int,
        draw: Draw,
        avoid: AbstractSet[NodeId],
    ) -> tuple[NodeId, ...]:
        if destination == source:
            # Copied only where it must be: who avoids many peers should not pay for it with every loop.
            avoid = avoid - {source} if source in avoid else avoid
        elif destination in avoid:
            raise NoRouteError(f"the destination {destination.hex()[:16]} is to be avoided")
        if paths:
            path = self._named(paths[draw.below(len(paths))], shift)
            if avoid.isdisjoint(path):
                return path
            # Discarding a first draw and drawing afresh among the open paths is uniform over the open paths.
            still_open = [path for path in (self._named(listed, shift) for listed in paths) if avoid.isdisjoint(path)]
            if still_open:
                return draw.choice(still_open)
            paths = ()
        return self._route_unlisted(source, destination, paths, draw, avoid)

    def _route_unlisted(
        self, source: NodeId, destination: NodeId, paths: _Listed | None, draw: Draw, avoid: AbstractSet[NodeId]
    ) -> tuple[NodeId, ...]:
        if paths is None:
            path = self._sample(source, destination, draw, avoid)
            if path is not None:
                return path
        elif source == destination:
            return self._go_and_return(source, draw, avoid)
        raise NoRouteError(
            f"no open simple path of {'up to ' if self.up_to else ''}{self.path_length} edges"
            f" from {source.hex()[:16]} to {destination.hex()[:16]}"
        )

    def _go_and_return(self, source: NodeId, draw: Draw, avoid: AbstractSet[NodeId]) -> tuple[NodeId, ...]:
        if self._back_and_forth is None:
            self._back_and_forth = WalkRoutes(graph=self._graph, path_length=(self.path_length + 1) // 2)
        there = self._back_and_forth
        turn = there.destination(source=source, draw=draw, avoid=avoid)
        path = there.route(source=source, destination=turn, draw=draw, avoid=avoid)
        return (*path, *path[-2::-1], source)

    def _sample(
        self, source: NodeId, destination: NodeId, draw: Draw, avoid: AbstractSet[NodeId]
    ) -> tuple[NodeId, ...] | None:
        """Draw uniform walks until one is simple; None when too many were not."""
        graph, topology = self._graph, self._graph.topology
        start, end = graph.index_of(source), graph.index_of(destination)
        lengths = self._lengths(start, end)
        rows = self._walk_counts(end, max(lengths) - 1)
        ways = [sum([rows[length - 1].get(near, 0) for near in topology.neighbours(start)]) for length in lengths]
        blocked = {start, *(graph.index_of(node_id) for node_id in avoid if node_id in graph)}
        blocked.discard(end)
        total = sum(ways)
        for _ in range(_SAMPLING_ATTEMPTS if total else 0):
            left = lengths[_weighted(ways, draw.below(total))]
            path = [start]
            while left:
                left -= 1
                row = rows[left]
                onward = [near for near in topology.neighbours(path[-1]) if near in row]
                weights = [row[near] for near in onward]
                near = onward[_weighted(weights, draw.below(sum(weights)))]
                if near in blocked or (near in path and left):
                    break
                path.append(near)
            else:
                return graph.named(path[1:])
        return None

    def _walk_counts(self, end: int, longest: int) -> list[dict[int, int]]:
        """Return for each length 0 to `longest` how many walks lead from a node to the end, reaching it only then."""
        try:
            return self._counts.entries[end, longest]
        except KeyError:
            pass
        rows = [{end: 1}]
        for _ in range(longest):
            row: dict[int, int] = {}
            for near, ways in rows[-1].items():
                for far in self._graph.topology.neighbours(near):
                    row[far] = row.get(far, 0) + ways
            row.pop(end, None)
            rows.append(row)
        self._counts.store((end, longest), rows, weight=sum(map(len, rows)))
        return rows


def _weighted(weights: Sequence[int], ticket: int) -> int:
    """Return the position that holds this ticket when every position holds as many tickets as it weighs."""
    for position, weight in enumerate(weights):
        ticket -= weight
        if ticket < 0:
            return position
    raise IndexError(ticket)


def _carries(topology: Topology, hops: int) -> bool:
    # Every node of a circulant graph answers like the first.
    nodes = 1 if topology.is_circulant else topology.nodes
    return all(topology.starts_simple_path(node, hops) for node in range(nodes))


def _list_paths(
    topology: Topology, start: int, end: int, length: int, *, limit: int
) -> tuple[list[tuple[int, ...]], bool]:
    """Return the simple paths of this length, without their start, and whether these are all.

    The list may exceed the limit by one, which shows that there are more. A start that is also the end asks for cycles.
    """
    found: list[tuple[int, ...]] = []
    rows = topology.walk_ends(end, length - 1)
    path = [start]
    branches = [iter(topology.neighbours(start))]
    for _ in range(_LISTING_STEPS):
        useful = rows[length - len(path)]
        for near in branches[-1]:
            if near not in useful:
                continue
            if near == end:
                found.append((*path[1:], end))
                if len(found) > limit:
                    return found, False
            elif near not in path:
                path.append(near)
                branches.append(iter(topology.neighbours(near)))
                break
        else:
            branches.pop()
            path.pop()
            if not path:
                return found, True
    return found, False
