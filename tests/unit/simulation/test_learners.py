"""Training in virtual time: answers come at their instants, and real work is waited for only then."""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.simulation.machines import IDS, Station
from unlinkabledfl.errors import LocalProtocolError
from unlinkabledfl.mixnet.topology import ring
from unlinkabledfl.node.events import Ending, Finished, ModelReady, PhaseChanged, RoundFinished, TrainRequested
from unlinkabledfl.node.learner import Metrics, State
from unlinkabledfl.simulation import Crash, Fault, LinkPlan, LinkSettings, Outcome, Restart, Training, World
from unlinkabledfl.sphinx import Entropy

Answer = tuple[float, str, int]
MODEL = {"w": np.zeros(2, dtype=np.float32)}


@dataclass(slots=True)
class Pupil(Station):
    """Trains, then has the trained model evaluated, for as many rounds as it is told, and leaves or stays."""

    rounds: int = 1
    ending: Ending = Ending.DONE
    answers: list[Answer] = field(default_factory=list)
    events: deque[Any] = field(default_factory=deque)

    def begin(self, *, now_s: float) -> None:
        self.answers.append((now_s, "begin", 0))
        self._train(1)

    def training_finished(self, *, round_number: int, state: State, metrics: Metrics, now_s: float) -> None:
        self.answers.append((now_s, "trained", round_number))
        self.events.append(ModelReady(round_number=round_number, state=state, evaluate=round_number % 2 == 1))

    def training_failed(self, *, round_number: int, reason: str, now_s: float) -> None:
        self.answers.append((now_s, reason, round_number))
        self.events.append(ModelReady(round_number=round_number, state=MODEL, evaluate=False))

    def evaluation_finished(self, *, round_number: int, metrics: Metrics, now_s: float) -> None:
        self.answers.append((now_s, "evaluated" if metrics else "loaded", round_number))
        self.events.append(RoundFinished(round_number=round_number, metrics=metrics))
        if round_number < self.rounds:
            self._train(round_number + 1)
        else:
            self.events.append(Finished(ending=self.ending))

    def _train(self, round_number: int) -> None:
        self.events.append(PhaseChanged(round_number=round_number, phase="train"))
        self.events.append(TrainRequested(round_number=round_number))


@dataclass(slots=True)
class Task:
    """Work that says what it takes, or only tells afterwards."""

    school: "School"
    name: str
    takes_s: float
    result: Outcome

    @property
    def duration_s(self) -> float | None:
        return None if self.school.measured else self.takes_s

    @property
    def least_s(self) -> float:
        return self.school.least_s

    def outcome(self) -> Outcome:
        self.school.diary.append(f"wait for {self.name}")
        return self.result

    def abandon(self) -> None:
        self.school.diary.append(f"abandon {self.name}")


@dataclass(slots=True)
class School:
    """Gives out tasks and writes down in which order they are begun and waited for."""

    seconds: dict[int, float] = field(default_factory=dict)
    measured: bool = False
    least_s: float = 0.0
    failing: set[int] = field(default_factory=set)
    diary: list[str] = field(default_factory=list)
    heard: list[tuple[float, int, str]] = field(default_factory=list)

    def train(self, *, node: int, round_number: int) -> Task:
        self.diary.append(f"train {node}")
        takes_s = self.seconds.get(node, 1.0)
        failed = Outcome(metrics={}, cpu_s=takes_s, failure="diverged")
        trained = Outcome(metrics={"loss": 1.0}, cpu_s=takes_s, state=MODEL)
        return Task(self, f"{node}", takes_s, failed if node in self.failing else trained)

    def adopt(self, *, node: int, round_number: int, state: State, evaluate: bool) -> Task | None:
        if not evaluate:
            return None
        self.diary.append(f"evaluate {node}")
        return Task(self, f"{node}", 0.5, Outcome(metrics={"accuracy": 0.5}, cpu_s=0.5))

    def listen(self, at_s: float, node: int, event: PhaseChanged | RoundFinished | Finished) -> None:
        self.heard.append((at_s, node, type(event).__name__))


def world_of(
    school: School,
    *,
    nodes: int = 3,
    rounds: int = 1,
    ending: Ending = Ending.DONE,
    faults: Collection[Fault] = (),
    absent: Collection[int] = (),
) -> World:
    def make(*, index: int, serial: int, entropy: Entropy) -> Pupil:
        return Pupil(index, serial, entropy, rounds=rounds, ending=ending)

    return World(
        node_ids=IDS[:nodes],
        factory=make,
        topology=ring(nodes),
        packet_bytes=1000,
        seed=1,
        links=LinkPlan(default=LinkSettings(handshake_s=0.1)),
        faults=tuple(faults),
        training=Training(learning=school, listener=school.listen, absent=absent),
    )


def test_work_that_states_its_length_is_begun_by_all_before_anybody_is_waited_for() -> None:
    school = School(seconds={0: 2.0, 1: 1.0, 2: 1.5})

    world_of(school).run_until(10.0)

    assert school.diary == [
        *("train 0", "train 1", "train 2"),
        *("wait for 1", "evaluate 1"),
        *("wait for 2", "evaluate 2", "wait for 1"),
        *("wait for 0", "evaluate 0", "wait for 2", "wait for 0"),
    ]


def test_an_answer_comes_at_the_virtual_end_of_its_work() -> None:
    world = world_of(School(seconds={0: 2.0}), rounds=2)

    world.run_until(10.0)

    assert world.node(0).answers == [
        (0.0, "begin", 0),
        (2.0, "trained", 1),
        (2.5, "evaluated", 1),
        (4.5, "trained", 2),
        (4.5, "loaded", 2),
    ]


