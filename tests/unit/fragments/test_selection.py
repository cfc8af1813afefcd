from collections import Counter
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.statistics_chi_square import chi_square_p_value, uniform_law
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.fragments import Grid, selection_by_name
from unlinkabledfl.fragments.selection import NAMES

GRID = Grid(100, 10)
VECTOR = np.zeros(100, dtype=np.float32)


@given(st.sampled_from(NAMES), st.integers(1, 60), st.floats(0.001, 1.0), st.integers(0, 99))
def test_a_choice_is_ascending_on_the_grid_and_of_the_share_asked_for(
    name: str, ranges: int, ratio: float, seed: int
) -> None:
    grid = Grid(ranges, 1)
    selection = selection_by_name(name, grid, ratio=ratio)
    rng = np.random.default_rng(seed)

    for _ in range(3):
        chosen = selection.choose(rng.random(ranges, dtype=np.float32), rng=rng)

        assert chosen == sorted(set(chosen))
        assert set(chosen) <= set(range(ranges))
        assert ratio * ranges - 1e-6 <= len(chosen) < ratio * ranges + 1


def test_a_tenth_of_thirty_ranges_is_three() -> None:
    selection = selection_by_name("random", Grid(30, 1), ratio=0.1)

    assert len(selection.choose(VECTOR[:30], rng=np.random.default_rng(1))) == 3


def test_random_choices_are_uniform() -> None:
    selection = selection_by_name("random", GRID, ratio=0.1)
    rng = np.random.default_rng(1)
    counts = Counter[int]()
    for _ in range(5_000):
        counts.update(selection.choose(VECTOR, rng=rng))

    assert chi_square_p_value(counts, uniform_law(range(10))) > 1e-6


def test_rotation_sends_everything_once_in_each_turn() -> None:
    selection = selection_by_name("rotating", GRID, ratio=0.2)
    rng = np.random.default_rng(3)

    turn = [selection.choose(VECTOR, rng=rng) for _ in range(10)]

    assert sorted(chain(*turn[:5])) == list(range(10))
    assert turn[5:] == turn[:5]


def test_rotations_of_different_nodes_begin_at_different_places() -> None:
    starts = {
        tuple(selection_by_name("rotating", GRID, ratio=0.1).choose(VECTOR, rng=np.random.default_rng(seed)))
        for seed in range(20)
    }

    assert len(starts) > 3


def test_the_largest_changes_since_they_were_sent_go_first() -> None:
    selection = selection_by_name("largest_change", GRID, ratio=0.2)
    rng = np.random.default_rng(1)
    vector = VECTOR.copy()
    for index, size in enumerate((5, 1, 9, 7, 2, 3, 8, 4, 0, 6)):
        vector[GRID.ranges[index].slice] = size

    chosen = [selection.choose(vector, rng=rng) for _ in range(3)]
    vector[GRID.ranges[2].slice] += 100.0

    assert chosen == [[2, 6], [3, 9], [0, 7]]
    assert selection.choose(vector, rng=rng) == [2, 5]


def test_a_short_last_range_is_compared_by_its_mean() -> None:
    grid = Grid(11, 10)
    vector = np.full(11, 1.0, dtype=np.float32)
    vector[10] = 2.0

    assert selection_by_name("largest_change", grid, ratio=0.5).choose(vector, rng=np.random.default_rng(1)) == [1]


@pytest.mark.parametrize("ratio", [0.0, -0.1, 1.01, float("nan")])
def test_a_ratio_outside_its_interval_is_refused(ratio: float) -> None:
    with pytest.raises(ConfigError, match=r"fragments\.ratio"):
        selection_by_name("random", GRID, ratio=ratio)


@pytest.mark.parametrize("name", ["", "Random", "largest"])
def test_an_unknown_selection_is_refused(name: Any) -> None:
    with pytest.raises(ConfigError, match=r"fragments\.selection"):
        selection_by_name(name, GRID, ratio=0.5)
