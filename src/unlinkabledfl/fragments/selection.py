"""Which ranges a node sends this round, when it sends only a part: ratio r of the grid, at least one range.

| name | chooses |
|---|---|
| `random` (default) | uniformly, afresh each round |
| `rotating` | the next ones in a fixed order from a random start: every range once in each ⌈1/r⌉ rounds |
| `largest_change` | those that changed most since they were last sent |

`largest_change` spends packets where they matter, but what a node sends then depends on its data: whoever receives its
fragments, though it does not know from whom, sees which ranges moved. The other two tell nothing.
"""

from math import ceil
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.fragments.arrays import Vector
from unlinkabledfl.fragments.grid import Grid

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES: Final = ("random", "rotating", "largest_change")
_ROUNDING = 1e-9  # 0.1 of 30 ranges is 3 of them, not 4


class Selection(Protocol):
    """Chooses ranges by number."""

    def choose(self, vector: Vector, *, rng: np.random.Generator) -> list[int]:
        """Return the ranges to send of this vector, in ascending order, none twice."""
        ...


class RandomSelection:
    """`random`."""

    __slots__ = ("_count", "_ranges")

    def __init__(self, grid: Grid, ratio: float) -> None:
        self._ranges = len(grid)
        self._count = chosen_count(grid, ratio)

    def choose(self, vector: Vector, *, rng: np.random.Generator) -> list[int]:
        _ = vector
        return sorted(rng.choice(self._ranges, size=self._count, replace=False).tolist())


class RotatingSelection:
    """`rotating`. Nodes begin at random places, so that together they send all ranges each round."""

    __slots__ = ("_count", "_next", "_ranges")

    def __init__(self, grid: Grid, ratio: float) -> None:
        self._ranges = len(grid)
        self._count = chosen_count(grid, ratio)
        self._next: int | None = None

    def choose(self, vector: Vector, *, rng: np.random.Generator) -> list[int]:
        _ = vector
        start = int(rng.integers(self._ranges)) if self._next is None else self._next
        self._next = (start + self._count) % self._ranges
        return sorted((start + step) % self._ranges for step in range(self._count))


class LargestChange:
    """`largest_change`: by mean square over the range. Before anything was sent, the change is the vector itself."""

    __slots__ = ("_count", "_grid", "_sent")

    def __init__(self, grid: Grid, ratio: float) -> None:
        self._grid = grid
        self._count = chosen_count(grid, ratio)
        self._sent = np.zeros(grid.values, dtype=np.float32)

    def choose(self, vector: Vector, *, rng: np.random.Generator) -> list[int]:
        _ = rng
        change = vector - self._sent
        np.square(change, out=change)
        sums = np.add.reduceat(change, [each.start for each in self._grid.ranges], dtype=np.float64)
        means = sums / [len(each) for each in self._grid.ranges]
        chosen: list[int] = sorted(np.argsort(-means, kind="stable")[: self._count].tolist())
        for index in chosen:
            place = self._grid.ranges[index].slice
            self._sent[place] = vector[place]
        return chosen


def selection_by_name(name: str, grid: Grid, *, ratio: float) -> Selection:
    """Return a selection of that share of the grid."""
    kinds: dict[str, Callable[[Grid, float], Selection]] = {
        "random": RandomSelection,
        "rotating": RotatingSelection,
        "largest_change": LargestChange,
    }
    if name not in kinds:
        raise ConfigError(key="fragments.selection", got=name, takes=", ".join(NAMES))
    return kinds[name](grid, ratio)


def chosen_count(grid: Grid, ratio: float) -> int:
    """Return how many ranges every selection of this ratio chooses: what peers may expect of each other."""
    if not 0.0 < ratio <= 1.0:
        raise ConfigError(key="fragments.ratio", got=ratio, takes="a share above 0, up to 1")
    return max(1, ceil(ratio * len(grid) - _ROUNDING))