def test_measured_work_takes_what_it_measured_and_starts_together() -> None:
    school = School(seconds={0: 2.0, 1: 1.0, 2: 1.5}, measured=True)
    world = world_of(school)

    world.run_until(10.0)

    assert school.diary[:3] == ["train 0", "train 1", "train 2"]
    answers = [world.node(node).answers[1:] for node in range(3)]
    assert answers == [
        [(2.0, "trained", 1), (2.5, "evaluated", 1)],
        [(1.0, "trained", 1), (1.5, "evaluated", 1)],
        [(1.5, "trained", 1), (2.0, "evaluated", 1)],
    ]


def test_measured_work_is_not_waited_for_before_it_can_be_done() -> None:
    school = School(seconds={0: 2.0, 1: 1.0, 2: 0.2}, measured=True, least_s=0.4)
    world = world_of(school)

    world.run_until(0.3)
    begun = list(school.diary)
    world.run_until(10.0)

    assert begun == ["train 0", "train 1", "train 2"]
    # What was faster than that ends as soon as the world has looked.
    assert [world.node(node).answers[1] for node in range(3)] == [
        (2.0, "trained", 1),
        (1.0, "trained", 1),
        (0.4, "trained", 1),
    ]


def test_a_failed_training_is_told_with_its_reason() -> None:
    world = world_of(School(failing={1}))

    world.run_until(10.0)

    assert world.node(1).answers[1:] == [(1.0, "diverged", 1), (1.0, "loaded", 1)]


def test_what_a_node_tells_of_its_rounds_is_heard() -> None:
    school = School()

    world_of(school, nodes=2).run_until(10.0)

    assert school.heard == [
        (0.0, 0, "PhaseChanged"),
        (0.0, 1, "PhaseChanged"),
        (1.5, 0, "RoundFinished"),
        (1.5, 0, "Finished"),
        (1.5, 1, "RoundFinished"),
        (1.5, 1, "Finished"),
    ]


def test_the_work_of_a_node_that_crashes_is_abandoned_and_its_next_life_begins_anew() -> None:
    school = School(seconds={1: 5.0})
    world = world_of(school, faults=[Crash(node=1, at_s=1.0), Restart(node=1, at_s=2.0)])

    world.run_until(20.0)

    assert "abandon 1" in school.diary
    assert world.node(1).serial == 1
    assert world.node(1).answers == [(2.0, "begin", 0), (7.0, "trained", 1), (7.5, "evaluated", 1)]


def test_a_node_that_exits_closes_its_links_and_is_gone() -> None:
    world = world_of(School(seconds={0: 1.0, 1: 9.0, 2: 9.0}), ending=Ending.EXIT)

    world.run_until(5.0)

    assert [world.is_running(node) for node in range(3)] == [False, True, True]
    # At once: a peer that waits to find out loses what it sends meanwhile.
    assert (1.5, "down", 0) in world.node(1).kinds()


def test_a_node_that_was_absent_enters_dials_and_begins() -> None:
    school = School()
    world = world_of(school, absent={2})
    world.run_until(3.0)
    assert not world.is_running(2)
    assert world.node(0).kinds() == [(0.0, "start", 0), (0.0, "up", 1)]

    world.enter(2)
    world.run_until(10.0)

    newcomer = world.node(2)
    assert (newcomer.serial, newcomer.answers) == (
        0,
        [(3.0, "begin", 0), (4.0, "trained", 1), (4.5, "evaluated", 1)],
    )
    assert newcomer.kinds()[1:] == [(3.1, "up", 0), (3.1, "up", 1)]
    with pytest.raises(LocalProtocolError):
        world.enter(2)


def test_a_world_of_mixes_alone_has_nobody_who_trains() -> None:
    def make(*, index: int, serial: int, entropy: Entropy) -> Pupil:
        pupil = Pupil(index, serial, entropy)
        pupil.begin(now_s=0.0)
        return pupil

    with pytest.raises(LocalProtocolError):
        World(node_ids=IDS[:3], factory=make, topology=ring(3), packet_bytes=1000, seed=1)


@given(
    seconds=st.lists(st.floats(0.0, 5.0), min_size=4, max_size=4),
    measured=st.booleans(),
    failing=st.sets(st.integers(0, 3)),
    rounds=st.integers(1, 3),
    crash_s=st.floats(0.1, 8.0),
)
def test_every_request_is_answered_once_unless_its_node_has_crashed(
    seconds: list[float], measured: bool, failing: set[int], rounds: int, crash_s: float
) -> None:
    school = School(seconds=dict(enumerate(seconds)), measured=measured, failing=failing)
    world = world_of(school, nodes=4, rounds=rounds, faults=[Crash(node=3, at_s=crash_s)])

    world.run_until(100.0)

    for node in range(3):
        answers = world.node(node).answers[1:]
        assert [round_number for _, _, round_number in answers] == [n for n in range(1, rounds + 1) for _ in "12"]
        assert [at_s for at_s, _, _ in answers] == sorted(at_s for at_s, _, _ in answers)
    for node in range(4):
        begun = sum(line in (f"train {node}", f"evaluate {node}") for line in school.diary)
        waited = school.diary.count(f"wait for {node}")
        abandoned = school.diary.count(f"abandon {node}")
        # Measured work is looked at twice: to measure it, and at its end.
        times = 2 if measured else 1
        assert abandoned <= (node == 3)
        assert waited in range(times * (begun - abandoned), times * begun + 1 - abandoned)
