"""Fragments without names, by range, until they become a better model.

`receive` takes a fragment from anybody, or refuses it and counts the cause; `advance` begins a round; `aggregate` is
Algorithm 1 of the paper: our own slice is a candidate of every range; ranges of which no fragment came, and those with
too few candidates for the rule, keep our values. A fragment takes part once; what waits for its round stays.

What is held is what came, in bytes: 100 candidates of MobileNetV2 are 130 MB so and 900 MB as float32. Each is decoded
on arrival, to refuse it in time, and again when its range has its turn.

Invariant: whatever bytes come in, `receive` returns; it raises nothing, counts every refusal by its cause, and holds at
most `max_per_range` fragments a range and round. The result does not depend on the order of arrival.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from unlinkabledfl.errors import ConfigError, FragmentError, LocalProtocolError
from unlinkabledfl.fragments.arrays import Vector
from unlinkabledfl.fragments.framing import ContentId, Header
from unlinkabledfl.fragments.rules import Rule
from unlinkabledfl.fragments.staleness import Policy, Staleness
from unlinkabledfl.fragments.transcoder import FragmentDecoder

MAX_PER_RANGE = 256


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Aggregate:
    """The new vector, and which ranges it is better in."""

    vector: Vector
    fragments: int
    """How many fragments of peers took part."""
    candidates: tuple[int, ...]
    """For each range, how many slices there were to combine, our own included."""
    infeasible: tuple[int, ...]
    """Ranges with fragments, but too few for the rule: they kept our values."""
    uncovered: tuple[int, ...]
    """Ranges of which no fragment came."""


@dataclass(frozen=True, slots=True)
class _Held:
    header: Header
    data: bytes


class Pool:
    """The fragment pool of one node."""

    __slots__ = ("_accepted", "_decoder", "_held", "_max_per_range", "_seen", "_staleness", "counts", "round")

    def __init__(
        self,
        decoder: FragmentDecoder,
        *,
        staleness: Staleness | None = None,
        max_per_range: int = MAX_PER_RANGE,
        first_round: int = 0,
    ) -> None:
        if max_per_range < 1:
            raise ConfigError(key="fragments.max_per_range", got=max_per_range, takes="a whole number from 1")
        self._decoder = decoder
        self._staleness = Staleness() if staleness is None else staleness
        self._max_per_range = max_per_range
        self._held: list[dict[ContentId, _Held]] = [{} for _ in decoder.grid.ranges]
        # Kept until their round leaves the window: a resend of a fragment already used is still a duplicate.
        self._seen: dict[int, set[ContentId]] = {}
        self._accepted: Counter[tuple[int, int]] = Counter()
        self.round = first_round
        self.counts: Counter[str] = Counter()
        """`accepted`, and each cause of refusal."""

    def receive(self, data: bytes) -> bool:
        """Take a fragment from anybody. False: refused, and counted."""
        try:
            self._receive(data)
        except FragmentError as error:
            self.counts[error.cause] += 1
            return False
        self.counts["accepted"] += 1
        return True

    def waiting(self, index: int) -> int:
        """Return how many fragments of range `index` would take part now."""
        return sum(1 for held in self._held[index].values() if self._weight(held) > 0.0)

    def advance(self, round_number: int) -> None:
        """Begin a later round: what has become too old is dropped and counted as expired."""
        if round_number < self.round:
            raise LocalProtocolError(f"round {round_number} after round {self.round}")
        self.round = round_number
        for slot in self._held:
            for key in [key for key, held in slot.items() if not self._in_window(held.header.round)]:
                del slot[key]
                self.counts["expired"] += 1
        for old in [old for old in self._seen if not self._in_window(old)]:
            del self._seen[old]
        for place in [place for place in self._accepted if not self._in_window(place[0])]:
            del self._accepted[place]

    def aggregate(self, local: Vector, rule: Rule) -> Aggregate:
        """Combine our own vector with what the pool holds for this round, and take that out of the pool."""
        grid = self._decoder.grid
        if local.shape != (grid.values,):
            raise ConfigError(key="model vector", got=local.shape, takes=f"{grid.values} values")
        if self._staleness.policy is Policy.WEIGHT and not rule.weighs:
            hint = f"{rule.name} chooses or sorts, it does not weigh"
            raise ConfigError(key="staleness.policy", got="weight", takes="keep or drop with this rule", hint=hint)
        vector = local.copy()
        candidates, infeasible, uncovered = [], [], []
        for index, place in enumerate(grid.ranges):
            rows, weights = self._take(index, local[place.slice])
            candidates.append(len(rows))
            if len(rows) == 1:
                uncovered.append(index)
            elif len(rows) < rule.least:
                infeasible.append(index)
            else:
                vector[place.slice] = rule.combine(rows, weights)
        return Aggregate(
            vector=vector,
            fragments=sum(candidates) - len(candidates),
            candidates=tuple(candidates),
            infeasible=tuple(infeasible),
            uncovered=tuple(uncovered),
        )

    def _receive(self, data: bytes) -> None:
        header, index = self._decoder.inspect(data)
        self._staleness.check(header.round, current=self.round)
        key = self._decoder.identify(data)
        seen = self._seen.setdefault(header.round, set())
        if key in seen:
            raise FragmentError("duplicate")
        if self._accepted[header.round, index] >= self._max_per_range:
            raise FragmentError("range_full", f"{self._max_per_range} fragments of range {index}")
        self._decoder.values(data, header)
        seen.add(key)
        self._accepted[header.round, index] += 1
        self._held[index][key] = _Held(header, data)

    def _take(self, index: int, own: Vector) -> tuple[Vector, np.ndarray[tuple[int], np.dtype[np.float64]]]:
        """Return our slice and those of the fragments due, as rows, with their weights; ordered by content."""
        slot = self._held[index]
        due = sorted(key for key, held in slot.items() if self._weight(held) > 0.0)
        rows = np.empty((1 + len(due), own.size), dtype=np.float32)
        weights = np.ones(1 + len(due))
        rows[0] = own
        for row, key in enumerate(due, start=1):
            held = slot.pop(key)
            rows[row] = self._decoder.values(held.data, held.header)
            weights[row] = self._weight(held)
        return rows, weights

    def _weight(self, held: _Held) -> float:
        return self._staleness.weight(held.header.round, current=self.round)

    def _in_window(self, round_number: int) -> bool:
        try:
            self._staleness.check(round_number, current=self.round)
        except FragmentError:
            return False
        return True
