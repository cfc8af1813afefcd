"""A learner small enough for tests that really learns: softmax regression in numpy, on clusters drawn from a seed."""

import numpy as np
import numpy.typing as npt

from unlinkabledfl.node.learner import Metrics, State

CLASSES, FEATURES = 5, 120
_CENTRES = np.random.default_rng(99).normal(0.0, 1.0, (CLASSES, FEATURES))

Array = npt.NDArray[np.float64]


def blank_model() -> dict[str, npt.NDArray[np.float32]]:
    return {"weight": np.zeros((FEATURES, CLASSES), np.float32), "bias": np.zeros(CLASSES, np.float32)}


class SoftmaxLearner:
    """One node's model and data. A node sees mostly two of the classes, so alone it does not get far."""

    def __init__(self, seed: int, *, samples: int = 60, rate: float = 0.05, steps: int = 10) -> None:
        rng = np.random.default_rng([7, seed])
        own = rng.choice(CLASSES, size=2, replace=False)
        labels = np.where(rng.random(samples) < 0.9, rng.choice(own, samples), rng.integers(0, CLASSES, samples))
        self._data = _draw(labels, rng)
        everywhere = np.random.default_rng(5)
        self._test = _draw(everywhere.integers(0, CLASSES, 200), everywhere)
        self._rate = rate
        self._steps = steps
        self._state: State = blank_model()

    def state(self) -> State:
        return self._state

    def load(self, state: State) -> None:
        self._state = {name: array.copy() for name, array in state.items()}

    def train(self, round_number: int) -> Metrics:
        inputs, labels = self._data
        weight, bias = (self._state[name].astype(np.float64) for name in ("weight", "bias"))
        truth = np.eye(CLASSES)[labels]
        for _ in range(self._steps):
            error = (_softmax(inputs @ weight + bias) - truth) / len(labels)
            weight -= self._rate * inputs.T @ error
            bias -= self._rate * error.sum(axis=0)
        self._state = {"weight": weight.astype(np.float32), "bias": bias.astype(np.float32)}
        return {"loss": self._loss(self._data)}

    def evaluate(self) -> Metrics:
        inputs, labels = self._test
        guesses = np.argmax(inputs @ self._state["weight"] + self._state["bias"], axis=1)
        return {"accuracy": float(np.mean(guesses == labels)), "loss": self._loss(self._test)}

    def _loss(self, data: tuple[Array, npt.NDArray[np.int64]]) -> float:
        inputs, labels = data
        chances = _softmax(inputs @ self._state["weight"] + self._state["bias"])
        return float(-np.mean(np.log(chances[np.arange(len(labels)), labels] + 1e-12)))


def _draw(labels: npt.NDArray[np.int64], rng: np.random.Generator) -> tuple[Array, npt.NDArray[np.int64]]:
    return _CENTRES[labels] + rng.normal(0.0, 4.0, (len(labels), FEATURES)), labels


def _softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances: Array = powers / powers.sum(axis=1, keepdims=True)
    return chances
