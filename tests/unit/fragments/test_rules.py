from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.fragments import Vector, rule_by_name
from unlinkabledfl.fragments.rules import squared_distances


def ones(candidates: Vector) -> Any:
    return np.ones(len(candidates))


def combine(name: str, candidates: Any, byzantine: int = 0, weights: Any = None) -> Vector:
    rows = np.asarray(candidates, dtype=np.float32)
    return rule_by_name(name, byzantine=byzantine).combine(rows, ones(rows) if weights is None else np.array(weights))


def krum_by_the_book(candidates: Vector, byzantine: int) -> int:
    """Algorithm 1, line by line, in Python's numbers."""
    rows = [[float(value) for value in row] for row in candidates]
    nearest = len(rows) - byzantine - 2
    scores = []
    for at, row in enumerate(rows):
        others = [sum((a - b) ** 2 for a, b in zip(row, z, strict=True)) for k, z in enumerate(rows) if k != at]
        scores.append(sum(sorted(others)[:nearest]))
    return scores.index(min(scores))


def test_fragfedavg_is_the_mean() -> None:
    assert combine("fragfedavg", [[1, 2], [3, 4], [8, 0]]).tolist() == [4.0, 2.0]


def test_fragfedavg_weighs() -> None:
    assert combine("fragfedavg", [[1, 0], [4, 3]], weights=[1.0, 0.5]).tolist() == [2.0, 1.0]


def test_fragfedavg_of_equal_slices_is_that_slice() -> None:
    row = np.random.default_rng(1).normal(size=1_000).astype(np.float32)

    for count in (1, 2, 3, 7, 32):
        np.testing.assert_allclose(combine("fragfedavg", [row] * count), row, rtol=1e-6)


@given(st.integers(0, 3), st.integers(0, 6), st.integers(0, 10_000))
def test_fragkrum_chooses_what_the_algorithm_of_the_paper_chooses(byzantine: int, more: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Whole numbers, so that scores tie often and both reckon exactly.
    candidates = rng.integers(-3, 4, size=(2 * byzantine + 3 + more, 4)).astype(np.float32)

    chosen = combine("fragkrum", candidates, byzantine)

    assert chosen.tolist() == candidates[krum_by_the_book(candidates, byzantine)].tolist()


@pytest.mark.parametrize("far", [1.0, 1e4])
def test_fragkrum_stays_within_the_bound_of_its_theorem(far: float) -> None:
    rng = np.random.default_rng(2)
    byzantine, count = 8, 20
    honest = rng.normal(0.05, 0.01, size=(count - byzantine, 5_000)).astype(np.float32)
    lies = (honest[:1] + far * rng.normal(size=(byzantine, 5_000))).astype(np.float32)
    lies[1:] = lies[0]  # in agreement with each other

    chosen = combine("fragkrum", np.concatenate([honest, lies]), byzantine)

    diameter = squared_distances(honest).max()
    distance = np.square(honest.astype(np.float64) - chosen).sum(axis=1).min()
    assert distance <= (count - byzantine - 2) / (count - 2 * byzantine - 2) * diameter
    assert any(np.array_equal(chosen, row) for row in honest)


def test_of_equal_scores_fragkrum_takes_the_first() -> None:
    candidates = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]

    assert combine("fragkrum", candidates).tolist() == [0.0, 0.0]
    assert combine("fragkrum", candidates[::-1]).tolist() == [1.0, 1.0]


def test_distances_are_exact_enough_beside_candidates_at_the_bound() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(0.0, 0.05, size=(6, 15_427)).astype(np.float32)
    rows[4:] = 1e4

    found = squared_distances(rows)

    expected = np.square(rows[:4, None].astype(np.float64) - rows[None, :4]).sum(axis=2)
    np.testing.assert_allclose(found[:4, :4], expected, rtol=1e-9, atol=1e-9)
    assert found[4, 5] <= 1.0


@given(st.integers(1, 12), st.integers(1, 9_000), st.integers(0, 999))
def test_the_median_is_numpys(count: int, values: int, seed: int) -> None:
    candidates = np.random.default_rng(seed).normal(size=(count, values)).astype(np.float32)

    np.testing.assert_allclose(combine("median", candidates), np.median(candidates, axis=0), rtol=1e-6, atol=1e-7)


def test_a_trimmed_mean_leaves_out_the_extremes_of_each_coordinate() -> None:
    assert combine("trimmed_mean", [[1, 9], [2, 1], [3, 2], [900, -50], [4, 3]], byzantine=1).tolist() == [3.0, 2.0]


@pytest.mark.parametrize("name", ["fragkrum", "median", "trimmed_mean"])
def test_liars_within_the_budget_move_a_robust_rule_no_further_than_honest_values_lie(name: str) -> None:
    honest = np.random.default_rng(4).uniform(-1.0, 1.0, size=(9, 50)).astype(np.float32)
    lies = np.full((3, 50), 1e4, dtype=np.float32)

    result = combine(name, np.concatenate([honest, lies]), byzantine=3)

    assert np.abs(result).max() <= 1.0


@pytest.mark.parametrize(("name", "least"), [("fragfedavg", 1), ("fragkrum", 7), ("median", 1), ("trimmed_mean", 5)])
def test_a_rule_says_how_few_candidates_it_can_do_with(name: str, least: int) -> None:
    rule = rule_by_name(name, byzantine=2)

    assert (rule.name, rule.least) == (name, least)
    assert rule.combine(np.ones((least, 3), dtype=np.float32), np.ones(least)).tolist() == [1.0] * 3


@pytest.mark.parametrize("name", ["fragfedavg", "fragkrum", "median", "trimmed_mean"])
def test_a_rule_leaves_its_candidates_as_they_are(name: str) -> None:
    candidates = np.random.default_rng(5).normal(size=(9, 30)).astype(np.float32)
    before = candidates.copy()

    result = rule_by_name(name, byzantine=1).combine(candidates, ones(candidates))

    assert np.array_equal(candidates, before)
    assert not np.shares_memory(result, candidates)


def test_an_unknown_rule_and_a_negative_budget_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"aggregation\.rule"):
        rule_by_name("krum")
    with pytest.raises(ConfigError, match=r"aggregation\.byzantine"):
        rule_by_name("fragkrum", byzantine=-1)
