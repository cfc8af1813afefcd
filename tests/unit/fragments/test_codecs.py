from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.unit.fragments.models import CAPACITY_BYTES, lenet5, normalized, vector
from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.fragments import FragmentDecoder, FragmentEncoder, Grid, StateLayout, codec_by_name, plan_grid
from unlinkabledfl.fragments.codecs import NAMES
from unlinkabledfl.fragments.transcoder import DEFAULT_BOUND


def transcoders(state: Any, name: str, capacity_bytes: int = CAPACITY_BYTES) -> tuple[FragmentEncoder, FragmentDecoder]:
    codec = codec_by_name(name)
    grid = plan_grid(StateLayout(state), codec, capacity_bytes=capacity_bytes)
    return (
        FragmentEncoder(grid, codec, capacity_bytes=capacity_bytes),
        FragmentDecoder(grid, capacity_bytes=capacity_bytes),
    )


def trip(state: Any, name: str) -> tuple[list[bytes], Any, Any]:
    encoder, decoder = transcoders(state, name)
    flat = StateLayout(state).flatten(state)
    messages = encoder.encode(flat, round_number=3, rng=np.random.default_rng(1))
    return messages, flat, np.concatenate([decoder.decode(message).values for message in messages])


@pytest.mark.parametrize(("name", "packets"), [("f32", 26), ("q8", 7), ("q7", 6), ("q6", 5), ("q4", 4), ("fit", 4)])
def test_a_lenet_takes_this_many_packets(name: str, packets: int) -> None:
    messages, _, _ = trip(lenet5(), name)

    assert len(messages) == packets
    assert max(map(len, messages)) <= CAPACITY_BYTES


def test_f32_is_exact() -> None:
    _, flat, back = trip(lenet5(), "f32")

    assert np.array_equal(flat, back)


def test_fit_fills_its_packets() -> None:
    messages, _, _ = trip(lenet5(), "fit")

    assert min(map(len, messages)) > 0.97 * CAPACITY_BYTES


def test_fit_is_about_as_exact_as_q8_in_little_more_than_half_the_packets() -> None:
    deviations = {}
    for name in ("q8", "fit", "q4"):
        _, flat, back = trip(lenet5(), name)
        deviations[name] = float(np.linalg.norm(back - flat) / np.linalg.norm(flat))

    assert deviations["fit"] < 0.04
    assert deviations["fit"] < 2 * deviations["q8"]
    assert deviations["q4"] > 5 * deviations["fit"]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "f32"])
def test_the_smallest_running_variance_stays_positive_and_near(name: str) -> None:
    state = normalized()
    layout = StateLayout(state)

    _, _, back = trip(state, name)

    variances = layout.unflatten(back, state)["norm.running_var"]
    assert np.abs(variances / state["norm.running_var"] - 1.0).max() <= 2**-7


@settings(max_examples=60)
@given(
    name=st.sampled_from(NAMES),
    values=hnp.arrays(
        np.float32,
        st.integers(1, 1_500),
        elements=st.floats(-DEFAULT_BOUND, DEFAULT_BOUND, width=32),
        fill=st.floats(-1.0, 1.0, width=32),
    ),
    statistics=st.integers(0, 400),
    seed=st.integers(0, 2**32),
)
def test_whatever_the_values_every_message_fits_and_decodes(name: str, values: Any, statistics: int, seed: int) -> None:
    statistics = min(statistics, values.size - 1)
    codec = codec_by_name(name)
    spare = 900
    grid = Grid(
        values.size - statistics, min(700, codec.slice_values(spare)), statistics, 225 if name == "f32" else 400
    )
    encoder = FragmentEncoder(grid, codec, capacity_bytes=spare + 14)
    decoder = FragmentDecoder(grid, capacity_bytes=spare + 14, bound=2.1 * DEFAULT_BOUND)

    messages = encoder.encode(values, round_number=0, rng=np.random.default_rng(seed))
    back = np.concatenate([decoder.decode(message).values for message in messages])

    assert back.size == values.size
    assert max(map(len, messages)) <= spare + 14


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("constant", [0.0, 1.0, -1e-38])
def test_a_constant_vector_stays_constant_within_a_step(name: str, constant: float) -> None:
    state = {"weight": np.full(40_000, constant, dtype=np.float32)}

    _, flat, back = trip(state, name)

    assert np.abs(back - flat).max() <= max(abs(constant) / 7, 1e-29)


