"""Learners in processes of their own: results do not depend on the processes, whatever becomes of these."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from unlinkabledfl.errors import ConfigError, LocalProtocolError, RunError
from unlinkabledfl.experiment.backends.learner_pool import RESTARTS, InlinePool, LearnerPool, ProcessPool
from unlinkabledfl.node.learner import State

FACTORY = "tests.unit.experiment.toy_learners:counting"


def pool_of(kind: str, **settings: object) -> LearnerPool:
    return InlinePool(FACTORY, settings) if kind == "inline" else ProcessPool(FACTORY, settings, processes=2)


@pytest.fixture(params=["inline", "processes"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def started(kind: str) -> Iterator[tuple[LearnerPool, State]]:
    pool = pool_of(kind, diverges=3)
    yield pool, pool.start()
    pool.close()


def test_a_training_returns_model_metrics_and_seconds(started: tuple[LearnerPool, State]) -> None:
    pool, initial = started

    outcome = pool.train(node=5, round_number=2, state=initial).outcome()

    assert outcome.state is not None
    np.testing.assert_array_equal(outcome.state["w"], np.full((2, 3), 5.0, dtype=np.float32))
    assert outcome.state["steps"] == 1
    assert [outcome.state[name].dtype.str for name in ("w", "steps")] == ["<f4", "<i8"]
    assert (dict(outcome.metrics), outcome.failure) == ({"train_loss": 2.0}, None)
    assert outcome.cpu_s >= 0.0


def test_an_evaluation_measures_the_model_it_is_given(started: tuple[LearnerPool, State]) -> None:
    pool, initial = started
    trained = pool.train(node=2, round_number=1, state=initial).outcome().state
    assert trained is not None

    outcome = pool.evaluate(node=2, state=trained).outcome()

    assert (dict(outcome.metrics), outcome.state) == ({"accuracy": 12.0}, None)


def test_a_training_that_fails_says_why_and_others_go_on(started: tuple[LearnerPool, State]) -> None:
    pool, initial = started

    failed = pool.train(node=3, round_number=1, state=initial)
    fine = pool.train(node=1, round_number=1, state=initial)

    assert (failed.outcome().failure, failed.outcome().state) == ("training diverged", None)
    assert fine.outcome().failure is None


def test_requests_are_answered_whatever_the_order_in_which_they_are_asked_for(
    started: tuple[LearnerPool, State],
) -> None:
    pool, initial = started

    works = [pool.train(node=node, round_number=1, state=initial) for node in (6, 1, 2, 4, 5)]

    sums = [float(outcome.state["w"][0, 0]) for work in reversed(works) if (outcome := work.outcome()).state]
    assert sums == [5.0, 4.0, 2.0, 1.0, 6.0]


def test_a_bug_in_a_learner_is_not_taken_for_a_failed_training(kind: str) -> None:
    pool = pool_of(kind, breaks=1)
    initial = pool.start()

    with pytest.raises((RunError, ZeroDivisionError), match="by nothing"):
        pool.train(node=1, round_number=1, state=initial).outcome()

    pool.close()


def test_learners_that_cannot_be_built_say_so_as_they_would_here() -> None:
    pool = ProcessPool("tests.unit.experiment.toy_learners:unbuildable", {}, processes=2)

    with pytest.raises(ConfigError) as caught:
        pool.start()

    assert (caught.value.key, caught.value.got, caught.value.hint) == ("learning.dataset", "roses", "mnist, say")
    assert pool.process_ids == []


def test_a_request_over_which_its_process_is_killed_is_made_again(tmp_path: Path) -> None:
    told: list[str] = []
    settings = {"dies": 1, "deaths": str(tmp_path / "deaths"), "times": 2}
    pool = ProcessPool(FACTORY, settings, processes=1, restarted=told.append)
    initial = pool.start()

    outcome = pool.train(node=1, round_number=4, state=initial).outcome()

    assert dict(outcome.metrics) == {"train_loss": 4.0}
    assert (
        told
        == ["a learner process was killed by SIGKILL while it had to train for node 1; a new one does it again"] * 2
    )
    pool.close()


def test_processes_that_die_again_and_again_end_the_run(tmp_path: Path) -> None:
    settings = {"dies": 1, "deaths": str(tmp_path / "deaths"), "times": RESTARTS + 1}
    pool = ProcessPool(FACTORY, settings, processes=1)
    initial = pool.start()

    with pytest.raises(RunError, match="was killed by SIGKILL while it had to train for node 1"):
        pool.train(node=1, round_number=1, state=initial).outcome()

    pool.close()


def test_closing_leaves_no_process_and_can_be_done_twice() -> None:
    pool = ProcessPool(FACTORY, {}, processes=2)
    initial = pool.start()
    works = [pool.train(node=node, round_number=1, state=initial) for node in range(20)]
    numbers = pool.process_ids

    works[-1].abandon()
    pool.close()
    pool.close()

    assert len(numbers) == 2
    for number in numbers:
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)
    with pytest.raises(LocalProtocolError):
        pool.evaluate(node=0, state=initial)


def test_a_factory_is_named_by_module_and_function() -> None:
    with pytest.raises(ConfigError):
        ProcessPool("toy_learners", {})
