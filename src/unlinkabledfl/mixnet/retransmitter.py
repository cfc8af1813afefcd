"""Send a message again until one of its reply blocks returns.

    untracked --track----------------> queued
    queued --sent--------------------> waiting
    queued --no route, patience left-> parked
    queued --no route, none left-----> GivenUp, ended
    queued --ack of an earlier one---> Acknowledged, ended
    parked --timer-------------------> Resend, queued
    parked --ack of an earlier one---> Acknowledged, ended
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

Where no route leads now, nothing was lost, so no attempt is spent: the same attempt comes again after a pause. A
message may pause for `patience_s` in all, which outlasts the quarantine of a destination that fell silent for a moment;
then it is given up, so that one whose destination never returns holds its place in the queue no longer than that.
"""

from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from math import floor, inf
from typing import TypeAlias

from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.mixnet.items import MessageId
from unlinkabledfl.mixnet.limits import Deadlines

PATIENCE_S = 120.0
"""Default for how long a message waits for a route, in all: the first two quarantines of its destination, and some."""

PAUSE_S = 5.0
"""Default for how long it waits before it asks for a route again."""


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
    """No attempt was answered in time, or no route led there for too long; the message may have arrived or not.

    `attempts` have left, perhaps none. The secrets of all `surb_ids` can be destroyed.
    """

    message_id: MessageId
    attempts: int
    total_s: float
    surb_ids: tuple[bytes, ...]


RetransmitterEvent: TypeAlias = Resend | AttemptTimedOut | Acknowledged | GivenUp


class _Tracked:
    """One live message. `attempt` counts from 1 and is queued, parked for want of a route, or under way."""

    __slots__ = ("attempt", "departures", "message_id", "parked", "pauses", "tracked_at_s", "waiting")

    def __init__(self, message_id: MessageId, now_s: float) -> None:
        self.message_id = message_id
        self.tracked_at_s = now_s
        self.attempt = 1
        self.waiting = False
        self.parked = False
        self.pauses = 0
        self.departures: dict[bytes, float] = {}


class Retransmitter:
    """Follows the messages of this node from the queue to their end."""

    __slots__ = (
        "_by_surb", "_events", "_late", "_late_capacity", "_max_attempts", "_messages", "_pause_s", "_pauses_max",
        "_timers",
    )  # fmt: skip

    def __init__(
        self,
        *,
        max_attempts: int,
        patience_s: float = PATIENCE_S,
        pause_s: float = PAUSE_S,
        late_capacity: int = 256,
    ) -> None:
        if max_attempts < 1:
            raise ConfigError(key="mixnet.max_attempts", got=max_attempts, takes="a whole number of at least 1")
        if late_capacity < 0:
            raise ConfigError(key="mixnet.late_capacity", got=late_capacity, takes="a whole number, 0 or more")
        if not 0.0 <= patience_s < inf:
            raise ConfigError(key="mixnet.no_route_patience_s", got=patience_s, takes="a number of seconds, 0 or more")
        if not 0.0 < pause_s < inf:
            raise ConfigError(key="mixnet.no_route_pause_s", got=pause_s, takes="a number of seconds above 0")
        self._max_attempts = max_attempts
        self._pause_s = pause_s
        self._pauses_max = floor(patience_s / pause_s)
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
        _check_queued(tracked)
        if surb_id in self._by_surb:
            raise LocalProtocolError("a reply block is used once")
        tracked.waiting = True
        tracked.departures[surb_id] = now_s
        self._by_surb[surb_id] = tracked
        self._timers.set(message_id, now_s + timeout_s)

    def not_sent(self, message_id: MessageId, *, now_s: float) -> None:
        """The turn of the queued attempt came, and no route could be found: it comes again after a pause."""
        tracked = self._messages.get(message_id)
        if tracked is None:
            return
        _check_queued(tracked)
        if tracked.pauses == self._pauses_max:
            self._give_up(tracked, now_s)
            return
        tracked.pauses += 1
        tracked.parked = True
        self._timers.set(message_id, now_s + self._pause_s)

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
        """When the next attempt times out or the next pause ends."""
        return self._timers.next_s()

    def handle_timer(self, *, now_s: float) -> None:
        """Act on every timeout and every pause that is over."""
        while (message_id := self._timers.pop_due(now_s)) is not None:
            tracked = self._messages[message_id]
            if tracked.parked:
                tracked.parked = False
                self._events.append(Resend(message_id=message_id, attempt=tracked.attempt))
                continue
            tracked.waiting = False
            surb_id = next(reversed(tracked.departures))
            self._events.append(AttemptTimedOut(message_id=message_id, surb_id=surb_id, attempt=tracked.attempt))
            if tracked.attempt == self._max_attempts:
                self._give_up(tracked, now_s)
            else:
                tracked.attempt += 1
                self._events.append(Resend(message_id=message_id, attempt=tracked.attempt))

    def next_event(self) -> RetransmitterEvent | None:
        """The next thing to act on."""
        return self._events.popleft() if self._events else None

    def _give_up(self, tracked: _Tracked, now_s: float) -> None:
        surb_ids = self._end(tracked, answered=None)
        self._events.append(
            GivenUp(
                message_id=tracked.message_id,
                attempts=len(surb_ids),
                total_s=now_s - tracked.tracked_at_s,
                surb_ids=surb_ids,
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


def _check_queued(tracked: _Tracked) -> None:
    if tracked.waiting or tracked.parked:
        raise LocalProtocolError("this message is not queued: an attempt is under way, or pauses")
