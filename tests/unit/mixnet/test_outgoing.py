from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.unit.mixnet.networks import named
from tests.unit.mixnet.nodes import entropy, make_planner
from unlinkabledfl.mixnet.items import Cover, CoverKind, MessageId, OwnMessage
from unlinkabledfl.mixnet.limits import Counters
from unlinkabledfl.mixnet.outgoing import MessageEnded, Outgoing, OutgoingEvent, Requeue, RouteJudged
from unlinkabledfl.mixnet.packets import Message
from unlinkabledfl.mixnet.peers import Directory, PeerSettings, PeerView
from unlinkabledfl.simulation.sealed import SealedPacket, SealedPackets
from unlinkabledfl.sphinx import Geometry

ME, *OTHERS = named(range(6))
DESTINATION = OTHERS[0]
DROP, LOOP = Cover(CoverKind.DROP, 0), Cover(CoverKind.LOOP, 1)


class Sender:
    """An `Outgoing` among five peers, with packets that a test can look into."""

    def __init__(self, *, capacity: int = 3, max_attempts: int = 2, patience_s: float = 10.0, others: int = 5) -> None:
        directory = Directory((peer, peer) for peer in OTHERS[:others])
        self.view = PeerView(own_id=ME, settings=PeerSettings(suspicion_bound=1), directory=directory)
        self.packets = SealedPackets(Geometry(max_hops=3, body_bytes=2048))
        self.counters = Counters()
        planner = make_planner(ME, self.view, generate=self.packets.generate_key)
        self.machine = Outgoing(
            node_id=ME,
            packets=self.packets,
            planner=planner,
            capacity=capacity,
            max_attempts=max_attempts,
            patience_s=patience_s,
            counters=self.counters,
            entropy=entropy(3),
        )

    def slot(self, item: OwnMessage | Cover, *, now_s: float) -> SealedPacket | None:
        """What leaves in a slot that is built and comes due at once."""
        self.machine.build(item, now_s=now_s)
        ready = self.machine.leave(item, now_s=now_s)
        if ready is None:
            return None
        assert ready[0] == ready[1].path[0].node_id
        packet: SealedPacket = ready[1]
        return packet

    def drain(self) -> list[OutgoingEvent]:
        return list(iter(self.machine.next_event, None))


def surb_id(packet: SealedPacket | None) -> bytes:
    assert packet is not None
    assert not isinstance(packet.content, bytes)
    found: bytes = packet.content.surb.surb_id  # type: ignore[union-attr]
    return found


def judged(event: OutgoingEvent) -> bool | None:
    return event.good if isinstance(event, RouteJudged) else None


def test_an_accepted_message_is_queued_and_its_slot_carries_it() -> None:
    sender = Sender()
    message_id = sender.machine.accept(DESTINATION, b"data", now_s=0.0)
    assert sender.drain() == [Requeue(item=OwnMessage(message_id, 1))]

    packet = sender.slot(OwnMessage(message_id, 1), now_s=1.0)

    assert packet is not None
    assert isinstance(packet.content, Message)
    assert (packet.content.message_id, packet.content.data) == (message_id, b"data")
    assert packet.path[-1].node_id == DESTINATION


def test_an_acknowledgement_clears_the_route_and_ends_the_message() -> None:
    sender = Sender()
    message_id = sender.machine.accept(DESTINATION, b"data", now_s=0.0)
    packet = sender.slot(OwnMessage(message_id, 1), now_s=1.0)
    sender.drain()

    sender.machine.receive_reply(surb_id(packet), surb_id(packet), now_s=2.0)
    sender.machine.receive_reply(surb_id(packet), surb_id(packet), now_s=2.0)

    route, ended = sender.drain()
    assert judged(route) is True
    assert ended == MessageEnded(message_id=message_id, attempts=1, round_trip_s=1.0)
    assert (sender.counters["ack_acknowledged"], sender.counters["ack_unknown"]) == (1, 1)


def test_a_timeout_blames_the_route_and_queues_the_message_again() -> None:
    sender = Sender()
    message_id = sender.machine.accept(DESTINATION, b"data", now_s=0.0)
    sender.slot(OwnMessage(message_id, 1), now_s=1.0)
    sender.drain()

    sender.machine.handle_timer(now_s=sender.machine.next_timer_s() or 0.0)

    route, again = sender.drain()
    assert judged(route) is False
    assert again == Requeue(item=OwnMessage(message_id, 2))


def test_a_tampered_reply_blames_the_route_and_does_not_end_the_message() -> None:
    sender = Sender()
    message_id = sender.machine.accept(DESTINATION, b"data", now_s=0.0)
    packet = sender.slot(OwnMessage(message_id, 1), now_s=1.0)
    sender.drain()

    sender.machine.receive_reply(surb_id(packet), b"tampered", now_s=2.0)

    assert [judged(event) for event in sender.drain()] == [False]
    assert (sender.counters["bad_reply"], len(sender.machine)) == (1, 1)


