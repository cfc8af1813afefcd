"""What a node asks of whoever trains its model: four short methods, and no word about how it is done.

In a round a node calls `train`, sends `state` in fragments, hands the aggregate back by `load`, and may `evaluate`.

Invariant: the names, shapes and types in `state` are the same in every round, on every node of a federation. They are
the public grid on which fragments without a name are put together again.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Learner", "Metrics", "State", "difference"]

State = Mapping[str, NDArray[Any]]
"""A model: every parameter and buffer by its name."""

Metrics = Mapping[str, float]
"""Measurements by name, such as `loss` or `accuracy`."""


class Learner(Protocol):
    """A model with its private data. `LearnerError` says that a call failed; the state is then what it was before."""

    def state(self) -> State:
        """Return the model. Training on does not change the arrays returned; the caller does not write to them."""
        ...

    def load(self, state: State) -> None:
        """Replace the model by this one, which has the same names, shapes and types. The arrays are copied."""
        ...

    def train(self, round_number: int) -> Metrics:
        """Train on the local data as much as one round takes. Equal rounds of equal states give equal results.

        Rounds are numbered from 1.
        """
        ...

    def evaluate(self) -> Metrics:
        """Measure the model on data that it was not trained on."""
        ...


def difference(before: State, after: State) -> str | None:
    """Return in words where two states do not have the same names, shapes or types, or None where they have.

    The text begins with the name of the first such layer.
    """
    for name, array in before.items():
        if name not in after:
            return f"{name}: missing"
        other = np.asarray(after[name])
        if array.shape != other.shape:
            return f"{name}: shape {other.shape} instead of {array.shape}"
        if array.dtype != other.dtype:
            return f"{name}: type {other.dtype} instead of {array.dtype}"
    extra = next((name for name in after if name not in before), None)
    return None if extra is None else f"{extra}: not part of the model"
