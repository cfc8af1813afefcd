"""The one queue of a virtual world: events in the order of (time, sequence).

The sequence number is the order of pushing, so events of one instant happen in the order in which they were caused,
and comparing two entries never reaches what they carry.

The order is that of a single heap, but only the near future is kept in one. Entries that lie further ahead wait
unordered in slots of 1/256 s, and a slot becomes the heap when its time has come. With ten thousand peers a single
heap holds tens of thousands of entries, and every step through it is a cache miss; here it holds some hundreds.

Invariant: whatever is popped is the smallest of everything pushed and not yet popped. Slots are cut by the same exact
multiplication (a power of two) for every entry, so an entry never lands in a slot that has already been passed.
"""

import math
from heapq import heapify, heappop, heappush
from typing import Any, TypeAlias

from unlinkabledfl.errors import LocalProtocolError

Carried: TypeAlias = Any
"""What an entry carries; the heap never looks into it."""

Entry: TypeAlias = tuple[float, int, Carried, Carried, Carried]
"""Time, sequence, the host it happens to, and two values whose meaning belongs to whoever pushes."""

SLOTS_PER_S = 256.0


class EventHeap:
    """Entries come out by time, and by order of pushing within one instant."""

    __slots__ = ("_later", "_near", "_near_slot", "_pushed", "_slots")

    def __init__(self) -> None:
        self._near: list[Entry] = []
        self._near_slot = -1
        self._later: dict[int, list[Entry]] = {}
        self._slots: list[int] = []
        self._pushed = 0

    def push(self, at_s: float, host: Carried, source: Carried, payload: Carried) -> int:
        """Put an entry into its place and return its sequence number, which no other entry has."""
        sequence = self._pushed = self._pushed + 1
        slot = int(at_s * SLOTS_PER_S)
        if slot <= self._near_slot:
            heappush(self._near, (at_s, sequence, host, source, payload))
        else:
            entries = self._later.get(slot)
            if entries is None:
                self._later[slot] = [(at_s, sequence, host, source, payload)]
                heappush(self._slots, slot)
            else:
                entries.append((at_s, sequence, host, source, payload))
        return sequence

    def pop_until(self, until_s: float) -> Entry | None:
        """Take out the first entry if its time is not after `until_s`."""
        near = self._near
        if not near:
            if not self._slots:
                return None
            self._near_slot = heappop(self._slots)
            near = self._near = self._later.pop(self._near_slot)
            heapify(near)
        return heappop(near) if near[0][0] <= until_s else None

    def __len__(self) -> int:
        return len(self._near) + sum(map(len, self._later.values()))


def check_instant(at_s: float, *, not_before_s: float) -> None:
    """Refuse an instant that has passed, or that never comes."""
    if not not_before_s <= at_s < math.inf:
        raise LocalProtocolError(f"cannot schedule at {at_s} s: it is {not_before_s} s already")
