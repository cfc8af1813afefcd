"""What becomes of the candidates for one range: rules by name.

| name | result | needs, of n candidates |
|---|---|---|
| `fragfedavg` | their mean, weighted if staleness weighs | n ≥ 1 |
| `fragkrum` | the candidate with the least sum of squared distances to its n − B − 2 nearest others | n > 2B + 2 |
| `median` | the median, coordinate by coordinate | n ≥ 1 |
| `trimmed_mean` | the mean without the B least and B greatest, coordinate by coordinate | n > 2B |

B is how many candidates may be malicious. The first two are Algorithm 1 of the paper and its appendix. Another rule is
anything that fulfils `Rule`.

Invariant: a result depends on the candidates in their order and on nothing else: ties go to the first.
"""

from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

import numpy as np
import numpy.typing as npt

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.fragments.arrays import Vector

Weights = npt.NDArray[np.float64]
NAMES: Final = ("fragfedavg", "fragkrum", "median", "trimmed_mean")
_BLOCK_VALUES = 4_096  # columns that a rule works on at a time, so that its copies stay small


class Rule(Protocol):
    """Combines the slices of one range."""

    @property
    def name(self) -> str:
        """What a scenario calls it."""
        ...

    @property
    def weighs(self) -> bool:
        """Whether it heeds weights; a rule that does not is refused where staleness weighs."""
        ...

    @property
    def least(self) -> int:
        """With fewer candidates the range is infeasible and stays as it is."""
        ...

    def combine(self, candidates: Vector, weights: Weights) -> Vector:
        """Return one slice for the rows of `candidates`, of which there are at least `least`; row 0 is our own."""
        ...


@dataclass(frozen=True, slots=True)
class FragFedAvg:
    """Mean by index range."""

    name: ClassVar[str] = "fragfedavg"
    weighs: ClassVar[bool] = True
    least: ClassVar[int] = 1

    def combine(self, candidates: Vector, weights: Weights) -> Vector:
        if (weights == 1.0).all():
            mean: Vector = candidates.sum(axis=0)
            mean /= np.float32(len(candidates))
            return mean
        mean = (weights / weights.sum()).astype(np.float32) @ candidates
        return mean


@dataclass(frozen=True, slots=True)
class FragKrum:
    """Krum by index range."""

    byzantine: int
    name: ClassVar[str] = "fragkrum"
    weighs: ClassVar[bool] = False

    @property
    def least(self) -> int:
        return 2 * self.byzantine + 3

    def combine(self, candidates: Vector, weights: Weights) -> Vector:
        _ = weights
        nearest = len(candidates) - self.byzantine - 2
        distances = squared_distances(candidates)
        np.fill_diagonal(distances, np.inf)
        distances.sort(axis=1)
        scores = distances[:, :nearest].sum(axis=1)
        chosen: Vector = candidates[int(np.argmin(scores))].copy()
        return chosen


@dataclass(frozen=True, slots=True)
class Median:
    """Coordinate-wise median."""

    name: ClassVar[str] = "median"
    weighs: ClassVar[bool] = False
    least: ClassVar[int] = 1

    def combine(self, candidates: Vector, weights: Weights) -> Vector:
        _ = weights
        return _of_sorted(candidates, len(candidates) // 2 - (len(candidates) + 1) % 2)


@dataclass(frozen=True, slots=True)
class TrimmedMean:
    """Coordinate-wise mean without extremes."""

    byzantine: int
    name: ClassVar[str] = "trimmed_mean"
    weighs: ClassVar[bool] = False

    @property
    def least(self) -> int:
        return 2 * self.byzantine + 1

    def combine(self, candidates: Vector, weights: Weights) -> Vector:
        _ = weights
        return _of_sorted(candidates, self.byzantine)


def squared_distances(candidates: Vector) -> npt.NDArray[np.float64]:
    """Return ‖y − z‖² for every two rows, in double precision, without a copy for any pair.

    It is |y|² + |z|² − 2y·z, which loses digits when rows lie close together and far from the origin. Our own row is
    the origin, so honest rows lie about as far from it as from each other.
    """
    gram = np.zeros((len(candidates), len(candidates)))
    for start in range(0, candidates.shape[1], _BLOCK_VALUES):
        block = candidates[:, start : start + _BLOCK_VALUES].astype(np.float64)
        block -= block[0].copy()
        gram += block @ block.T
    squares = gram.diagonal()
    distances: npt.NDArray[np.float64] = squares[:, None] + squares[None, :] - 2.0 * gram
    return np.maximum(distances, 0.0, out=distances)


def rule_by_name(name: str, *, byzantine: int = 0) -> Rule:
    """Return the rule; `byzantine` is B, for those that have one."""
    if byzantine < 0:
        raise ConfigError(key="aggregation.byzantine", got=byzantine, takes="a whole number from 0")
    match name:
        case "fragfedavg":
            return FragFedAvg()
        case "fragkrum":
            return FragKrum(byzantine)
        case "median":
            return Median()
        case "trimmed_mean":
            return TrimmedMean(byzantine)
        case _:
            raise ConfigError(key="aggregation.rule", got=name, takes=", ".join(NAMES))


def _of_sorted(candidates: Vector, dropped: int) -> Vector:
    """Return the mean of each column without its `dropped` least and greatest values."""
    result = np.empty(candidates.shape[1], dtype=np.float32)
    for start in range(0, result.size, _BLOCK_VALUES):
        columns = np.sort(candidates[:, start : start + _BLOCK_VALUES], axis=0)
        np.mean(columns[dropped : len(columns) - dropped], axis=0, out=result[start : start + _BLOCK_VALUES])
    return result
