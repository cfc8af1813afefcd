"""How `bench node` compares the gaps between emissions."""

import random

from benchmarks.node_emission import gaps_within, two_sample_p


def test_gaps_count_where_both_ends_lie_in_one_interval() -> None:
    assert gaps_within([0.0, 1.0, 3.0, 6.0, 7.0], [(0.0, 4.0), (6.0, 8.0)]) == [1.0, 2.0, 1.0]


def test_one_law_is_taken_for_one_and_two_for_two() -> None:
    rng = random.Random(1)
    some, others, slower = ([rng.expovariate(rate) for _ in range(800)] for rate in (50.0, 50.0, 33.0))

    assert two_sample_p(some, some) == 1.0
    assert two_sample_p(some, others) > 0.01
    assert two_sample_p(some, slower) < 0.01
