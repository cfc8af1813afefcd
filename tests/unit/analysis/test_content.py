"""Curious recipients: they find senders that can be found, and nobody where there is nothing to find."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.unit.analysis.content_views import PEERS, planted
from unlinkabledfl.analysis.content import (
    Attack,
    RoundView,
    View,
    persistent_attack,
    published_attack,
    score_buckets,
)
from unlinkabledfl.analysis.content.assignment import best_assignment
from unlinkabledfl.errors import LocalProtocolError

BOTH = pytest.mark.parametrize("attack", [published_attack, persistent_attack])


def identity(attack: Attack, **sizes: float) -> float:
    view, truth = planted(**sizes)  # type: ignore[arg-type]
    return score_buckets(attack(view), truth, peers=view.peers).identity


@BOTH
def test_senders_that_differ_are_all_named(attack: Attack) -> None:
    view, truth = planted(own=1.0, noise=0.3)

    score = score_buckets(attack(view), truth, peers=view.peers)

    assert (score.identity, score.tracking) == (1.0, 1.0)
    assert score.fragments == 5 * 2 * PEERS


@BOTH
def test_senders_with_nothing_of_their_own_are_named_by_chance(attack: Attack) -> None:
    hits = [identity(attack, own=0.0, noise=1.0, common=1.0, seed=seed) for seed in range(40)]

    # 3,200 fragments, each right with 1/8. Those of one round and range depend on each other; taking only those 400
    # for independent, the mean strays by 0.017: it lies outside these bounds once in 10,000 times.
    assert abs(np.mean(hits) - 1 / PEERS) < 0.065


@BOTH
def test_equal_models_are_named_by_chance(attack: Attack) -> None:
    view, truth = planted(own=0.0, noise=0.0)

    assert score_buckets(attack(view), truth, peers=view.peers).identity == pytest.approx(1 / PEERS, abs=0.13)


@pytest.mark.parametrize("seen", [1.0, 0.4])
def test_ours_is_not_misled_by_what_all_have_in_common(seen: float) -> None:
    sizes = {"own": 0.35, "noise": 1.0, "common": 3.0, "rounds": 12, "seen": seen}

    assert identity(persistent_attack, **sizes) > identity(published_attack, **sizes) + 0.2


def test_ours_gains_from_later_rounds() -> None:
    few, many = (
        np.mean([identity(persistent_attack, own=0.25, noise=1.0, rounds=rounds, seed=seed) for seed in range(8)])
        for rounds in (2, 20)
    )

    assert many > few + 0.1


@BOTH
@given(seed=st.integers(0, 1_000))
def test_the_order_in_which_fragments_come_tells_nothing(attack: Attack, seed: int) -> None:
    view, _ = planted(own=0.5, noise=1.0, rounds=3)
    order = np.random.default_rng(seed).permutation(PEERS)
    last = view.later[-1]
    turned = RoundView(before=last.before, own=last.own, fragments=[rows[order] for rows in last.fragments])

    plain = attack(view)
    shuffled = attack(View(ranges=view.ranges, first=view.first, later=[*view.later[:-1], turned]))

    assert [put[order].tolist() for put in plain[-1]] == [put.tolist() for put in shuffled[-1]]


@BOTH
def test_a_round_of_which_nothing_was_seen_is_no_trouble(attack: Attack) -> None:
    view, _ = planted(own=1.0, noise=0.1, rounds=3, seen=0.0)

    assert [[put.size for put in found] for found in attack(view)] == [[0, 0], [0, 0]]


# -- assigning --------------------------------------------------------------------------------------------------------


@given(arrays.arrays(np.float64, st.tuples(st.integers(0, 5), st.just(5)), elements=st.integers(-20, 20)))
def test_no_assignment_is_worth_more(worth: np.ndarray) -> None:
    found = best_assignment(worth)
    rows = np.arange(len(worth))

    assert len(set(found.tolist())) == len(worth)
    best = max(worth[rows, list(columns)].sum() for columns in permutations(range(5), len(worth)))
    assert worth[rows, found].sum() == best


def test_more_rows_than_columns_are_our_mistake() -> None:
    with pytest.raises(LocalProtocolError, match="3 rows"):
        best_assignment(np.zeros((3, 2)))


# -- scoring ----------------------------------------------------------------------------------------------------------


def of(*rounds: list[int]) -> list[list[np.ndarray]]:
    return [[np.array(row, dtype=np.int64)] for row in rounds]


def test_two_that_are_taken_for_each_other_are_tracked_and_not_named() -> None:
    score = score_buckets(of([1, 0], [1, 0], [1, 0]), of([0, 1], [0, 1], [0, 1]), peers=2)

    # Of six fragments the first two follow the reference of the other; the rest follow their own.
    assert (score.identity, score.tracking, score.fragments) == (0.0, 4 / 6, 6)


def test_a_bucket_holds_what_came_last() -> None:
    score = score_buckets(of([0], [0], [1]), of([1], [1], [1]), peers=2)

    assert (score.identity, score.tracking) == (1 / 3, 2 / 3)


@pytest.mark.parametrize(("buckets", "truth"), [(of([0]), of([0, 1])), (of(), of()), (of([]), of([]))])
def test_what_cannot_be_scored_is_our_mistake(buckets: list[list[np.ndarray]], truth: list[list[np.ndarray]]) -> None:
    with pytest.raises(LocalProtocolError):
        score_buckets(buckets, truth, peers=2)
