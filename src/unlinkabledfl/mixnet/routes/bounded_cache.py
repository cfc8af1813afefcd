"""Keep what was computed, up to a total weight, and forget the oldest beyond it."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """A dictionary with a bound on the sum of its entries' weights.

    Entries leave in the order in which they came. Reading does not reorder: it happens once a packet and must cost no
    more than a dictionary access, which callers make on `entries` directly.
    """

    __slots__ = ("_weights", "bound", "entries", "weight")

    def __init__(self, *, bound: int) -> None:
        self.bound = bound
        self.weight = 0
        self.entries: dict[K, V] = {}
        # Ordered: to find the first key of a plain dictionary takes ever longer as keys leave at its front.
        self._weights: OrderedDict[K, int] = OrderedDict()

    def store(self, key: K, value: V, *, weight: int) -> None:
        """Add or replace an entry. The newest always stays, even one that is heavier than the bound."""
        self._forget(key)
        while self.entries and self.weight + weight > self.bound:
            self._forget(next(iter(self._weights)))
        self.entries[key] = value
        self._weights[key] = weight
        self.weight += weight

    def _forget(self, key: K) -> None:
        if key in self.entries:
            del self.entries[key]
            self.weight -= self._weights.pop(key)
