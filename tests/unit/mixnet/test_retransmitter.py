from collections import Counter
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.mixnet.items import MessageId
from unlinkabledfl.mixnet.retransmitter import (
    Acknowledged,
    AckOutcome,
    AttemptTimedOut,
    GivenUp,
    Resend,
    Retransmitter,
    RetransmitterEvent,
)

MESSAGE = MessageId(b"m" * 16)
OTHER = MessageId(b"o" * 16)
FIRST, SECOND, THIRD = b"1" * 16, b"2" * 16, b"3" * 16


def drain(machine: Retransmitter) -> list[RetransmitterEvent]:
    return list(iter(machine.next_event, None))


def sent_once(*, max_attempts: int = 3) -> Retransmitter:
    machine = Retransmitter(max_attempts=max_attempts)
    machine.track(MESSAGE, now_s=7.0)
    machine.sent(MESSAGE, FIRST, timeout_s=2.0, now_s=10.0)
    return machine


def sent_twice() -> Retransmitter:
    machine = sent_once()
    machine.handle_timer(now_s=12.0)
    machine.sent(MESSAGE, SECOND, timeout_s=4.0, now_s=13.0)
    drain(machine)
    return machine


def test_a_queued_message_has_no_timer() -> None:
    machine = Retransmitter(max_attempts=3)
    machine.track(MESSAGE, now_s=7.0)

    machine.handle_timer(now_s=1e9)

    assert (machine.next_timer_s(), drain(machine), machine.is_wanted(MESSAGE)) == (None, [], True)


def test_an_ack_ends_the_message_and_measures_from_the_departure() -> None:
    machine = sent_once()

    outcome = machine.receive_ack(FIRST, now_s=11.5)

    assert outcome is AckOutcome.ACKNOWLEDGED
    assert drain(machine) == [
        Acknowledged(message_id=MESSAGE, attempts=1, round_trip_s=1.5, total_s=4.5, surb_ids=(FIRST,))
    ]
    assert (machine.is_wanted(MESSAGE), len(machine), machine.next_timer_s()) == (False, 0, None)


def test_an_unacked_message_is_resent_when_its_timer_fires() -> None:
    machine = sent_once()
    assert machine.next_timer_s() == 12.0

    machine.handle_timer(now_s=11.9)
    assert drain(machine) == []
    machine.handle_timer(now_s=12.0)

    assert drain(machine) == [
        AttemptTimedOut(message_id=MESSAGE, surb_id=FIRST, attempt=1),
        Resend(message_id=MESSAGE, attempt=2),
    ]
    assert (machine.next_timer_s(), machine.is_wanted(MESSAGE)) == (None, True)


def test_an_ack_of_the_first_attempt_makes_a_queued_resend_unwanted() -> None:
    machine = sent_once()
    machine.handle_timer(now_s=12.0)
    drain(machine)

    outcome = machine.receive_ack(FIRST, now_s=12.5)

    assert outcome is AckOutcome.ACKNOWLEDGED
    assert drain(machine) == [
        Acknowledged(message_id=MESSAGE, attempts=1, round_trip_s=2.5, total_s=5.5, surb_ids=(FIRST,))
    ]
    assert not machine.is_wanted(MESSAGE)


def test_an_ack_of_the_first_attempt_counts_while_the_second_is_under_way() -> None:
    machine = sent_twice()

    assert machine.receive_ack(FIRST, now_s=14.0) is AckOutcome.ACKNOWLEDGED
    assert machine.receive_ack(SECOND, now_s=15.0) is AckOutcome.LATE

    assert drain(machine) == [
        Acknowledged(message_id=MESSAGE, attempts=2, round_trip_s=4.0, total_s=7.0, surb_ids=(FIRST, SECOND))
    ]
    assert machine.next_timer_s() is None


def test_a_message_is_given_up_after_its_last_attempt() -> None:
    machine = sent_once(max_attempts=1)

    machine.handle_timer(now_s=12.0)

    assert drain(machine) == [
        AttemptTimedOut(message_id=MESSAGE, surb_id=FIRST, attempt=1),
        GivenUp(message_id=MESSAGE, attempts=1, total_s=5.0, surb_ids=(FIRST,)),
    ]
    assert not machine.is_wanted(MESSAGE)


