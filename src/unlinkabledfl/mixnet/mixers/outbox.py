"""Fill an outbox, permute it, release one item a gap: the mixer of the published design.

    new --submitted, is queued------------> new
    new --start, cover on or queued-------> Scheduled, running
    new --start, nothing to send----------> idle
    idle --submitted or given back--------> Scheduled, running
    running --submitted or back, is queued-> running
    running --timer, items left-----------> Released, Scheduled, running
    running --timer, nothing left---------> Released, idle

When at most `refill_at` items are left in the outbox, it is filled to O: first with what is left over (items
still in it, and items given back because their link was not writable), then with the oldest of one queue in
which packets of others and messages of our own wait together, then, if cover is on, with cover. All of it is
permuted afresh, leftovers included. One item leaves a gap, and gaps are independent draws of a normal law
conditioned on being at least zero.

Invariant: exactly one item leaves at each end of a gap, and which items are in the outbox shows in no gap: an
observer sees a schedule that depends on nothing. That is why a message never starts a gap while one is
running, why the header's wish for a delay is not heard here, and why a refill does not wait for the queue.
With cover off and nothing to send the schedule stops, and its silence says so: that is what switching cover
off means.

Two more decisions:

- The permutation is drawn one step a release: each release takes a uniform choice among what is still in the
  outbox, which is the Fisher-Yates shuffle spread over the cycle. It has the same law as permuting at once,
  costs the same little at every release, and a seized node does not hold the order of what it has yet to
  send.
- A timer that is late by less than the next gap does not move the next release: rounding and small delays do
  not add up. A timer that is later than that has lost time: a fresh gap starts at once, and nothing is caught
  up. A starved CPU slows emission down; it never makes two releases out of one gap.
"""

import math
from collections import deque
from dataclasses import dataclass

from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.mixnet.draw import Draw
from unlinkabledfl.mixnet.items import Cover, CoverKind, Item, OwnMessage, Transit
from unlinkabledfl.mixnet.mixers._checks import check_capacities, check_count, check_seconds, check_switch
from unlinkabledfl.mixnet.mixers.protocol import RETRY_PAUSE_S, MixerEvent, Released, Scheduled

_SHORTEST_COVER_GAP_S = 1e-6
"""Cover at shorter gaps than this floods any link and CPU; at zero the schedule would never reach the next
instant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxSettings:
    """How an outbox mixes. The defaults are those of the published evaluation."""

    outbox_size: int = 100
    """O: how many items are permuted together."""
    delay_mean_s: float = 0.1
    """μ: mean of the normal law of gaps, before it is conditioned on being at least zero."""
    delay_deviation_s: float = 0.001
    """σ: standard deviation of that law."""
    cover: bool = True
    """Whether empty places in the outbox are filled with cover."""
    refill_at: int = 0
    """Refill when at most this many items are left; 0, as published, when the outbox is empty."""
    transit_capacity: int = 1000
    """How many packets of others, and acknowledgements, may wait in the queue."""
    own_capacity: int = 1000
    """How many messages of our own may wait in the queue."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, naming the key."""
        check_count("mixnet.outbox_size", self.outbox_size, least=1)
        check_seconds("mixnet.delay_mean_s", self.delay_mean_s)
        check_seconds("mixnet.delay_deviation_s", self.delay_deviation_s)
        check_switch("mixnet.cover", self.cover)
        check_count(
            "mixnet.refill_at",
            self.refill_at,
            least=0,
            most=self.outbox_size - 1,
            hint="less than mixnet.outbox_size",
        )
        check_capacities(transit_capacity=self.transit_capacity, own_capacity=self.own_capacity)
        if self.cover and self.delay_mean_s < _SHORTEST_COVER_GAP_S:
            raise ConfigError(
                key="mixnet.delay_mean_s",
                got=self.delay_mean_s,
                takes=f"{_SHORTEST_COVER_GAP_S:.6f} seconds or more while mixnet.cover is true",
                hint="cover without gaps never ends; set mixnet.cover = false to send without delay",
            )


