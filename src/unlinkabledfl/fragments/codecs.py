"""Codecs by name: how precisely values travel, and how many of them one packet is planned for.

| name | form | precision |
|---|---|---|
| `f32` | plain | exact |
| `q4` … `q8` | stepped | stochastic rounding to 2^bits − 1 levels over the slice's range, then lossless; the paper's |
| `fit` | dithered | the finest step with which the slice fills its packet |

What is quantized is the model state itself. A difference to something known would be cheaper, but peers without a
server share no reference: each has aggregated other fragments.

Normalization layers (`layout`) go in relative form whatever the codec, except under `f32`.

Invariant: a body never exceeds the bytes it is given: where data compress worse than planned, precision gives way.
"""

from itertools import count as count_from
from math import sqrt
from typing import Final, Protocol

import numpy as np

from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.fragments import bodies
from unlinkabledfl.fragments.arrays import Vector
from unlinkabledfl.fragments.framing import HEADER_BYTES
from unlinkabledfl.fragments.grid import MAX_SLICE_VALUES, Grid, even_slice
from unlinkabledfl.fragments.layout import StateLayout
from unlinkabledfl.fragments.lossless import FRAME_OVERHEAD, Lossless
from unlinkabledfl.fragments.symbols import LARGEST, SMALLEST_STEP, draw_dither, quantize_dithered, quantize_stochastic

Body = tuple[int, bytes]
"""The number of a form, and the bytes."""
FIT_BITS = 4.25
"""What `fit` plans for; whole packets are filled, so small models get more: LeNet-5 5.07 bits a value."""
_FIT_FILLED: Final = 0.975
_FIT_GOAL: Final = 0.993
_FIT_ATTEMPTS: Final = 8
_COARSEST: Final = 4.0  # a step of sixteen deviations would send noise
_WIDEST: Final = 8.0
_LEAST_VALUES: Final = 128
_HUFFMAN_TABLE: Final = 136  # what a frame may add for describing its code
_STATISTICS_BITS: Final = 12.0
_GAUSSIAN_BITS: Final = 2.05  # entropy of a normal variable of deviation 1 in steps of 1: log2(2πe)/2


class Codec(Protocol):
    """One way to write slices. It holds nothing about any slice but what makes the next one faster."""

    name: str

    def slice_values(self, budget_bytes: int) -> int:
        """Return how many values to plan for a body of that size."""
        ...

    def encode(self, values: Vector, *, budget_bytes: int, rng: np.random.Generator) -> Body:
        """Write the finite values in at most that many bytes."""
        ...


class Plain:
    """`f32`."""

    __slots__ = ("name",)

    def __init__(self) -> None:
        self.name = "f32"

    def slice_values(self, budget_bytes: int) -> int:
        return budget_bytes // 4

    def encode(self, values: Vector, *, budget_bytes: int, rng: np.random.Generator) -> Body:
        _ = budget_bytes, rng
        return bodies.PLAIN, bodies.encode_plain(values)


