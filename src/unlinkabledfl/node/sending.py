"""A model's fragments on their way: in random order, as fast as the mix takes them, each with one end.

Each fragment, by its range and destination:

    planned --the mix takes it------------> sent
    planned --its queue is full-----------> planned
    planned --destination is gone---------> held
    held --destination is back------------> planned
    planned --a newer model is shared-----> withdrawn
    held --a newer model is shared--------> withdrawn
    sent --acknowledged-------------------> acknowledged
    sent --given up-----------------------> lost

The order is a fresh permutation over ranges and destinations together, so that neither the place of a fragment in it
nor its neighbours say anything.

A new model may be shared while fragments of the old one are under way. Those that the mix has taken go on to their end;
those that it has not are withdrawn, as the newer ones say more. What ended is counted when it ends.

To a destination that is gone one fragment of a round still goes out: its acknowledgement is how a peer that nobody
dials shows that it is back. It is not waited for.

Invariant: a fragment that was sent ends exactly once, so `sent` is the sum of `acknowledged`, `lost` and `len`.
"""

from collections import Counter, deque
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from unlinkabledfl.errors import LocalProtocolError
from unlinkabledfl.mixnet.draw import Draw
from unlinkabledfl.mixnet.items import MessageId
from unlinkabledfl.sphinx import NodeId


@dataclass(frozen=True, slots=True)
class Place:
    """One fragment of the model that is being shared."""

    index: int
    destination: NodeId


@dataclass(frozen=True, slots=True)
class _Open:
    destination: NodeId
    model: int


class Sending:
    """The accounts of one participant's own fragments. `gone` is a live view of the partners that are gone."""

    __slots__ = (
        "_draw", "_gone", "_held", "_model", "_next", "_open", "_planned", "_probing", "_unfinished",
        "acknowledged", "lost", "sent", "withdrawn",
    )  # fmt: skip

    def __init__(self, *, draw: Draw, gone: AbstractSet[NodeId]) -> None:
        self._draw = draw
        self._gone = gone
        self._model = 0
        self._planned: deque[Place] = deque()
        self._next: Place | None = None
        self._held: dict[NodeId, list[Place]] = {}
        self._probing: set[NodeId] = set()
        self._open: dict[MessageId, _Open] = {}
        # Of the model that is being shared, by destination: planned, or sent and without an end.
        self._unfinished: Counter[NodeId] = Counter()
        self.sent = 0
        self.acknowledged = 0
        self.lost = 0
        self.withdrawn = 0

    def __len__(self) -> int:
        """Fragments that were sent and have no end yet."""
        return len(self._open)

    @property
    def planned(self) -> int:
        """How many fragments the mix could be given now."""
        return len(self._planned) + (self._next is not None)

    @property
    def is_settled(self) -> bool:
        """Whether every fragment of the model has ended, but those to destinations that are gone."""
        return not any(count and peer not in self._gone for peer, count in self._unfinished.items())

    def share(self, ranges: Sequence[int], destinations: Sequence[NodeId]) -> None:
        """Send these ranges of a new model to each of these destinations."""
        self._withdraw()
        self._model += 1
        places = [Place(index, peer) for index in ranges for peer in destinations]
        self._draw.shuffle(places)
        self._planned.extend(places)
        self._unfinished.update(place.destination for place in places)

    def next_place(self) -> Place | None:
        """Return the fragment that is next, the same one until it is `taken`."""
        while self._next is None and self._planned:
            place = self._planned.popleft()
            peer = place.destination
            if peer in self._gone and peer in self._probing:
                self._held.setdefault(peer, []).append(place)
                continue
            if peer in self._gone:
                self._probing.add(peer)
            self._next = place
        return self._next

    def taken(self, message_id: MessageId) -> Place:
        """The mix has taken the next fragment, under this id."""
        place = self._next
        if place is None or message_id in self._open:
            raise LocalProtocolError("a fragment is sent once, and none but the next one")
        self._next = None
        self._open[message_id] = _Open(place.destination, self._model)
        self.sent += 1
        return place

    def receive_acknowledgement(self, message_id: MessageId) -> NodeId | None:
        """Return whose fragment ended well; None if the message was none of ours."""
        ended = self._end(message_id)
        if ended is not None:
            self.acknowledged += 1
        return ended

    def give_up(self, message_id: MessageId) -> NodeId | None:
        """Return whose fragment ended without acknowledgement; None if the message was none of ours."""
        ended = self._end(message_id)
        if ended is not None:
            self.lost += 1
        return ended

    def restore(self, peer: NodeId) -> None:
        """A destination is back: what is held for it is planned again."""
        self._probing.discard(peer)
        self._planned.extend(self._held.pop(peer, ()))

    def _withdraw(self) -> None:
        self.withdrawn += self.planned + sum(map(len, self._held.values()))
        self._planned.clear()
        self._next = None
        self._held.clear()
        self._probing.clear()
        self._unfinished.clear()

    def _end(self, message_id: MessageId) -> NodeId | None:
        ended = self._open.pop(message_id, None)
        if ended is None:
            return None
        if ended.model == self._model:
            self._unfinished[ended.destination] -= 1
        return ended.destination