class Outbox:
    """One node's outbox: a queue, up to O items in random order, and the one that leaves next."""

    __slots__ = (
        "_cover_serial", "_draw", "_events", "_next_item", "_outbox", "_own_waiting", "_queue",
        "_release_at_s", "_returned", "_settings", "_started",
    )  # fmt: skip

    def __init__(self, *, settings: OutboxSettings, draw: Draw) -> None:
        self._settings = settings
        self._draw = draw
        self._queue: deque[Transit | OwnMessage] = deque()
        self._own_waiting = 0
        self._returned: deque[Transit] = deque()
        # None is the place of a cover item: it gets its serial when its turn comes.
        self._outbox: list[Transit | OwnMessage | None] = []
        self._cover_serial = 0
        self._next_item: Item | None = None
        self._release_at_s: float | None = None
        self._started = False
        self._events: deque[MixerEvent] = deque()

    @property
    def own_capacity(self) -> int:
        """How many messages of our own may wait in the queue."""
        return self._settings.own_capacity

    @property
    def transit_capacity(self) -> int:
        """How many packets of others, and acknowledgements, may wait."""
        return self._settings.transit_capacity

    @property
    def own_waiting(self) -> int:
        """How many messages of our own wait in the queue; those in the outbox wait no more."""
        return self._own_waiting

    @property
    def transit_waiting(self) -> int:
        """How many packets, those given back included, wait for a place in the outbox."""
        return len(self._queue) + len(self._returned) - self._own_waiting

    @property
    def in_outbox(self) -> int:
        """How many items the outbox holds, cover and the next to leave included: at most `outbox_size`."""
        return len(self._outbox) + (self._next_item is not None)

    @property
    def longest_delay_s(self) -> float:
        """Infinite: what senders ask for is not heard here."""
        return math.inf

    def hop_delay_s(self, draw: Draw) -> float:
        """Return 0: here a relay's own schedule delays, not the sender's wish."""
        return 0.0

    def start(self, *, now_s: float) -> None:
        """Fill the outbox for the first time, and begin the first gap if there is anything to send."""
        if self._started:
            raise LocalProtocolError("a mixer starts once")
        self._started = True
        self._schedule(now_s, now_s)

    def submit_transit(self, item: Transit, *, delay_s: float, now_s: float) -> bool:
        """Queue a packet, whatever delay its sender asked for; False if no more may wait."""
        queue = self._queue
        if len(queue) + len(self._returned) - self._own_waiting >= self._settings.transit_capacity:
            return False
        queue.append(item)
        if self._release_at_s is None and self._started:
            self._schedule(now_s, now_s)
        return True

    def submit_own(self, item: OwnMessage, *, now_s: float) -> bool:
        """Queue a message of our own; False if no more may wait."""
        if self._own_waiting >= self._settings.own_capacity:
            return False
        self._queue.append(item)
        self._own_waiting += 1
        if self._release_at_s is None and self._started:
            self._schedule(now_s, now_s)
        return True

    def requeue(self, item: Transit, *, now_s: float) -> None:
        """Take back a packet whose link was not writable: it takes part in the next permutation."""
        self._returned.append(item)
        if self._release_at_s is None and self._started:
            self._schedule(now_s, now_s)

    def next_timer_s(self) -> float | None:
        """Return the instant at which the next item leaves."""
        return self._release_at_s

    def handle_timer(self, *, now_s: float) -> None:
        """Release the one item that is due, and choose the next."""
        release_at_s = self._release_at_s
        item = self._next_item
        if release_at_s is None or item is None or now_s < release_at_s:
            return
        self._events.append(Released(item=item))
        self._schedule(release_at_s, now_s)

    def next_event(self) -> MixerEvent | None:
        """Return the oldest event not yet read, if any."""
        return self._events.popleft() if self._events else None

    def _schedule(self, previous_s: float, now_s: float) -> None:
        """Choose the next item and the instant at which it leaves, or stop if there is none."""
        settings = self._settings
        outbox = self._outbox
        pause_s = 0.0
        if len(outbox) <= settings.refill_at:
            if self._returned and settings.delay_mean_s == settings.delay_deviation_s == 0.0:
                pause_s = RETRY_PAUSE_S
            self._refill()
        last = len(outbox) - 1
        if last < 0:
            self._next_item = None
            self._release_at_s = None
            return
        chosen = self._draw.below(last + 1) if last else 0
        place = outbox[chosen]
        outbox[chosen] = outbox[last]
        outbox.pop()
        gap_s = self._draw.truncated_normal(settings.delay_mean_s, settings.delay_deviation_s)
        release_at_s = previous_s + gap_s + pause_s
        if release_at_s < now_s:
            # Not what is left of that gap: it is known to be short, and would put two releases close
            # together.
            gap_s = self._draw.truncated_normal(settings.delay_mean_s, settings.delay_deviation_s)
            release_at_s = now_s + gap_s + pause_s
        self._release_at_s = release_at_s
        if isinstance(place, Transit):
            self._next_item = place
            return
        item: OwnMessage | Cover | None = place
        if item is None:
            item = Cover(CoverKind.DROP, self._cover_serial)
            self._cover_serial += 1
        self._next_item = item
        self._events.append(Scheduled(item=item, release_at_s=release_at_s))

    def _refill(self) -> None:
        """Fill the outbox: leftovers first, then the queue, then cover."""
        outbox = self._outbox
        queue = self._queue
        returned = self._returned
        room = self._settings.outbox_size - len(outbox)
        while room and returned:
            outbox.append(returned.popleft())
            room -= 1
        while room and queue:
            item = queue.popleft()
            if isinstance(item, OwnMessage):
                self._own_waiting -= 1
            outbox.append(item)
            room -= 1
        if self._settings.cover:
            outbox.extend([None] * room)
