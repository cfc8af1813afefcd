"""When a participant trains, exchanges, aggregates and evaluates.

    idle --begin------------------------------> TrainingDue, training
    training --trained------------------------> ExchangeBegins, exchanging
    training --trained, rounds are immediate--> ExchangeBegins, AggregationDue, aggregating
    exchanging --complete---------------------> AggregationDue, aggregating
    exchanging --timer------------------------> AggregationDue, aggregating
    aggregating --aggregated------------------> ModelDue, evaluating
    evaluating --evaluated, rounds left-------> RoundOver, TrainingDue, training
    evaluating --evaluated, none left---------> RoundOver, AllOver, over

What ends an exchange is the setting `completion`. The deadline bounds completeness, so nobody waits for ever for a dead
peer. A cadence is a grid of instants that begins with the first round: an exchange ends at the first of them that lies
in or after its own slot, so a node that trains too slowly misses an instant, not a round.

Time that the node itself did not get does not count against a deadline (`starved`): on a machine without enough cores
the fragments are there, unread, when a timer fires too late. Rounds get slower then, up to twice the deadline, and lose
nothing. Nor does time count that others took: whoever knows, because it started both, that a peer has trained for this
round only now says so (`peer_trained`), and the deadline begins anew.

A node far behind its peers would collect nothing ever after, as they do not send old rounds again. So after an exchange
that ended with less than half of what was expected, and only then, the next round may be a later one, which most of its
peers have been seen in. Nobody can push a node ahead that way while the fragments of its own round still come.

Invariant: rounds only go up, and each round that begins ends, once, through all phases in their order.
"""

from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import TypeAlias

from unlinkabledfl.errors import LocalProtocolError
from unlinkabledfl.node.events import Ending
from unlinkabledfl.node.settings import Completion, RoundSettings

_LEAST_TO_STAY = 0.5
_STARVED_S = 0.25
"""Timers that fire later than this tell of a machine without time, not of an event loop at work."""


class Phase(StrEnum):
    """Where a participant is in its round; the first four are the names of `PhaseChanged`."""

    TRAIN = "train"
    EXCHANGE = "exchange"
    AGGREGATE = "aggregate"
    EVALUATE = "evaluate"
    IDLE = "idle"
    OVER = "over"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingDue:
    """A round begins: train."""

    round_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeBegins:
    """Send what was trained; collect what peers send."""

    round_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregationDue:
    """Waiting is over: aggregate what is here."""

    round_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDue:
    """Hand the aggregate to the learner."""

    round_number: int
    evaluate: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundOver:
    """How long each phase took."""

    round_number: int
    train_s: float
    exchange_s: float
    aggregate_s: float
    evaluate_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AllOver:
    """No more rounds."""

    ending: Ending


RoundsEvent: TypeAlias = TrainingDue | ExchangeBegins | AggregationDue | ModelDue | RoundOver | AllOver


