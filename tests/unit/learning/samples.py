"""Small learnable data: each class is a bright square in its own place, in noise. And learners for worker processes."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unlinkabledfl.learning.images import Images
from unlinkabledfl.learning.models import build_model
from unlinkabledfl.learning.pytorch_learner import PyTorchLearner
from unlinkabledfl.learning.settings import TrainingSettings
from unlinkabledfl.node.learner import Metrics, State

CLASSES = 4


def squares(count: int, *, seed: int, side: int = 28, channels: int = 1) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, CLASSES, count, dtype=np.uint8)
    images = generator.integers(0, 100, (count, channels, side, side), dtype=np.uint8)
    half = side // 2
    for image, label in zip(images, labels, strict=True):
        row, column = divmod(int(label), 2)
        image[:, row * half + 3 : row * half + 9, column * half + 3 : column * half + 9] += 120
    return images, labels


def lenet_learner(*, seed: int = 7, count: int = 240, settings: TrainingSettings | None = None) -> PyTorchLearner:
    recipe = TrainingSettings(learning_rate=0.005, batch_size=16) if settings is None else settings
    model = build_model("lenet5", (1, 28, 28), CLASSES, seed=1)
    return PyTorchLearner(
        model, Images(*squares(count, seed=2)), Images(*squares(80, seed=3)), settings=recipe, seed=seed
    )


def from_settings(settings: Mapping[str, Any]) -> PyTorchLearner:
    """For worker processes: `tests.unit.learning.samples:from_settings`."""
    return lenet_learner(seed=settings["seed"])


class FragileLearner:
    """Counts rounds in its state, and in round 2 does what it is told: nothing, `raise`, `exit` or `kill`."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._fault = settings["fault"]
        self._rounds = np.zeros(1, np.int64)

    def state(self) -> State:
        return {"rounds": self._rounds.copy()}

    def load(self, state: State) -> None:
        self._rounds = np.array(state["rounds"])

    def train(self, round_number: int) -> Metrics:
        self._rounds += 1
        if round_number == 2:
            match self._fault:
                case "raise":
                    raise RuntimeError("not enough memory")
                case "exit":
                    os._exit(9)
                case "kill":
                    os.kill(os.getpid(), 9)
                case "hang":
                    while True:
                        pass
        return {"rounds": float(self._rounds[0])}

    def evaluate(self) -> Metrics:
        return {"niceness": float(os.nice(0)), "process": float(os.getpid())}


def broken(settings: Mapping[str, Any]) -> FragileLearner:
    raise FileNotFoundError(f"no dataset at {settings['path']}")
