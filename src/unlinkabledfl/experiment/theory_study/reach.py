"""Who can have sent a packet at all: how far routes lead, by family of the graph, degree and path length."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from unlinkabledfl.analysis.bound import route_view, walk_paths
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.linkability import shown_destinations
from unlinkabledfl.mixnet import topology as families
from unlinkabledfl.mixnet.draw import Draw
from unlinkabledfl.mixnet.topology import Topology
from unlinkabledfl.simulation.entropy import SeededEntropy

__all__ = ["reach_rows"]

NODES: Final = 32
_DEGREES: Final = (4, 6, 8)
_LENGTHS: Final = (1, 2, 3, 4, 5)
_REWIRED: Final = 0.1
_LISTED_MAX: Final = 3
"""Longer walks on dense graphs are too many to list for a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Graph:
    family: str
    degree: int
    make: Callable[[], Topology]


def reach_rows(*, seed: int) -> list[dict[str, Any]]:
    """Return a row for each graph and path length; graphs that are drawn are drawn from the seed."""
    return [_row(graph, graph.make(), length) for graph in _graphs(seed) for length in _LENGTHS]


def _graphs(seed: int) -> list[_Graph]:
    def draw() -> Draw:
        return Draw(SeededEntropy(seed, "topology"))

    found = [_Graph(family="ring", degree=2, make=lambda: families.ring(NODES))]
    for degree in _DEGREES:
        found += [
            _Graph(family="circulant", degree=degree, make=lambda degree=degree: families.circulant(NODES, degree)),  # type: ignore[misc]
            _Graph(
                family="random_regular",
                degree=degree,
                make=lambda degree=degree: families.random_regular(NODES, degree, draw()),  # type: ignore[misc]
            ),
            _Graph(
                family="small_world",
                degree=degree,
                make=lambda degree=degree: families.small_world(NODES, degree, _REWIRED, draw()),  # type: ignore[misc]
            ),
        ]
    return [*found, _Graph(family="full", degree=NODES - 1, make=lambda: families.full(NODES))]


def _row(graph: _Graph, made: Topology, length: int) -> dict[str, Any]:
    within = [len(made.reach_within(node, length)) for node in range(NODES)]
    exactly = [len(made.reach_exactly(node, length)) for node in range(NODES)]
    senders, guess = _seen(made, length)
    return {
        "family": graph.family,
        "degree": graph.degree,
        "path_length": length,
        "within": fmean(within),
        "exactly": fmean(exactly),
        "senders": senders,
        "last_hop": guess,
    }


def _seen(graph: Topology, length: int) -> tuple[float | None, float | None]:
    """Return how many senders are possible once the last hop is known, and how often the likeliest is right."""
    ends = [graph.reach_exactly(node, length) for node in range(graph.nodes)]
    if length > _LISTED_MAX and not graph.is_circulant:
        return None, None
    try:
        view = route_view(walk_paths(graph, path_length=length), ends, destinations=shown_destinations(graph))
    except ConfigError:
        return None, None
    return view.senders, view.guess