def test_an_ack_after_the_end_is_late_once_and_then_unknown() -> None:
    machine = sent_once(max_attempts=1)
    machine.handle_timer(now_s=12.0)
    drain(machine)

    outcomes = [machine.receive_ack(FIRST, now_s=13.0), machine.receive_ack(FIRST, now_s=13.0)]

    assert (outcomes, drain(machine)) == ([AckOutcome.LATE, AckOutcome.UNKNOWN], [])


def test_a_reply_block_that_was_never_ours_is_unknown() -> None:
    machine = sent_once()

    assert machine.receive_ack(THIRD, now_s=11.0) is AckOutcome.UNKNOWN
    assert drain(machine) == []


def test_a_message_without_a_route_comes_again_after_a_pause_and_spends_no_attempt() -> None:
    machine = Retransmitter(max_attempts=2, patience_s=60.0, pause_s=5.0)
    machine.track(MESSAGE, now_s=1.0)

    machine.not_sent(MESSAGE, now_s=2.0)
    assert (drain(machine), machine.next_timer_s(), machine.is_wanted(MESSAGE)) == ([], 7.0, True)
    machine.handle_timer(now_s=7.0)

    assert drain(machine) == [Resend(message_id=MESSAGE, attempt=1)]
    assert machine.next_timer_s() is None


def test_a_message_is_given_up_when_its_pauses_have_used_up_its_patience() -> None:
    machine = Retransmitter(max_attempts=2, patience_s=10.0, pause_s=5.0)
    machine.track(MESSAGE, now_s=1.0)

    for now_s in (2.0, 7.0):
        machine.not_sent(MESSAGE, now_s=now_s)
        machine.handle_timer(now_s=now_s + 5.0)
    machine.not_sent(MESSAGE, now_s=13.0)
    machine.not_sent(MESSAGE, now_s=14.0)

    assert drain(machine) == [
        Resend(message_id=MESSAGE, attempt=1),
        Resend(message_id=MESSAGE, attempt=1),
        GivenUp(message_id=MESSAGE, attempts=0, total_s=12.0, surb_ids=()),
    ]
    assert machine.memory <= 8


def test_an_ack_of_an_earlier_attempt_ends_a_pause() -> None:
    machine = sent_once()
    machine.handle_timer(now_s=12.0)
    machine.not_sent(MESSAGE, now_s=13.0)
    drain(machine)

    assert machine.receive_ack(FIRST, now_s=14.0) is AckOutcome.ACKNOWLEDGED

    assert drain(machine) == [
        Acknowledged(message_id=MESSAGE, attempts=1, round_trip_s=4.0, total_s=7.0, surb_ids=(FIRST,))
    ]
    assert machine.next_timer_s() is None


def test_a_message_that_pauses_is_not_queued() -> None:
    machine = Retransmitter(max_attempts=2)
    machine.track(MESSAGE, now_s=1.0)
    machine.not_sent(MESSAGE, now_s=2.0)

    with pytest.raises(LocalProtocolError):
        machine.not_sent(MESSAGE, now_s=2.0)
    with pytest.raises(LocalProtocolError):
        machine.sent(MESSAGE, FIRST, timeout_s=1.0, now_s=2.0)


def test_a_packet_built_before_its_message_ended_may_leave_and_its_ack_is_late() -> None:
    machine = sent_once()
    machine.handle_timer(now_s=12.0)
    machine.receive_ack(FIRST, now_s=12.5)
    drain(machine)

    machine.sent(MESSAGE, SECOND, timeout_s=4.0, now_s=13.0)

    assert machine.next_timer_s() is None
    assert machine.receive_ack(SECOND, now_s=14.0) is AckOutcome.LATE
    assert drain(machine) == []


def test_timers_fire_by_time_and_then_in_the_order_of_departure() -> None:
    machine = Retransmitter(max_attempts=1)
    for message, surb, timeout_s in [(MESSAGE, FIRST, 5.0), (OTHER, SECOND, 5.0)]:
        machine.track(message, now_s=0.0)
        machine.sent(message, surb, timeout_s=timeout_s, now_s=0.0)

    machine.handle_timer(now_s=9.0)

    ended = [event.message_id for event in drain(machine) if isinstance(event, GivenUp)]
    assert ended == [MESSAGE, OTHER]


