from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.unit.fragments.models import lenet5, normalized
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.fragments import StateLayout

DTYPES = st.sampled_from([np.float16, np.float32, np.float64, np.int8, np.int64, np.uint8, np.bool_])
ARRAYS = DTYPES.flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0)))


def identical(left: Any, right: Any) -> bool:
    return bool(left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes())


@given(st.dictionaries(st.text(max_size=20), ARRAYS, max_size=6), st.booleans())
def test_a_state_survives_the_trip_bit_for_bit(state: dict[str, Any], normalization: bool) -> None:
    state["anchor.running_var" if normalization else "anchor"] = np.ones(3, dtype=np.float32)
    layout = StateLayout(state)

    back = layout.unflatten(layout.flatten(state), state)

    # A NaN may change its payload on the way through float32; everything else may not.
    kept = [name for name, array in state.items() if array.dtype.kind != "f" or not np.isnan(array).any()]
    assert list(back) == list(state)
    assert [name for name in kept if not identical(back[name], state[name])] == []


def test_a_lenet_is_one_vector_in_the_order_of_its_state() -> None:
    state = lenet5()
    layout = StateLayout(state)

    assert (layout.parameters, layout.statistics) == (61_706, 0)
    assert np.array_equal(layout.flatten(state), np.concatenate([array.ravel() for array in state.values()]))


def test_everything_of_a_normalization_layer_stands_behind_the_parameters() -> None:
    state = normalized()
    layout = StateLayout(state)

    flat = layout.flatten(state)

    assert (layout.parameters, layout.statistics) == (64 * 32 * 9 + 640, 4 * 64)
    assert np.array_equal(flat[-64:], state["norm.running_var"])
    assert np.array_equal(flat[layout.parameters : layout.parameters + 64], state["norm.weight"])


def test_counters_are_not_in_the_vector_and_come_back_from_the_local_state() -> None:
    state = normalized()
    layout = StateLayout(state)

    back = layout.unflatten(layout.flatten(state) * np.float32(0.5), state)

    assert identical(back["norm.num_batches_tracked"], state["norm.num_batches_tracked"])
    assert np.array_equal(back["norm.running_var"], state["norm.running_var"] * np.float32(0.5))


def test_a_changed_value_of_a_double_takes_the_vectors_and_its_neighbour_keeps_all_its_digits() -> None:
    state = {"weight": np.array([1 / 3, 1 / 7])}
    layout = StateLayout(state)
    flat = layout.flatten(state)
    flat[1] = 0.5

    assert layout.unflatten(flat, state)["weight"].tolist() == [1 / 3, 0.5]


def test_a_value_beyond_half_precision_becomes_its_largest_not_an_infinity() -> None:
    state = {"weight": np.array([1.0, 2.0], dtype=np.float16)}
    layout = StateLayout(state)

    back = layout.unflatten(np.array([1e6, -1e6], dtype=np.float32), state)

    assert back["weight"].tolist() == [65504.0, -65504.0]


def test_the_result_shares_no_memory_with_what_it_was_made_of() -> None:
    state = normalized()
    layout = StateLayout(state)
    flat = layout.flatten(state)

    back = layout.unflatten(flat, state)

    assert not any(np.shares_memory(array, other) for array in back.values() for other in (flat, *state.values()))


def test_other_names_for_statistics_can_be_given() -> None:
    state = normalized()

    layout = StateLayout(state, is_statistics=lambda name: name.startswith("head"))

    assert layout.statistics == 640


@pytest.mark.parametrize(
    ("changes", "key", "got"),
    [
        ({"7.weight": np.zeros((120, 399), dtype=np.float32)}, "model state 7.weight", "float32[120, 399]"),
        ({"7.weight": np.zeros((120, 400))}, "model state 7.weight", "float64[120, 400]"),
        ({"extra": np.zeros(1, dtype=np.float32)}, "model state", "extra"),
    ],
)
def test_a_state_that_changed_is_refused_by_the_name_of_the_tensor(changes: Any, key: str, got: str) -> None:
    layout = StateLayout(lenet5())

    with pytest.raises(ConfigError) as caught:
        layout.flatten(lenet5() | changes)

    assert (caught.value.key, caught.value.got) == (key, got)


def test_a_missing_tensor_is_named() -> None:
    state = lenet5()
    layout = StateLayout(state)
    del state["9.bias"]

    with pytest.raises(ConfigError, match=r"9\.bias"):
        layout.flatten(state)


def test_a_vector_of_another_length_is_refused() -> None:
    layout = StateLayout(lenet5())

    with pytest.raises(ConfigError, match="61706 values"):
        layout.unflatten(np.zeros(61_705, dtype=np.float32), lenet5())


@pytest.mark.parametrize("dtype", [np.complex64, np.longdouble, np.dtype("U3")])
def test_a_type_that_cannot_travel_is_refused_by_name(dtype: Any) -> None:
    with pytest.raises(ConfigError, match="model state odd"):
        StateLayout({"odd": np.zeros(3, dtype=dtype)})


def test_a_state_with_nothing_to_average_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least one floating value"):
        StateLayout({"steps": np.array(3)})
