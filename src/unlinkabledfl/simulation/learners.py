"""Learners in a world: training really happens, and takes as much virtual time as it is said or measured to take.

A node asks at one virtual instant and is answered at a later one. In between the world goes on, and the computation
runs wherever the `Learning` puts it. It is waited for when its virtual end has come, not before: nodes that train at
the same virtual time train side by side on all cores that there are.

How long work lasts is known when it is asked for, or only measured when it is done:

- stated: its end is put into the heap at once, and the world waits there. Whatever the machine, the world is the same.
- measured: the world goes on for as long as the work takes at the least (`least_s`; if that is nothing, for everything
  else of the same instant), so that all who start together run together; then it waits, and puts the end where the
  measurement says. Two runs of one seed then differ.

Invariant: a node has the answer to every request, once, in the order of their ends; unless it crashed before, and
then nobody gets it.
"""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from unlinkabledfl.errors import LocalProtocolError
from unlinkabledfl.node.events import Finished, ModelReady, PhaseChanged, RoundFinished, TrainRequested
from unlinkabledfl.node.learner import Metrics, State
from unlinkabledfl.simulation.heap import EventHeap
from unlinkabledfl.simulation.host import Host, SimulatedNode

RoundEvent: TypeAlias = TrainRequested | ModelReady | PhaseChanged | RoundFinished | Finished
"""What a participant says beyond its mix."""

Listener: TypeAlias = Callable[[float, int, PhaseChanged | RoundFinished | Finished], None]
"""Told at which instant which node, by index, said what."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """What came of a training (`state` is the trained model) or of an evaluation."""

    metrics: Metrics
    cpu_s: float = 0.0
    state: State | None = None
    failure: str | None = None


class Work(Protocol):
    """One training or evaluation under way."""

    @property
    def duration_s(self) -> float | None:
        """The virtual seconds that it takes; none where they are measured, as the `cpu_s` of its outcome."""

    @property
    def least_s(self) -> float:
        """Where they are measured: the world need not wait for this long. Work that was faster ends a little late."""

    def outcome(self) -> Outcome:
        """Wait for it."""

    def abandon(self) -> None:
        """Nobody wants its outcome any more."""


class Learning(Protocol):
    """Trains the models of all nodes of a world. It keeps each node's model from one call to the next."""

    def train(self, *, node: int, round_number: int) -> Work:
        """Begin to train a node's model. The node has the trained model only when the outcome is taken."""

    def adopt(self, *, node: int, round_number: int, state: State, evaluate: bool) -> Work | None:
        """Give a node this model, and begin to evaluate it; none if there is nothing to evaluate."""


class LearningNode(SimulatedNode, Protocol):
    """A node with rounds. A `Participant` is one."""

    def begin(self, *, now_s: float) -> None:
        """Begin the first round."""

    def training_finished(self, *, round_number: int, state: State, metrics: Metrics, now_s: float) -> None:
        """The training that was asked for is done."""

    def training_failed(self, *, round_number: int, reason: str, now_s: float) -> None:
        """It could not be done."""

    def evaluation_finished(self, *, round_number: int, metrics: Metrics, now_s: float) -> None:
        """The model that was handed out is loaded, and measured if that was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """What a world of participants has beyond one of mixes: who trains, who listens, and who comes later."""

    learning: Learning
    listener: Listener
    absent: Collection[int] = ()
    """These are not there when the world begins; `World.enter` brings them in."""


@dataclass(frozen=True, slots=True)
class Begin:
    """A host begins its first round."""


@dataclass(frozen=True, slots=True, eq=False)
class WorkEnds:
    """The virtual end of work has come; or, while `measured` is false, the instant from which to measure."""

    work: Work | None
    round_number: int
    is_training: bool
    end_known: bool
    begun_at_s: float


class Lessons:
    """Carries requests to the learning, and answers back at their instants."""

    __slots__ = ("_heap", "_learning", "_listener")

    def __init__(self, heap: EventHeap, training: Training) -> None:
        self._heap = heap
        self._learning = training.learning
        self._listener = training.listener

    def take(self, host: Host, event: RoundEvent, at_s: float) -> None:
        """Do what a participant asks for, or pass on what it tells."""
        match event:
            case TrainRequested(round_number=round_number):
                work: Work | None = self._learning.train(node=host.index, round_number=round_number)
                self._schedule(host, work, at_s, round_number=round_number, is_training=True)
            case ModelReady(round_number=round_number, state=state, evaluate=evaluate):
                work = self._learning.adopt(node=host.index, round_number=round_number, state=state, evaluate=evaluate)
                self._schedule(host, work, at_s, round_number=round_number, is_training=False)
            case _:
                self._listener(at_s, host.index, event)

    def arrive(self, host: Host, end: WorkEnds, at_s: float) -> None:
        """Measure work, or answer the node that waits for it."""
        if not host.alive:
            if end.work is not None:
                end.work.abandon()
            return
        outcome = Outcome(metrics={}) if end.work is None else end.work.outcome()
        if not end.end_known:
            ends = WorkEnds(end.work, end.round_number, end.is_training, True, end.begun_at_s)
            self._heap.push(max(at_s, end.begun_at_s + outcome.cpu_s), host, None, ends)
            return
        node: LearningNode = host.node
        if not end.is_training:
            node.evaluation_finished(round_number=end.round_number, metrics=outcome.metrics, now_s=at_s)
        elif outcome.failure is not None:
            node.training_failed(round_number=end.round_number, reason=outcome.failure, now_s=at_s)
        elif outcome.state is None:
            raise LocalProtocolError("a training without a failure has no model")
        else:
            node.training_finished(
                round_number=end.round_number, state=outcome.state, metrics=outcome.metrics, now_s=at_s
            )

    def _schedule(self, host: Host, work: Work | None, at_s: float, *, round_number: int, is_training: bool) -> None:
        duration_s = 0.0 if work is None else work.duration_s
        wait_s = work.least_s if work is not None and duration_s is None else duration_s or 0.0
        if not 0.0 <= wait_s < math.inf:
            raise LocalProtocolError(f"work cannot take {wait_s} s")
        end = WorkEnds(work, round_number, is_training, duration_s is not None, at_s)
        self._heap.push(at_s + wait_s, host, None, end)
