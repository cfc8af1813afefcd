import math

import pytest

from tests.statistics_chi_square import chi_square_p_value, chi_square_survival, uniform_law


# Critical values as every table of the chi-square law prints them.
@pytest.mark.parametrize(
    ("statistic", "degrees", "probability"),
    [
        (3.841, 1, 0.05),
        (6.635, 1, 0.01),
        (18.307, 10, 0.05),
        (29.588, 10, 0.001),
        (124.342, 100, 0.05),
        (77.929, 100, 0.95),
    ],
)
def test_the_tail_agrees_with_printed_tables(statistic: float, degrees: int, probability: float) -> None:
    assert chi_square_survival(statistic, degrees) == pytest.approx(probability, rel=2e-3)


@pytest.mark.parametrize("statistic", [0.1, 1.0, 4.0, 30.0, 200.0])
def test_with_two_degrees_of_freedom_the_tail_is_exponential(statistic: float) -> None:
    assert chi_square_survival(statistic, 2) == pytest.approx(math.exp(-statistic / 2), rel=1e-12)


def test_counts_that_follow_the_law_pass_and_others_do_not() -> None:
    law = uniform_law(["a", "b", "c", "d"])

    assert chi_square_p_value({"a": 250, "b": 250, "c": 250, "d": 250}, law) == 1.0
    assert chi_square_p_value({"a": 330, "b": 230, "c": 220, "d": 220}, law) < 1e-6


def test_an_outcome_outside_the_law_fails_whatever_the_rest() -> None:
    assert chi_square_p_value({"a": 50, "b": 50, "e": 1}, uniform_law(["a", "b"])) == 0.0


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="five expected samples"):
        chi_square_p_value({"a": 3}, uniform_law(["a", "b"]))