def test_the_memory_for_late_replies_forgets_the_oldest() -> None:
    machine = Retransmitter(max_attempts=1, late_capacity=2)
    for message, surb in [(b"a" * 16, FIRST), (b"b" * 16, SECOND), (b"c" * 16, THIRD)]:
        machine.track(MessageId(message), now_s=0.0)
        machine.sent(MessageId(message), surb, timeout_s=1.0, now_s=0.0)
    machine.handle_timer(now_s=1.0)

    outcomes = [machine.receive_ack(surb, now_s=2.0) for surb in (FIRST, SECOND, THIRD)]

    assert outcomes == [AckOutcome.UNKNOWN, AckOutcome.LATE, AckOutcome.LATE]


def test_tracking_twice_is_a_bug() -> None:
    machine = sent_once()

    with pytest.raises(LocalProtocolError):
        machine.track(MESSAGE, now_s=11.0)


def test_sending_an_attempt_that_is_under_way_is_a_bug() -> None:
    machine = sent_once()

    with pytest.raises(LocalProtocolError):
        machine.sent(MESSAGE, SECOND, timeout_s=1.0, now_s=11.0)
    with pytest.raises(LocalProtocolError):
        machine.not_sent(MESSAGE, now_s=11.0)


def test_using_a_reply_block_twice_is_a_bug() -> None:
    machine = sent_once()
    machine.track(OTHER, now_s=11.0)

    with pytest.raises(LocalProtocolError):
        machine.sent(OTHER, FIRST, timeout_s=1.0, now_s=11.0)


@pytest.mark.parametrize("timeout_s", [0.0, -1.0, float("nan")])
def test_a_timeout_that_is_no_time_is_a_bug(timeout_s: float) -> None:
    machine = Retransmitter(max_attempts=1)
    machine.track(MESSAGE, now_s=0.0)

    with pytest.raises(LocalProtocolError):
        machine.sent(MESSAGE, FIRST, timeout_s=timeout_s, now_s=0.0)


