from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from unlinkabledfl.node.learner import State, difference

STATE: dict[str, NDArray[Any]] = {"conv.weight": np.zeros((2, 3), np.float32), "norm.count": np.zeros((), np.int64)}


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (STATE, None),
        ({name: array + 1 for name, array in STATE.items()}, None),
        ({"conv.weight": STATE["conv.weight"]}, "norm.count: missing"),
        (STATE | {"conv.weight": np.zeros((3, 2), np.float32)}, "conv.weight: shape (3, 2) instead of (2, 3)"),
        (STATE | {"norm.count": np.zeros((), np.int32)}, "norm.count: type int32 instead of int64"),
        (STATE | {"extra": np.zeros(1)}, "extra: not part of the model"),
    ],
)
def test_the_first_difference_of_two_states_is_named_by_its_layer(after: State, expected: str | None) -> None:
    assert difference(STATE, after) == expected
