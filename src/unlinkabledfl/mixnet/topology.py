"""Who has a transport link with whom: an undirected graph over node indices 0 to n-1.

A `Topology` never changes: when peers join or leave, a new one takes its place. That makes it safe to share among ten
thousand simulated nodes, and lets everything computed from it be kept.

Sizes of the default graph, `circulant(nodes=32, degree=4)` with offsets 1 and 6: each node reaches 12 others within two
hops, and 8 by a simple path of exactly two. In `full(nodes=32)` it reaches all 31.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.mixnet.draw import Draw

UNREACHABLE: Final = -1

_NODES_MIN = 2
_DEGREE_MIN = 2
_SMALL_WORLD_DEGREE_MIN = 4

# Whether a simple path of a given length exists is a hard question on graphs made to be hard. A search that takes more
# steps than this counts as "no": what is reported as reachable always is. Long paths on
# graphs with a dense core and dangling nodes may meet the bound.
_SEARCH_STEPS = 100_000

# With the degrees allowed, a random graph is connected much more often than not.
_ATTEMPTS = 100


class Topology:
    """An immutable simple graph; neighbours are sorted."""

    __slots__ = ("_adjacency", "_diameter", "_is_circulant")

    def __init__(self, adjacency: Iterable[Iterable[int]], *, is_circulant: bool = False) -> None:
        """Take symmetric adjacency without self-loops; the functions below check what they are given.

        `is_circulant` says that moving every node on by one changes nothing, so that one node's distances and paths
        speak for all.
        """
        self._adjacency = tuple(tuple(sorted(neighbours)) for neighbours in adjacency)
        self._is_circulant = is_circulant
        self._diameter: int | None = None

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self._adjacency)

    @property
    def edges(self) -> int:
        """How many undirected edges there are."""
        return sum(map(len, self._adjacency)) // 2

    @property
    def is_circulant(self) -> bool:
        """Whether the construction guarantees that every node sees the same graph."""
        return self._is_circulant

    def __repr__(self) -> str:
        return f"Topology(nodes={self.nodes}, edges={self.edges})"

    def neighbours(self, node: int) -> tuple[int, ...]:
        """Return the sorted neighbours of a node."""
        return self._adjacency[node]

    def distances_from(self, node: int) -> list[int]:
        """Return the number of edges to every node, `UNREACHABLE` where there is no path."""
        distances = [UNREACHABLE] * self.nodes
        distances[node] = 0
        frontier = [node]
        while frontier:
            found: list[int] = []
            distance = distances[frontier[0]] + 1
            for near in frontier:
                for far in self._adjacency[near]:
                    if distances[far] == UNREACHABLE:
                        distances[far] = distance
                        found.append(far)
            frontier = found
        return distances

    def is_connected(self) -> bool:
        """Return whether every node has a path to every other."""
        return UNREACHABLE not in self.distances_from(0)

    def diameter(self) -> int:
        """Return the largest distance between two nodes; only a connected graph has one."""
        if self._diameter is None:
            if not self.is_connected():
                raise LocalProtocolError("a graph that is not connected has no diameter")
            if self._is_circulant:
                self._diameter = max(self.distances_from(0))
            else:
                self._diameter = self._widest()
        return self._diameter

    def _widest(self) -> int:
        # All searches at once: bit j of seen[i] says that j is within `rounds` hops of i.
        everybody = (1 << self.nodes) - 1
        seen = [1 << node for node in range(self.nodes)]
        open_nodes = list(range(self.nodes))
        rounds = 0
        while open_nodes := [node for node in open_nodes if seen[node] != everybody]:
            wider = list(seen)
            for node in open_nodes:
                bits = seen[node]
                for neighbour in self._adjacency[node]:
                    bits |= seen[neighbour]
                wider[node] = bits
            seen = wider
            rounds += 1
        return rounds

    def reach_within(self, node: int, hops: int) -> tuple[int, ...]:
        """Return the sorted nodes at most this many edges away, without the node itself."""
        return tuple(other for other, distance in enumerate(self.distances_from(node)) if 0 < distance <= hops)

    def reach_exactly(self, node: int, hops: int) -> tuple[int, ...]:
        """Return the sorted ends of the simple paths of exactly this many edges that start at the node.

        A node at a smaller distance belongs to them when a detour takes exactly as long as asked.
        """
        if hops < 1:
            return ()
        walks = self.walk_ends(node, hops)
        return tuple(sorted(end for end in walks[hops] if self._has_simple_path(end, walks)))

    def has_simple_path(self, start: int, end: int, hops: int) -> bool:
        """Return whether a simple path of exactly this many edges joins two different nodes."""
        walks = self.walk_ends(start, hops)
        return end in walks[hops] and self._has_simple_path(end, walks)

    def starts_simple_path(self, node: int, hops: int) -> bool:
        """Return whether any simple path of exactly this many edges starts at the node."""
        path = [node]
        branches = [iter(self._adjacency[node])]
        for _ in range(_SEARCH_STEPS):
            if len(path) > hops:
                return True
            for near in branches[-1]:
                if near not in path:
                    path.append(near)
                    branches.append(iter(self._adjacency[near]))
                    break
            else:
                branches.pop()
                path.pop()
                if not path:
                    return False
        return False

    def walk_ends(self, node: int, hops: int) -> list[set[int]]:
        """Return for each length 0 to `hops` the ends of walks of that length that never come back to the node.

        A superset of the ends of simple paths, cheap to compute: what is outside needs no search.
        """
        rows = [{node}]
        for _ in range(hops):
            last = rows[-1]
            if 4 * len(last) < self.nodes:
                row = {far for near in last for far in self._adjacency[near]}
            else:
                # Most nodes are an end already: the first neighbour tried usually shows that the next row has a node.
                row = {far for far in range(self.nodes) if not last.isdisjoint(self._adjacency[far])}
            row.discard(node)
            rows.append(row)
        return rows

    def _has_simple_path(self, end: int, walks: Sequence[set[int]]) -> bool:
        # Backwards from the end, so that the rows of one start serve the search for every end.
        adjacency = self._adjacency
        path = [end]
        on_path = {end}
        branches = [iter(adjacency[end])]
        left = len(walks) - 2
        for _ in range(_SEARCH_STEPS):
            useful = walks[left]
            for near in branches[-1]:
                if near in useful and near not in on_path:
                    break
            else:
                branches.pop()
                if not branches:
                    return False
                on_path.discard(path.pop())
                left += 1
                continue
            if left == 0:
                return True
            path.append(near)
            on_path.add(near)
            branches.append(iter(adjacency[near]))
            left -= 1
        return False


def circulant(nodes: int, degree: int) -> Topology:
    """Join node i with i ± offset for offsets spread geometrically from 1 on, which keeps the diameter small.

    The offsets are round(nodes ** (j / h)) for j = 0 to h-1, with h = degree // 2, moved apart where rounding makes
    them equal.
    An odd degree adds the opposite node, so it needs an even number of nodes.
    """
    _check_degree(nodes, degree)
    half = degree // 2
    largest = (nodes - 1) // 2
    offsets: list[int] = []
    for index in range(half):
        lower = offsets[-1] + 1 if offsets else 1
        upper = largest - (half - 1 - index)
        offsets.append(min(max(round(nodes ** (index / half)), lower), upper))
    steps = [step for offset in offsets for step in (offset, -offset)]
    if degree % 2:
        steps.append(nodes // 2)
    return Topology(([(node + step) % nodes for step in steps] for node in range(nodes)), is_circulant=True)


def ring(nodes: int) -> Topology:
    """Join every node with the next; two nodes share one edge."""
    _check_nodes(nodes)
    return circulant(nodes, min(_DEGREE_MIN, nodes - 1))


def full(nodes: int) -> Topology:
    """Join every node with every other. It takes eight bytes a pair: 800 MB at 10,000 nodes."""
    _check_nodes(nodes)
    everybody = list(range(nodes))
    return Topology((everybody[:node] + everybody[node + 1 :] for node in everybody), is_circulant=True)


def random_regular(nodes: int, degree: int, draw: Draw) -> Topology:
    """Draw a connected graph in which every node has this degree.

    Edge ends are paired at random, pairs that cannot be edges are paired again (Steger and Wormald): close to uniform
    over such graphs, and closer the larger the graph. Degree 2 is a uniform cycle through all nodes, because pairing
    would hardly ever make one cycle. Degrees above half are drawn as the complement of a sparse graph.
    """
    _check_degree(nodes, degree)
    if degree == _DEGREE_MIN:
        order = list(range(nodes))
        draw.shuffle(order)
        return from_edges(nodes, zip(order, [*order[1:], order[0]], strict=True))
    spare = nodes - 1 - degree

    def adjacency() -> list[set[int]]:
        if degree <= spare:
            return _pair_ends(nodes, degree, draw)
        missing = _pair_ends(nodes, spare, draw)
        everybody = set(range(nodes))
        return [everybody - missing[node] - {node} for node in range(nodes)]

    return _first_connected(adjacency)


def small_world(nodes: int, degree: int, rewire: float, draw: Draw) -> Topology:
    """Draw a connected small world (Watts and Strogatz): a ring lattice whose edges move to random ends.

    Each edge keeps one end and, with probability `rewire`, exchanges the other for a uniform node. Unconnected results
    are drawn again.
    """
    _check_degree(nodes, degree)
    if degree % 2 or degree < _SMALL_WORLD_DEGREE_MIN:
        takes = f"an even degree of at least {_SMALL_WORLD_DEGREE_MIN} for a small world"
        raise ConfigError(key="topology.degree", got=degree, takes=takes, hint="degree 2 is `ring`")
    if not 0.0 <= rewire <= 1.0:
        raise ConfigError(key="topology.rewire", got=rewire, takes="a probability from 0 to 1")
    return _first_connected(lambda: _rewired_lattice(nodes, degree, rewire, draw))


def from_edges(nodes: int, edges: Iterable[tuple[int, int]]) -> Topology:
    """Join exactly these pairs; a pair given twice, or in both directions, is one edge."""
    _check_nodes(nodes)
    adjacency: list[set[int]] = [set() for _ in range(nodes)]
    for edge in edges:
        one, other = edge
        if not (0 <= one < nodes and 0 <= other < nodes) or one == other:
            raise ConfigError(key="topology.edges", got=edge, takes=f"pairs of different nodes from 0 to {nodes - 1}")
        adjacency[one].add(other)
        adjacency[other].add(one)
    return Topology(adjacency)


def _first_connected(draw_adjacency: Callable[[], list[set[int]]]) -> Topology:
    for _ in range(_ATTEMPTS):
        topology = Topology(draw_adjacency())
        if topology.is_connected():
            return topology
    raise LocalProtocolError(f"none of {_ATTEMPTS} random graphs was connected")


def _check_nodes(nodes: int) -> None:
    if nodes < _NODES_MIN:
        raise ConfigError(key="topology.nodes", got=nodes, takes=f"at least {_NODES_MIN} nodes")


def _check_degree(nodes: int, degree: int) -> None:
    _check_nodes(nodes)
    if nodes == _NODES_MIN:
        if degree != 1:
            raise ConfigError(key="topology.degree", got=degree, takes=f"1 when there are {nodes} nodes")
        return
    if not _DEGREE_MIN <= degree < nodes:
        raise ConfigError(
            key="topology.degree",
            got=degree,
            takes=f"a degree from {_DEGREE_MIN} to {nodes - 1} when there are {nodes} nodes",
        )
    if degree % 2 and nodes % 2:
        raise ConfigError(
            key="topology.degree",
            got=degree,
            takes=f"an even degree when the number of nodes is odd ({nodes})",
            hint=f"{degree - 1} works",
        )


def _pair_ends(nodes: int, degree: int, draw: Draw) -> list[set[int]]:
    while True:
        adjacency: list[set[int]] = [set() for _ in range(nodes)]
        ends = [node for node in range(nodes) for _ in range(degree)]
        while ends:
            draw.shuffle(ends)
            left: list[int] = []
            for one, other in zip(ends[::2], ends[1::2], strict=True):
                if one == other or other in adjacency[one]:
                    left += (one, other)
                else:
                    adjacency[one].add(other)
                    adjacency[other].add(one)
            if len(left) == len(ends) and not _can_pair(left, adjacency):
                break
            ends = left
        else:
            return adjacency


def _can_pair(ends: Sequence[int], adjacency: Sequence[set[int]]) -> bool:
    different = set(ends)
    return any(different - adjacency[one] - {one} for one in different)


def _rewired_lattice(nodes: int, degree: int, rewire: float, draw: Draw) -> list[set[int]]:
    spans = range(1, degree // 2 + 1)
    adjacency = [{(node + step) % nodes for span in spans for step in (span, -span)} for node in range(nodes)]
    for span in spans:
        for node in range(nodes):
            old = (node + span) % nodes
            if draw.uniform() >= rewire or len(adjacency[node]) == nodes - 1:
                continue
            new = draw.below(nodes)
            while new == node or new in adjacency[node]:
                new = draw.below(nodes)
            adjacency[node].remove(old)
            adjacency[old].remove(node)
            adjacency[node].add(new)
            adjacency[new].add(node)
    return adjacency
