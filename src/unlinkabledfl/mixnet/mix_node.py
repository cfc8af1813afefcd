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
from itertools import groupby
from math import inf
from typing import Any, assert_never

from unlinkabledfl.errors import LocalProtocolError, PacketError, RemoteProtocolError
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
from unlinkabledfl.mixnet.items import Cover, MessageId, OwnMessage, Transit
from unlinkabledfl.mixnet.keys import KeyRing, KeyRotated
from unlinkabledfl.mixnet.limits import Counters
from unlinkabledfl.mixnet.mixers.protocol import Mixer, MixerEvent, Scheduled
from unlinkabledfl.mixnet.neighbours import NeighbourLimits, Neighbours
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

__all__ = ["MixNode", "NeighbourLimits"]

_FORGED = frozenset({"bad_mac", "bad_element"})

_RENEWAL_PAUSE_S = 1.0
"""A node signs no two descriptors faster: serials that count seconds would repeat after a restart."""


class MixNode:
    """The mix of one participant. `describe` makes our signed descriptor for a key; None where nobody needs one."""

    __slots__ = (
        "_delivered",
        "_describe",
        "_epoch",
        "_events",
        "_keys",
        "_longest_delay_s",
        "_neighbours",
        "_others_timer_s",
        "_outgoing",
        "_packets",
        "_renew_at_s",
        "_timer_s",
        "_unbuilt",
        "_unbuilt_at_s",
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
        neighbours: Neighbours,
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
        self._neighbours = neighbours
        self._longest_delay_s = mixer.longest_delay_s
        self._describe = describe
        self._epoch: int | None = None
        self._events: deque[MixEvent] = deque()
        self._timer_s: float | None = None
        # What slots that are scheduled will carry. Building takes longer than a release, and an observer with a good
        # clock must not see by a packet's delay whether the one behind it is ours: what leaves now leaves first.
        self._unbuilt: deque[OwnMessage | Cover] = deque()
        self._unbuilt_at_s = 0.0
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
        if self._neighbours.is_linked(peer):
            return True
        if not self._neighbours.link_up(peer):
            self.counters.add("too_many_links")
            return False
        self.peers.link_up(peer, now_s=now_s)
        self._settle(now_s)
        return True

    def link_down(self, peer: NodeId, *, now_s: float) -> None:
        """The link to this peer is gone."""
        self._neighbours.link_down(peer)
        self.peers.link_down(peer, now_s=now_s)
        self._settle(now_s)

    def dial_failed(self, peer: NodeId, *, now_s: float) -> None:
        """This peer does not answer at any of its addresses."""
        self.peers.dial_failed(peer, now_s=now_s)
        self._settle(now_s)

    def packet_unsent(self, event: SendPacket, *, now_s: float) -> None:
        """The link could not take this packet: it goes back to the mixer, or is dropped there at the bound."""
        if self._neighbours.give_back(event.to):
            self.mixer.requeue(Transit(event.to, event.packet), now_s=now_s)
        else:
            self.counters.add("unsent_dropped")
        self._settle(now_s)

    def control_unsent(self, event: SendControl, *, now_s: float) -> None:
        """The link could not take this control message: it is offered again after a while."""
        self.peers.descriptor_unsent(event.to, event.data, now_s=now_s)
        self._settle(now_s)

    def receive_packet(self, packet: Opaque, *, from_peer: NodeId, now_s: float) -> None:
        """A neighbour handed us a packet. The cheapest check that fails decides; nothing is raised."""
        if not self._admits(from_peer, now_s):
            return
        try:
            unwrapped: Unwrapped | PacketError = self._unwrap(packet)
        except PacketError as refusal:
            # Its traceback would hold this frame, which holds it: a cycle for the collector.
            unwrapped = refusal.with_traceback(None)
        self._take(unwrapped, from_peer, now_s)

    def receive_packets(self, packets: Sequence[tuple[NodeId, Opaque]], *, now_s: float) -> None:
        """Several packets, each with the neighbour that handed it over: as one after the other, for less work."""
        admitted = [(peer, packet) for peer, packet in packets if self._admits(peer, now_s)]
        for doubtful, run in groupby(admitted, key=lambda arrival: self._neighbours.is_doubtful(arrival[0])):
            arrivals = list(run)
            unwrap = self._unwrap_each if doubtful else self._unwrap_batch
            results = unwrap([packet for _, packet in arrivals])
            for (peer, _), result in zip(arrivals, results, strict=True):
                self._take(result, peer, now_s)

    def receive_control(self, data: bytes, *, from_peer: NodeId, now_s: float) -> None:
        """A neighbour handed us a control message: a descriptor, as there is nothing else."""
        cause = self._neighbours.refuse_control(from_peer, now_s)
        if cause is not None:
            self.counters.add(cause)
            return
        try:
            if self.peers.receive_descriptor(data, from_peer=from_peer, now_s=now_s):
                self._neighbours.brought_news(from_peer, now_s)
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
        if self._unbuilt:
            self._build(now_s)
            self._settle(now_s)
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
        cause = self._neighbours.refuse_packet(peer, now_s)
        if cause is None:
            return True
        self.counters.add(cause)
        return False

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

    def _unwrap_each(self, packets: Sequence[Opaque]) -> list[Unwrapped | PacketError]:
        results: list[Unwrapped | PacketError] = []
        for packet in packets:
            try:
                results.append(self._unwrap(packet))
            except PacketError as refusal:
                results.append(refusal.with_traceback(None))
        return results

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

    def _take(self, unwrapped: Unwrapped | PacketError, via: NodeId, now_s: float) -> None:
        if isinstance(unwrapped, PacketError):
            self._neighbours.opened(via, good=unwrapped.cause not in _FORGED)
            self.counters.add(unwrapped.cause)
            return
        self._neighbours.opened(via, good=True)
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
        if self._neighbours.refuse_transit(item.via):
            raise PacketError("transit_share_used_up")
        if not self.mixer.submit_transit(item, delay_s=delay_s, now_s=now_s):
            raise PacketError("transit_full")
        self._neighbours.holds(item.via)
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
                if isinstance(key, KeyRotated):
                    self._follow_key(key, now_s)
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
        if self._unbuilt:
            self._timer_s = self._unbuilt_at_s
            return
        mixer_s = self.mixer.next_timer_s()
        others_s = self._others_timer_s
        if mixer_s is not None and mixer_s < others_s:
            self._timer_s = mixer_s
        else:
            self._timer_s = others_s if others_s < inf else None

    def _follow_key(self, key: KeyRotated, now_s: float) -> None:
        if key.epoch != self._epoch:
            self._epoch = key.epoch
            self._neighbours.new_window()
        if self._describe is not None:
            self._announce(self._describe(key, now_s), now_s)

    def _build(self, now_s: float) -> None:
        while self._unbuilt:
            self._outgoing.build(self._unbuilt.popleft(), now_s=now_s)

    def _announce(self, descriptor: Descriptor, now_s: float) -> None:
        # Renewed at half its life, so that peers who are away for less than the other half miss nothing.
        life_s = descriptor.valid_until_s - now_s
        self._renew_at_s = now_s + max(0.5 * life_s, _RENEWAL_PAUSE_S)
        self.peers.announce(descriptor)

    def _follow_mixer(self, event: MixerEvent, now_s: float) -> bool:
        """Follow an event of the mixer; true if another machine was called."""
        item = event.item
        if isinstance(item, Transit):
            self._neighbours.released(item.via, to=item.next_hop)
            self._events.append(SendPacket(to=item.next_hop, packet=item.packet))
            return False
        if isinstance(event, Scheduled):
            self._unbuilt.append(event.item)
            self._unbuilt_at_s = now_s
            return False
        if self._unbuilt:  # a timer came late, or this mixer releases what it schedules at once
            self._build(now_s)
        if (ready := self._outgoing.leave(item, now_s=now_s)) is not None:
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
