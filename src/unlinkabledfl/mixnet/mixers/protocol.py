"""What every mixer is: items go in, and come out again when its law says so.

A mixer decides when things leave, not where they go nor what they look like. Whoever owns it keeps four
promises: `start` is called once; after every call the events are read until there are none; `handle_timer` is
called when the instant of `next_timer_s` has come, as soon as the machine can; and a packet
whose link was not writable is handed back through `requeue`, or counted as lost.

Rules that all mixers share, so that nothing outside can tell what a node is busy with:

- Whether an item is real shows in no instant: when something leaves and what leaves are independent draws.
- `Scheduled` comes one item ahead, so that building a packet happens in the gap before it leaves and never
  shifts it.
- A late timer makes the emission of a node slower, never denser. Time that was lost to a starved CPU is lost;
  a burst that catches up would tell an observer when this node was busy, and with how much.
- Bounds hold: a full queue refuses (the answer is False, the caller counts) and what was accepted is never
  dropped.
"""

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from unlinkabledfl.mixnet.draw import Draw
from unlinkabledfl.mixnet.items import Cover, Item, OwnMessage, Transit

RETRY_PAUSE_S = 0.05
"""How long an item waits for its link at least, where a mixer has no gap of its own to impose: without it an
unwritable link would make release and return chase each other at one instant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled:
    """This fresh item leaves at that instant: build its packet now. A `Transit` is built already."""

    item: OwnMessage | Cover
    release_at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """This item leaves now."""

    item: Item


MixerEvent: TypeAlias = Scheduled | Released


class Mixer(Protocol):
    """One mixing strategy at work in one node."""

    @property
    def own_capacity(self) -> int:
        """How many messages of our own may wait: the window that the learner writes into."""

    @property
    def transit_capacity(self) -> int:
        """How many packets of others, and acknowledgements, may wait."""

    @property
    def own_waiting(self) -> int:
        """How many messages of our own wait for their turn."""

    @property
    def transit_waiting(self) -> int:
        """How many packets wait for their turn: those of others, acknowledgements, and those given back."""

    @property
    def longest_delay_s(self) -> float:
        """The longest delay that an honest sender under this strategy asks for; infinite if nobody listens to it."""

    def hop_delay_s(self, draw: Draw) -> float:
        """Draw the delay that a sender under this strategy writes into the header for one hop."""

    def start(self, *, now_s: float) -> None:
        """Begin to emit. Items may be submitted before; none leaves before."""

    def submit_transit(self, item: Transit, *, delay_s: float, now_s: float) -> bool:
        """Take a packet that its sender wants held for `delay_s`; False if as many as may wait do wait."""

    def submit_own(self, item: OwnMessage, *, now_s: float) -> bool:
        """Take a message of our own; False, as back-pressure, if as many as may wait do wait."""

    def requeue(self, item: Transit, *, now_s: float) -> None:
        """Take back what was released, as the packet it has become, because its link was not writable.

        It was admitted once, so no bound refuses it, but it counts as waiting: it takes the room of new
        packets.
        """

    def next_timer_s(self) -> float | None:
        """Return the instant at which `handle_timer` is due, if any."""

    def handle_timer(self, *, now_s: float) -> None:
        """Release what is due; earlier calls do nothing."""

    def next_event(self) -> MixerEvent | None:
        """Return the oldest event not yet read, if any."""
