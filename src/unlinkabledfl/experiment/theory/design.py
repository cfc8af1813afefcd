"""What the theorems say of a scenario before it runs.

A route has K stages at which a packet is held among others: its sender's own mixer, and K − 1 relays. An observer of
the links knows last hop and destination. Of an adversary that owns nodes, the least hidden trajectory that is possible
has only the stages left that it cannot own: the honest sender's own, and as many relays as it has too few nodes for.
"""

from math import log2
from typing import Final

from unlinkabledfl.analysis.bound import RoutesOf, bound_of, overlay_paths, route_view, walk_paths
from unlinkabledfl.analysis.entropy import CompromiseRegime, relay_entropy_bits
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment import figures
from unlinkabledfl.experiment.graphs import ExchangeSets
from unlinkabledfl.experiment.linkability import shown_destinations
from unlinkabledfl.experiment.scenario import Mixnet, Scenario
from unlinkabledfl.mixnet.topology import Topology

__all__ = ["theory_of"]

_NODES_MAX: Final = 256
_HOPS_LEAST: Final = 3


def theory_of(scenario: Scenario, graph: Topology, *, outbox_size: int) -> figures.Theory:
    """Return the quantities of a scenario whose relays hide a packet as an outbox of this size would."""
    mixnet, share = scenario.mixnet, scenario.monitoring.trace_compromised
    stages, nodes = mixnet.path_length, graph.nodes
    regime = CompromiseRegime(path_length=stages, share=share)
    senders: float | None = None
    routes: int | None = None
    route_bits: float | None = None
    multiplicity_bits: float | None = None
    bound: float | None = None
    bound_compromised: float | None = None
    basis = f"{stages} stages that hide among {outbox_size} packets each"
    try:
        routes_of = _routes_of(mixnet, graph)
        sets = ExchangeSets(graph, mixnet)
        ends = [sets.of(node) for node in range(nodes)]
        view = route_view(routes_of, ends, destinations=shown_destinations(graph))
    except ConfigError as error:
        basis = f"not computed: {error.takes}"
    else:
        least = stages - min(stages - 1, round(share * nodes))
        owned = bound_of(view, outbox_size=outbox_size, hidden_most=stages, hidden_least=least)
        senders, routes, route_bits, bound = view.senders, view.routes, view.route_bits, view.bound
        multiplicity_bits = log2(owned.multiplicity)
        bound_compromised = max(bound, owned.value)
    return figures.Theory(
        relay_bits=relay_entropy_bits(stages, outbox_size),
        senders=senders,
        routes=routes,
        route_bits=route_bits,
        multiplicity_bits=multiplicity_bits,
        bound=bound,
        compromised=share,
        bound_compromised=bound_compromised,
        all_compromised_idealized=regime.all_compromised,
        all_relays_compromised=regime.all_relays_compromised(nodes),
        basis=basis,
    )


def _routes_of(mixnet: Mixnet, graph: Topology) -> RoutesOf:
    if graph.nodes > _NODES_MAX:
        raise ConfigError(key="topology.nodes", got=graph.nodes, takes=f"at most {_NODES_MAX} nodes")
    match mixnet.route:
        case "overlay" if mixnet.path_length == 1 or graph.nodes >= _HOPS_LEAST + mixnet.path_length - 2:
            return overlay_paths(graph.nodes, path_length=mixnet.path_length)
        case "walk":
            return walk_paths(graph, path_length=mixnet.path_length)
        case _:
            raise ConfigError(key="mixnet.route", got=mixnet.route, takes="walk or overlay routes of one length")
