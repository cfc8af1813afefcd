"""One peer's mix: packets in, packets out at the mixer's instants, messages in and out at the top.

    new --start---------------------------> SendControl, running
    running --packet, to be forwarded-----> running
    running --packet, a message for us----> MessageReceived, running
    running --packet, cover for us--------> running
    running --packet, a reply of ours-----> MessageAcknowledged, running
    running --packet, not good------------> running
    running --mixer releases an item------> SendPacket, running
    running --attempts used up------------> MessageGivenUp, running
    running --descriptor, new-------------> PeerChanged, SendControl, running
    running --key epoch over--------------> SendControl, running
    running --descriptor half over--------> SendControl, running

The node composes machines and holds hardly any state of its own: the mixer decides when something leaves, `Outgoing`
what our own slots carry, `PeerView` over whom, `KeyRing` under which keys, `DeliveredWindow` what the application has
seen already.

Invariant: whatever a neighbour sends is dropped and counted by cause, or it ends up in the mixer or at the application;
nothing that it sends raises. A packet leaves at an instant that the mixer drew, acknowledgements not excepted: there is
no other way out. Descriptors leave at once; they are public, and every peer passes on the same ones.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, assert_never

from unlinkabledfl.errors import ConfigError, LocalProtocolError, PacketError, RemoteProtocolError
from unlinkabledfl.mixnet.delivered import DeliveredWindow
from unlinkabledfl.mixnet.descriptor import Descriptor
from unlinkabledfl.mixnet.events import (
    MessageAcknowledged,
    MessageGivenUp,
    MessageReceived,
    MixEvent,
    PeerChanged,
    SendControl,
    SendPacket,
)
from unlinkabledfl.mixnet.items import MessageId, Transit
from unlinkabledfl.mixnet.keys import KeyRing, KeyRotated
from unlinkabledfl.mixnet.limits import Counters, TokenBucket
from unlinkabledfl.mixnet.mixers.protocol import Mixer, MixerEvent, Scheduled
from unlinkabledfl.mixnet.outgoing import MessageEnded, Outgoing, OutgoingEvent, Requeue, RouteJudged
from unlinkabledfl.mixnet.packets import (
    Delivered,
    Drop,
    Loop,
    Message,
    Opaque,
    PacketFormat,
    Relayed,
    Returned,
    Unwrapped,
)
from unlinkabledfl.mixnet.peers import (
    PeerAdded,
    PeerEvent,
    PeerRemoved,
    PeerRestored,
    PeerUpdated,
    PeerView,
    SendDescriptor,
)
from unlinkabledfl.sphinx import NodeId

_RENEWAL_PAUSE_S = 1.0
"""A node signs no two descriptors faster: serials that count seconds would repeat after a restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourLimits:
    """What one neighbour may put on us: packets and descriptors a second, how many at once, and its share of the mixer.

    The share keeps a neighbour that hands us long-delayed packets from crowding out everybody else's: a mixer that
    holds one honest packet at a time mixes nothing.
    """

    packets_per_s: float = 500.0
    packets_burst: float = 1_000.0
    descriptors_per_s: float = 50.0
    descriptors_burst: float = 5_000.0
    transit_share: float = 0.25
    links_max: int = 512
    unsent_max: int = 1_000

    def __post_init__(self) -> None:
        for name in ("packets_per_s", "packets_burst", "descriptors_per_s", "descriptors_burst"):
            if not getattr(self, name) >= 1.0:
                raise ConfigError(key=f"mixnet.limits.{name}", got=getattr(self, name), takes="a number of at least 1")
        if not 0.0 < self.transit_share <= 1.0:
            raise ConfigError(
                key="mixnet.limits.transit_share", got=self.transit_share, takes="a share above 0 and up to 1"
            )
        for name in ("links_max", "unsent_max"):
            if getattr(self, name) < 1:
                raise ConfigError(
                    key=f"mixnet.limits.{name}", got=getattr(self, name), takes="a whole number of at least 1"
                )


