"""The difference of two means with its confidence interval: Student's, paired or after Welch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import Final

__all__ = ["Difference", "paired_difference", "t_quantile", "welch_difference"]

_STEPS: Final = 100
_BISECTIONS: Final = 40
_VALUES_MIN: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How much larger the second mean is. The interval is None where there are too few values to have one."""

    mean: float
    low: float | None
    high: float | None


def paired_difference(one: Sequence[float], other: Sequence[float], *, confidence: float = 0.95) -> Difference:
    """Compare values of the same things, in the same order: what differs between the things drops out."""
    differences = [after - before for before, after in zip(one, other, strict=True)]
    if len(differences) < _VALUES_MIN:
        return Difference(mean=fmean(differences), low=None, high=None)
    error = math.sqrt(variance(differences) / len(differences))
    return _around(fmean(differences), error, len(differences) - 1, confidence)


def welch_difference(one: Sequence[float], other: Sequence[float], *, confidence: float = 0.95) -> Difference:
    """Compare values of different things, whose spreads may differ."""
    mean = fmean(other) - fmean(one)
    if min(len(one), len(other)) < _VALUES_MIN:
        return Difference(mean=mean, low=None, high=None)
    first, second = variance(one) / len(one), variance(other) / len(other)
    if first + second == 0.0:
        return Difference(mean=mean, low=mean, high=mean)
    freedom = (first + second) ** 2 / (first**2 / (len(one) - 1) + second**2 / (len(other) - 1))
    return _around(mean, math.sqrt(first + second), freedom, confidence)


def t_quantile(share: float, freedom: float) -> float:
    """Return where Student's distribution has this share below, for a share above a half."""
    low, high = 0.0, 1.0
    while _below(high, freedom) < share:
        high *= 2.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if _below(middle, freedom) < share else (low, middle)
    return (low + high) / 2.0


def _below(value: float, freedom: float) -> float:
    # With x = sqrt(ν)·tan(θ) the density becomes cos(θ)^(ν-1): smooth, on a finite interval, for Simpson's rule.
    end = math.atan(value / math.sqrt(freedom))
    width = end / _STEPS
    total = math.fsum(
        (1.0 if step in {0, _STEPS} else 4.0 if step % 2 else 2.0) * math.pow(math.cos(step * width), freedom - 1.0)
        for step in range(_STEPS + 1)
    )
    constant = math.exp(math.lgamma((freedom + 1.0) / 2.0) - math.lgamma(freedom / 2.0)) / math.sqrt(math.pi)
    return 0.5 + constant * total * width / 3.0


def _around(mean: float, error: float, freedom: float, confidence: float) -> Difference:
    reach = error * t_quantile(0.5 + confidence / 2.0, freedom)
    return Difference(mean=mean, low=mean - reach, high=mean + reach)
