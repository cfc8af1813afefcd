import numpy as np
import pytest

from tests.unit.learning.samples import lenet_learner
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.learning.poison import PoisonedLearner, Poisoning, flip_labels, flip_sign, noise

BEFORE = {"weight": np.array([1.0, 2.0], np.float32), "count": np.array(3)}
AFTER = {"weight": np.array([1.5, 1.0], np.float32), "count": np.array(4)}


def test_labels_are_mirrored_and_twice_mirrored_are_as_they_were() -> None:
    labels = np.array([0, 1, 9, 5], np.uint8)

    flipped = flip_labels(labels, 10)

    assert flipped.tolist() == [9, 8, 0, 4]
    assert flipped.dtype == labels.dtype
    assert flip_labels(flipped, 10).tolist() == labels.tolist()


def test_labels_beyond_the_classes_are_refused() -> None:
    with pytest.raises(ConfigError):
        flip_labels(np.array([10]), 10)


def test_a_flipped_update_goes_as_far_the_other_way_and_leaves_counters() -> None:
    poisoned = flip_sign(BEFORE, AFTER)

    assert poisoned["weight"].tolist() == [0.5, 3.0]
    assert poisoned["weight"].dtype == np.float32
    assert poisoned["count"] == 4


def test_an_update_may_be_turned_around_further() -> None:
    assert flip_sign(BEFORE, AFTER, factor=3.0)["weight"].tolist() == [-0.5, 5.0]


def test_noise_has_ten_times_the_deviation_of_the_update() -> None:
    # 50,000 draws: the standard error of the deviation is 0.3%; 2% is over six of them.
    generator = np.random.default_rng(1)
    before = {"weight": np.zeros(50_000, np.float32), "count": np.array(3)}
    after = {"weight": generator.normal(0.3, 0.02, 50_000).astype(np.float32), "count": np.array(4)}

    poisoned = noise(before, after, np.random.default_rng(2))

    assert float(np.std(poisoned["weight"] - after["weight"])) == pytest.approx(0.2, rel=0.02)
    assert poisoned["weight"].dtype == np.float32
    assert poisoned["count"] == 4


@pytest.mark.parametrize("poisoning", [Poisoning.SIGN_FLIP, Poisoning.GAUSSIAN_NOISE])
def test_a_poisoned_learner_is_worse_than_an_honest_one_and_reproducible(poisoning: Poisoning) -> None:
    honest = lenet_learner()
    one = PoisonedLearner(lenet_learner(), poisoning, seed=1)
    other = PoisonedLearner(lenet_learner(), poisoning, seed=1)

    # One round: in the next ones there is hardly anything left to learn, so that there is no update to corrupt.
    for learner in (honest, one, other):
        learner.train(1)

    assert one.evaluate()["loss"] > honest.evaluate()["loss"]
    assert all(np.array_equal(one.state()[name], array) for name, array in other.state().items())


def test_label_flipping_is_left_to_the_data() -> None:
    with pytest.raises(ConfigError, match="flip_labels"):
        PoisonedLearner(lenet_learner(), Poisoning.LABEL_FLIP, seed=1)
