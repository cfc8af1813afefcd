"""A world of mix nodes: the factory that puts each together, and what they know of each other at the start.

With `introduced`, every node knows everybody's first key when the world begins, from one shared directory: thousands of
nodes need it, and a study of steady state has no use for the hours in which ten thousand descriptors spread. Without, a
node begins with nothing but its links, and descriptors spread over them as in a deployment. Either way a restarted
node has a new key, which it tells by descriptor.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from nacl.bindings import crypto_sign_seed_keypair

from unlinkabledfl.errors import LocalProtocolError
from unlinkabledfl.mixnet.config import MixSettings, build_mix_node
from unlinkabledfl.mixnet.descriptor import FINGERPRINT_BYTES, LIFETIME_MAX_S, Descriptor, sign
from unlinkabledfl.mixnet.destinations import Destinations, NeighbourDestinations, ReachDestinations
from unlinkabledfl.mixnet.journal import Journal, JournaledPackets
from unlinkabledfl.mixnet.keys import KeyRotated
from unlinkabledfl.mixnet.mix_node import MixNode
from unlinkabledfl.mixnet.mixers import MixerSettings
from unlinkabledfl.mixnet.packets import Opaque, PacketFormat
from unlinkabledfl.mixnet.peers import Directory, PeerSettings, PeerView
from unlinkabledfl.mixnet.routes import OverlayRoutes, RouteStrategy, TransportGraph, ValiantRoutes, WalkRoutes
from unlinkabledfl.mixnet.topology import Topology
from unlinkabledfl.simulation.entropy import chances, derive_key, node_entropy
from unlinkabledfl.simulation.faults import Fault
from unlinkabledfl.simulation.links import LinkPlan
from unlinkabledfl.simulation.world import QueueProbe, Watch, World
from unlinkabledfl.sphinx import Entropy, NodeId


class RouteName(StrEnum):
    """The route strategies, by the names that scenarios use."""

    OVERLAY = "overlay"
    WALK = "walk"
    WALK_UP_TO = "walk_up_to"
    VALIANT = "valiant"


class DestinationName(StrEnum):
    """Where messages may go."""

    REACH = "reach"
    NEIGHBOURS = "neighbours"


@dataclass(frozen=True, slots=True, kw_only=True)
class MixnetPlan:
    """Which mixnet to build."""

    topology: Topology
    packets: PacketFormat
    mix: MixSettings = field(default_factory=lambda: MixSettings(epoch_length_s=None))
    peers: PeerSettings = field(default_factory=PeerSettings)
    route: RouteName = RouteName.OVERLAY
    path_length: int = 2
    destinations: DestinationName = DestinationName.REACH
    introduced: bool = True
    journal: Callable[[int], Journal] | None = None
    """For the node at an index, where its packets are taken down."""


class Mixnet:
    """Makes the mix nodes of one world; what thousands of them can share, they share."""

    def __init__(self, plan: MixnetPlan, *, seed: int) -> None:
        nodes = plan.topology.nodes
        self._plan = plan
        self._signing_seeds = _signing_seeds(seed, nodes)
        self.node_ids = node_names(seed, nodes)
        self._graph = TransportGraph(topology=plan.topology, node_ids=self.node_ids)
        self.directory = Directory()
        if plan.introduced:
            # The first thing that a node's ring draws is its key, so a second copy of its entropy gives the same one.
            keys = (plan.packets.generate_key(node_entropy(seed, index=index, serial=0)) for index in range(nodes))
            public = (key.public_bytes for key in keys)
            self.directory = Directory(zip(self.node_ids, public, strict=True))
        self._shared_routes = self._graph_routes()

    def __call__(self, *, index: int, serial: int, entropy: Entropy) -> MixNode:
        """Return the node at this index in this life, not started."""
        plan = self._plan
        node_id = self.node_ids[index]
        view = PeerView(
            own_id=node_id, settings=plan.peers, directory=self.directory, accepts_key=plan.packets.accepts_key
        )
        routes = self._shared_routes or OverlayRoutes(peers=view, path_length=plan.path_length)

        def describe(key: KeyRotated, now_s: float) -> Descriptor:
            return sign(
                self._signing_seeds[index],
                serial=key.serial,
                epoch=key.epoch,
                public_key=key.public_key,
                fingerprint=bytes(FINGERPRINT_BYTES),
                valid_until_s=int(now_s) + LIFETIME_MAX_S,
                addresses=[f"10.{index >> 16 & 255}.{index >> 8 & 255}.{index & 255}:4433"],
            )

        untold = plan.introduced and serial == 0 and plan.mix.epoch_length_s is None
        return build_mix_node(
            plan.mix,
            node_id=node_id,
            packets=plan.packets if plan.journal is None else JournaledPackets(plan.packets, plan.journal(index)),
            peers=view,
            routes=routes,
            destinations=self._destinations(node_id, routes),
            entropy=entropy,
            first_serial=serial << 32,
            view_is_complete=plan.introduced and plan.route is RouteName.OVERLAY,
            describe=None if untold else describe,
        )

    def destinations_of(self, index: int) -> Sequence[int]:
        """Return the indices to which the node at this index may send, once it knows everybody."""
        if self._plan.destinations is DestinationName.NEIGHBOURS:
            return self._plan.topology.neighbours(index)
        if self._shared_routes is None:
            return [other for other in range(len(self.node_ids)) if other != index]
        return [self._graph.index_of(node_id) for node_id in self._shared_routes.reach(self.node_ids[index])]

    def _graph_routes(self) -> RouteStrategy | None:
        plan = self._plan
        if plan.route is RouteName.OVERLAY:
            return None  # each node draws from its own view
        routes: RouteStrategy
        if plan.route is RouteName.VALIANT:
            routes = ValiantRoutes(graph=self._graph)
        else:
            up_to = plan.route is RouteName.WALK_UP_TO
            routes = WalkRoutes(graph=self._graph, path_length=plan.path_length, up_to=up_to)
        routes.check()
        return routes

    def _destinations(self, source: NodeId, routes: RouteStrategy) -> Destinations:
        if self._plan.destinations is DestinationName.REACH:
            return ReachDestinations(source=source, routes=routes)
        return NeighbourDestinations(source=source, routes=routes, learning_graph=self._graph)


def node_names(seed: int, nodes: int) -> tuple[NodeId, ...]:
    """Return the names that the nodes of a mixnet with this seed have."""
    return tuple(NodeId(crypto_sign_seed_keypair(own_seed)[0]) for own_seed in _signing_seeds(seed, nodes))


def _signing_seeds(seed: int, nodes: int) -> list[bytes]:
    return [derive_key(seed, f"identity/{index}") for index in range(nodes)]


def build_mixnet_world(
    plan: MixnetPlan,
    *,
    seed: int,
    links: LinkPlan | None = None,
    faults: Sequence[Fault] = (),
    watch: Watch | None = None,
) -> tuple[World, Mixnet]:
    """Return a world of mix nodes at time zero, and the mixnet that made it."""
    mixnet = Mixnet(plan, seed=seed)
    world = World(
        node_ids=mixnet.node_ids,
        factory=mixnet,
        topology=plan.topology,
        packet_bytes=plan.packets.packet_bytes,
        seed=seed,
        links=links,
        faults=faults,
        watch=watch or Watch(),
    )
    if plan.introduced:
        for index, node_id in enumerate(mixnet.node_ids):
            if world.node(index).public_key != mixnet.directory.keys[node_id]:
                raise LocalProtocolError("a node began with another key than its directory says")
    return world, mixnet


def send_at_random(
    world: World, mixnet: Mixnet, *, seed: int, messages: int, data: bytes, from_s: float, until_s: float
) -> None:
    """Have every node send this many messages at uniform times to uniform destinations of its own."""
    luck = chances(seed, "workload")
    for index in range(len(mixnet.node_ids)):
        destinations = mixnet.destinations_of(index)
        for _ in range(messages):
            at_s = luck.uniform(from_s, until_s)
            world.send(index, luck.choice(destinations), data, at_s=at_s)


def mix_queues(mixer: MixerSettings) -> QueueProbe:
    """Return a probe, for a `Watch`, that reads the queues of nodes with these settings."""
    transit_capacity = mixer.transit_capacity

    def read(node: Opaque) -> tuple[tuple[str, int, int], ...]:
        mixer = node.mixer
        return (
            ("own", mixer.own_waiting, mixer.own_capacity),
            ("transit", mixer.transit_waiting, transit_capacity),
            ("messages", node.waiting, mixer.own_capacity),
        )

    return read
