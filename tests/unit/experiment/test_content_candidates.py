"""Disguises that were tried: what cancels where, and that noise says nothing on average."""

from hashlib import shake_256

import numpy as np
import pytest

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.content.candidates import NAMES, Disguised, Party, disguise_by_name
from unlinkabledfl.fragments import Grid, StateLayout, Vector
from unlinkabledfl.sphinx import NodeId

LAYOUT = StateLayout({"weight": np.zeros((30, 100), dtype=np.float32)})
GRID = Grid(3_000, 1_500)
IDS = [NodeId(shake_256(bytes([number])).digest(32)) for number in range(6)]
VECTOR = np.random.default_rng(1).normal(size=3_000).astype(np.float32)
BEFORE = VECTOR - np.random.default_rng(2).normal(0.0, 0.1, size=3_000).astype(np.float32)
NOISY = [name for name in NAMES if name != "none"]


def disguise(name: str, own: int = 0, *, scale: float = 2.0, seed: int = 1) -> Disguised:
    party = Party(
        own_id=IDS[own],
        senders_to={other: tuple(each for each in IDS if each != other) for other in IDS},
        destinations=tuple(other for other in IDS if other != IDS[own]),
        grid=GRID,
        layout=LAYOUT,
        seed=seed,
    )
    made = disguise_by_name(name, scale, party)
    assert made is not None
    made.begin(VECTOR, BEFORE)
    return made


def added(made: Disguised, destination: int, *, index: int = 0, round_number: int = 1) -> Vector:
    values = VECTOR[GRID.ranges[index].slice]
    return made(values, index=index, round_number=round_number, destination=IDS[destination]) - values


def test_none_is_no_disguise() -> None:
    party = Party(own_id=IDS[0], senders_to={}, destinations=(), grid=GRID, layout=LAYOUT, seed=1)

    assert disguise_by_name("none", 0.0, party) is None


def test_an_unknown_one_is_refused() -> None:
    party = Party(own_id=IDS[0], senders_to={}, destinations=(), grid=GRID, layout=LAYOUT, seed=1)

    with pytest.raises(ConfigError, match="takes none, masks, zero_sum"):
        disguise_by_name("mask", 1.0, party)


def test_masks_cancel_over_the_senders_of_a_destination() -> None:
    total = np.sum([added(disguise("masks", own), 5) for own in range(5)], axis=0)

    assert float(np.abs(total).max()) < 1e-5


def test_zero_sum_noise_cancels_over_the_destinations_of_a_sender() -> None:
    made = disguise("zero_sum")

    total = np.sum([added(made, destination) for destination in range(1, 6)], axis=0)

    assert float(np.abs(total).max()) < 1e-5
    assert len({added(made, destination).tobytes() for destination in range(1, 6)}) == 5


def test_noise_over_time_is_taken_off_in_the_next_round() -> None:
    made = disguise("over_time")
    first = added(made, 1)
    made.begin(VECTOR, BEFORE)
    second = added(made, 1)
    made.begin(VECTOR, VECTOR)  # an update of nothing has no deviation, so no new noise comes
    third = added(made, 1)

    np.testing.assert_allclose(first + second + third, 0.0, atol=1e-6)


def test_only_same_noise_and_noise_over_time_are_the_same_for_all_destinations() -> None:
    same = {name for name in NOISY if np.array_equal(added(made := disguise(name), 1), added(made, 2))}

    assert same == {"same_noise", "over_time"}


@pytest.mark.parametrize("name", NOISY)
def test_noise_is_as_large_as_was_asked_for_and_says_nothing_on_average(name: str) -> None:
    noise = np.concatenate([
        added(disguise(name, seed=seed), 3, index=index) for seed in range(20) for index in range(2)
    ])  # fmt: skip
    # A typical weight of 100 inputs, or the deviation of the update: both are 0.1.
    deviation = 0.2

    # Of 60,000 values the mean strays by 0.4% and the deviation by 0.3% of the deviation.
    assert abs(float(noise.mean())) < 0.03 * deviation
    assert float(noise.std()) == pytest.approx(deviation, rel=0.04)
