"""What malicious learners of an experiment do: the two published attacks, and sign flipping.

- label flip: train on labels mirrored among the classes, so that 0 becomes 9;
- sign flip: send the model as if the update had gone the other way;
- Gaussian noise: add noise with ten times the standard deviation of the honest update.

For experiments only: the node around such a learner is an ordinary one.
"""

from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.node.learner import Learner, Metrics, State

__all__ = ["PoisonedLearner", "Poisoning", "flip_labels", "flip_sign", "noise"]

NOISE_FACTOR = 10.0


class Poisoning(StrEnum):
    """An attack on what a learner sends."""

    LABEL_FLIP = "label_flip"
    SIGN_FLIP = "sign_flip"
    GAUSSIAN_NOISE = "gaussian_noise"


def flip_labels(labels: NDArray[Any], classes: int) -> NDArray[Any]:
    """Return the labels mirrored: the first class becomes the last, and so on."""
    if labels.size and int(labels.max()) >= classes:
        raise ConfigError(key="poison.classes", got=classes, takes=f"more than the largest label, {labels.max()}")
    return (classes - 1 - labels).astype(labels.dtype)


def flip_sign(before: State, after: State, *, factor: float = 1.0) -> State:
    """Return the state that lies `factor` times as far from `before` as `after` does, the other way.

    Counters stay as they are.
    """
    return {
        name: (before[name] - factor * (after[name] - before[name])).astype(after[name].dtype)
        if _is_float(after[name])
        else after[name]
        for name in after
    }


def noise(before: State, after: State, generator: np.random.Generator, *, factor: float = NOISE_FACTOR) -> State:
    """Return `after` with noise of `factor` times the deviation of the whole update. Counters stay as they are."""
    updates = [(after[name] - before[name]).ravel() for name in after if _is_float(after[name])]
    deviation = factor * float(np.std(np.concatenate(updates), dtype=np.float64)) if updates else 0.0
    return {name: _noisy(array, deviation, generator) for name, array in after.items()}


class PoisonedLearner:
    """A learner whose model is corrupted after each training, as `flip_sign` or `noise` do.

    Label flipping needs none of this: give an ordinary learner flipped labels. `factor` is theirs, by default as
    published.
    """

    def __init__(self, learner: Learner, poisoning: Poisoning, *, seed: int, factor: float | None = None) -> None:
        if poisoning is Poisoning.LABEL_FLIP:
            takes = "sign_flip or gaussian_noise"
            raise ConfigError(key="poison", got=str(poisoning), takes=takes, hint="labels are flipped with flip_labels")
        self._learner = learner
        self._poisoning = poisoning
        self._seed = seed
        published = 1.0 if poisoning is Poisoning.SIGN_FLIP else NOISE_FACTOR
        self._factor = published if factor is None else factor

    def state(self) -> State:
        return self._learner.state()

    def load(self, state: State) -> None:
        self._learner.load(state)

    def train(self, round_number: int) -> Metrics:
        before = self._learner.state()
        metrics = self._learner.train(round_number)
        after = self._learner.state()
        if self._poisoning is Poisoning.SIGN_FLIP:
            self._learner.load(flip_sign(before, after, factor=self._factor))
        else:
            generator = np.random.default_rng((self._seed, round_number))
            self._learner.load(noise(before, after, generator, factor=self._factor))
        return metrics

    def evaluate(self) -> Metrics:
        return self._learner.evaluate()


def _is_float(array: NDArray[Any]) -> bool:
    return array.dtype.kind == "f"


def _noisy(array: NDArray[Any], deviation: float, generator: np.random.Generator) -> NDArray[Any]:
    if not _is_float(array):
        return array
    return (array + generator.normal(0.0, deviation, array.shape)).astype(array.dtype)
