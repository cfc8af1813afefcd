"""Which partners of the exchange are there, so that a round waits for nobody who has left.

Each partner, by its own:

    present --suspected by the mix---------------> doubted
    present --unreachable or expired-------------> gone
    present --a fragment to it is given up-------> gone
    present --it is known not to have come-------> gone
    doubted --suspected again--------------------> gone
    doubted --unreachable or expired-------------> gone
    doubted --a fragment to it is given up-------> gone
    doubted --sign of life-----------------------> present
    gone --sign of life--------------------------> present

Signs of life are an acknowledgement of a fragment to it, a link to it, a descriptor that is news. That the mix tries a
peer again because its quarantine is over is none.

A first suspicion is not enough, because missing acknowledgements cast it on every relay of a route: on a slow machine
on all of them. The second one in a row, without any sign of life between them, came on probation, where other
peers have been cleared. Over a graph where a node dials its neighbours only there is nothing quicker.

A partner that the schedule lets join later begins as gone. Whoever is gone when an exchange begins is not waited for in
that exchange, even if it comes back meanwhile: a newcomer takes part in rounds that begin after it has come.

At least half of the partners, those yet to join aside, are waited for whatever the evidence: if more seem to be gone,
it is we who are cut off, and a node that waits for nobody would run through its rounds alone.

Invariant: a partner is gone only after evidence against it, or by the schedule or the launcher's word, and one sign of
life makes it present.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from unlinkabledfl.mixnet.peers import RemovalReason
from unlinkabledfl.sphinx import NodeId


class Presence:
    """What one participant thinks of its partners. The methods return whether a partner went, or came back."""

    __slots__ = ("_doubted", "_foreseen", "_gone", "_partners", "_spared")

    def __init__(self, partners: Iterable[NodeId], *, absent: Iterable[NodeId] = ()) -> None:
        self._partners = frozenset(partners)
        self._doubted: set[NodeId] = set()
        self._foreseen: set[NodeId] = set(self._partners.intersection(absent))
        self._gone: set[NodeId] = set(self._foreseen)
        self._spared: frozenset[NodeId] = frozenset()

    @property
    def gone(self) -> AbstractSet[NodeId]:
        """Those who are not there now; a live view."""
        return self._gone

    def not_waited_for(self, expected: Sequence[NodeId]) -> int:
        """Return from how many of these partners nothing more is to come in this exchange, as far as we know."""
        foreseen = sum(peer in self._foreseen for peer in expected)
        away = sum(peer in self._gone or peer in self._spared for peer in expected)
        return foreseen + min(away - foreseen, (len(expected) - foreseen) // 2)

    def foresee(self, peer: NodeId) -> None:
        """This peer has not come, as whoever started the nodes knows; it may come later."""
        if peer in self._partners:
            self._foreseen.add(peer)
            self._leave(peer)

    def exchange_begins(self) -> None:
        """Another round's exchange begins."""
        self._spared = frozenset(self._gone)

    def unroutable(self, peer: NodeId, reason: str) -> bool:
        """Routes do not use this peer any more."""
        if peer not in self._partners or peer in self._gone:
            return False
        if reason == RemovalReason.SUSPECTED and peer not in self._doubted:
            self._doubted.add(peer)
            return False
        self._leave(peer)
        return True

    def given_up(self, peer: NodeId) -> bool:
        """No attempt at a fragment to this peer was acknowledged."""
        if peer not in self._partners or peer in self._gone:
            return False
        self._leave(peer)
        return True

    def alive(self, peer: NodeId) -> bool:
        """This peer has just shown that it is there."""
        self._doubted.discard(peer)
        self._foreseen.discard(peer)
        if peer not in self._gone:
            return False
        self._gone.discard(peer)
        return True

    def _leave(self, peer: NodeId) -> None:
        self._doubted.discard(peer)
        self._gone.add(peer)
