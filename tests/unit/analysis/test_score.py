"""Scores on beliefs whose worth is known."""

import numpy as np
import pytest

from unlinkabledfl.analysis.score import Score, score
from unlinkabledfl.analysis.trace import Oracle
from unlinkabledfl.errors import ConfigError

NODES = 8


def oracle_of(origins: np.ndarray) -> Oracle:
    return Oracle(origin=origins.astype(np.int32), path=tuple((0,) for _ in origins))


def drawn(targets: int, seed: int) -> tuple[np.ndarray, Oracle]:
    """Beliefs that are right as often as they say."""
    rng = np.random.default_rng(seed)
    posteriors = rng.dirichlet(np.full(NODES, 0.4), size=targets)
    origins = np.array([rng.choice(NODES, p=row) for row in posteriors])
    return posteriors, oracle_of(origins)


def scored(posteriors: np.ndarray, oracle: Oracle) -> Score:
    candidates = np.full(len(posteriors), NODES, dtype=np.int32)
    return score("test", posteriors, oracle, feasible=np.ones_like(posteriors), published_candidates=candidates)


def test_who_knows_nothing_is_right_one_time_in_n() -> None:
    origins = np.arange(800) % NODES

    found = scored(np.full((800, NODES), 1 / NODES), oracle_of(origins))

    assert found.accuracy == pytest.approx(1 / NODES)
    assert found.advantage == pytest.approx(0.0)
    assert found.shannon_bits_mean == found.min_bits_mean == pytest.approx(3.0)


def test_a_tie_counts_its_share() -> None:
    posteriors = np.zeros((4, NODES))
    posteriors[:, :2] = 0.5

    assert scored(posteriors, oracle_of(np.array([0, 1, 0, 5]))).accuracy == pytest.approx(3 * 0.5 / 4)


def test_honest_beliefs_are_found_calibrated_and_overconfident_ones_are_not() -> None:
    posteriors, oracle = drawn(4_000, seed=1)
    sharper = posteriors**2 / (posteriors**2).sum(axis=1, keepdims=True)

    honest, overconfident = scored(posteriors, oracle), scored(sharper, oracle)

    # Ten bins of 400: each hit rate is off by 0.025 at most, two times in three.
    assert honest.calibration_error < 0.025
    assert overconfident.calibration_error > 3 * honest.calibration_error
    assert honest.accuracy == overconfident.accuracy


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    covered = 0
    for seed in range(200):
        posteriors, oracle = drawn(300, seed)
        found = scored(posteriors, oracle)
        covered += found.ci_low <= posteriors.max(axis=1).mean() <= found.ci_high

    # 95% of 200 is 190; few clusters and their unequal sizes cost a little. Below 176 has a probability under 1e-5.
    assert covered >= 176


def test_targets_of_one_sender_count_as_one_observation() -> None:
    # Two senders, one always found and one never: n is large, and what is known of a third sender is nothing.
    posteriors = np.zeros((1_000, NODES))
    posteriors[:, 0] = 1.0
    origins = np.repeat([0, 1], 500)

    found = scored(posteriors, oracle_of(origins))

    assert (found.accuracy, found.ci_low, found.ci_high) == (0.5, 0.0, 1.0)


def test_beliefs_must_be_about_the_targets() -> None:
    with pytest.raises(ConfigError, match=r"attack\.targets"):
        scored(np.full((3, NODES), 1 / NODES), oracle_of(np.array([0, 1])))
