"""What the tests of routes share: names for nodes, a fixed peer view, and a slow, obvious search for simple paths."""

from collections.abc import Iterable

from unlinkabledfl.mixnet.routes import TransportGraph
from unlinkabledfl.mixnet.topology import Topology
from unlinkabledfl.sphinx import NodeId


def name(number: int) -> NodeId:
    return NodeId(number.to_bytes(32))


def named(numbers: Iterable[int]) -> tuple[NodeId, ...]:
    return tuple(map(name, numbers))


def numbers(node_ids: Iterable[NodeId]) -> tuple[int, ...]:
    return tuple(map(int.from_bytes, node_ids))


def graph(topology: Topology) -> TransportGraph:
    return TransportGraph(topology=topology, node_ids=named(range(topology.nodes)))


class ListedPeers:
    """Peers 0 to count-1, some of which are down."""

    def __init__(self, count: int, *, down: Iterable[int] = ()) -> None:
        self._count = count
        self._down = set(named(down))

    def __len__(self) -> int:
        return self._count

    def at(self, index: int) -> NodeId:
        return name(index)

    def is_routable(self, node_id: NodeId) -> bool:
        return node_id not in self._down


def simple_paths(topology: Topology, start: int, end: int, length: int) -> set[tuple[int, ...]]:
    """Every simple path, or cycle where start is end, without its start."""
    paths: list[tuple[int, ...]] = [()]
    for step in range(length):
        paths = [
            (*path, near)
            for path in paths
            for near in topology.neighbours(path[-1] if path else start)
            if (near == end and step == length - 1) or near not in (start, end, *path)
        ]
    return {path for path in paths if path[-1:] == (end,)}
