from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.unit.learning.samples import CLASSES, lenet_learner, squares
from unlinkabledfl.errors import ConfigError, LearnerError, LocalProtocolError
from unlinkabledfl.learning.images import Images
from unlinkabledfl.learning.models import build_model
from unlinkabledfl.learning.pytorch_learner import PyTorchLearner
from unlinkabledfl.learning.settings import Steps, TrainingSettings
from unlinkabledfl.node.learner import Learner, State


def equal(one: State, other: State) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def test_equal_seeds_give_equal_rounds_and_other_seeds_or_rounds_do_not() -> None:
    states = []
    for seed, round_number in ((7, 1), (7, 1), (8, 1), (7, 2)):
        learner: Learner = lenet_learner(seed=seed)
        learner.train(round_number)
        states.append(learner.state())

    assert equal(states[0], states[1])
    assert not equal(states[0], states[2])
    assert not equal(states[0], states[3])


def test_a_state_loaded_into_another_learner_makes_it_go_on_exactly_alike() -> None:
    one = lenet_learner()
    one.train(1)
    other = lenet_learner()
    other.load(one.state())

    assert one.evaluate() == other.evaluate()
    assert one.train(2) == other.train(2)
    assert equal(one.state(), other.state())


def test_a_state_does_not_change_when_training_goes_on() -> None:
    learner = lenet_learner()
    state = learner.state()
    kept = {name: array.copy() for name, array in state.items()}

    learner.train(1)

    assert equal(state, kept)
    assert not equal(learner.state(), kept)


def test_batch_statistics_and_counters_are_part_of_the_state_and_dropout_is_reproducible() -> None:
    images = Images(*squares(12, seed=2))

    def trained() -> State:
        model = build_model("mobilenet_v2", (1, 28, 28), CLASSES, seed=1)
        learner = PyTorchLearner(model, images, images, settings=TrainingSettings(batch_size=4), seed=3)
        learner.train(1)
        return learner.state()

    state = trained()

    assert state["1.num_batches_tracked"].dtype == np.int64
    assert state["1.num_batches_tracked"] == 3
    assert state["1.running_mean"].any()
    assert equal(state, trained())


def test_training_leaves_the_global_generator_alone() -> None:
    learner = lenet_learner()
    torch.manual_seed(11)
    expected = torch.rand(1)
    torch.manual_seed(11)

    learner.train(1)

    assert torch.equal(torch.rand(1), expected)


def test_a_round_that_diverges_leaves_the_model_as_it_was() -> None:
    learner = lenet_learner(settings=TrainingSettings(learning_rate=1e6, stop=Steps(20)))
    before = learner.state()

    with pytest.raises(LearnerError, match="diverged"):
        learner.train(1)

    assert equal(learner.state(), before)


def test_rounds_are_numbered_from_one() -> None:
    with pytest.raises(LocalProtocolError, match="from 1"):
        lenet_learner().train(0)


def reshaped(state: State) -> State:
    return {**state, "7.weight": np.zeros((120, 200), np.float32)}


def retyped(state: State) -> State:
    return {**state, "7.weight": state["7.weight"].astype(np.float64)}


def without(state: State) -> State:
    return {name: array for name, array in state.items() if name != "7.weight"}


@pytest.mark.parametrize("change", [reshaped, retyped, without])
def test_a_state_of_another_model_is_refused_by_the_name_of_its_layer(change: Callable[[State], State]) -> None:
    learner = lenet_learner()
    before = learner.state()

    with pytest.raises(ConfigError) as caught:
        learner.load(change(dict(before)))

    assert caught.value.key == "model.7.weight"
    assert equal(learner.state(), before)


class Growing(nn.Module):
    """Its buffer is a history: one entry longer after each training step."""

    history: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(784, CLASSES)
        self.register_buffer("history", torch.zeros(1))

    def forward(self, images: Tensor) -> Tensor:
        if self.training:
            self.history = torch.cat((self.history, torch.ones(1)))
        scores: Tensor = self.last(images.flatten(1))
        return scores


def test_a_model_whose_state_changes_shape_is_an_error_that_names_the_layer() -> None:
    images = Images(*squares(16, seed=2))
    learner = PyTorchLearner(Growing(), images, images)

    with pytest.raises(ConfigError, match="history") as caught:
        learner.train(1)

    assert caught.value.key == "model.history"


def test_a_model_for_other_images_is_refused_before_the_first_round() -> None:
    images = Images(*squares(16, seed=2, channels=3))

    with pytest.raises(ConfigError) as caught:
        PyTorchLearner(build_model("lenet5", (1, 28, 28), CLASSES), images, images)

    assert caught.value.key == "model"


def test_a_model_with_fewer_scores_than_classes_is_refused() -> None:
    images = Images(*squares(64, seed=2))

    with pytest.raises(ConfigError) as caught:
        PyTorchLearner(build_model("lenet5", (1, 28, 28), 2), images, images)

    assert caught.value.key == "model.outputs"
