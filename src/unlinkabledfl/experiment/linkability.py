"""How often the last hop alone names the sender, for a scenario: exactly where that can be enumerated.

The adversary knows the destination of a packet, the neighbour that handed it over, the graph, the strategy of the
routes and who exchanges with whom. It reads no clock and follows no packet, so no delay and no cover helps against it.
`analysis.last_hop` explains the law; here it is evaluated for one destination at a time, so that it scales.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from unlinkabledfl.analysis.last_hop import LastHopLaw, direct_law, overlay_law, valiant_law, walk_law
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.graphs import ExchangeSets
from unlinkabledfl.experiment.scenario import Mixnet
from unlinkabledfl.mixnet.topology import Topology

__all__ = ["LastHopLinkability", "last_hop_linkability", "shown_destinations"]

_NODES_MAX: Final = 256
_DESTINATIONS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class LastHopLinkability:
    """Two probabilities of naming the sender: with the last hop, and by guessing among those who may write."""

    accuracy: float | None
    guess: float
    basis: str


def last_hop_linkability(graph: Topology, mixnet: Mixnet) -> LastHopLinkability:
    """Return what the last hop is worth."""
    sets = ExchangeSets(graph, mixnet)
    destinations = shown_destinations(graph)
    guess = sum(1.0 / sets.count(node) for node in destinations) / len(destinations)
    if mixnet.route == "overlay" and mixnet.path_length > 1:
        return LastHopLinkability(
            accuracy=_overlay_accuracy(graph, sets, destinations, path_length=mixnet.path_length),
            guess=guess,
            basis="exact: relays do not depend on the sender",
        )
    if graph.nodes > _NODES_MAX:
        return LastHopLinkability(
            accuracy=None, guess=guess, basis=f"not computed beyond {_NODES_MAX} nodes for routes over the graph"
        )
    try:
        accuracy = _accuracy(_law(graph, mixnet), sets, destinations, nodes=graph.nodes)
    except ConfigError:
        return LastHopLinkability(accuracy=None, guess=guess, basis="not computed: too many paths to enumerate")
    sampled = "" if len(destinations) == graph.nodes or graph.is_circulant else f" at {len(destinations)} destinations"
    return LastHopLinkability(accuracy=accuracy, guess=guess, basis=f"exact, by enumeration{sampled}")


def _law(graph: Topology, mixnet: Mixnet) -> LastHopLaw:
    match mixnet.route:
        case "overlay":
            return (
                direct_law(graph.nodes)
                if mixnet.path_length == 1
                else overlay_law(graph.nodes, path_length=mixnet.path_length)
            )
        case "valiant":
            return valiant_law(graph)
        case "walk" | "walk_up_to":
            return walk_law(graph, path_length=mixnet.path_length, up_to=mixnet.route == "walk_up_to")


def _accuracy(law: LastHopLaw, sets: ExchangeSets, destinations: list[int], *, nodes: int) -> float:
    """Return how often the best guess is right: for each destination and last hop, the likeliest sender."""
    right = total = 0.0
    for destination in destinations:
        best = np.zeros(nodes)
        for sender in sets.of(destination):
            # Every sender writes to each of its partners equally often.
            joint = law(sender, destination) / sets.count(sender)
            total += float(joint.sum())
            best = np.maximum(best, joint)
        right += float(best.sum())
    return right / total


def _overlay_accuracy(graph: Topology, sets: ExchangeSets, destinations: list[int], *, path_length: int) -> float:
    nodes = graph.nodes
    if nodes <= _NODES_MAX:
        return _accuracy(overlay_law(nodes, path_length=path_length), sets, destinations, nodes=nodes)
    # Every sender leads to every relay equally often, so only who writes to whom tells them apart.
    right = total = 0.0
    for destination in destinations:
        shares = [1.0 / sets.count(sender) for sender in sets.of(destination)]
        right += max(shares)
        total += sum(shares)
    return right / total


def shown_destinations(graph: Topology) -> list[int]:
    """Return destinations that stand for all: one where all look alike, a sample where they are many."""
    if graph.is_circulant:
        return [0]
    step = max(1, graph.nodes // _DESTINATIONS) if graph.nodes > 4 * _DESTINATIONS else 1
    return list(range(0, graph.nodes, step))
