"""A learner that needs no PyTorch: a vector that moves towards its node's own place."""

import os
import signal
from collections.abc import Mapping
from typing import Any

import numpy as np

from unlinkabledfl.node.learner import Metrics, State


class VectorLearner:
    """After a round of training and averaging all vectors lie closer together. It may be told to hang in a round."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._place = np.full(2_000, settings["index"], np.float32)
        self._vector = np.zeros(2_000, np.float32)
        self._hangs_in = settings["options"].get(f"node_{settings['index']}_hangs_in", 0)

    def state(self) -> State:
        return {"vector": self._vector.copy()}

    def load(self, state: State) -> None:
        self._vector = np.array(state["vector"])

    def train(self, round_number: int) -> Metrics:
        if round_number == self._hangs_in and not os.environ.get("NEVER_HANG"):
            self._hangs_in = 0
            while True:
                signal.pause()
        self._vector += 0.5 * (self._place - self._vector)
        return {"loss": float(np.abs(self._place - self._vector).mean())}

    def evaluate(self) -> Metrics:
        return {"accuracy": 1.0 / (1.0 + float(np.abs(self._place - self._vector).mean()))}
