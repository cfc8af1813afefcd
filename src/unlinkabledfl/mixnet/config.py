"""Put a mix node together from settings: the one place that knows which machine goes where."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.mixnet.delay_law import LINK_ALLOWANCE_S, DelayLaw, make_delay_law
from unlinkabledfl.mixnet.delivered import DeliveredWindow
from unlinkabledfl.mixnet.descriptor import Descriptor
from unlinkabledfl.mixnet.destinations import Destinations
from unlinkabledfl.mixnet.draw import Draw
from unlinkabledfl.mixnet.itinerary import Planner
from unlinkabledfl.mixnet.keys import KeyRing, KeyRotated
from unlinkabledfl.mixnet.limits import Counters
from unlinkabledfl.mixnet.mix_node import MixNode
from unlinkabledfl.mixnet.mixers import MixerSettings, PoissonSettings, make_mixer
from unlinkabledfl.mixnet.neighbours import NeighbourLimits, Neighbours
from unlinkabledfl.mixnet.outgoing import Outgoing
from unlinkabledfl.mixnet.packets import PacketFormat
from unlinkabledfl.mixnet.peers import PeerView
from unlinkabledfl.mixnet.retransmitter import PATIENCE_S
from unlinkabledfl.mixnet.routes import RouteStrategy
from unlinkabledfl.sphinx import Entropy, NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class MixSettings:
    """How one node mixes. A deployment shares the mixing strategy; the rest is each node's own affair."""

    mixer: MixerSettings = field(default_factory=PoissonSettings)
    """The mixing strategy and its parameters."""
    max_attempts: int = 8
    """How often a message is sent before it is given up."""
    no_route_patience_s: float = PATIENCE_S
    """How long a message waits, in all, while no route leads to its destination."""
    link_allowance_s: float = LINK_ALLOWANCE_S
    """What one link may add to a round trip before it counts as lost."""
    limits: NeighbourLimits = field(default_factory=NeighbourLimits)
    """What one neighbour may put on us."""
    epoch_length_s: float | None = 3_600.0
    """How long a Sphinx key lives; none: as long as the node, which is for simulations: replay windows fill up."""
    key_overlap_s: float | None = None
    """For how long after its epoch a key still opens packets; none: for the longest round trip, which is the least."""
    replay_capacity: int = 1_000_000
    """How many packets one key opens; beyond that they are refused: 277 a second throughout an hour."""
    delivered_capacity: int = 100_000
    """How many received messages are remembered, so that none is handed over twice."""

    def __post_init__(self) -> None:
        for name in ("max_attempts", "replay_capacity", "delivered_capacity"):
            if getattr(self, name) < 1:
                raise ConfigError(key=f"mixnet.{name}", got=getattr(self, name), takes="a whole number of at least 1")


def build_mix_node(  # noqa: PLR0913 -- the parts of a node
    settings: MixSettings,
    *,
    node_id: NodeId,
    packets: PacketFormat,
    peers: PeerView,
    routes: RouteStrategy,
    destinations: Destinations,
    entropy: Entropy,
    first_serial: int = 0,
    view_is_complete: bool = False,
    describe: Callable[[KeyRotated, float], Descriptor] | None = None,
) -> MixNode:
    """A node, not started. `describe` signs its descriptors, where peers are told by descriptors.

    `view_is_complete` says that all peers are known already, so that what these cannot carry is refused here. A view
    that descriptors fill starts empty: there a missing route is nobody's mistake and only delays.
    """
    if routes.hops_max > packets.max_hops:
        raise ConfigError(
            key="packet.max_hops",
            got=packets.max_hops,
            takes=f"at least {routes.hops_max}, the hops of the longest route",
            hint="or shorter routes, where mixnet.path_length or the topology allow it",
        )
    if view_is_complete:
        destinations.check()
    draw = Draw(entropy)
    counters = Counters()
    law = make_delay_law(settings.mixer, link_allowance_s=settings.link_allowance_s)
    mixer = make_mixer(settings.mixer, draw=draw)
    keys = KeyRing(
        generate=packets.generate_key,
        entropy=entropy,
        epoch_length_s=settings.epoch_length_s,
        overlap_s=_overlap_s(settings, law, hops=routes.hops_max),
        replay_capacity=settings.replay_capacity,
        first_serial=first_serial,
    )
    planner = Planner(
        node_id=node_id,
        peers=peers,
        routes=routes,
        destinations=destinations,
        keys=keys,
        hop_delay_s=mixer.hop_delay_s,
        law=law,
        draw=draw,
    )
    outgoing = Outgoing(
        node_id=node_id,
        packets=packets,
        planner=planner,
        capacity=mixer.own_capacity,
        max_attempts=settings.max_attempts,
        patience_s=settings.no_route_patience_s,
        counters=counters,
        entropy=entropy,
    )
    return MixNode(
        node_id=node_id,
        packets=packets,
        mixer=mixer,
        outgoing=outgoing,
        peers=peers,
        keys=keys,
        delivered=DeliveredWindow(
            horizon_s=longest_pursuit_s(settings, law, hops=routes.hops_max),
            capacity=settings.delivered_capacity,
        ),
        neighbours=Neighbours(
            settings.limits,
            transit_capacity=mixer.transit_capacity,
            replay_capacity=settings.replay_capacity,
        ),
        counters=counters,
        describe=describe,
    )


def longest_round_trip_s(settings: MixSettings, law: DelayLaw, *, hops: int, attempt: int = 1) -> float:
    """For how long a reply block is waited for, at most, on routes of this length there and back.

    Delays that a sender draws itself have an exponential tail: ten means a stage leave out one in twenty thousand.
    """
    stages = 2 * hops
    drawn_s = settings.mixer.delay_mean_s if isinstance(settings.mixer, PoissonSettings) else 0.0
    return law.round_trip_timeout_s(stages=stages, known_delays_s=10.0 * stages * drawn_s, attempt=attempt)


def longest_pursuit_s(settings: MixSettings, law: DelayLaw, *, hops: int) -> float:
    """For how long a sender under this law keeps at one message: what its destination has to remember.

    Each attempt waits at most for its timeout and, before it leaves, about one more stage for its slot; for want of a
    route all of them together wait for the sender's patience.
    """
    attempts = range(1, settings.max_attempts + 1)
    timeouts_s = sum(longest_round_trip_s(settings, law, hops=hops, attempt=attempt) for attempt in attempts)
    return timeouts_s + settings.max_attempts * law.stage_mean_s + settings.no_route_patience_s


def _overlap_s(settings: MixSettings, law: DelayLaw, *, hops: int) -> float:
    """How long a key outlives its epoch; ConfigError if packets under way would find it gone."""
    if settings.epoch_length_s is None:
        return 0.0
    least_s = longest_round_trip_s(settings, law, hops=hops)
    overlap_s = least_s if settings.key_overlap_s is None else settings.key_overlap_s
    if not overlap_s >= least_s:
        raise ConfigError(
            key="mixnet.key_overlap_s",
            got=overlap_s,
            takes=f"at least {ceil(least_s)} s when keys rotate: the longest round trip of {hops} hops each way",
            hint="packets and reply blocks under way at the end of an epoch are for its key; without"
            " mixnet.epoch_length_s keys do not rotate",
        )
    if overlap_s > settings.epoch_length_s:
        raise ConfigError(
            key="mixnet.epoch_length_s",
            got=settings.epoch_length_s,
            takes=f"at least {ceil(overlap_s)} s: a key outlives its epoch by that, and a node holds two keys at most",
        )
    return overlap_s