@pytest.mark.parametrize("name", NAMES)
def test_values_with_a_few_giants_among_them_still_fit(name: str) -> None:
    flat = vector(40_000)
    flat[::997] = 9_000.0
    state = {"weight": flat}

    messages, _, back = trip(state, name)

    assert max(map(len, messages)) <= CAPACITY_BYTES
    if name == "fit":
        assert np.array_equal(back[::997], flat[::997])
        assert np.linalg.norm(back - flat) / np.linalg.norm(flat) < 0.01


@pytest.mark.parametrize(("values", "step"), [(2_000, 0.0), (9_000, 1 / 125), (12_000, 1 / 40)])
def test_fit_uses_what_a_small_model_leaves(values: int, step: float) -> None:
    state = {"weight": vector(values)}

    messages, flat, back = trip(state, "fit")

    assert len(messages) == 1
    assert np.abs(back - flat).max() <= np.abs(flat).max() * step


class CountingGenerator(np.random.Generator):
    """Counts the attempts of `fit`: each draws a dither."""

    drawn = 0

    def bytes(self, length: int) -> bytes:
        self.drawn += 1
        return super().bytes(length)


def test_the_next_round_of_a_range_begins_with_what_the_last_one_found() -> None:
    state = lenet5()
    flat = StateLayout(state).flatten(state)
    encoder, _ = transcoders(state, "fit")
    encoder.encode(flat, round_number=0, rng=np.random.default_rng(1))
    rng = CountingGenerator(np.random.PCG64(2))

    encoder.encode(flat, round_number=1, rng=rng)

    assert rng.drawn == 4


def test_two_nodes_with_equal_models_write_different_bytes() -> None:
    state = lenet5()
    flat = StateLayout(state).flatten(state)

    first, second = (
        transcoders(state, "fit")[0].encode(flat, round_number=0, rng=np.random.default_rng(seed)) for seed in (1, 2)
    )

    assert not set(first) & set(second)


@pytest.mark.parametrize("name", ["", "q3", "q9", "f16", "FIT"])
def test_an_unknown_codec_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"fragments\.codec"):
        codec_by_name(name)


def test_a_packet_too_small_for_anything_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"packet\.body_bytes"):
        plan_grid(StateLayout(lenet5()), codec_by_name("fit"), capacity_bytes=100)


@pytest.mark.parametrize("bits", [2.9, 8.1, float("nan")])
def test_fit_plans_for_three_to_eight_bits(bits: float) -> None:
    with pytest.raises(ConfigError, match=r"fragments\.bits"):
        codec_by_name("fit", bits=bits)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1.1e4])
def test_a_diverged_model_is_not_sent_and_the_operator_is_told(wrong: float) -> None:
    encoder, _ = transcoders(lenet5(), "fit")
    flat = vector(61_706)
    flat[40_000] = wrong

    with pytest.raises(ConfigError, match="diverged") as caught:
        encoder.encode(flat, round_number=0, rng=np.random.default_rng(1))

    assert caught.value.key == "model values 30854 to 46281"


def test_a_grid_far_too_coarse_for_its_packets_ends_in_an_error_not_in_a_search() -> None:
    encoder = FragmentEncoder(Grid(20_000, 20_000), codec_by_name("fit"), capacity_bytes=1_000)

    with pytest.raises(LocalProtocolError, match="20000 values were planned for 986 bytes"):
        encoder.encode(vector(20_000), round_number=0, rng=np.random.default_rng(1))