@pytest.mark.parametrize(
    "settings_",
    [{"max_attempts": 0}, {"late_capacity": -1}, {"patience_s": -1.0}, {"patience_s": float("inf")}, {"pause_s": 0.0}],
    ids=str,
)
def test_settings_that_cannot_work_are_refused(settings_: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        Retransmitter(**({"max_attempts": 1} | settings_))
    assert next(iter(settings_)) in caught.value.key


class World(RuleBasedStateMachine):
    """Any order of departures, losses, acknowledgements and timers, in whole seconds."""

    MAX_ATTEMPTS = 3
    LATE_CAPACITY = 4
    PAUSE_S = 3
    PAUSES_MAX = 2

    def __init__(self) -> None:
        super().__init__()
        self.machine = Retransmitter(
            max_attempts=self.MAX_ATTEMPTS,
            late_capacity=self.LATE_CAPACITY,
            patience_s=self.PAUSES_MAX * self.PAUSE_S,
            pause_s=self.PAUSE_S,
        )
        self.now_s = 0
        self.surbs = 0
        self.owner: dict[bytes, MessageId] = {}
        self.departed_at_s: dict[bytes, int] = {}
        self.attempts: dict[MessageId, int] = {}
        self.queued: list[MessageId] = []
        self.ended: set[MessageId] = set()
        self.parked: set[MessageId] = set()
        self.pauses: Counter[MessageId] = Counter()

    def live(self) -> set[MessageId]:
        return set(self.attempts) - self.ended

    @rule()
    def track(self) -> None:
        message = MessageId(len(self.attempts).to_bytes(16))
        self.machine.track(message, now_s=self.now_s)
        self.attempts[message] = 1
        self.queued.append(message)

    @precondition(lambda self: self.queued)
    @rule(data=st.data(), timeout_s=st.integers(1, 9), late=st.booleans())
    def turn_comes(self, data: st.DataObject, timeout_s: int, late: bool) -> None:
        message = self.queued.pop(data.draw(st.integers(0, len(self.queued) - 1)))
        assert self.machine.is_wanted(message) is (message not in self.ended)
        if message in self.ended and not late:
            return
        self.surbs += 1
        surb = self.surbs.to_bytes(16)
        self.owner[surb], self.departed_at_s[surb] = message, self.now_s
        self.machine.sent(message, surb, timeout_s=timeout_s, now_s=self.now_s)

    @precondition(lambda self: self.queued)
    @rule(data=st.data())
    def no_route(self, data: st.DataObject) -> None:
        message = self.queued.pop(data.draw(st.integers(0, len(self.queued) - 1)))
        self.find_no_route(message)

    def find_no_route(self, message: MessageId) -> None:
        if message not in self.ended and self.pauses[message] < self.PAUSES_MAX:
            self.pauses[message] += 1
            self.parked.add(message)
        self.machine.not_sent(message, now_s=self.now_s)

    @precondition(lambda self: self.owner)
    @rule(data=st.data())
    def ack(self, data: st.DataObject) -> None:
        surb = data.draw(st.sampled_from(sorted(self.owner)))
        message = self.owner[surb]
        outcome = self.machine.receive_ack(surb, now_s=self.now_s)
        if message in self.ended:
            assert outcome in (AckOutcome.LATE, AckOutcome.UNKNOWN)
            return
        assert outcome is AckOutcome.ACKNOWLEDGED
        event = self.machine.next_event()
        assert isinstance(event, Acknowledged)
        assert event.round_trip_s == self.now_s - self.departed_at_s[surb]
        self.end(event)

    @rule(step_s=st.integers(0, 12))
    def time_passes(self, step_s: int) -> None:
        self.now_s += step_s
        self.machine.handle_timer(now_s=self.now_s)

    def end(self, event: Acknowledged | GivenUp) -> None:
        assert event.message_id in self.live()
        assert set(event.surb_ids) == {surb for surb, owner in self.owner.items() if owner == event.message_id}
        self.ended.add(event.message_id)
        self.parked.discard(event.message_id)

    @invariant()
    def holds(self) -> None:
        self.events_are_consistent()
        self.a_live_message_is_queued_or_has_a_timer()
        self.memory_is_bounded_by_the_live_messages()

    def events_are_consistent(self) -> None:
        for event in drain(self.machine):
            if isinstance(event, GivenUp):
                spent = event.attempts == self.MAX_ATTEMPTS
                assert spent or self.pauses[event.message_id] == self.PAUSES_MAX
                assert event.attempts == len(event.surb_ids)
                self.end(event)
            elif isinstance(event, Resend):
                assert event.message_id in self.live()
                assert event.message_id not in self.queued
                resumed = event.message_id in self.parked
                assert event.attempt == self.attempts[event.message_id] + (not resumed)
                self.parked.discard(event.message_id)
                self.attempts[event.message_id] = event.attempt
                self.queued.append(event.message_id)
            else:
                assert isinstance(event, AttemptTimedOut)
                assert self.owner[event.surb_id] == event.message_id
                assert event.attempt == self.attempts[event.message_id]

    def a_live_message_is_queued_or_has_a_timer(self) -> None:
        live = self.live()
        assert len(self.machine) == len(live)
        timer_s = self.machine.next_timer_s()
        assert (timer_s is None) is (live <= set(self.queued))
        assert timer_s is None or timer_s > self.now_s

    def memory_is_bounded_by_the_live_messages(self) -> None:
        # One entry for the message, its attempts, up to two in the heap and its slack.
        assert self.machine.memory <= len(self.live()) * (3 + self.MAX_ATTEMPTS) + self.LATE_CAPACITY + 8

    def teardown(self) -> None:
        """Left alone, every message ends."""
        for _ in range(self.MAX_ATTEMPTS + self.PAUSES_MAX):
            while self.queued:
                self.find_no_route(self.queued.pop())
            self.now_s += 10
            self.machine.handle_timer(now_s=self.now_s)
            self.events_are_consistent()
        assert self.ended == set(self.attempts)
        assert self.machine.memory <= self.LATE_CAPACITY + 8


TestWorld = World.TestCase
TestWorld.settings = settings(max_examples=60, stateful_step_count=60)


def test_timers_of_acked_messages_leave_nothing_behind() -> None:
    """Timeouts far ahead: without compaction the heap would hold one entry a message sent so far."""
    machine = Retransmitter(max_attempts=3)
    for number in range(20_000):
        message = MessageId(number.to_bytes(16))
        machine.track(message, now_s=number)
        machine.sent(message, number.to_bytes(16), timeout_s=1e6, now_s=number)
        machine.receive_ack(number.to_bytes(16), now_s=number + 0.5)
        machine.next_event()

    assert machine.memory <= 8
