"""Vectors to fragments' bytes, and bytes of strangers to fragments.

Invariant: a vector goes out whole ranges at a time, each in one message of at most the capacity; and whatever bytes
come in, `decode` returns a fragment of the grid with finite values within the bound, or raises FragmentError.
"""

from collections.abc import Iterable
from copy import copy

import numpy as np

from unlinkabledfl.errors import ConfigError, FragmentError, LocalProtocolError
from unlinkabledfl.fragments.arrays import Vector
from unlinkabledfl.fragments.bodies import decode_body
from unlinkabledfl.fragments.codecs import Codec, statistics_codec
from unlinkabledfl.fragments.framing import (
    HEADER_BYTES,
    MAX_ROUND,
    ContentId,
    Fragment,
    Header,
    content_id,
    parse_header,
)
from unlinkabledfl.fragments.grid import Grid
from unlinkabledfl.fragments.lossless import Lossless

DEFAULT_BOUND = 1e4
"""No value of a trained model is near it; it keeps one fragment from carrying a mean beyond any use."""


class FragmentEncoder:
    """Writes fragments of one grid, for packets of one capacity."""

    __slots__ = ("_bound", "_capacity_bytes", "_codecs", "_grid")

    def __init__(self, grid: Grid, codec: Codec, *, capacity_bytes: int, bound: float = DEFAULT_BOUND) -> None:
        self._grid = grid
        # One for each range: what a codec learns from a slice helps with the same range of the next round.
        self._codecs = [
            copy(statistics_codec(codec) if grid.is_statistics(index) else codec) for index in range(len(grid))
        ]
        self._capacity_bytes = capacity_bytes
        self._bound = bound

    def encode(
        self, vector: Vector, *, round_number: int, rng: np.random.Generator, ranges: Iterable[int] | None = None
    ) -> list[bytes]:
        """Return the messages for these ranges, by default all."""
        if vector.shape != (self._grid.values,):
            raise ConfigError(key="model vector", got=vector.shape, takes=f"{self._grid.values} values")
        chosen = range(len(self._grid)) if ranges is None else ranges
        return [self.encode_range(vector, index, round_number=round_number, rng=rng) for index in chosen]

    def encode_range(self, vector: Vector, index: int, *, round_number: int, rng: np.random.Generator) -> bytes:
        """Return the message for range `index` of the vector."""
        return self.encode_values(vector[self._grid.ranges[index].slice], index, round_number=round_number, rng=rng)

    def encode_values(self, values: Vector, index: int, *, round_number: int, rng: np.random.Generator) -> bytes:
        """Return the message that says that these are the values of range `index`."""
        if not 0 <= round_number <= MAX_ROUND:
            raise LocalProtocolError(f"round {round_number}")
        place = self._grid.ranges[index]
        # Written so that NaN fails it.
        if not (values.max() <= self._bound and values.min() >= -self._bound):
            raise ConfigError(
                key=f"model values {place.start} to {place.stop}",
                got="a value that is not finite, or too large",
                takes=f"finite values within {self._bound:g}",
                hint="training has diverged: a smaller learning rate may help",
            )
        budget_bytes = self._capacity_bytes - HEADER_BYTES
        form, body = self._codecs[index].encode(values, budget_bytes=budget_bytes, rng=rng)
        data = Header(codec=form, round=round_number, start=place.start, stop=place.stop).to_bytes() + body
        if len(data) > self._capacity_bytes:
            raise LocalProtocolError(
                f"{len(data)} bytes for {len(place)} values; a packet holds {self._capacity_bytes}"
            )
        return data


class FragmentDecoder:
    """Reads fragments of one grid."""

    __slots__ = ("_bound", "_capacity_bytes", "_grid", "_lossless")

    def __init__(self, grid: Grid, *, capacity_bytes: int, bound: float = DEFAULT_BOUND) -> None:
        if not 0.0 < bound < float(np.finfo(np.float32).max):
            raise ConfigError(key="fragments.bound", got=bound, takes="a positive finite number")
        self._grid = grid
        self._capacity_bytes = capacity_bytes
        self._bound = bound
        self._lossless = Lossless()

    @property
    def grid(self) -> Grid:
        """Where every accepted fragment lies."""
        return self._grid

    def inspect(self, data: bytes) -> tuple[Header, int]:
        """Return the header and the range's number, reading nothing else; FragmentError if they are not ours."""
        if len(data) > self._capacity_bytes:
            raise FragmentError("too_long", f"{len(data)} bytes, a packet holds {self._capacity_bytes}")
        header = parse_header(data)
        index = self._grid.index_of(header.start, header.stop)
        if index is None:
            raise FragmentError("off_grid", f"range {header.start} to {header.stop}")
        return header, index

    def values(self, data: bytes, header: Header) -> Vector:
        """Return the values behind an inspected header, checked."""
        body = memoryview(data)[HEADER_BYTES:]
        # A lie in the numbers may overflow; the comparison below finds what came of it.
        with np.errstate(over="ignore", invalid="ignore"):
            values = decode_body(header.codec, body, header.stop - header.start, self._lossless)
        if not (values.max() <= self._bound and values.min() >= -self._bound):
            finite = bool(np.isfinite(values).all())
            raise FragmentError("out_of_bound" if finite else "not_finite", f"bound {self._bound:g}")
        return values

    def decode(self, data: bytes) -> Fragment:
        """Read and check everything."""
        header, _ = self.inspect(data)
        return Fragment(
            round=header.round,
            start=header.start,
            stop=header.stop,
            values=self.values(data, header),
            content_id=self.identify(data),
        )

    @staticmethod
    def identify(data: bytes) -> ContentId:
        """Return the name of these bytes, for telling duplicates."""
        return content_id(data)
