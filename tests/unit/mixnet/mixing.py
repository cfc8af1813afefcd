"""What the tests of the mixers share: items, a seeded draw, and the ledger behind their property tests."""

import random
from dataclasses import dataclass, field

from hypothesis import strategies as st

from unlinkabledfl.mixnet.draw import Draw
from unlinkabledfl.mixnet.items import Cover, Item, MessageId, OwnMessage, Transit
from unlinkabledfl.mixnet.mixers import Mixer, MixerEvent, Released, Scheduled
from unlinkabledfl.sphinx import NodeId

NEIGHBOUR = NodeId(b"n" * 32)


def transit(number: int) -> Transit:
    return Transit(NEIGHBOUR, number)


def own(number: int, attempt: int = 1) -> OwnMessage:
    return OwnMessage(MessageId(number.to_bytes(16)), attempt)


def seeded(seed: int) -> Draw:
    return Draw(random.Random(seed).randbytes)


def drain(mixer: Mixer) -> list[MixerEvent]:
    events = []
    while (event := mixer.next_event()) is not None:
        events.append(event)
    return events


def run_until(mixer: Mixer, until_s: float) -> list[tuple[float, Item]]:
    """Fire the timers punctually, up to an instant; return what was released, and when."""
    released = []
    while (due_s := mixer.next_timer_s()) is not None and due_s <= until_s:
        mixer.handle_timer(now_s=due_s)
        released += [(due_s, event.item) for event in drain(mixer) if isinstance(event, Released)]
    return released


# What a node may do to its mixer, for hypothesis: an action, and how much time passes before it. Only "timer"
# waits for the mixer's own instant, so that it fires punctually unless the actions before it took longer.
steps = st.lists(
    st.tuples(
        st.sampled_from(["transit", "own", "timer", "timer", "give_back", "give_back_all"]),
        st.sampled_from([0.0, 0.0, 0.0, 0.004, 0.05, 0.3, 5.0]),
    ),
    min_size=40,
    max_size=160,
)


@dataclass
class Ledger:
    """Acts on a mixer, and keeps account of every item that went in or came out."""

    mixer: Mixer
    transit_capacity: int
    cover: bool
    now_s: float = 0.0
    given_back: int = 0
    next_number: int = 0
    scheduled: dict[Item, float] = field(default_factory=dict)
    inside: set[Item] = field(default_factory=set)
    outside: list[Item] = field(default_factory=list)

    def act(self, action: str, pause_s: float) -> None:
        self.now_s += pause_s
        match action:
            case "transit":
                self._submit_transit()
            case "own":
                self._submit_own()
            case "timer":
                self.now_s = max(self.now_s, self.mixer.next_timer_s() or 0.0)
                self.fire()
            case "give_back":
                self._give_back(self.outside[:1])
            case "give_back_all":
                self._give_back(self.outside[:])
        self.read()
        own_inside = sum(isinstance(item, OwnMessage) for item in self.inside)
        transit_inside = sum(isinstance(item, Transit) for item in self.inside)
        assert 0 <= self.mixer.own_waiting <= min(own_inside, self.mixer.own_capacity)
        assert 0 <= self.mixer.transit_waiting <= min(transit_inside, self.transit_capacity + self.given_back)

    def fire(self) -> None:
        self.mixer.handle_timer(now_s=self.now_s)
        due_s = self.mixer.next_timer_s()
        assert due_s is None or due_s >= self.now_s

    def read(self) -> None:
        for event in drain(self.mixer):
            if isinstance(event, Scheduled):
                assert event.release_at_s >= self.now_s
                assert event.item not in self.scheduled, "scheduled twice"
                self.scheduled[event.item] = event.release_at_s
                if isinstance(event.item, Cover):
                    assert self.cover
                    self.inside.add(event.item)
            else:
                self._book_release(event.item)

    def finish(self) -> None:
        """Run the mixer until everything it accepted has left."""
        for _ in range(10_000):
            due_s = self.mixer.next_timer_s()
            if due_s is None or not any(isinstance(item, Transit | OwnMessage) for item in self.inside):
                break
            self.now_s = max(self.now_s, due_s)
            self.fire()
            self.read()
        assert not [item for item in self.inside if isinstance(item, Transit | OwnMessage)]
        assert (self.mixer.own_waiting, self.mixer.transit_waiting) == (0, 0)

    def _submit_transit(self) -> None:
        room = self.mixer.transit_waiting < self.transit_capacity
        item = transit(self._number())
        assert self.mixer.submit_transit(item, delay_s=self.next_number % 7 / 10, now_s=self.now_s) is room
        if room:
            self.inside.add(item)

    def _submit_own(self) -> None:
        room = self.mixer.own_waiting < self.mixer.own_capacity
        item = own(self._number())
        assert self.mixer.submit_own(item, now_s=self.now_s) is room
        if room:
            self.inside.add(item)

    def _give_back(self, items: list[Item]) -> None:
        for item in items:
            self.outside.remove(item)
            packet = item if isinstance(item, Transit) else transit(self._number())
            self.inside.add(packet)
            self.mixer.requeue(packet, now_s=self.now_s)
            self.given_back += 1
            self.read()

    def _book_release(self, item: Item) -> None:
        assert item in self.inside, "released twice, or never submitted"
        self.inside.remove(item)
        self.outside.append(item)
        if not isinstance(item, Transit):
            assert self.scheduled[item] <= self.now_s, "released too early"

    def _number(self) -> int:
        self.next_number += 1
        return self.next_number