def test_the_slot_of_a_message_that_has_ended_carries_cover() -> None:
    sender = Sender()
    message_id = sender.machine.accept(DESTINATION, b"data", now_s=0.0)
    packet = sender.slot(OwnMessage(message_id, 1), now_s=1.0)
    sender.machine.handle_timer(now_s=sender.machine.next_timer_s() or 0.0)
    sender.machine.receive_reply(surb_id(packet), surb_id(packet), now_s=4.0)

    cover = sender.slot(OwnMessage(message_id, 2), now_s=5.0)

    assert cover is not None
    assert not isinstance(cover.content, Message)
    assert sender.counters["sent_drop_cover"] == 1


def test_the_slot_of_a_message_without_a_route_carries_cover_and_the_message_waits() -> None:
    sender = Sender()
    sender.view.dial_failed(DESTINATION, now_s=0.0)
    message_id = sender.machine.accept(DESTINATION, b"data", now_s=0.0)
    sender.drain()

    cover = sender.slot(OwnMessage(message_id, 1), now_s=1.0)
    assert cover is not None
    assert not isinstance(cover.content, Message)
    assert (sender.drain(), sender.counters["no_route"]) == ([], 1)
    sender.machine.handle_timer(now_s=6.0)

    assert [event for event in sender.drain() if isinstance(event, Requeue)] == [
        Requeue(item=OwnMessage(message_id, 1))
    ]
    assert sender.counters["resent"] == 0


def test_a_slot_without_any_route_leaves_empty_and_is_counted() -> None:
    sender = Sender(others=0)

    assert [sender.slot(item, now_s=1.0) for item in (DROP, LOOP)] == [None, None]
    assert sender.counters.as_dict() == {"no_route": 2}


def test_cover_that_returns_clears_its_route_and_cover_that_does_not_blames_it() -> None:
    sender = Sender()
    drop = sender.slot(DROP, now_s=1.0)
    sender.slot(LOOP, now_s=1.0)

    sender.machine.receive_reply(surb_id(drop), surb_id(drop), now_s=2.0)
    sender.machine.receive_loop(b"never sent")
    sender.machine.handle_timer(now_s=100.0)

    assert [judged(event) for event in sender.drain()] == [True, False]
    assert sender.counters.as_dict() == {
        "ack_cover": 1, "loop_unknown": 1, "lost_loop_cover": 1, "sent_drop_cover": 1, "sent_loop_cover": 1,
    }  # fmt: skip


def test_a_reply_to_cover_that_was_changed_on_its_way_blames_its_route_like_one_to_a_message() -> None:
    sender = Sender()
    drop = sender.slot(DROP, now_s=1.0)

    sender.machine.receive_reply(surb_id(drop), b"mauled", now_s=2.0)

    assert [judged(event) for event in sender.drain()] == [False]
    assert sender.counters.as_dict() == {"bad_reply": 1, "lost_drop_cover": 1, "sent_drop_cover": 1}


class World(RuleBasedStateMachine):
    """Slots, acknowledgements, forgeries, lost routes and time, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.sender = Sender()
        self.now_s = 0.0
        self.queued: list[OwnMessage] = []
        self.replies: list[bytes] = []
        self.live: set[MessageId] = set()

    @precondition(lambda self: len(self.live) < 3)
    @rule()
    def accept(self) -> None:
        self.live.add(self.sender.machine.accept(DESTINATION, b"data", now_s=self.now_s))

    @precondition(lambda self: self.queued)
    @rule()
    def turn_comes(self) -> None:
        packet = self.sender.slot(self.queued.pop(0), now_s=self.now_s)
        if packet is not None:
            self.replies.append(surb_id(packet))

    @precondition(lambda self: self.replies)
    @rule(data=st.data(), body=st.sampled_from([None, b"forged"]))
    def reply(self, data: st.DataObject, body: bytes | None) -> None:
        chosen = data.draw(st.sampled_from(self.replies))
        self.sender.machine.receive_reply(chosen, body or chosen, now_s=self.now_s)

    @rule(forged=st.binary(min_size=32, max_size=32))
    def forge(self, forged: bytes) -> None:
        self.sender.machine.receive_reply(forged, forged, now_s=self.now_s)
        self.sender.machine.receive_loop(forged[:16])

    @rule()
    def lose_the_destination(self) -> None:
        self.sender.view.dial_failed(DESTINATION, now_s=self.now_s)

    @rule(step_s=st.integers(0, 30))
    def time_passes(self, step_s: int) -> None:
        self.now_s += step_s
        self.sender.view.handle_timer(now_s=self.now_s)
        self.sender.machine.handle_timer(now_s=self.now_s)

    @invariant()
    def a_message_ends_exactly_once(self) -> None:
        for event in self.sender.drain():
            if isinstance(event, Requeue):
                assert event.item.message_id in self.live
                self.queued.append(event.item)
            elif isinstance(event, MessageEnded):
                self.live.remove(event.message_id)
        assert len(self.sender.machine) == len(self.live)

    def teardown(self) -> None:
        for _ in range(20):
            while self.queued:
                self.turn_comes()
            self.time_passes(30)
            self.a_message_ends_exactly_once()
        assert self.live == set()
        assert self.sender.machine._receipts == {}  # noqa: SLF001 -- secrets live no longer than their message


TestWorld = World.TestCase
TestWorld.settings = settings(max_examples=50, stateful_step_count=40)