class Rounds:
    """The round machine of one participant."""

    __slots__ = ("_due_s", "_events", "_first_at_s", "_grace_s", "_marks_s", "_settings", "phase", "round")

    def __init__(self, settings: RoundSettings) -> None:
        self._settings = settings
        self.round = settings.first_round
        self.phase = Phase.IDLE
        self._first_at_s = 0.0
        self._marks_s: list[float] = []  # when each phase of this round began
        self._due_s: float | None = None
        self._grace_s = 0.0
        self._events: deque[RoundsEvent] = deque()

    def begin(self, *, now_s: float) -> None:
        """Begin the first round."""
        self._expect(Phase.IDLE)
        self._first_at_s = now_s
        self._begin_round(self._settings.first_round, now_s)

    def trained(self, *, now_s: float) -> None:
        """Local training is over, well or not."""
        self._enter(Phase.EXCHANGE, after=Phase.TRAIN, now_s=now_s)
        self._events.append(ExchangeBegins(round_number=self.round))
        settings = self._settings
        match settings.completion:
            case Completion.COMPLETENESS | Completion.DEADLINE:
                self._due_s = now_s + settings.deadline_s
                self._grace_s = settings.deadline_s
            case Completion.CADENCE:
                self._due_s = self._next_beat_s(now_s)
            case Completion.IMMEDIATE:
                self._end_exchange(now_s)

    def complete(self, *, now_s: float) -> None:
        """Everything expected is here and everything of ours has ended; what that means is up to the settings."""
        if self.phase is Phase.EXCHANGE and self._settings.completion is Completion.COMPLETENESS:
            self._end_exchange(now_s)

    def aggregated(self, *, now_s: float) -> None:
        """The new model is there."""
        self._enter(Phase.EVALUATE, after=Phase.AGGREGATE, now_s=now_s)
        self._events.append(ModelDue(round_number=self.round, evaluate=self._settings.evaluates(self.round)))

    def evaluated(self, *, completeness: float, furthest: int, now_s: float) -> None:
        """The learner has the model. `furthest` is the latest round in which most of our peers have been seen."""
        self._expect(Phase.EVALUATE)
        marks_s = [*self._marks_s, now_s]
        lengths_s = [end_s - start_s for start_s, end_s in pairwise(marks_s)]
        self._events.append(
            RoundOver(
                round_number=self.round,
                train_s=lengths_s[0],
                exchange_s=lengths_s[1],
                aggregate_s=lengths_s[2],
                evaluate_s=lengths_s[3],
            )
        )
        if self.round >= self._settings.end:
            self.phase = Phase.OVER
            ending = Ending.DONE if self._settings.last_round is None else Ending.EXIT
            self._events.append(AllOver(ending=ending))
        else:
            self._begin_round(self._next_round(completeness, furthest), now_s)

    def starved(self, by_s: float, *, now_s: float) -> None:
        """A timer fired so much too late: the node did not get this time."""
        if self._due_s is None or by_s < _STARVED_S or self._settings.completion is not Completion.COMPLETENESS:
            return
        # What came meanwhile is still unread, so the deadline never lies before now.
        grant_s = min(by_s + max(0.0, now_s - self._due_s), self._grace_s)
        self._grace_s -= grant_s
        self._due_s += grant_s

    def peer_trained(self, round_number: int, *, now_s: float) -> None:
        """A peer is done with its training for this round only now: its fragments need as long as ours had."""
        is_ours = round_number == self.round and self._settings.completion is Completion.COMPLETENESS
        if self._due_s is not None and is_ours:
            self._due_s = max(self._due_s, now_s + self._settings.deadline_s)

    def next_timer_s(self) -> float | None:
        """When the exchange ends at the latest."""
        return self._due_s

    def handle_timer(self, *, now_s: float) -> None:
        """End the exchange if its time is over."""
        if self._due_s is not None and now_s >= self._due_s:
            self._end_exchange(now_s)

    def next_event(self) -> RoundsEvent | None:
        """The next thing to act on."""
        return self._events.popleft() if self._events else None

    def _next_round(self, completeness: float, furthest: int) -> int:
        after = self.round + 1
        if completeness >= _LEAST_TO_STAY or self._settings.completion is Completion.IMMEDIATE:
            return after
        return min(max(after, furthest), self._settings.end)

    def _begin_round(self, round_number: int, now_s: float) -> None:
        self.round = round_number
        self.phase = Phase.TRAIN
        self._marks_s = [now_s]
        self._events.append(TrainingDue(round_number=round_number))

    def _end_exchange(self, now_s: float) -> None:
        self._due_s = None
        self._enter(Phase.AGGREGATE, after=Phase.EXCHANGE, now_s=now_s)
        self._events.append(AggregationDue(round_number=self.round))

    def _next_beat_s(self, now_s: float) -> float:
        cadence_s = self._settings.cadence_s
        slot = self.round - self._settings.first_round + 1
        passed = int((now_s - self._first_at_s) / cadence_s) + 1
        return self._first_at_s + max(slot, passed) * cadence_s

    def _enter(self, phase: Phase, *, after: Phase, now_s: float) -> None:
        self._expect(after)
        self.phase = phase
        self._marks_s.append(now_s)

    def _expect(self, phase: Phase) -> None:
        if self.phase is not phase:
            raise LocalProtocolError(f"a participant in phase {self.phase} was told what ends phase {phase}")
