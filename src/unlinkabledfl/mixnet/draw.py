"""Every random choice of the mix, drawn from injected entropy.

A `Draw` turns a stream of random bytes into the few kinds of choice that the mix makes. The stream is asked in blocks
and consumed one 64-bit word at a time, so a choice costs a fraction of a microsecond, and the same stream gives the
same choices everywhere.

Choices are exact, not approximate: integers are uniform by rejection, permutations and samples inherit that, and the
truncated normal goes through an inverse distribution function that is accurate in both tails. A bias that a relay
could measure would be a side channel.

A `Draw` holds unspent entropy: build it after a fork, never before, or parent and child make the same choices.
"""

import builtins
import math
import struct
from collections.abc import Sequence
from typing import Any, TypeVar

from unlinkabledfl.errors import LocalProtocolError
from unlinkabledfl.sphinx import Entropy

__all__ = ["Draw", "Entropy", "inverse_normal"]

T = TypeVar("T")

_BLOCK = struct.Struct("<32Q")
_WORD_RANGE = 1 << 64


class Draw:
    """Uniform, exponential and truncated normal choices from one entropy source."""

    __slots__ = ("_entropy", "_next_word", "_words")

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy
        self._words: list[int] = []
        self._next_word = self._words.pop

    def uniform(self) -> float:
        """Return a multiple of 2**-53 in [0, 1)."""
        try:
            word = self._next_word()
        except IndexError:
            word = self._refill()
        return (word >> 11) * 2.0**-53

    def below(self, n: int) -> int:
        """Return an integer in [0, n), every one equally likely."""
        if not 0 < n <= _WORD_RANGE:
            return self._below_large(n)
        while True:
            try:
                word = self._next_word()
            except IndexError:
                word = self._refill()
            remainder = word % n
            # The last, incomplete run of n values under 2**64 would favour small remainders: draw again.
            if word - remainder <= _WORD_RANGE - n:
                return remainder

    def _below_large(self, n: int) -> int:
        if n <= 0:
            raise LocalProtocolError(f"cannot draw an integer below {n}")
        bits = (n - 1).bit_length()
        count = (bits + 7) // 8
        while True:
            value = int.from_bytes(self._entropy(count), "little") >> (8 * count - bits)
            if value < n:
                return value

    def choice(self, items: Sequence[T]) -> T:
        """Return one of the items, every position equally likely."""
        return items[self.below(len(items))]

    def shuffle(self, items: list[Any]) -> None:
        """Permute the list in place, every permutation equally likely (Fisher-Yates)."""
        below = self.below
        for last in range(len(items) - 1, 0, -1):
            other = below(last + 1)
            items[last], items[other] = items[other], items[last]

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """Return `count` items from distinct positions, every ordered selection equally likely."""
        size = len(items)
        if not 0 <= count <= size:
            raise LocalProtocolError(f"cannot sample {count} of {size} items")
        if 3 * count >= size:
            pool = list(items)
            for start in range(count):
                other = start + self.below(size - start)
                pool[start], pool[other] = pool[other], pool[start]
            return pool[:count]
        # Few of many: redrawing a taken position is cheaper than copying the sequence.
        taken: dict[int, None] = {}
        while len(taken) < count:
            taken[self.below(size)] = None
        return [items[position] for position in taken]

    def exponential(self, mean: float) -> float:
        """Return a duration of the exponential law with this mean; a mean of zero gives zero."""
        return -mean * math.log1p(-self.uniform())

    def truncated_normal(self, mean: float, deviation: float) -> float:
        """Return a value of the normal law (mean, deviation) conditioned on being at least zero.

        A quantile is drawn and inverted; negative values are never clipped or redrawn, so neither an atom at zero nor
        a varying amount of work marks them. Each half of the law is inverted from its own tail, where the quantile is
        a small number and keeps all its digits.
        """
        if deviation == 0.0:
            if mean < 0.0:
                raise LocalProtocolError(f"no value of a normal law at {mean} without deviation is at least zero")
            return mean
        try:
            word = self._next_word()
        except IndexError:
            word = self._refill()
        # An odd multiple of 2**-53: never 0 nor 1, and its complement is exact.
        quantile = ((word >> 12) * 2 + 1) * 2.0**-53
        kept = _normal_below(mean / deviation)
        upper = quantile * kept
        if upper <= 0.5:
            value = mean - deviation * inverse_normal(upper)
        else:
            lower = (1.0 - quantile) * kept + _normal_below(-mean / deviation)
            value = mean + deviation * inverse_normal(lower)
        return value if value > 0.0 else 0.0

    def bytes(self, n: int) -> builtins.bytes:
        """Return n random bytes, straight from the source: nothing that serves as a key stays in this buffer."""
        return self._entropy(n)

    def _refill(self) -> int:
        self._words.extend(_BLOCK.unpack(self._entropy(_BLOCK.size)))
        return self._words.pop()


_SQRT_HALF = math.sqrt(0.5)
_SQRT_TWO_PI = math.sqrt(2.0 * math.pi)


def _normal_below(z: float) -> float:
    """Return the probability that a standard normal value is below z, with full relative accuracy for z < 0."""
    return 0.5 * math.erfc(-z * _SQRT_HALF)


def inverse_normal(probability: float) -> float:
    """Return the z under which a standard normal value lies with this probability, to about 1e-15 relative.

    A rational first guess (Abramowitz and Stegun 26.2.23, off by at most 4.5e-4) is corrected by the Taylor series of
    the inverse in the residual. The series has five terms, so one pass nearly always suffices; only far in the tail,
    where a residual weighs more, and beside the middle, where it exceeds the result, does another follow.
    """
    if probability > 0.5:
        return -inverse_normal(1.0 - probability)
    if not probability > 0.0:
        raise LocalProtocolError(f"the normal law has no quantile at {probability}")
    t = math.sqrt(-2.0 * math.log(probability))
    z = (2.515517 + t * (0.802853 + t * 0.010328)) / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t
    while True:
        if probability > 0.25:
            # Near the middle the difference to one half carries the digits.
            residual = (probability - 0.5) - 0.5 * math.erf(z * _SQRT_HALF)
        else:
            residual = probability - 0.5 * math.erfc(-z * _SQRT_HALF)
        zz = z * z
        # Divided by the density, in two steps so that the smallest probabilities do not overflow.
        half = math.exp(0.25 * zz)
        r = residual * half * half * _SQRT_TWO_PI
        z += r * (
            1.0
            + r * (z / 2.0 + r * ((2.0 * zz + 1.0) / 6.0 + r * (z * (6.0 * zz + 7.0) / 24.0
            + r * (24.0 * zz * zz + 46.0 * zz + 7.0) / 120.0)))
        )  # fmt: skip
        if abs(r * z) < 5e-3 and abs(r) <= abs(z):
            return z
