"""The public grid: how every model state of a federation is cut into index ranges.

    [ parameters, in slices of slice_values ............ | statistics, in slices of statistics_slice_values ]

Every peer derives the same grid from the same settings, so a fragment that is off the grid is refused, and a range says
nothing about who sent it. Statistics stand apart because they need relative precision (see `layout`).

Invariant: the ranges are disjoint, in order, none is empty, and together they cover the vector.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from unlinkabledfl.errors import ConfigError

MAX_SLICE_VALUES = 65_535
"""No slice is longer: it bounds what one fragment can make its receiver decompress."""
_MAX_VALUES = 2**32 - 1  # indices travel in 32 bits


@dataclass(frozen=True, slots=True)
class Range:
    """The indices from `start` up to, not including, `stop`."""

    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def slice(self) -> slice:
        """For indexing a vector."""
        return slice(self.start, self.stop)


@dataclass(frozen=True, slots=True)
class Grid:
    """The ranges of a vector with that many parameters, followed by that many statistics."""

    parameters: int
    slice_values: int
    statistics: int = 0
    statistics_slice_values: int = 1
    ranges: tuple[Range, ...] = field(init=False, repr=False, compare=False)
    _index: dict[tuple[int, int], int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 1 <= self.values <= _MAX_VALUES or min(self.parameters, self.statistics) < 0:
            raise ConfigError(key="fragments.grid", got=self.values, takes=f"1 to {_MAX_VALUES} values")
        for key in ("slice_values", "statistics_slice_values"):
            if not 1 <= getattr(self, key) <= MAX_SLICE_VALUES:
                raise ConfigError(key=f"fragments.{key}", got=getattr(self, key), takes=f"1 to {MAX_SLICE_VALUES}")
        parameters = _cut(0, self.parameters, self.slice_values)
        ranges = (*parameters, *_cut(self.parameters, self.values, self.statistics_slice_values))
        # A frozen dataclass sets derived fields this way.
        object.__setattr__(self, "ranges", ranges)
        object.__setattr__(self, "_index", {(each.start, each.stop): at for at, each in enumerate(ranges)})

    @property
    def values(self) -> int:
        """How long the vector is."""
        return self.parameters + self.statistics

    def __len__(self) -> int:
        return len(self.ranges)

    def index_of(self, start: int, stop: int) -> int | None:
        """Return the number of this range, or None if it is not on the grid."""
        return self._index.get((start, stop))

    def is_statistics(self, index: int) -> bool:
        """Whether range `index` holds statistics."""
        return self.ranges[index].start >= self.parameters


def even_slice(values: int, most: int) -> int:
    """Return the slice length that needs as few slices as `most` does, and makes them equally long."""
    slices = max(1, -(-values // most))
    return max(1, -(-values // slices))


def _cut(start: int, stop: int, step: int) -> Iterator[Range]:
    for at in range(start, stop, step):
        yield Range(at, min(at + step, stop))
