"""Fragments without names, by range, until they become a better model.

    received --accepted-------------------------------------> held
    received --malformed, duplicate, range full, too new----> refused
    received --too old--------------------------------------> late
    held --its range is combined----------------------------> aggregated
    held --its range has too few candidates for the rule----> refused
    held --its round leaves the window----------------------> late

`receive` takes a fragment from anybody; `advance` begins a round; `aggregate` is Algorithm 1 of the paper: our own
slice is a candidate of every range; ranges of which no fragment came, and those with too few candidates for the rule,
keep our values. A fragment takes part once; what waits for its round stays. `aggregation` is the same a range at a
time, for a node that has packets to send meanwhile.

What is held is what came, in bytes: 100 candidates of MobileNetV2 are 130 MB so and 900 MB as float32. Each is decoded
on arrival, to refuse it in time, and again when its range has its turn.

Invariant: whatever bytes come in, `receive` returns; it raises nothing, and holds at most `max_per_range` fragments a
range and round. Every fragment received ends once, under one name in `counts`, or is still held. The result does not
depend on the order of arrival.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unlinkabledfl.errors import ConfigError, FragmentError, LocalProtocolError
from unlinkabledfl.fragments.arrays import Vector
from unlinkabledfl.fragments.framing import ContentId, Header
from unlinkabledfl.fragments.grid import Grid
from unlinkabledfl.fragments.rules import Rule, Weights
from unlinkabledfl.fragments.staleness import Policy, Staleness
from unlinkabledfl.fragments.transcoder import FragmentDecoder

MAX_PER_RANGE = 256
AGGREGATED, EXPIRED, INFEASIBLE, STALE = "aggregated", "expired", "infeasible", "stale_round"
_LATE = (EXPIRED, STALE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What became of all that was received: `received` is the sum of the others."""

    received: int
    aggregated: int
    late: int
    """Came too old, or grew too old here."""
    refused: Mapping[str, int]
    """By cause."""
    held: int


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


class Aggregation:
    """An aggregation under way. What arrives between two steps still takes part where its range is to come."""

    __slots__ = ("_candidates", "_fragments", "_infeasible", "_pool", "_round", "_rule", "_uncovered", "_vector")

    def __init__(self, pool: "Pool", local: Vector, rule: Rule) -> None:
        self._pool = pool
        self._rule = rule
        self._round = pool.round
        self._vector = local.copy()
        self._fragments = 0
        self._candidates: list[int] = []
        self._infeasible: list[int] = []
        self._uncovered: list[int] = []

    def step(self) -> Aggregate | None:
        """Combine the next range. The last step returns the result; none may follow it."""
        index, grid = len(self._candidates), self._pool.grid
        if index == len(grid) or self._pool.round != self._round:
            raise LocalProtocolError("an aggregation takes a step for each range, within its round")
        place = grid.ranges[index].slice
        rows, weights = self._pool.take(index, self._vector[place])
        self._candidates.append(len(rows))
        if len(rows) == 1:
            self._uncovered.append(index)
        elif len(rows) < self._rule.least:
            self._infeasible.append(index)
            self._pool.counts[INFEASIBLE] += len(rows) - 1
        else:
            self._vector[place] = self._rule.combine(rows, weights)
            self._fragments += len(rows) - 1
            self._pool.counts[AGGREGATED] += len(rows) - 1
        return self._result() if index + 1 == len(grid) else None

    def _result(self) -> Aggregate:
        return Aggregate(
            vector=self._vector,
            fragments=self._fragments,
            candidates=tuple(self._candidates),
            infeasible=tuple(self._infeasible),
            uncovered=tuple(self._uncovered),
        )


@dataclass(frozen=True, slots=True)
class _Held:
    header: Header
    data: bytes


class Pool:
    """The fragment pool of one node."""

    __slots__ = (
        "_accepted",
        "_decoder",
        "_held",
        "_max_per_range",
        "_seen",
        "_staleness",
        "counts",
        "received",
        "round",
    )

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
        self.received = 0
        self.counts: Counter[str] = Counter()
        """How fragments ended: `aggregated`, `expired`, `infeasible`, or the cause of refusal on arrival."""

    @property
    def grid(self) -> Grid:
        """Where every fragment held lies."""
        return self._decoder.grid

    def receive(self, data: bytes) -> bool:
        """Take a fragment from anybody. False: refused, and counted."""
        self.received += 1
        try:
            self._receive(data)
        except FragmentError as error:
            self.counts[error.cause] += 1
            return False
        return True

    def tally(self) -> Tally:
        """Return how all fragments ended so far."""
        ends = dict(self.counts)
        return Tally(
            received=self.received,
            aggregated=ends.pop(AGGREGATED, 0),
            late=sum(ends.pop(name, 0) for name in _LATE),
            refused=ends,
            held=sum(len(slot) for slot in self._held),
        )

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
                self.counts[EXPIRED] += 1
        for old in [old for old in self._seen if not self._in_window(old)]:
            del self._seen[old]
        for place in [place for place in self._accepted if not self._in_window(place[0])]:
            del self._accepted[place]

    def aggregate(self, local: Vector, rule: Rule) -> Aggregate:
        """Combine our own vector with what the pool holds for this round, and take that out of the pool."""
        under_way = self.aggregation(local, rule)
        while (result := under_way.step()) is None:
            pass
        return result

    def aggregation(self, local: Vector, rule: Rule) -> Aggregation:
        """Begin the same, to go on with a range at a time. The vector is copied."""
        if local.shape != (self.grid.values,):
            raise ConfigError(key="model vector", got=local.shape, takes=f"{self.grid.values} values")
        if self._staleness.policy is Policy.WEIGHT and not rule.weighs:
            hint = f"{rule.name} chooses or sorts, it does not weigh"
            raise ConfigError(key="staleness.policy", got="weight", takes="keep or drop with this rule", hint=hint)
        return Aggregation(self, local, rule)

    def take(self, index: int, own: Vector) -> tuple[Vector, Weights]:
        """Take out what is due of a range; return our slice and these, in the order of their ids, and weights."""
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

    def _weight(self, held: _Held) -> float:
        return self._staleness.weight(held.header.round, current=self.round)

    def _in_window(self, round_number: int) -> bool:
        try:
            self._staleness.check(round_number, current=self.round)
        except FragmentError:
            return False
        return True
