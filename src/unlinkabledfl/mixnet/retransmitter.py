"""Send a message again until one of its reply blocks returns.

    untracked --track----------------> queued
    queued --sent--------------------> waiting
    queued --no route, attempts left-> Resend, queued
    queued --no route, none left-----> GivenUp, ended
    queued --ack of an earlier one---> Acknowledged, ended
    waiting --ack of any attempt-----> Acknowledged, ended
    waiting --timer, attempts left---> AttemptTimedOut, Resend, queued
    waiting --timer, none left-------> AttemptTimedOut, GivenUp, ended
    ended --sent---------------------> ended
    ended --ack----------------------> ended

Invariant: a message ends exactly once, Acknowledged or GivenUp, and after that nothing of it is kept but the ids of
its unanswered reply blocks, in a memory of bounded length that only tells a late reply from a forged one.

A resend is a new packet with a new route and a new reply block, never the same bytes: those would be linkable, and
dropped as a replay. It waits at the mixer for an ordinary send slot, because a packet that left at the moment of a
timeout would tell an observer whose timeout it was. An acknowledgement can overtake it there: ask `is_wanted` when its
turn comes, and send cover in its place if not. For the same reason `sent` accepts a message that has ended: its last
packet may have been built already when the acknowledgement came, and then it leaves.
"""

from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.mixnet.items import MessageId
from unlinkabledfl.mixnet.limits import Deadlines


