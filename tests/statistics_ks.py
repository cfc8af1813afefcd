"""Kolmogorov and Smirnov's test: do these samples follow this continuous law?"""

import math
from collections.abc import Callable, Sequence


def ks_p_value(samples: Sequence[float], distribution: Callable[[float], float]) -> float:
    """Return the probability that samples of this law stray from it at least as far as these do.

    Uses the limiting law with Stephens' correction, which is good to a few per cent of p from ten samples on.
    """
    n = len(samples)
    distance = ks_distance(samples, distribution)
    x = (math.sqrt(n) + 0.12 + 0.11 / math.sqrt(n)) * distance
    if x < 0.2:
        return 1.0
    terms = (math.exp(-2.0 * (k * x) ** 2) * (-1.0 if k % 2 == 0 else 1.0) for k in range(1, 101))
    return min(1.0, max(0.0, 2.0 * sum(terms)))


def ks_distance(samples: Sequence[float], distribution: Callable[[float], float]) -> float:
    """Return the largest distance between the samples' empirical distribution function and the law's."""
    n = len(samples)
    expected = [distribution(sample) for sample in sorted(samples)]
    return max(max((i + 1) / n - f, f - i / n) for i, f in enumerate(expected))


def exponential_law(mean: float) -> Callable[[float], float]:
    """Return the distribution function of the exponential law with this mean."""
    return lambda x: -math.expm1(-x / mean)


def truncated_normal_law(mean: float, deviation: float) -> Callable[[float], float]:
    """Return the distribution function of a normal law conditioned on being at least zero."""

    def upper(x: float) -> float:
        return 0.5 * math.erfc((x - mean) / (deviation * math.sqrt(2.0)))

    return lambda x: (upper(0.0) - upper(x)) / upper(0.0)