class _Neighbour:
    """The budgets of one link."""

    __slots__ = ("descriptors", "held", "linked", "packets")

    def __init__(self, limits: NeighbourLimits) -> None:
        self.linked = False
        self.held = 0  # packets of its that wait in our mixer
        self.packets = TokenBucket(rate_per_s=limits.packets_per_s, burst=limits.packets_burst)
        self.descriptors = TokenBucket(rate_per_s=limits.descriptors_per_s, burst=limits.descriptors_burst)


class MixNode:
    """The mix of one participant. `describe` makes our signed descriptor for a key; None where nobody needs one."""

    __slots__ = (
        "_delivered",
        "_describe",
        "_events",
        "_keys",
        "_limits",
        "_links",
        "_longest_delay_s",
        "_neighbours",
        "_others_timer_s",
        "_outgoing",
        "_packets",
        "_renew_at_s",
        "_share_of_mixer",
        "_timer_s",
        "counters",
        "mixer",
        "node_id",
        "peers",
    )

    def __init__(  # noqa: PLR0913 -- the machines it is composed of
        self,
        *,
        node_id: NodeId,
        packets: PacketFormat,
        mixer: Mixer,
        outgoing: Outgoing,
        peers: PeerView,
        keys: KeyRing[Any],
        delivered: DeliveredWindow,
        limits: NeighbourLimits,
        counters: Counters,
        describe: Callable[[KeyRotated, float], Descriptor] | None = None,
    ) -> None:
        self.node_id = node_id
        self.peers = peers
        self.counters = counters
        self.mixer = mixer
        self._packets = packets
        self._outgoing = outgoing
        self._keys = keys
        self._delivered = delivered
        self._limits = limits
        self._longest_delay_s = mixer.longest_delay_s
        self._share_of_mixer = max(1, int(limits.transit_share * mixer.transit_capacity))
        self._describe = describe
        self._neighbours: dict[NodeId, _Neighbour] = {}
        self._links = 0
        self._events: deque[MixEvent] = deque()
        self._timer_s: float | None = None
        self._others_timer_s = -inf  # of all machines but the mixer; known once they have settled
        self._renew_at_s: float | None = None

    @property
    def waiting(self) -> int:
        """Messages of ours that have not ended."""
        return len(self._outgoing)

    @property
    def cover_loss_share(self) -> float:
        """How much of our recent cover did not come back: above what links lose, somebody drops packets."""
        return self._outgoing.probes.loss_share

    @property
    def public_key(self) -> bytes:
        """The key that senders wrap for at present."""
        key: bytes = self._keys.current.pair.public_bytes
        return key

    # -- inputs -------------------------------------------------------------------------------------------------

    def start(self, *, now_s: float) -> None:
        """Make the first key and begin to emit."""
        self._keys.start(now_s=now_s)
        self.mixer.start(now_s=now_s)
        self._settle(now_s)

    def send_message(self, destination: NodeId, data: bytes, *, now_s: float) -> MessageId:
        """Queue a message; QueueFullError as back-pressure."""
        message_id = self._outgoing.accept(destination, data, now_s=now_s)
        self._settle(now_s)
        return message_id

    def link_up(self, peer: NodeId, *, now_s: float) -> bool:
        """An authenticated link to this peer stands; false if we have as many as we take, then close it."""
        neighbour = self._neighbours.get(peer)
        if neighbour is not None and neighbour.linked:
            return True
        if self._links >= self._limits.links_max:
            self.counters.add("too_many_links")
            return False
        if neighbour is None:
            neighbour = self._neighbours[peer] = _Neighbour(self._limits)
        neighbour.linked = True
        self._links += 1
        self.peers.link_up(peer, now_s=now_s)
        self._settle(now_s)
        return True

    def link_down(self, peer: NodeId, *, now_s: float) -> None:
        """The link to this peer is gone."""
        neighbour = self._neighbours.get(peer)
        if neighbour is not None and neighbour.linked:
            neighbour.linked = False
            self._links -= 1
            self._forget_former_neighbours()
        self.peers.link_down(peer, now_s=now_s)
        self._settle(now_s)

    def _forget_former_neighbours(self) -> None:
        # They are remembered for a while, or hanging up and dialling again would refill their budgets.
        excess = len(self._neighbours) - self._links - self._limits.links_max
        if excess > 0:
            former = [peer for peer, neighbour in self._neighbours.items() if not neighbour.linked]
            for peer in former[:excess]:
                del self._neighbours[peer]

    def dial_failed(self, peer: NodeId, *, now_s: float) -> None:
        """This peer does not answer at any of its addresses."""
        self.peers.dial_failed(peer, now_s=now_s)
        self._settle(now_s)

    def packet_unsent(self, event: SendPacket, *, now_s: float) -> None:
        """The link could not take this packet: it goes back to the mixer, or is dropped there at the bound."""
        if self.mixer.transit_waiting >= self._limits.unsent_max:
            self.counters.add("unsent_dropped")
        else:
            self.mixer.requeue(Transit(event.to, event.packet), now_s=now_s)
        self._settle(now_s)

    def receive_packet(self, packet: Opaque, *, from_peer: NodeId, now_s: float) -> None:
        """A neighbour handed us a packet. The cheapest check that fails decides; nothing is raised."""
        if not self._admits(from_peer, now_s):
            return
        try:
            unwrapped = self._unwrap(packet)
        except PacketError as refusal:
            self.counters.add(refusal.cause)
        else:
            self._take(unwrapped, from_peer, now_s)

    def receive_packets(self, packets: Sequence[tuple[NodeId, Opaque]], *, now_s: float) -> None:
        """Several packets, each with the neighbour that handed it over: as one after the other, for less work."""
        admitted = [(peer, packet) for peer, packet in packets if self._admits(peer, now_s)]
        results = self._unwrap_batch([packet for _, packet in admitted])
        for (peer, _), result in zip(admitted, results, strict=True):
            if isinstance(result, PacketError):
                self.counters.add(result.cause)
            else:
                self._take(result, peer, now_s)

    def receive_control(self, data: bytes, *, from_peer: NodeId, now_s: float) -> None:
        """A neighbour handed us a control message: a descriptor, as there is nothing else."""
        neighbour = self._neighbours.get(from_peer)
        if neighbour is None or not neighbour.linked:
            self.counters.add("unlinked")
            return
        if not neighbour.descriptors.take(now_s):
            self.counters.add("flooded_descriptors")
            return
        try:
            self.peers.receive_descriptor(data, from_peer=from_peer, now_s=now_s)
        except RemoteProtocolError as refusal:
            self.counters.add(refusal.cause)
            return
        self._settle(now_s)

    # -- time and events ----------------------------------------------------------------------------------------

    def next_timer_s(self) -> float | None:
        """When `handle_timer` is due."""
        return self._timer_s

    def handle_timer(self, *, now_s: float) -> None:
        """Do all that is due."""
        if now_s < self._others_timer_s:
            self.mixer.handle_timer(now_s=now_s)
            self._settle_mixer(now_s)
            return
        self._keys.handle_timer(now_s=now_s)
        if self._renew_at_s is not None and now_s >= self._renew_at_s:
            self._renew_at_s = None
            self._keys.renew()
        self._delivered.handle_timer(now_s=now_s)
        self.peers.handle_timer(now_s=now_s)
        self._outgoing.handle_timer(now_s=now_s)
        self.mixer.handle_timer(now_s=now_s)
        self._settle(now_s)

    def next_event(self) -> MixEvent | None:
        """The next thing for the driver or the application."""
        return self._events.popleft() if self._events else None

    # -- packets ------------------------------------------------------------------------------------------------

    def _admits(self, peer: NodeId, now_s: float) -> bool:
        neighbour = self._neighbours.get(peer)
        if neighbour is None or not neighbour.linked:
            self.counters.add("unlinked")
            return False
        if not neighbour.packets.take(now_s):
            self.counters.add("flooded")
            return False
        return True

    def _unwrap(self, packet: Opaque) -> Unwrapped:
        # During the overlap of two epochs a packet may be for either key; no byte on the wire says which.
        keys = self._keys.keys
        for key in keys[:-1]:
            try:
                return self._packets.unwrap(packet, key=key.pair, replays=key.replays)
            except PacketError as refusal:
                if refusal.cause != "bad_mac":
                    raise
        return self._packets.unwrap(packet, key=keys[-1].pair, replays=keys[-1].replays)

    def _unwrap_batch(self, packets: Sequence[Opaque]) -> list[Unwrapped | PacketError]:
        current, *previous = self._keys.keys
        results = self._packets.unwrap_batch(packets, key=current.pair, replays=current.replays)
        for key in previous:
            missed = [
                index
                for index, result in enumerate(results)
                if isinstance(result, PacketError) and result.cause == "bad_mac"
            ]
            again = self._packets.unwrap_batch([packets[at] for at in missed], key=key.pair, replays=key.replays)
            for index, result in zip(missed, again, strict=True):
                results[index] = result
        return results

    def _take(self, unwrapped: Unwrapped, via: NodeId, now_s: float) -> None:
        try:
            self._act_on(unwrapped, via, now_s)
        except PacketError as refusal:
            self.counters.add(refusal.cause)
        if isinstance(unwrapped, Relayed):
            self._settle_mixer(now_s)
        else:
            self._settle(now_s)

    def _act_on(self, unwrapped: Unwrapped, via: NodeId, now_s: float) -> None:
        match unwrapped:
            case Relayed(next_hop, delay_s, packet):
                self._relay(Transit(next_hop, packet, via), delay_s, "relayed", now_s)
            case Delivered(delay_s, envelope):
                match envelope:
                    case Message(message_id, data, surb):
                        if self._delivered.first_time(message_id, now_s=now_s):
                            self.counters.add("received_message")
                            self._events.append(MessageReceived(message_id=message_id, data=data))
                        else:
                            self.counters.add("received_again")
                        self._acknowledge(surb, delay_s, via, now_s)
                    case Drop(surb):
                        self.counters.add("received_cover")
                        self._acknowledge(surb, delay_s, via, now_s)
                    case Loop(loop_id):
                        self._outgoing.receive_loop(loop_id)
                    case _:
                        assert_never(envelope)
            case Returned(surb_id, body):
                self._outgoing.receive_reply(surb_id, body, now_s=now_s)
            case _:
                assert_never(unwrapped)

    def _acknowledge(self, surb: Opaque, delay_s: float, via: NodeId, now_s: float) -> None:
        next_hop, packet = self._packets.acknowledge(surb)
        self._relay(Transit(next_hop, packet, via), delay_s, "acknowledged", now_s)

    def _relay(self, item: Transit, delay_s: float, counter: str, now_s: float) -> None:
        # The sender chose the next hop; it shall not make us dial whom nobody has ever heard of, or ourselves.
        next_hop = item.next_hop
        if next_hop == self.node_id or not (next_hop in self._neighbours or self.peers.knows(next_hop)):
            raise PacketError("unknown_next_hop")
        if delay_s > self._longest_delay_s:
            raise PacketError("delay_too_long")
        neighbour = self._neighbours.get(item.via) if item.via is not None else None
        if neighbour is not None and neighbour.held >= self._share_of_mixer:
            raise PacketError("transit_share_used_up")
        if not self.mixer.submit_transit(item, delay_s=delay_s, now_s=now_s):
            raise PacketError("transit_full")
        if neighbour is not None:
            neighbour.held += 1
        self.counters.add(counter)

    # -- the machines inside ------------------------------------------------------------------------------------

    def _settle(self, now_s: float) -> None:
        """Carry events from machine to machine until all are quiet, then set the timer."""
        mixer, outgoing, peers, keys = self.mixer, self._outgoing, self.peers, self._keys
        busy = True
        while busy:
            busy = False
            while (released := mixer.next_event()) is not None:
                self._follow_mixer(released, now_s)
                busy = True
            while (own := outgoing.next_event()) is not None:
                self._follow_outgoing(own, now_s)
                busy = True
            while (change := peers.next_event()) is not None:
                self._follow_peers(change)
                busy = True
            while (key := keys.next_event()) is not None:
                if isinstance(key, KeyRotated) and self._describe is not None:
                    self._announce(self._describe(key, now_s), now_s)
                busy = True
        timers = (
            outgoing.next_timer_s(),
            peers.next_timer_s(),
            keys.next_timer_s(),
            self._delivered.next_timer_s(),
            self._renew_at_s,
        )
        self._others_timer_s = min((timer for timer in timers if timer is not None), default=inf)
        self._set_timer()

    def _settle_mixer(self, now_s: float) -> None:
        """Settle after calling nothing but the mixer: so it is for most packets, and asking all each time adds up."""
        mixer = self.mixer
        others_called = False
        while (event := mixer.next_event()) is not None:
            others_called |= self._follow_mixer(event, now_s)
        if others_called:
            self._settle(now_s)
        else:
            self._set_timer()

    def _set_timer(self) -> None:
        mixer_s = self.mixer.next_timer_s()
        others_s = self._others_timer_s
        if mixer_s is not None and mixer_s < others_s:
            self._timer_s = mixer_s
        else:
            self._timer_s = others_s if others_s < inf else None

    def _announce(self, descriptor: Descriptor, now_s: float) -> None:
        # Renewed at half its life, so that peers who are away for less than the other half miss nothing.
        life_s = descriptor.valid_until_s - now_s
        self._renew_at_s = now_s + max(0.5 * life_s, _RENEWAL_PAUSE_S)
        self.peers.announce(descriptor)

    def _follow_mixer(self, event: MixerEvent, now_s: float) -> bool:
        """Follow an event of the mixer; true if another machine was called."""
        item = event.item
        if isinstance(item, Transit):
            neighbour = self._neighbours.get(item.via) if item.via is not None else None
            if neighbour is not None and neighbour.held:
                neighbour.held -= 1
            self._events.append(SendPacket(to=item.next_hop, packet=item.packet))
            return False
        if isinstance(event, Scheduled):
            self._outgoing.build(event.item, now_s=now_s)
        elif (ready := self._outgoing.leave(item, now_s=now_s)) is not None:
            self._events.append(SendPacket(to=ready[0], packet=ready[1]))
        return True

    def _follow_outgoing(self, event: OutgoingEvent, now_s: float) -> None:
        match event:
            case Requeue(item=item):
                # One attempt a message is queued at a time, and messages are bounded by the mixer's own capacity.
                if not self.mixer.submit_own(item, now_s=now_s):
                    raise LocalProtocolError("the mixer refused a message within its capacity")
            case RouteJudged(relays=relays, good=True):
                self.peers.route_succeeded(relays, now_s=now_s)
            case RouteJudged(relays=relays, sent_at_s=sent_at_s):
                self.peers.route_failed(relays, sent_at_s=sent_at_s, now_s=now_s)
            case MessageEnded(message_id=message_id, attempts=attempts, round_trip_s=None):
                self.counters.add("given_up")
                self._events.append(MessageGivenUp(message_id=message_id, attempts=attempts))
            case MessageEnded(message_id=message_id, attempts=attempts, round_trip_s=float(round_trip_s)):
                self._events.append(
                    MessageAcknowledged(message_id=message_id, attempts=attempts, round_trip_s=round_trip_s)
                )

    def _follow_peers(self, event: PeerEvent) -> None:
        match event:
            case SendDescriptor(to=to, data=data):
                self._events.append(SendControl(to=to, data=data))
            case PeerAdded(node_id=node_id):
                self._events.append(PeerChanged(peer=node_id, routable=True, reason="added"))
            case PeerUpdated(node_id=node_id):
                self._events.append(
                    PeerChanged(peer=node_id, routable=self.peers.is_routable(node_id), reason="updated")
                )
            case PeerRestored(node_id=node_id):
                self._events.append(PeerChanged(peer=node_id, routable=True, reason="restored"))
            case PeerRemoved(node_id=node_id, reason=reason):
                self._events.append(PeerChanged(peer=node_id, routable=False, reason=reason))
            case _:
                assert_never(event)
