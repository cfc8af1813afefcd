"""Who may compute now: as many learners at once as there are cores, in the order in which they asked.

    idle --wanted, a turn is free-----> Granted, computing
    idle --wanted, none is------------> waiting
    waiting --another is returned-----> Granted, computing
    computing --returned--------------> idle
    waiting --withdrawn---------------> idle
    computing --withdrawn-------------> idle

A hundred learners that train at once on two cores take as long as one after another, but all of them finish last, hold
all their memory, and make every mix of the host wait for the scheduler. In turns, the first have sent their models
while the last still train.

Invariant: never more than `count` compute; a node that waits is granted as soon as one is free and all who asked
earlier were granted or withdrew; a node has one turn at most.
"""

from collections import deque

from unlinkabledfl.errors import LocalProtocolError

__all__ = ["Turns"]


class Turns:
    """The turns of one host."""

    __slots__ = ("_computing", "_count", "_waiting")

    def __init__(self, *, count: int) -> None:
        if count < 1:
            raise LocalProtocolError(f"somebody has to compute: {count} turns")
        self._count = count
        self._computing: set[int] = set()
        self._waiting: deque[int] = deque()

    @property
    def computing(self) -> frozenset[int]:
        """Who has a turn."""
        return frozenset(self._computing)

    def want(self, node: int) -> list[int]:
        """A node would compute. Returns who may from now on: that node, or nobody."""
        if node not in self._computing and node not in self._waiting:
            self._waiting.append(node)
        return self._grant()

    def give_back(self, node: int) -> list[int]:
        """A node computes no longer, or is gone. Returns who may from now on."""
        self._computing.discard(node)
        if node in self._waiting:
            self._waiting.remove(node)
        return self._grant()

    def _grant(self) -> list[int]:
        granted = []
        while self._waiting and len(self._computing) < self._count:
            node = self._waiting.popleft()
            self._computing.add(node)
            granted.append(node)
        return granted
