"""Pearson's test: do these counts follow this discrete law?"""

import math
from collections.abc import Collection, Hashable, Mapping
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def chi_square_p_value(counts: Mapping[K, int], law: Mapping[K, float]) -> float:
    """Return the probability that counts of this law stray from it at least as far as these do.

    There are len(law) - 1 degrees of freedom. The law is complete: an outcome outside it has probability 0, and so has
    a sample that contains one.
    """
    if any(outcome not in law for outcome in counts):
        return 0.0
    total = sum(counts.values())
    if min(law.values()) * total < 5.0:
        raise ValueError("Pearson's test needs at least five expected samples of every outcome")
    statistic = sum((counts.get(key, 0) - total * p) ** 2 / (total * p) for key, p in law.items())
    return chi_square_survival(statistic, len(law) - 1)


def uniform_law(outcomes: Collection[K]) -> dict[K, float]:
    """Return the law under which each of these outcomes is equally likely."""
    law = dict.fromkeys(outcomes, 1.0 / len(outcomes))
    assert len(law) == len(outcomes), "an outcome is listed twice"
    return law


def chi_square_survival(statistic: float, degrees: int) -> float:
    """Return the upper tail of the chi-square law, the incomplete gamma function Q(degrees/2, statistic/2)."""
    a, x = degrees / 2.0, statistic / 2.0
    if x <= 0.0:
        return 1.0
    scale = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1.0:
        # The series of the lower tail.
        term = total = 1.0 / a
        n = a
        while term > total * 1e-16:
            n += 1.0
            term *= x / n
            total += term
        return max(0.0, 1.0 - scale * total)
    # The continued fraction of the upper tail, evaluated forwards (Lentz).
    b = x + 1.0 - a
    c = 1e300
    d = 1.0 / b
    fraction = d
    for i in range(1, 100_000):
        factor = -i * (i - a)
        b += 2.0
        d = 1.0 / (factor * d + b)
        c = b + factor / c
        fraction *= d * c
        if abs(d * c - 1.0) < 1e-15:
            break
    return scale * fraction
