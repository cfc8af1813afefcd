"""All that one recipient was sent, with the names of the senders; and what it sees of that, without them.

As in the published experiment the ratio r says how much reaches the recipient's eyes: of each sender a random share of
the ranges, afresh each round, but all of the first round, which is its reference.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unlinkabledfl.analysis.content import RoundView, Truth, View
from unlinkabledfl.analysis.content.views import Indices, Matrix
from unlinkabledfl.fragments import Grid, Vector
from unlinkabledfl.fragments.selection import chosen_count

__all__ = ["Received", "Sight"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Received:
    """One round of a recipient."""

    before: Vector
    own: Vector
    """Its model before and after its training."""
    rows: Matrix
    """What each partner sent, in the order of their names."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sight:
    """All rounds of a recipient."""

    grid: Grid
    rounds: Sequence[Received]
    bare: Matrix
    """The partners' first models before any disguise."""

    def view(self, *, ratio: float, rng: np.random.Generator, leaked: bool = False) -> tuple[View, Truth]:
        """Return what the recipient has at this ratio, and who sent which fragment of it.

        `leaked`: its reference is the bare first model of each partner, by whatever way it came to that.
        """
        first, *later = self.rounds
        ranges = [place.slice for place in self.grid.ranges]
        truth = [self._seen(ratio, rng) for _ in later]
        reference = _cut(first, self.bare if leaked else first.rows, ranges, [np.arange(len(self.bare))] * len(ranges))
        rounds = [_cut(each, each.rows, ranges, senders) for each, senders in zip(later, truth, strict=True)]
        return View(ranges=ranges, first=reference, later=rounds), truth

    def _seen(self, ratio: float, rng: np.random.Generator) -> list[Indices]:
        """Draw whose fragment of each range is seen, in random order."""
        count, ranges = chosen_count(self.grid, ratio), len(self.grid)
        seen = np.array([rng.permutation(ranges) < count for _ in self.bare])
        return [rng.permutation(np.flatnonzero(column)).astype(np.int64) for column in seen.T]


def _cut(received: Received, rows: Matrix, ranges: Sequence[slice], senders: Sequence[Indices]) -> RoundView:
    fragments = [rows[sent, place] for sent, place in zip(senders, ranges, strict=True)]
    return RoundView(before=received.before, own=received.own, fragments=fragments)
