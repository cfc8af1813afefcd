"""The graphs of a scenario: who has a transport link with whom, and who sends its model to whom.

Both are public, follow from the scenario alone, and are the same wherever they are computed. The relation of the
exchange is symmetric: whoever sends to a peer is sent to by it.
"""

from itertools import accumulate
from pathlib import Path
from typing import Final, assert_never

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.scenario import Mixnet, Scenario
from unlinkabledfl.experiment.scenario import Topology as TopologySettings
from unlinkabledfl.mixnet import topology as families
from unlinkabledfl.mixnet.draw import Draw
from unlinkabledfl.mixnet.topology import Topology
from unlinkabledfl.simulation.entropy import SeededEntropy

__all__ = ["ExchangeSets", "build_topology", "check_exchange", "fewest_present", "reach"]

_FILE_BYTES_MAX: Final = 64 * 1024 * 1024
_PAIR: Final = 2


def build_topology(scenario: Scenario) -> Topology:
    """Return the transport graph, connected; ConfigError where the family has none of that size and degree."""
    settings = scenario.topology
    draw = Draw(SeededEntropy(settings.seed or scenario.run.seed, "topology"))
    graph: Topology
    match settings.family:
        case "circulant":
            graph = families.circulant(settings.nodes, settings.degree)
        case "ring":
            graph = families.ring(settings.nodes)
        case "full":
            graph = families.full(settings.nodes)
        case "random_regular":
            graph = families.random_regular(settings.nodes, settings.degree, draw)
        case "small_world":
            graph = families.small_world(settings.nodes, settings.degree, settings.rewire, draw)
        case "file":
            graph = _read_graph(settings)
        case _:
            assert_never(settings.family)
    if not graph.is_connected():
        raise ConfigError(
            key="topology.file" if settings.family == "file" else "topology.family",
            got=settings.file or settings.family,
            takes="a connected graph: these links leave some nodes without a path to the others",
        )
    return graph


class ExchangeSets:
    """To whom each node sends its fragments, and who sends to it: the same peers."""

    __slots__ = ("_graph", "_kept", "_mixnet")

    def __init__(self, graph: Topology, mixnet: Mixnet) -> None:
        self._graph = graph
        self._mixnet = mixnet
        self._kept: dict[int, tuple[int, ...]] = {}

    def of(self, node: int) -> tuple[int, ...]:
        """Return the partners of this node, sorted."""
        graph = self._graph
        if graph.is_circulant and node:
            # Every node sees the same graph, so one search serves all.
            return tuple(sorted((other + node) % graph.nodes for other in self.of(0)))
        if node not in self._kept:
            self._kept[node] = self._measure(node)
        return self._kept[node]

    def count(self, node: int) -> int:
        """Return how many there are."""
        return len(self.of(0 if self._graph.is_circulant else node))

    def _measure(self, node: int) -> tuple[int, ...]:
        graph, mixnet = self._graph, self._mixnet
        match mixnet.exchange:
            case "neighbours":
                return graph.neighbours(node)
            case "within":
                return _within(graph, node, mixnet.exchange_hops)
            case "reach":
                return reach(graph, mixnet, node)


def reach(graph: Topology, mixnet: Mixnet, node: int) -> tuple[int, ...]:
    """Return the nodes to which the routes lead from this one, sorted."""
    match mixnet.route:
        case "walk":
            return graph.reach_exactly(node, mixnet.path_length)
        case "walk_up_to":
            return _within(graph, node, mixnet.path_length)
        case "overlay" | "valiant":
            return tuple(other for other in range(graph.nodes) if other != node)


def _within(graph: Topology, node: int, hops: int) -> tuple[int, ...]:
    """Return the nodes at most so many links away, without looking at the rest of a large graph."""
    seen, frontier = {node}, [node]
    for _ in range(hops):
        frontier = [far for far in {far for near in frontier for far in graph.neighbours(near)} if far not in seen]
        if not frontier:
            break
        seen.update(frontier)
    seen.discard(node)
    return tuple(sorted(seen))


def check_exchange(graph: Topology, scenario: Scenario) -> None:
    """ConfigError where a node has nobody to exchange with, or somebody to whom no route leads."""
    mixnet = scenario.mixnet
    others = fewest_present(scenario) - 1
    if mixnet.route == "overlay" and mixnet.path_length > others:
        raise ConfigError(
            key="mixnet.path_length",
            got=mixnet.path_length,
            takes=f"at most {others}, which is how many other nodes there are at times",
            hint=f"{mixnet.path_length} hops need as many: distinct relays and the destination",
        )
    if mixnet.route in {"overlay", "valiant"}:
        return  # they reach everybody
    sets = ExchangeSets(graph, mixnet)
    for node in range(1 if graph.is_circulant else graph.nodes):
        partners = sets.of(node)
        if not partners:
            raise ConfigError(
                key="mixnet.path_length",
                got=mixnet.path_length,
                takes="a path length at which every node reaches another",
                hint=f"node {node} starts no simple path of exactly {mixnet.path_length} links;"
                " `overlay` routes reach everybody",
            )
        if mixnet.exchange == "reach":
            continue
        unreached = set(partners) - set(reach(graph, mixnet, node))
        if unreached:
            raise ConfigError(
                key="mixnet.exchange",
                got=mixnet.exchange,
                takes="an exchange with peers that the routes reach",
                hint=f"no {mixnet.route} of {mixnet.path_length} links leads from node {node} to node {min(unreached)};"
                ' exchange = "reach" takes those that it does lead to, route = "overlay" reaches everybody',
            )


def fewest_present(scenario: Scenario) -> int:
    """Return how many nodes are there when they are fewest."""
    topology = scenario.topology
    changes = [0] * (scenario.run.rounds + 2)
    for event in topology.join:
        if event.round > 1:
            changes[1] -= 1
            changes[event.round] += 1
    for event in topology.exit:
        changes[event.round + 1] -= 1
    present = list(accumulate(changes[1:-1], initial=topology.nodes))
    return min(present[1:])


def _read_graph(settings: TopologySettings) -> Topology:
    path = Path(settings.file)
    try:
        if path.stat().st_size > _FILE_BYTES_MAX:
            raise ConfigError(key="topology.file", got=str(path), takes=f"a file of at most {_FILE_BYTES_MAX:,} bytes")
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConfigError(
            key="topology.file", got=str(path), takes="a readable text file of links", hint=problem
        ) from None
    return families.from_edges(settings.nodes, _edges(text, path=path, nodes=settings.nodes))


def _edges(text: str, *, path: Path, nodes: int) -> list[tuple[int, int]]:
    edges: list[tuple[int, int]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].replace(",", " ").split()
        if not words:
            continue
        ends = [int(word) if word.isascii() and word.isdigit() else -1 for word in words]
        if len(ends) != _PAIR or ends[0] == ends[1] or not all(0 <= end < nodes for end in ends):
            raise ConfigError(
                key="topology.file",
                got=f"{path}, line {number}: {line.strip()[:80]}",
                takes=f"two different nodes from 0 to {nodes - 1} a line, such as 0 1",
            )
        edges.append((ends[0], ends[1]))
    return edges
