"""Learners that share one model are, one by one, the learners that each have their own."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.learning.samples import CLASSES, squares
from unlinkabledfl.errors import ConfigError, LearnerError
from unlinkabledfl.learning.images import Images
from unlinkabledfl.learning.many import SharedModelLearners
from unlinkabledfl.learning.models import build_model
from unlinkabledfl.learning.partition import Dirichlet
from unlinkabledfl.learning.poison import PoisonedLearner, Poisoning, flip_labels
from unlinkabledfl.learning.pytorch_learner import PyTorchLearner
from unlinkabledfl.learning.settings import Steps, TrainingSettings
from unlinkabledfl.node.learner import State

NODES = 4
SEEDS = (11, 12, 13, 14)
RECIPE = TrainingSettings(learning_rate=0.005, batch_size=16, flip=True)
PIXELS, LABELS = squares(160, seed=2)
TEST = Images(*squares(40, seed=3), mean=(0.2,), std=(0.2,), name="test")
PARTS = Dirichlet(2.0).split(LABELS, nodes=NODES, rng=np.random.default_rng(5))


def shared(recipe: TrainingSettings = RECIPE) -> SharedModelLearners:
    model = build_model("lenet5", (1, 28, 28), CLASSES, seed=1)
    train = Images(PIXELS, LABELS, mean=(0.2,), std=(0.2,))
    return SharedModelLearners(model, train, PARTS, TEST, seeds=SEEDS, settings=recipe)


def alone(node: int, recipe: TrainingSettings = RECIPE) -> PyTorchLearner:
    model = build_model("lenet5", (1, 28, 28), CLASSES, seed=1)
    own = Images(PIXELS[PARTS[node]], LABELS[PARTS[node]], mean=(0.2,), std=(0.2,))
    return PyTorchLearner(model, own, TEST, settings=recipe, seed=SEEDS[node])


def assert_equal(one: State, other: State) -> None:
    assert list(one) == list(other)
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], strict=True)


@settings(max_examples=6, deadline=None)
@given(calls=st.lists(st.integers(0, NODES - 1), min_size=1, max_size=5))
def test_in_whatever_order_nodes_train_each_learns_what_it_would_alone(calls: Sequence[int]) -> None:
    many = shared()
    learners = {node: alone(node) for node in set(calls)}
    states = dict.fromkeys(learners, many.initial())

    for round_number, node in enumerate(calls, start=1):
        states[node], metrics = many.train(node, round_number=round_number, state=states[node])

        assert metrics == learners[node].train(round_number)
        assert many.evaluate(state=states[node]) == learners[node].evaluate()
    for node, learner in learners.items():
        assert_equal(states[node], learner.state())


def test_the_first_model_is_that_which_was_given_and_training_does_not_change_it() -> None:
    many = shared()

    many.train(1, round_number=1, state=many.initial())

    assert_equal(many.initial(), alone(0).state())


def test_a_failed_round_of_one_node_leaves_no_trace_in_the_next_one() -> None:
    many = shared(TrainingSettings(learning_rate=1e6, stop=Steps(20)))
    initial = many.initial()

    with pytest.raises(LearnerError, match="diverged"):
        many.train(0, round_number=1, state=initial)

    assert many.evaluate(state=initial) == alone(0).evaluate()


def test_a_node_that_flips_labels_learns_from_its_own_samples_with_the_flipped_ones() -> None:
    flipped = flip_labels(LABELS[PARTS[2]], CLASSES)
    model = build_model("lenet5", (1, 28, 28), CLASSES, seed=1)
    train = Images(PIXELS, LABELS, mean=(0.2,), std=(0.2,))
    many = SharedModelLearners(model, train, PARTS, TEST, seeds=SEEDS, settings=RECIPE, labels={2: flipped})
    own = Images(PIXELS[PARTS[2]], flipped, mean=(0.2,), std=(0.2,))
    attacker = PyTorchLearner(
        build_model("lenet5", (1, 28, 28), CLASSES, seed=1), own, TEST, settings=RECIPE, seed=SEEDS[2]
    )

    state, metrics = many.train(2, round_number=1, state=many.initial())

    assert metrics == attacker.train(1)
    assert_equal(state, attacker.state())


def test_one_node_of_many_can_be_poisoned_like_any_learner() -> None:
    attacker = PoisonedLearner(shared().learner(1), Poisoning.SIGN_FLIP, seed=3)
    reference = PoisonedLearner(alone(1), Poisoning.SIGN_FLIP, seed=3)

    assert attacker.train(1) == reference.train(1)
    assert_equal(attacker.state(), reference.state())


def test_all_parts_lie_in_the_memory_of_the_one_train_set() -> None:
    train = Images(PIXELS, LABELS)

    part = train.part(PARTS[0])

    assert part._images.data_ptr() == train._images.data_ptr()  # noqa: SLF001 -- nothing else can show it
    assert len(part) == len(PARTS[0])


def test_seeds_that_are_not_one_a_node_are_refused() -> None:
    images = Images(PIXELS, LABELS)
    model = build_model("lenet5", (1, 28, 28), CLASSES, seed=1)

    with pytest.raises(ConfigError, match=r"learners\.seeds"):
        SharedModelLearners(model, images, PARTS, TEST, seeds=(1, 2))


@pytest.mark.parametrize("positions", [[], [160], [-1]])
def test_a_part_that_is_empty_or_beyond_the_samples_is_refused_by_name(positions: list[int]) -> None:
    images = Images(PIXELS, LABELS)

    with pytest.raises(ConfigError, match="the data of node 3"):
        images.part(np.array(positions, dtype=np.int64), name="the data of node 3")
