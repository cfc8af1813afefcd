"""What a curious recipient has, and what an attack makes of it. Neither says who sent anything after the first round.

Invariant: rows of a range stand in an order that the recipient could not learn from: whoever makes a view shuffles
them, and keeps who sent which for the score.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Attack", "Buckets", "Indices", "Matrix", "RoundView", "View", "unit_rows"]

Matrix: TypeAlias = npt.NDArray[np.float32]
Indices: TypeAlias = npt.NDArray[np.int64]
_TINY = 1e-30


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoundView:
    """One round of one recipient."""

    before: Matrix
    """Its model as the round began."""
    own: Matrix
    """Its model as it was trained."""
    fragments: Sequence[Matrix]
    """By range: what came of it, a row a fragment."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """What a recipient has after all rounds."""

    ranges: Sequence[slice]
    first: RoundView
    """The first round: each range has a row for every peer, in the order of their names. This is the reference."""
    later: Sequence[RoundView]
    """The rounds after it, without names."""

    @property
    def peers(self) -> int:
        """How many may have sent."""
        return len(self.first.fragments[0])


Buckets: TypeAlias = Sequence[Sequence[Indices]]
"""For each later round and each range: into which bucket each row was put.

A bucket begins with the reference of a peer, so its number names that peer.
"""

Attack: TypeAlias = Callable[[View], Buckets]


def unit_rows(rows: npt.NDArray[Any]) -> Matrix:
    """Return the rows, each with length 1; a product of two is then the cosine between them."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(lengths, _TINY), dtype=np.float32)
