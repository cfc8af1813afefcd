"""How long learning takes in the virtual world, and which model a node has when."""

from typing import Any

import numpy as np
import pytest

from unlinkabledfl.experiment.backends.learner_pool import InlinePool
from unlinkabledfl.experiment.backends.virtual_learning import VirtualLearning

TOYS = "tests.unit.experiment.toy_learners:counting"


def learning_of(notes: list[tuple[int, str]], *, training_time_s: float, **settings: object) -> VirtualLearning:
    pool = InlinePool(TOYS, settings)
    initial = pool.start()
    return VirtualLearning(
        pool,
        models=dict.fromkeys(range(4), initial),
        training_time_s=training_time_s,
        note=lambda node, text: notes.append((node, text)),
    )


def test_stated_training_takes_its_seconds_and_an_evaluation_a_third() -> None:
    learning = learning_of([], training_time_s=6.0)

    training = learning.train(node=1, round_number=1)
    evaluation = learning.adopt(node=1, round_number=1, state=learning.models[1], evaluate=True)

    assert evaluation is not None
    assert (training.duration_s, evaluation.duration_s) == (6.0, 2.0)


def test_nobody_waits_for_the_figures_of_an_evaluation_and_they_are_handed_out_once() -> None:
    learning = learning_of([], training_time_s=1.0)
    trained = learning.train(node=2, round_number=1).outcome().state
    assert trained is not None

    evaluation = learning.adopt(node=2, round_number=1, state=trained, evaluate=True)

    assert evaluation is not None
    assert evaluation.outcome().metrics == {}
    assert [(each.node, each.round_number, each.metrics) for each in learning.take_evaluations()] == [
        (2, 1, {"accuracy": 12.0})
    ]
    assert list(learning.take_evaluations(wait=True)) == []


def test_measured_evaluations_are_waited_for_because_their_length_is_unknown() -> None:
    learning = learning_of([], training_time_s=0.0)

    evaluation = learning.adopt(node=2, round_number=1, state=learning.models[2], evaluate=True)

    assert evaluation is not None
    assert evaluation.outcome().metrics == {"accuracy": 0.0}
    assert list(learning.take_evaluations(wait=True)) == []


def test_measured_work_has_no_stated_seconds_and_waits_half_as_long_as_the_fastest_took() -> None:
    learning = learning_of([], training_time_s=0.0)
    first = learning.train(node=1, round_number=1)
    assert (first.duration_s, first.least_s) == (None, 0.0)

    took_s = first.outcome().cpu_s

    assert learning.train(node=2, round_number=1).least_s == pytest.approx(0.5 * took_s)


def test_a_node_has_the_trained_model_once_its_outcome_is_taken() -> None:
    learning = learning_of([], training_time_s=1.0)
    work = learning.train(node=3, round_number=1)
    assert float(learning.models[3]["w"].sum()) == 0.0

    outcome = work.outcome()

    assert outcome.state is learning.models[3]
    assert float(learning.models[3]["w"].sum()) == 18.0
    assert work.outcome() is outcome


def test_a_node_has_an_adopted_model_at_once_and_nothing_is_evaluated_unasked() -> None:
    learning = learning_of([], training_time_s=1.0)
    state: dict[str, np.ndarray[Any, Any]] = {
        "w": np.ones((2, 3), dtype=np.float32),
        "steps": np.array(7, dtype=np.int64),
    }

    assert learning.adopt(node=0, round_number=1, state=state, evaluate=False) is None

    assert learning.models[0] is state


def test_the_seconds_of_a_node_are_given_out_once() -> None:
    learning = learning_of([], training_time_s=1.0)
    took_s = learning.train(node=1, round_number=1).outcome().cpu_s

    assert (learning.take_cpu_s(1), learning.take_cpu_s(1), learning.take_cpu_s(2)) == (took_s, 0.0, 0.0)


def test_a_failed_training_is_noted_and_leaves_the_model() -> None:
    notes: list[tuple[int, str]] = []
    learning = learning_of(notes, training_time_s=1.0, diverges=2)
    before = learning.models[2]

    learning.train(node=2, round_number=1).outcome()

    assert notes == [(2, "training failed: training diverged")]
    assert learning.models[2] is before