class AckOutcome(StrEnum):
    """What a returned reply block meant; usable as a counter's name."""

    ACKNOWLEDGED = "ack_acknowledged"
    LATE = "ack_late"
    """Its message had ended already."""
    UNKNOWN = "ack_unknown"
    """Never ours, or answered before, or late by more than is remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resend:
    """Queue this message at the mixer again, to be wrapped afresh when its turn comes."""

    message_id: MessageId
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptTimedOut:
    """This reply block did not return in time: something on its two routes lost it, or is slow."""

    message_id: MessageId
    surb_id: bytes
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """The message arrived.

    `attempts` have left; `round_trip_s` is that of the one which was answered, `total_s` the time since `track`.
    The secrets of all `surb_ids` can be destroyed.
    """

    message_id: MessageId
    attempts: int
    round_trip_s: float
    total_s: float
    surb_ids: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp:
    """No attempt was answered in time; the message may have arrived or not.

    `attempts` were made, those that found no route included. The secrets of all `surb_ids` can be destroyed.
    """

    message_id: MessageId
    attempts: int
    total_s: float
    surb_ids: tuple[bytes, ...]


RetransmitterEvent: TypeAlias = Resend | AttemptTimedOut | Acknowledged | GivenUp


class _Tracked:
    """One live message. `attempt` counts from 1 and is either queued or under way (`waiting`)."""

    __slots__ = ("attempt", "departures", "message_id", "tracked_at_s", "waiting")

    def __init__(self, message_id: MessageId, now_s: float) -> None:
        self.message_id = message_id
        self.tracked_at_s = now_s
        self.attempt = 1
        self.waiting = False
        self.departures: dict[bytes, float] = {}


class Retransmitter:
    """Follows the messages of this node from the queue to their end."""

    __slots__ = ("_by_surb", "_events", "_late", "_late_capacity", "_max_attempts", "_messages", "_timers")

    def __init__(self, *, max_attempts: int, late_capacity: int = 256) -> None:
        if max_attempts < 1:
            raise ConfigError(key="mixnet.max_attempts", got=max_attempts, takes="a whole number of at least 1")
        if late_capacity < 0:
            raise ConfigError(key="mixnet.late_capacity", got=late_capacity, takes="a whole number, 0 or more")
        self._max_attempts = max_attempts
        self._late_capacity = late_capacity
        self._messages: dict[MessageId, _Tracked] = {}
        self._by_surb: dict[bytes, _Tracked] = {}
        self._late: dict[bytes, None] = {}  # in order of insertion: the first one is forgotten first
        self._timers: Deadlines[MessageId] = Deadlines()
        self._events: deque[RetransmitterEvent] = deque()

    def __len__(self) -> int:
        """Messages that have not ended."""
        return len(self._messages)

    @property
    def memory(self) -> int:
        """Entries in all tables: bounded by the live messages, their attempts and `late_capacity`."""
        return len(self._messages) + len(self._by_surb) + len(self._late) + self._timers.entries

    def is_wanted(self, message_id: MessageId) -> bool:
        """Whether a queued attempt at this message still has a purpose."""
        return message_id in self._messages

    def track(self, message_id: MessageId, *, now_s: float) -> None:
        """The first attempt at this message was queued."""
        if message_id in self._messages:
            raise LocalProtocolError("this message is tracked already")
        self._messages[message_id] = _Tracked(message_id, now_s)

    def sent(self, message_id: MessageId, surb_id: bytes, *, timeout_s: float, now_s: float) -> None:
        """The queued attempt at this message left now, with this reply block."""
        if not timeout_s > 0.0:
            raise LocalProtocolError(f"a timeout is above 0 s, not {timeout_s}")
        tracked = self._messages.get(message_id)
        if tracked is None:
            self._remember_late(surb_id)
            return
        if tracked.waiting:
            raise LocalProtocolError("an attempt at this message is under way already")
        if surb_id in self._by_surb:
            raise LocalProtocolError("a reply block is used once")
        tracked.waiting = True
        tracked.departures[surb_id] = now_s
        self._by_surb[surb_id] = tracked
        self._timers.set(message_id, now_s + timeout_s)

    def not_sent(self, message_id: MessageId, *, now_s: float) -> None:
        """The turn of the queued attempt came, and no route could be found: the attempt is spent."""
        tracked = self._messages.get(message_id)
        if tracked is None:
            return
        if tracked.waiting:
            raise LocalProtocolError("an attempt at this message is under way already")
        self._try_again(tracked, now_s)

    def receive_ack(self, surb_id: bytes, *, now_s: float) -> AckOutcome:
        """This reply block of ours returned. Its authenticity is the packet layer's business."""
        tracked = self._by_surb.get(surb_id)
        if tracked is None:
            if surb_id in self._late:
                del self._late[surb_id]
                return AckOutcome.LATE
            return AckOutcome.UNKNOWN
        round_trip_s = now_s - tracked.departures[surb_id]
        surb_ids = self._end(tracked, answered=surb_id)
        self._events.append(
            Acknowledged(
                message_id=tracked.message_id,
                attempts=len(surb_ids),
                round_trip_s=round_trip_s,
                total_s=now_s - tracked.tracked_at_s,
                surb_ids=surb_ids,
            )
        )
        return AckOutcome.ACKNOWLEDGED

    def next_timer_s(self) -> float | None:
        """When the next attempt times out."""
        return self._timers.next_s()

    def handle_timer(self, *, now_s: float) -> None:
        """Give up waiting for every attempt whose time is over."""
        while (message_id := self._timers.pop_due(now_s)) is not None:
            tracked = self._messages[message_id]
            surb_id = next(reversed(tracked.departures))
            self._events.append(AttemptTimedOut(message_id=message_id, surb_id=surb_id, attempt=tracked.attempt))
            self._try_again(tracked, now_s)

    def next_event(self) -> RetransmitterEvent | None:
        """The next thing to act on."""
        return self._events.popleft() if self._events else None

    def _try_again(self, tracked: _Tracked, now_s: float) -> None:
        tracked.waiting = False
        if tracked.attempt < self._max_attempts:
            tracked.attempt += 1
            self._events.append(Resend(message_id=tracked.message_id, attempt=tracked.attempt))
            return
        self._events.append(
            GivenUp(
                message_id=tracked.message_id,
                attempts=tracked.attempt,
                total_s=now_s - tracked.tracked_at_s,
                surb_ids=self._end(tracked, answered=None),
            )
        )

    def _end(self, tracked: _Tracked, *, answered: bytes | None) -> tuple[bytes, ...]:
        del self._messages[tracked.message_id]
        self._timers.cancel(tracked.message_id)
        for surb_id in tracked.departures:
            del self._by_surb[surb_id]
            if surb_id != answered:
                self._remember_late(surb_id)
        return tuple(tracked.departures)

    def _remember_late(self, surb_id: bytes) -> None:
        self._late[surb_id] = None
        if len(self._late) > self._late_capacity:
            del self._late[next(iter(self._late))]
