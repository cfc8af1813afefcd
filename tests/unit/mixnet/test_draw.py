import math
from collections import Counter
from collections.abc import Callable
from decimal import Decimal, localcontext
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.statistics_chi_square import chi_square_p_value, uniform_law
from tests.statistics_ks import exponential_law, ks_p_value, truncated_normal_law
from tests.unit.mixnet.mixing import seeded
from unlinkabledfl.errors import LocalProtocolError
from unlinkabledfl.mixnet.draw import Draw, inverse_normal

SIGNIFICANCE = 1e-3
HIGHEST_WORD = 2**64 - 1


def scripted(*words: int) -> Draw:
    """A draw whose next words are these; after them comes 0."""

    def block(count: int) -> bytes:
        padded = [*words, *[0] * (count // 8 - len(words))]
        # A block is consumed from its end.
        return b"".join(word.to_bytes(8, "little") for word in reversed(padded))

    return Draw(block)


def test_the_same_entropy_gives_the_same_choices() -> None:
    def choices(draw: Draw) -> list[object]:
        return [draw.uniform(), draw.below(10), draw.sample(range(50), 3), draw.exponential(2.0), draw.bytes(5)]

    assert choices(seeded(7)) == choices(seeded(7))
    assert choices(seeded(7)) != choices(seeded(8))


def test_entropy_is_asked_in_blocks_and_only_when_needed() -> None:
    asked: list[int] = []

    def entropy(count: int) -> bytes:
        asked.append(count)
        return bytes(count)

    draw = Draw(entropy)
    assert asked == []
    for _ in range(33):
        draw.uniform()
    assert asked == [256, 256]
    assert draw.bytes(16) == bytes(16)
    assert asked == [256, 256, 16]


def test_uniform_values_are_multiples_of_2_to_the_minus_53_below_one() -> None:
    assert scripted(0).uniform() == 0.0
    assert scripted(1 << 11).uniform() == 2.0**-53
    assert scripted(HIGHEST_WORD).uniform() == 1.0 - 2.0**-53


def test_the_incomplete_run_of_words_is_drawn_again() -> None:
    # 2**64 = 3 k + 1: the highest word would give 0 one chance more than 1 and 2.
    assert scripted(HIGHEST_WORD, 5).below(3) == 2
    assert scripted(HIGHEST_WORD - 1, 5).below(3) == 2
    assert scripted(HIGHEST_WORD, 5).below(2) == 1


@pytest.mark.parametrize("n", [1, 2**64, 2**64 + 1, 10**30])
def test_integers_stay_below_any_bound(n: int) -> None:
    draw = seeded(1)

    drawn = [draw.below(n) for _ in range(200)]

    assert all(0 <= value < n for value in drawn)
    assert max(drawn) >= 0.9 * (n - 1)


@pytest.mark.parametrize("n", [0, -1])
def test_there_is_no_integer_below_zero(n: int) -> None:
    with pytest.raises(LocalProtocolError, match="below"):
        seeded(1).below(n)


@pytest.mark.parametrize(("size", "count"), [(3, 4), (0, 1), (3, -1)])
def test_a_sample_cannot_exceed_what_is_there(size: int, count: int) -> None:
    with pytest.raises(LocalProtocolError, match="cannot sample"):
        seeded(1).sample(range(size), count)


@given(seed=st.integers(0, 2**32), size=st.integers(0, 60), data=st.data())
def test_a_sample_takes_distinct_positions(seed: int, size: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, size))

    sample = seeded(seed).sample(range(size), count)

    assert len(sample) == len(set(sample)) == count
    assert set(sample) <= set(range(size))


@given(seed=st.integers(0, 2**32), items=st.lists(st.integers()))
def test_a_shuffle_loses_nothing(seed: int, items: list[int]) -> None:
    shuffled = list(items)
    seeded(seed).shuffle(shuffled)

    assert sorted(shuffled) == sorted(items)


def permutation(draw: Draw) -> tuple[int, ...]:
    items = [0, 1, 2, 3, 4]
    draw.shuffle(items)
    return tuple(items)


@pytest.mark.parametrize(
    ("choose", "outcomes"),
    [
        (lambda draw: draw.below(7), list(range(7))),
        (lambda draw: draw.below(3 * 2**64) // 2**64, list(range(3))),
        (lambda draw: draw.choice("abc"), list("abc")),
        (lambda draw: math.floor(draw.uniform() * 16), list(range(16))),
        (permutation, list(permutations(range(5)))),
        (lambda draw: tuple(draw.sample(range(4), 2)), list(permutations(range(4), 2))),  # by swapping
        (lambda draw: tuple(draw.sample(range(10), 2)), list(permutations(range(10), 2))),  # by redrawing
    ],
)
def test_every_outcome_is_equally_likely(choose: Callable[[Draw], object], outcomes: list[object]) -> None:
    """Chi-square with len(outcomes) - 1 degrees of freedom at significance 0.001."""
    draw = seeded(20)
    counts = Counter(choose(draw) for _ in range(100 * len(outcomes)))

    assert chi_square_p_value(counts, uniform_law(outcomes)) > SIGNIFICANCE


def test_exponential_durations_follow_their_law() -> None:
    """Kolmogorov-Smirnov with 5,000 samples at significance 0.001."""
    draw = seeded(3)

    assert ks_p_value([draw.exponential(0.25) for _ in range(5000)], exponential_law(0.25)) > SIGNIFICANCE
    assert draw.exponential(0.0) == 0.0


@pytest.mark.parametrize(
    ("mean", "deviation"), [(0.1, 0.001), (0.1, 0.05), (0.1, 0.1), (0.01, 0.1), (0.0, 1.0), (-0.3, 0.1), (-3.0, 0.1)]
)
def test_truncated_normal_values_follow_their_law(mean: float, deviation: float) -> None:
    """Kolmogorov-Smirnov with 5,000 samples at significance 0.001."""
    draw = seeded(4)
    values = [draw.truncated_normal(mean, deviation) for _ in range(5000)]

    assert ks_p_value(values, truncated_normal_law(mean, deviation)) > SIGNIFICANCE


def test_both_tails_of_the_truncated_normal_reach_equally_far() -> None:
    highest = scripted(0).truncated_normal(2.0, 0.1)
    lowest = scripted(HIGHEST_WORD).truncated_normal(2.0, 0.1)

    assert highest == pytest.approx(2.0 - 0.1 * inverse_normal(2.0**-53), rel=1e-15)
    assert lowest == pytest.approx(2.0 + 0.1 * inverse_normal(2.0**-53), rel=1e-14)


def test_without_deviation_the_truncated_normal_is_its_mean() -> None:
    assert seeded(1).truncated_normal(0.3, 0.0) == 0.3
    with pytest.raises(LocalProtocolError, match="at least zero"):
        seeded(1).truncated_normal(-0.3, 0.0)


@given(
    word=st.one_of(st.integers(0, HIGHEST_WORD), st.sampled_from([0, HIGHEST_WORD])),
    mean=st.floats(-20.0, 1e6),
    deviation=st.floats(1.0, 1e6),
)
def test_truncated_normal_values_are_finite_and_never_negative(word: int, mean: float, deviation: float) -> None:
    value = scripted(word).truncated_normal(mean, deviation)

    assert 0.0 <= value < math.inf


def exact_pi() -> Decimal:
    def arctangent_of_inverse(n: int) -> Decimal:
        term = total = Decimal(1) / n
        for k in range(3, 500, 2):
            term = -term / (n * n)
            total += term / k
        return total

    return 4 * (4 * arctangent_of_inverse(5) - arctangent_of_inverse(239))


def exact_normal_below(z: Decimal) -> Decimal:
    """The normal distribution function in 200 digits, by its power series."""
    term = total = z
    k = 0
    while abs(term) > Decimal(10) ** -190:
        k += 1
        term = -term * z * z / (2 * k)
        total += term / (2 * k + 1)
    return Decimal("0.5") + total / (2 * exact_pi()).sqrt()


@pytest.mark.parametrize(
    "probability",
    [1e-60, 1e-30, 1e-16, 2.0**-53, 1e-9, 1e-4, 0.02425, 0.1, 0.2499, 0.2501, 0.4, 0.49999, 0.5 - 1e-12, 0.6, 0.999],
)
def test_normal_quantiles_are_accurate_to_2e_15(probability: float) -> None:
    """The exact distribution function, slightly to the left and to the right, must enclose the probability."""
    z = inverse_normal(probability)
    with localcontext() as context:
        context.prec = 200
        margin = abs(Decimal(z)) * Decimal("2e-15")
        assert exact_normal_below(Decimal(z) - margin) < Decimal(probability) < exact_normal_below(Decimal(z) + margin)


def test_normal_quantiles_reach_from_the_middle_to_the_smallest_float() -> None:
    assert inverse_normal(0.5) == 0.0
    assert inverse_normal(4.605353009e-308) == pytest.approx(-37.5, rel=1e-9)
    assert inverse_normal(5e-324) == pytest.approx(-38.47, abs=0.01)


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.1, 1.1, math.nan])
def test_there_is_no_quantile_outside_the_open_interval(probability: float) -> None:
    with pytest.raises(LocalProtocolError, match="quantile"):
        inverse_normal(probability)
