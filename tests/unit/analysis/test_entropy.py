"""The published numbers, and what any entropy must satisfy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlinkabledfl.analysis.entropy import (
    CompromiseRegime,
    LinkingBound,
    krum_budget,
    krum_feasible,
    local_relay_entropy_bits,
    min_bits,
    path_entropy_bits,
    relay_entropy_bits,
    shannon_bits,
)
from unlinkabledfl.errors import ConfigError

# The published values are given to two digits, cut or rounded: 5·log2 100 and a little is 33.2338.
_PUBLISHED = 0.011


@pytest.mark.parametrize(
    ("path_length", "outbox_size", "bits"),
    [(1, 100, 6.64), (2, 100, 13.30), (5, 100, 33.23), (2, 10, 6.78)],
)
def test_path_entropy_is_the_published_one(path_length: int, outbox_size: int, bits: float) -> None:
    assert path_entropy_bits(path_length, outbox_size) == pytest.approx(bits, abs=_PUBLISHED)


@pytest.mark.parametrize(
    ("path_length", "outbox_size", "bits"),
    [(1, 100, 0.0), (2, 10, 2.66), (2, 100, 4.32), (5, 100, 6.04)],
)
def test_local_relay_entropy_is_the_published_one(path_length: int, outbox_size: int, bits: float) -> None:
    assert local_relay_entropy_bits(path_length, outbox_size) == pytest.approx(bits, abs=_PUBLISHED)


def test_hidden_shuffles_add_their_bits() -> None:
    assert relay_entropy_bits(0, 100) == 0.0
    assert relay_entropy_bits(3, 64) == 18.0
    assert relay_entropy_bits(2, 1) == 0.0


def test_the_bound_multiplies_what_one_sender_has_by_what_one_trajectory_weighs() -> None:
    bound = LinkingBound(multiplicity=20, route_bits=3.0, hidden_shuffles=1, outbox_size=100)

    assert bound.value == pytest.approx(20 / 8 / 100)
    assert not bound.is_vacuous


def test_a_bound_above_one_is_called_vacuous() -> None:
    bound = LinkingBound(multiplicity=2_000, route_bits=3.0, hidden_shuffles=1, outbox_size=100)

    assert bound.value == 1.0
    assert bound.unclipped == pytest.approx(2.5)
    assert bound.is_vacuous


def test_compromise_leaves_the_corollarys_share() -> None:
    regime = CompromiseRegime(path_length=4, share=0.25)

    assert regime.all_compromised == 0.25**4
    assert regime.hidden_shuffles_mean == 3.0


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan])
def test_a_share_is_a_share(share: float) -> None:
    with pytest.raises(ConfigError, match="compromised_share"):
        CompromiseRegime(path_length=2, share=share)


@pytest.mark.parametrize(("path_length", "outbox_size"), [(0, 10), (2, 0)])
def test_impossible_parameters_are_named(path_length: int, outbox_size: int) -> None:
    with pytest.raises(ConfigError, match=r"mixnet\."):
        path_entropy_bits(path_length, outbox_size)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40).filter(lambda weights: sum(weights) > 1e-6))
def test_min_entropy_is_at_most_shannon_entropy_is_at_most_uniform(weights: list[float]) -> None:
    posterior = np.array(weights) / sum(weights)

    assert -1e-9 <= min_bits(posterior) <= shannon_bits(posterior) + 1e-9
    assert shannon_bits(posterior) <= math.log2(len(weights)) + 1e-9


def test_a_certain_adversary_has_no_entropy_left() -> None:
    certain = np.array([0.0, 1.0, 0.0])

    assert shannon_bits(certain) == min_bits(certain) == 0.0


@given(st.integers(0, 200))
def test_krums_budget_is_the_largest_feasible(candidates: int) -> None:
    budget = krum_budget(candidates)

    assert not krum_feasible(candidates, budget + 1)
    assert budget < 0 or krum_feasible(candidates, budget)


def test_twenty_candidates_tolerate_eight_byzantine_ones() -> None:
    assert krum_budget(20) == 8
