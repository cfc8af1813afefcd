"""Learners of many nodes that a process can build, small enough to compute their results by hand."""

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unlinkabledfl.errors import ConfigError, LearnerError
from unlinkabledfl.node.learner import Metrics, State


class Counting:
    """A round of training adds the node's number to every weight, and one to a counter."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings

    def initial(self) -> State:
        return {"w": np.zeros((2, 3), dtype=np.float32), "steps": np.array(0, dtype=np.int64)}

    def train(self, node: int, *, round_number: int, state: State) -> tuple[State, Metrics]:
        if node == self._settings.get("diverges"):
            raise LearnerError("training diverged")
        if node == self._settings.get("breaks"):
            raise ZeroDivisionError("by nothing")
        if node == self._settings.get("dies"):
            self._die()
        trained = {"w": state["w"] + np.float32(node), "steps": state["steps"] + 1}
        return trained, {"train_loss": float(round_number)}

    def evaluate(self, node: int, *, state: State) -> Metrics:
        return {"accuracy": float(state["w"].sum())}

    def _die(self) -> None:
        """Be killed, as often as the settings say: a file remembers how often it was, because processes do not."""
        deaths = Path(self._settings["deaths"])
        count = int(deaths.read_text()) if deaths.exists() else 0
        if count < self._settings["times"]:
            deaths.write_text(str(count + 1))
            os.kill(os.getpid(), signal.SIGKILL)


def counting(settings: Mapping[str, Any]) -> Counting:
    return Counting(settings)


def unbuildable(settings: Mapping[str, Any]) -> Counting:
    raise ConfigError(key="learning.dataset", got="roses", takes="a dataset that there is", hint="mnist, say")
