"""What this node sends of its own: messages until they are acknowledged, and cover.

    queued --build, wanted------------> prepared
    queued --build, ended meanwhile---> prepared
    queued --build, no route----------> parked
    queued --build, patience used up--> MessageEnded, done
    parked --pause over---------------> Requeue, queued
    parked --acknowledged-------------> RouteJudged, MessageEnded, done
    prepared --leave------------------> sent
    sent --acknowledged---------------> RouteJudged, MessageEnded, done
    sent --answered with rubbish------> RouteJudged, sent
    sent --timed out, attempts left---> RouteJudged, Requeue, queued
    sent --timed out, none left-------> RouteJudged, MessageEnded, done

A packet is built when the mixer has decided at which instant it leaves, so its route and reply block are as fresh as
they can be, and building never shifts the instant. A slot whose message has ended meanwhile, or has no route, carries
drop cover: a slot is left empty only when nobody at all can be reached. A message without a route waits for one, up to
a limit (`retransmitter`), and spends none of its attempts on that.

Invariant: what leaves in a slot is decided before and independently of everything that an observer sees; a message
ends exactly once; secrets of reply blocks are kept only while their message lives.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from unlinkabledfl.errors import LocalProtocolError, NoRouteError, PacketError, QueueFullError
from unlinkabledfl.mixnet.items import Cover, CoverKind, MessageId, OwnMessage
from unlinkabledfl.mixnet.itinerary import Itinerary, Planner
from unlinkabledfl.mixnet.limits import Counters
from unlinkabledfl.mixnet.packets import Drop, Loop, Message, Opaque, PacketFormat
from unlinkabledfl.mixnet.probes import ProbeLost, ProbeReturned, Probes
from unlinkabledfl.mixnet.retransmitter import Acknowledged, AttemptTimedOut, GivenUp, Resend, Retransmitter
from unlinkabledfl.sphinx import Entropy, NodeId

MESSAGE_ID_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeue:
    """Queue this attempt at the mixer: it goes out in an ordinary slot."""

    item: OwnMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageEnded:
    """This message of ours was acknowledged after `round_trip_s`, or given up (None)."""

    message_id: MessageId
    attempts: int
    round_trip_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteJudged:
    """A packet that left at `sent_at_s` came back over these peers, or did not."""

    relays: tuple[NodeId, ...]
    good: bool
    sent_at_s: float


OutgoingEvent: TypeAlias = Requeue | MessageEnded | RouteJudged


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A packet that waits for its instant. `receipt` is the id under which its return is recognised."""

    itinerary: Itinerary
    packet: Opaque
    receipt: bytes
    message_id: MessageId | None = None
    kind: CoverKind = CoverKind.DROP
    secret: Opaque = None


@dataclass(frozen=True, slots=True)
class _Receipt:
    """What is kept of a message's packet under way: the secret of its reply block, and whom it depends on."""

    secret: Opaque
    relays: tuple[NodeId, ...]
    sent_at_s: float


