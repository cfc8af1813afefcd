"""The bounds that keep one peer from costing another more than its share: rates, queues, timers, counters.

Invariant: each object here takes memory bounded by a number that is known when it is built, or by the live keys that
its owner gives it. No bound is enforced by losing something silently: a refusal is the return value.
"""

import re
from collections.abc import Hashable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from typing import Final, Generic, TypeVar

from unlinkabledfl.errors import ConfigError, LocalProtocolError

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


class TokenBucket:
    """Admits `burst` at once and `rate_per_s` in the long run; one per neighbour and kind of traffic.

    In any span of t seconds it admits at most `burst + rate_per_s * t`. It holds no timer: what has accrued is
    reckoned when somebody asks. An instant before the last one counts as the last one.
    """

    __slots__ = ("_at_s", "_burst", "_rate_per_s", "_tokens")

    def __init__(self, *, rate_per_s: float, burst: float) -> None:
        if not rate_per_s > 0.0:
            raise ConfigError(key="rate_per_s", got=rate_per_s, takes="a rate above 0")
        if not burst >= 1.0:
            raise ConfigError(key="burst", got=burst, takes="at least 1, or nothing would ever be admitted")
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._tokens = burst
        self._at_s: float | None = None

    def take(self, now_s: float, tokens: float = 1.0) -> bool:
        """Pay `tokens`, all or nothing. False: over the limit, and nothing was paid."""
        if not self.has(now_s, tokens):
            return False
        self._tokens -= tokens
        return True

    def has(self, now_s: float, tokens: float = 1.0) -> bool:
        """Whether `take` would succeed."""
        if self._at_s is None:
            self._at_s = now_s
        elif now_s > self._at_s:
            self._tokens = min(self._burst, self._tokens + (now_s - self._at_s) * self._rate_per_s)
            self._at_s = now_s
        return tokens <= self._tokens


class Deadlines(Generic[K]):
    """One timer a key. Due keys come out by time, and at one time in the order in which they were set.

    Moving or cancelling a timer leaves its old entry in the heap, to be skipped when it surfaces; an entry is dead when
    the key has a younger one or none. Once the dead outnumber the living the heap is rebuilt, which costs O(1) for each
    entry that died: so it never holds more than twice its live keys (plus a constant), however far ahead timers lie.
    """

    __slots__ = ("_heap", "_live", "_serial")

    _SLACK: Final = 8

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, K]] = []
        self._live: dict[K, int] = {}
        self._serial = 0

    def __len__(self) -> int:
        return len(self._live)

    @property
    def entries(self) -> int:
        """Heap entries, dead ones included: what it costs in memory."""
        return len(self._heap)

    def set(self, key: K, at_s: float) -> None:
        """Start the key's timer, or move it."""
        self._serial += 1
        self._live[key] = self._serial
        heappush(self._heap, (at_s, self._serial, key))
        self._tidy()

    def cancel(self, key: K) -> None:
        """Forget the key's timer, if it has one."""
        if self._live.pop(key, None) is not None:
            self._tidy()

    def next_s(self) -> float | None:
        """When the first timer is due."""
        heap, live = self._heap, self._live
        while heap:
            at_s, serial, key = heap[0]
            if live.get(key) == serial:
                return at_s
            heappop(heap)
        return None

    def pop_due(self, now_s: float) -> K | None:
        """The first key whose timer is due, which no longer has one now; None when no timer is due."""
        at_s = self.next_s()
        if at_s is None or at_s > now_s:
            return None
        key = heappop(self._heap)[2]
        del self._live[key]
        # Without this, dead entries deeper in the heap could come to outnumber the living by popping alone.
        self._tidy()
        return key

    def _tidy(self) -> None:
        live = self._live
        if len(self._heap) > 2 * len(live) + self._SLACK:
            self._heap = [entry for entry in self._heap if live.get(entry[2]) == entry[1]]
            heapify(self._heap)


class Counters(Mapping[str, int]):
    """How often something happened, by cause.

    Names come from our own code, so a malformed one is a bug of ours. Their number is bounded all the same: once
    `MAX_NAMES` are known, further ones are added up under `other`, and nothing that a peer sends can grow the table.
    """

    __slots__ = ("_counts",)

    MAX_NAMES: Final = 128
    OTHER: Final = "other"
    _NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,47}")

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def __getitem__(self, cause: str) -> int:
        """A cause that never occurred counts zero."""
        return self._counts.get(cause, 0)

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, cause: str, count: int = 1) -> None:
        """Count this cause."""
        counts = self._counts
        if cause not in counts:
            if self._NAME.fullmatch(cause) is None:
                raise LocalProtocolError(f"a counter's name is short and in snake_case, not {cause[:64]!r}")
            if len(counts) >= self.MAX_NAMES:
                cause = self.OTHER
        counts[cause] = counts.get(cause, 0) + count

    def as_dict(self) -> dict[str, int]:
        """A copy of all counts, sorted by name."""
        return dict(sorted(self._counts.items()))
