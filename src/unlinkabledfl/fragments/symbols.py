"""Values to symbols of one byte, and back. Both quantizers are unbiased: over the noise, the mean is the value.

| | symbol k | value | error |
|---|---|---|---|
| stochastic rounding | ⌊x/step + u⌋, u uniform in [0, 1) | k·step | variance f(1−f)·step² ≤ step²/4, f = frac(x/step) |
| subtracted dither | round(x/step + w) | (k − w)·step | uniform in ±step/2, whatever x is: variance step²/12 |

Averaged over values, the second has half the variance of the first at the same symbols, so at the same size: half a
bit a value for nothing. Its noise w must be known to the receiver. It is a fixed public table, read from a random
place and shifted by a random phase; the six bytes of place and phase travel, instead of any noise. The phase alone
makes each value's error exactly uniform; the table makes errors of different values unrelated.

A value too large for a symbol (|k| > 127) travels as it is, in float32, and symbol 128 marks its place.
"""

from dataclasses import dataclass
from functools import cache
from hashlib import shake_256

import numpy as np

from unlinkabledfl.fragments.arrays import Symbols, Vector

ESCAPE = 128
LARGEST = 127
_TABLE_VALUES = 2**16  # as many places as an offset of two bytes names
SMALLEST_STEP = 1e-30
"""Keeps 1/step and every product finite; weights this small are zeros."""
# Adding 1.5·2²³ to a float32 below 2²² rounds it to the nearest integer and leaves that in the low bits.
_ROUNDER = np.float32(12_582_912.0)
_TABLE_LABEL = b"unlinkabledfl/dither/v1"


@dataclass(frozen=True, slots=True)
class Dither:
    """Where in the public table the noise begins, and its shift in units of 2⁻³² steps."""

    offset: int
    phase: int

    @property
    def shift(self) -> np.float32:
        """What is added to the table's values; centres the noise around zero."""
        return np.float32(self.phase / 2**32 - 1.0)

    def noise(self, count: int) -> Vector:
        """Return the table's values for a slice, without the shift: a view."""
        return _table()[self.offset : self.offset + count]


@cache
def _table() -> Vector:
    """Return 65,536 values in [0, 1), derived from a label, twice in a row so that every slice is contiguous."""
    words = np.frombuffer(shake_256(_TABLE_LABEL).digest(2 * _TABLE_VALUES), dtype="<u2")
    table = np.tile(words.astype(np.float32) / np.float32(2**16), 2)
    table.flags.writeable = False
    return table


def draw_dither(rng: np.random.Generator) -> Dither:
    """Draw place and phase."""
    seed = int.from_bytes(rng.bytes(6))
    return Dither(seed >> 32, seed & 0xFFFF_FFFF)


def quantize_dithered(values: Vector, *, largest: float, step: float, dither: Dither) -> tuple[Symbols, Vector]:
    """Return symbols and escaped values; `largest` is the greatest magnitude among the values."""
    scaled = values * np.float32(1.0 / step)
    scaled += dither.noise(values.size)
    scaled += dither.shift
    escaped = None
    if largest / step + 1.5 > LARGEST:
        escaped = np.abs(scaled) > LARGEST
        scaled[escaped] = 0.0
    scaled += _ROUNDER
    symbols = scaled.view(np.int32).astype(np.uint8)
    if escaped is None:
        return symbols, values[:0]
    symbols[escaped] = ESCAPE
    return symbols, values[escaped]


def restore_dithered(symbols: Symbols, escapes: Vector, *, step: float, dither: Dither) -> Vector:
    """Return the values; there are as many escapes as symbols that call for one."""
    values = symbols.view(np.int8).astype(np.float32)
    values -= dither.noise(symbols.size)
    values -= dither.shift
    values *= np.float32(step)
    if escapes.size:
        values[symbols == ESCAPE] = escapes
    return values


def quantize_stochastic(values: Vector, *, step: float, levels: int, rng: np.random.Generator) -> Symbols:
    """Return symbols from -levels to levels; no value may exceed levels·step but by rounding."""
    scaled = values * np.float32(1.0 / step)
    scaled += rng.random(values.size, dtype=np.float32)
    np.floor(scaled, out=scaled)
    np.clip(scaled, -levels, levels, out=scaled)
    return scaled.astype(np.int8).view(np.uint8)


def restore_stepped(symbols: Symbols, escapes: Vector, *, step: float) -> Vector:
    """Return the values of stochastic rounding."""
    values = symbols.view(np.int8).astype(np.float32)
    values *= np.float32(step)
    if escapes.size:
        values[symbols == ESCAPE] = escapes
    return values