class Outgoing:
    """The sending half of a node."""

    __slots__ = (
        "_capacity",
        "_counters",
        "_entropy",
        "_events",
        "_messages",
        "_node_id",
        "_packets",
        "_planner",
        "_prepared",
        "_receipts",
        "_retransmitter",
        "probes",
    )

    def __init__(
        self,
        *,
        node_id: NodeId,
        packets: PacketFormat,
        planner: Planner,
        capacity: int,
        max_attempts: int,
        patience_s: float,
        counters: Counters,
        entropy: Entropy,
    ) -> None:
        self._node_id = node_id
        self._packets = packets
        self._planner = planner
        self._capacity = capacity
        self._counters = counters
        self._entropy = entropy
        self._retransmitter = Retransmitter(max_attempts=max_attempts, patience_s=patience_s)
        self.probes = Probes()
        self._messages: dict[MessageId, tuple[NodeId, bytes]] = {}
        self._prepared: dict[OwnMessage | Cover, _Prepared] = {}
        self._receipts: dict[bytes, _Receipt] = {}
        self._events: deque[OutgoingEvent] = deque()

    def __len__(self) -> int:
        """Messages that have not ended: what back-pressure is about."""
        return len(self._messages)

    # -- messages of the application ----------------------------------------------------------------------------

    def accept(self, destination: NodeId, data: bytes, *, now_s: float) -> MessageId:
        """Take a message; QueueFullError if as many as may wait have not ended yet."""
        if len(data) > self._packets.data_bytes:
            raise LocalProtocolError(f"a message has {len(data)} bytes; a packet holds {self._packets.data_bytes}")
        if destination == self._node_id:
            raise LocalProtocolError("a node does not send messages to itself")
        if len(self._messages) >= self._capacity:
            raise QueueFullError("mixnet.own_capacity", bound=self._capacity)
        message_id = MessageId(self._entropy(MESSAGE_ID_BYTES))
        self._messages[message_id] = (destination, data)
        self._retransmitter.track(message_id, now_s=now_s)
        self._events.append(Requeue(item=OwnMessage(message_id, 1)))
        return message_id

    # -- slots --------------------------------------------------------------------------------------------------

    def build(self, item: OwnMessage | Cover, *, now_s: float) -> None:
        """Build the packet for a slot that the mixer has just scheduled."""
        match item:
            case OwnMessage(message_id, attempt):
                if self._retransmitter.is_wanted(message_id):
                    try:
                        self._prepared[item] = self._build_message(message_id, attempt)
                    except (NoRouteError, PacketError) as error:
                        self._count_unroutable(error)
                        self._retransmitter.not_sent(message_id, now_s=now_s)
                    else:
                        return
                self._build_cover(item, CoverKind.DROP)
            case Cover(kind, _):
                self._build_cover(item, kind)

    def leave(self, item: OwnMessage | Cover, *, now_s: float) -> tuple[NodeId, Opaque] | None:
        """The packet of this slot, which leaves now; None if nothing could be built."""
        prepared = self._prepared.pop(item, None)
        if prepared is None:
            return None
        message_id, itinerary = prepared.message_id, prepared.itinerary
        if message_id is None:
            self.probes.sent(
                prepared.receipt,
                prepared.kind,
                itinerary.peers,
                secret=prepared.secret,
                timeout_s=itinerary.timeout_s,
                now_s=now_s,
            )
            self._counters.add(f"sent_{prepared.kind}_cover")
        else:
            if self._retransmitter.is_wanted(message_id):
                self._receipts[prepared.receipt] = _Receipt(prepared.secret, itinerary.peers, now_s)
            self._retransmitter.sent(message_id, prepared.receipt, timeout_s=itinerary.timeout_s, now_s=now_s)
            self._counters.add("sent_message")
            if isinstance(item, OwnMessage) and item.attempt > 1:
                self._counters.add("resent")
        return itinerary.path[0].node_id, prepared.packet

    # -- what comes back ----------------------------------------------------------------------------------------

    def receive_reply(self, surb_id: bytes, body: Opaque, *, now_s: float) -> None:
        """A reply block of ours returned, or one that claims to be."""
        if surb_id in self.probes:
            self._receive_cover_reply(surb_id, body)
            return
        receipt = self._receipts.pop(surb_id, None)
        if receipt is not None:
            try:
                self._packets.open_acknowledgement(receipt.secret, body)
            except PacketError as refusal:
                # The block is spent and the attempt will time out. Whoever changed the body is one of these.
                self._counters.add(refusal.cause)
                self._events.append(RouteJudged(relays=receipt.relays, good=False, sent_at_s=receipt.sent_at_s))
                return
            self._events.append(RouteJudged(relays=receipt.relays, good=True, sent_at_s=receipt.sent_at_s))
        self._counters.add(self._retransmitter.receive_ack(surb_id, now_s=now_s))

    def _receive_cover_reply(self, surb_id: bytes, body: Opaque) -> None:
        # Opened like a message's: or a relay could spoil every reply, and clear itself with those of cover.
        try:
            self._packets.open_acknowledgement(self.probes.secret(surb_id), body)
        except PacketError as refusal:
            self._counters.add(refusal.cause)
            self.probes.spoilt(surb_id)
        else:
            self.probes.returned(surb_id)
            self._counters.add("ack_cover")

    def receive_loop(self, loop_id: bytes) -> None:
        """Loop cover came back, or something that claims to be."""
        self._counters.add("loop_returned" if self.probes.returned(loop_id) else "loop_unknown")

    # -- time ---------------------------------------------------------------------------------------------------

    def next_timer_s(self) -> float | None:
        """When the next attempt or probe is overdue."""
        attempt_s = self._retransmitter.next_timer_s()
        probe_s = self.probes.next_timer_s()
        if attempt_s is None or probe_s is None:
            return probe_s if attempt_s is None else attempt_s
        return min(attempt_s, probe_s)

    def handle_timer(self, *, now_s: float) -> None:
        """Judge what is overdue."""
        self._retransmitter.handle_timer(now_s=now_s)
        self.probes.handle_timer(now_s=now_s)

    def next_event(self) -> OutgoingEvent | None:
        """The next thing to act on."""
        while not self._events:
            event = self._retransmitter.next_event()
            if event is not None:
                self._follow(event)
                continue
            probe = self.probes.next_event()
            if probe is None:
                return None
            match probe:
                case ProbeReturned(relays=relays, sent_at_s=sent_at_s):
                    self._events.append(RouteJudged(relays=relays, good=True, sent_at_s=sent_at_s))
                case ProbeLost(kind=kind, relays=relays, sent_at_s=sent_at_s):
                    self._counters.add(f"lost_{kind}_cover")
                    self._events.append(RouteJudged(relays=relays, good=False, sent_at_s=sent_at_s))
        return self._events.popleft()

    def _follow(self, event: Resend | AttemptTimedOut | Acknowledged | GivenUp) -> None:
        match event:
            case Resend(message_id=message_id, attempt=attempt):
                self._events.append(Requeue(item=OwnMessage(message_id, attempt)))
            case AttemptTimedOut(surb_id=surb_id):
                self._counters.add("timed_out")
                # The block stays good for a late acknowledgement, but the route is judged once.
                receipt = self._receipts.get(surb_id)
                if receipt is not None:
                    self._events.append(RouteJudged(relays=receipt.relays, good=False, sent_at_s=receipt.sent_at_s))
            case Acknowledged(message_id=message_id, attempts=attempts, round_trip_s=round_trip_s):
                self._forget(message_id, event.surb_ids)
                self._events.append(MessageEnded(message_id=message_id, attempts=attempts, round_trip_s=round_trip_s))
            case GivenUp(message_id=message_id, attempts=attempts):
                self._forget(message_id, event.surb_ids)
                self._events.append(MessageEnded(message_id=message_id, attempts=attempts, round_trip_s=None))
            case _:
                assert_never(event)

    def _forget(self, message_id: MessageId, surb_ids: Sequence[bytes]) -> None:
        del self._messages[message_id]
        for surb_id in surb_ids:
            self._receipts.pop(surb_id, None)

    # -- building -----------------------------------------------------------------------------------------------

    def _build_message(self, message_id: MessageId, attempt: int) -> _Prepared:
        destination, data = self._messages[message_id]
        itinerary = self._planner.to(destination, attempt=attempt)
        surb, surb_id, secret = self._packets.make_surb(itinerary.back, entropy=self._entropy)
        packet = self._packets.wrap(itinerary.path, Message(message_id, data, surb), entropy=self._entropy)
        return _Prepared(itinerary, packet, surb_id, message_id=message_id, secret=secret)

    def _build_cover(self, item: OwnMessage | Cover, kind: CoverKind) -> None:
        try:
            self._prepared[item] = self._build_loop() if kind is CoverKind.LOOP else self._build_drop()
        except (NoRouteError, PacketError) as error:
            self._count_unroutable(error)

    def _build_drop(self) -> _Prepared:
        itinerary = self._planner.to_anybody()
        surb, surb_id, secret = self._packets.make_surb(itinerary.back, entropy=self._entropy)
        packet = self._packets.wrap(itinerary.path, Drop(surb), entropy=self._entropy)
        return _Prepared(itinerary, packet, surb_id, secret=secret)

    def _build_loop(self) -> _Prepared:
        itinerary = self._planner.loop()
        loop_id = MessageId(self._entropy(MESSAGE_ID_BYTES))
        packet = self._packets.wrap(itinerary.path, Loop(loop_id), entropy=self._entropy)
        return _Prepared(itinerary, packet, loop_id, kind=CoverKind.LOOP)

    def _count_unroutable(self, error: NoRouteError | PacketError) -> None:
        # A bad key is a peer's doing, and the packet layer names the cause; a missing route is nobody's.
        self._counters.add(error.cause if isinstance(error, PacketError) else "no_route")
