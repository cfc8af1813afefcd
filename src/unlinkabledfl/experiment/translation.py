"""A scenario's `[mixnet]` in the words of the mixnet layer."""

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.scenario import Mixnet
from unlinkabledfl.mixnet.config import MixSettings
from unlinkabledfl.mixnet.mix_node import NeighbourLimits
from unlinkabledfl.mixnet.mixers import MixerSettings, OffSettings, OutboxSettings, PoissonSettings
from unlinkabledfl.mixnet.routes import RouteStrategy, TransportGraph, ValiantRoutes, WalkRoutes
from unlinkabledfl.mixnet.topology import Topology
from unlinkabledfl.sphinx import Geometry, NodeId
from unlinkabledfl.sphinx.geometry import NODE_ID_BYTES

__all__ = [
    "fragments_ahead",
    "geometry_of",
    "geometry_on",
    "graph_routes",
    "mix_settings",
    "mixer_settings",
    "outbox_share",
]

_LEAST_HOPS = 5
_AHEAD = 256


def geometry_of(mixnet: Mixnet, routes: RouteStrategy | None) -> Geometry:
    """Return the shape of all packets, with room for the longest of these routes; without any, for overlay routes."""
    # A loop passes another node even where messages go straight to their destination.
    hops = max(mixnet.path_length, 2) if routes is None else routes.hops_max
    if mixnet.max_hops and hops > mixnet.max_hops:
        raise ConfigError(
            key="mixnet.max_hops",
            got=mixnet.max_hops,
            takes=f"at least {hops} for these routes, or 0 for as many as they need",
        )
    return Geometry(
        max_hops=mixnet.max_hops or max(_LEAST_HOPS, hops), body_bytes=mixnet.body_bytes, key_layer=mixnet.key_layer
    )


def geometry_on(mixnet: Mixnet, topology: Topology) -> Geometry:
    """Return the same for routes over this graph; ConfigError where the graph does not carry them."""
    if mixnet.route == "overlay":
        return geometry_of(mixnet, None)
    # How many hops there are does not depend on names.
    ids = tuple([NodeId(index.to_bytes(NODE_ID_BYTES)) for index in range(topology.nodes)])
    return geometry_of(mixnet, graph_routes(mixnet, TransportGraph(topology=topology, node_ids=ids)))


def fragments_ahead(mixnet: Mixnet, *, hops: int) -> int:
    """Return how many of its own fragments a node hands to its mixer before they have left.

    In an outbox they share the slots with what they cause: a message takes 2H of them, on this node and on others. If
    all nodes put in more than their share, queues grow faster than they drain, acknowledgements come later than the
    delay law allows, and resends make it worse. Measured in virtual time, the published setting with 208 fragments a
    round: 256 ahead meant 150 resends a node and exchanges of 208 s; a quarter of the outbox 1 and 144 s, and 37
    resends on 16 nodes, which a fifth made 7: cover has its part. Other mixers send own fragments at their own rate.
    """
    if mixnet.mixer != "outbox":
        return min(mixnet.own_capacity, _AHEAD)
    return min(mixnet.own_capacity, outbox_share(mixnet.outbox_size, hops=hops))


def outbox_share(outbox_size: int, *, hops: int) -> int:
    """Return how many places of a cycle a node's own fragments may take, so that what they cause finds places too."""
    return max(1, outbox_size // (2 * hops + 1))


def mixer_settings(mixnet: Mixnet) -> MixerSettings:
    """Return the mixing strategy."""
    own, transit = mixnet.own_capacity, mixnet.transit_capacity
    match mixnet.mixer:
        case "poisson":
            return PoissonSettings(
                delay_mean_s=mixnet.delay_mean_s,
                emission_rate_per_s=mixnet.emission_rate_per_s,
                loop_rate_per_s=mixnet.loop_rate_per_s,
                cover=mixnet.cover,
                transit_capacity=transit,
                own_capacity=own,
            )
        case "outbox":
            return OutboxSettings(
                outbox_size=mixnet.outbox_size,
                delay_mean_s=mixnet.delay_mean_s,
                delay_deviation_s=mixnet.delay_deviation_s,
                cover=mixnet.cover,
                refill_at=mixnet.refill_at,
                transit_capacity=transit,
                own_capacity=own,
            )
        case "off":
            return OffSettings(transit_capacity=transit, own_capacity=own)


def mix_settings(mixnet: Mixnet) -> MixSettings:
    """Return how a node mixes."""
    rate_per_s = mixnet.neighbour_packets_per_s
    return MixSettings(
        mixer=mixer_settings(mixnet),
        max_attempts=mixnet.max_attempts,
        no_route_patience_s=mixnet.no_route_patience_s,
        link_allowance_s=mixnet.link_allowance_s,
        limits=NeighbourLimits(
            packets_per_s=rate_per_s, packets_burst=2.0 * rate_per_s, transit_share=mixnet.neighbour_share
        ),
        epoch_length_s=mixnet.epoch_length_s or None,
    )


def graph_routes(mixnet: Mixnet, graph: TransportGraph) -> RouteStrategy:
    """Return the strategy of routes over a graph; ConfigError where the graph does not carry it."""
    routes: RouteStrategy
    if mixnet.route == "valiant":
        routes = ValiantRoutes(graph=graph)
    else:
        routes = WalkRoutes(graph=graph, path_length=mixnet.path_length, up_to=mixnet.route == "walk_up_to")
    routes.check()
    return routes