class Stepped:
    """`q4` to `q8`."""

    __slots__ = ("_bits", "_lossless", "name")

    def __init__(self, bits: int) -> None:
        self.name = f"q{bits}"
        self._lossless = Lossless()
        self._bits = bits

    def slice_values(self, budget_bytes: int) -> int:
        # Eight bits may be stored as they are; fewer are sure to be coded, with a table.
        spare = bodies.STEPPED_BYTES + FRAME_OVERHEAD + (0 if self._bits == 8 else _HUFFMAN_TABLE)  # noqa: PLR2004
        return int((budget_bytes - spare) * 8 // self._bits)

    def encode(self, values: Vector, *, budget_bytes: int, rng: np.random.Generator) -> Body:
        levels = 2 ** (self._bits - 1) - 1
        step = max(float(max(values.max(), -values.min())) / levels, SMALLEST_STEP)
        while True:
            exact = float(np.float32(step))
            symbols = quantize_stochastic(values, step=exact, levels=levels, rng=rng)
            body = bodies.encode_stepped(symbols, self._lossless, step=exact)
            if len(body) <= budget_bytes:
                return bodies.STEPPED, body
            step *= 1.25


class Fit:
    """`fit`: search for the step whose symbols fill the budget, beginning where the last slice ended.

    Bits a value fall by one when the step doubles, very nearly; so a size too large or too small tells the next step,
    and two or three attempts suffice, one where the slice resembles the one before. An attempt is judged by its size
    alone, which no single value decides: so choosing among attempts leaves each value's error as good as unbiased.
    """

    __slots__ = ("_bits", "_lossless", "_offset", "name")

    def __init__(self, bits: float = FIT_BITS) -> None:
        if not 3.0 <= bits <= 8.0:
            raise ConfigError(key="fragments.bits", got=bits, takes="3 to 8 bits a value")
        self.name = "fit"
        self._lossless = Lossless()
        self._bits = bits
        self._offset = _GAUSSIAN_BITS
        """Bits that the last slice took a value, in steps of its deviation."""

    def slice_values(self, budget_bytes: int) -> int:
        spare = bodies.DITHERED_BYTES + FRAME_OVERHEAD
        return min(int((budget_bytes - spare) * 8 / self._bits), MAX_SLICE_VALUES)

    def encode(self, values: Vector, *, budget_bytes: int, rng: np.random.Generator) -> Body:
        count = values.size
        if 4 * count <= budget_bytes:
            return bodies.PLAIN, bodies.encode_plain(values)
        largest = float(max(values.max(), -values.min()))
        if count + bodies.DITHERED_BYTES + FRAME_OVERHEAD <= budget_bytes:
            return bodies.DITHERED, self._dithered(values, largest, largest / (LARGEST - 2), rng)
        bits = budget_bytes * 8 / count
        deviation = max(sqrt(float(np.dot(values, values)) / count), SMALLEST_STEP)
        exponent = self._offset - bits
        best = b""
        for attempt in count_from(1):
            body = self._dithered(values, largest, deviation * 2.0**exponent, rng)
            if len(best) < len(body) <= budget_bytes:
                best = body
                self._offset = min(max(exponent + bits, -_WIDEST), _WIDEST)
            if len(best) >= _FIT_FILLED * budget_bytes or (best and attempt >= _FIT_ATTEMPTS):
                break
            if exponent > _COARSEST:
                raise LocalProtocolError(f"{count} values were planned for {budget_bytes} bytes")
            # Far from the goal the rule of one bit a doubling may mislead: escapes cost more than symbols.
            missing = (len(body) - _FIT_GOAL * budget_bytes) * 8 / count
            exponent += min(max(missing, -2.0), 2.0)
        return bodies.DITHERED, best

    def _dithered(self, values: Vector, largest: float, step: float, rng: np.random.Generator) -> bytes:
        """Return the values in form 4, with this step as float32 holds it."""
        exact = float(np.float32(max(step, SMALLEST_STEP)))
        dither = draw_dither(rng)
        symbols, escapes = quantize_dithered(values, largest=largest, step=exact, dither=dither)
        return bodies.encode_dithered(symbols, escapes, self._lossless, step=exact, dither=dither)


class Relative:
    """Normalization layers, under every codec but `f32`: relative precision 2^-7, or less where that does not fit."""

    __slots__ = ("_lossless", "name")

    def __init__(self) -> None:
        self.name = "relative"
        self._lossless = Lossless()

    def slice_values(self, budget_bytes: int) -> int:
        return int((budget_bytes - 2 * (FRAME_OVERHEAD + _HUFFMAN_TABLE)) * 8 / _STATISTICS_BITS)

    def encode(self, values: Vector, *, budget_bytes: int, rng: np.random.Generator) -> Body:
        for mantissa_bits in range(7, -1, -1):
            body = bodies.encode_relative(values, self._lossless, mantissa_bits=mantissa_bits, rng=rng)
            if len(body) <= budget_bytes:
                return bodies.RELATIVE, body
        raise LocalProtocolError(f"{values.size} values were planned for {budget_bytes} bytes")


NAMES: Final = ("f32", "q4", "q5", "q6", "q7", "q8", "fit")


def codec_by_name(name: str, *, bits: float = FIT_BITS) -> Codec:
    """Return a codec for parameters; `bits` is what `fit` plans for."""
    match name:
        case "f32":
            return Plain()
        case "fit":
            return Fit(bits)
        case "q4" | "q5" | "q6" | "q7" | "q8":
            return Stepped(int(name[1:]))
        case _:
            raise ConfigError(key="fragments.codec", got=name, takes=", ".join(NAMES))


def statistics_codec(codec: Codec) -> Codec:
    """Return the codec for normalization layers beside that one."""
    return codec if isinstance(codec, Plain) else Relative()


def plan_grid(layout: StateLayout, codec: Codec, *, capacity_bytes: int) -> Grid:
    """Return the grid with the fewest fragments that fit packets of that capacity, all about equally long."""
    budget_bytes = capacity_bytes - HEADER_BYTES
    most = codec.slice_values(budget_bytes), statistics_codec(codec).slice_values(budget_bytes)
    if min(most) < _LEAST_VALUES:
        takes = "a packet that holds a few hundred values"
        raise ConfigError(key="packet.body_bytes", got=f"{capacity_bytes} bytes for data", takes=takes)
    return Grid(
        parameters=layout.parameters,
        slice_values=even_slice(layout.parameters, most[0]),
        statistics=layout.statistics,
        statistics_slice_values=even_slice(layout.statistics, most[1]),
    )
