"""Hold each packet for the delay its sender chose; send our own, or cover, at the ticks of a Poisson process.

    new --submitted, waits for the start--------> new
    new --start--------------------------------> Scheduled, running
    running --transit submitted, is held-------> running
    running --own message submitted, is queued-> running
    running --given back, is held anew---------> running
    running --timer, delay of a transit over---> Released, running
    running --timer, tick of a stream----------> Released, Scheduled, running
    running --timer, tick with nothing to send-> Scheduled, running

There are three independent kinds of release. A packet in transit leaves exactly when the delay in its header
is over; senders draw these delays from one exponential law, so that of two packets in a relay either is
equally likely to leave first, whichever came first. The emission stream ticks at `emission_rate_per_s`: a
tick sends the oldest waiting message of our own, or drop cover. The loop stream ticks at `loop_rate_per_s`
and sends loop cover. Without cover there is no loop stream, and a tick without a message sends nothing, so
that messages still leave at the ticks of a Poisson process.

Invariant: the ticks are drawn before it is decided what they send, and from nothing but the clock and
entropy. So the instants at which a node emits are one Poisson process, whether it has a whole model to send
or nothing at all. What a tick sends is decided one tick ahead, so a message waits for at least one whole
tick, and its packet is ready in time.

A late timer releases every transit packet that is due, because each was held for as long as its sender asked,
and more. A stream that was late takes a fresh gap from now: the process has no memory, so this is the same
law as skipping the ticks that were missed. A starved CPU thins emission out; it never makes a burst of it.

What is given back because its link was not writable is a packet like any other, whatever it was made from: it
is held anew for an exponential time.
"""

import heapq
import math
from collections import deque
from dataclasses import dataclass

from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.mixnet.draw import Draw
from unlinkabledfl.mixnet.items import Cover, CoverKind, OwnMessage, Transit
from unlinkabledfl.mixnet.mixers._checks import check_capacities, check_rate, check_seconds, check_switch
from unlinkabledfl.mixnet.mixers.protocol import RETRY_PAUSE_S, MixerEvent, Released, Scheduled

_LONGEST_IN_MEANS = 20.0
_LARGEST_DELAY_MEAN_S = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonSettings:
    """How a Poisson mix holds and emits.

    The defaults are the published outbox (O = 100, μ = 0.1 s), translated. A uniform choice among O places
    and an exponential delay have the same Shannon entropy when the mean delay is O·μ / e; a stage of the
    outbox takes O·μ. With paths of two hops, where a message and its acknowledgement cross four links and a
    loop two, these rates put the same ten packets a second on a node's links.
    """

    delay_mean_s: float = 3.7
    """Mean of the exponential delay that this node, as a sender, asks of each hop."""
    emission_rate_per_s: float = 2.0
    """Rate of the ticks that send a message of our own, or else drop cover."""
    loop_rate_per_s: float = 1.0
    """Rate of the ticks that send loop cover; 0 for none."""
    cover: bool = True
    """Whether ticks without a message send drop cover, and whether there is loop cover at all."""
    transit_capacity: int = 1000
    """How many packets of others, and acknowledgements, may be held."""
    own_capacity: int = 1000
    """How many messages of our own may wait for a tick."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, naming the key."""
        check_seconds("mixnet.delay_mean_s", self.delay_mean_s)
        if self.delay_mean_s > _LARGEST_DELAY_MEAN_S:
            raise ConfigError(
                key="mixnet.delay_mean_s",
                got=self.delay_mean_s,
                takes=f"a number of seconds from 0 to {_LARGEST_DELAY_MEAN_S:.0f}",
                hint="a draw can be 37 times the mean, and a packet's header counts up to 4294 seconds",
            )
        check_rate(
            "mixnet.emission_rate_per_s",
            self.emission_rate_per_s,
            zero_allowed=False,
            hint="messages leave at its ticks",
        )
        check_rate("mixnet.loop_rate_per_s", self.loop_rate_per_s, zero_allowed=True, hint="0 switches loop cover off")
        check_switch("mixnet.cover", self.cover)
        check_capacities(transit_capacity=self.transit_capacity, own_capacity=self.own_capacity)


class Poisson:
    """One node's held packets, and its two streams."""

    __slots__ = (
        "_cover_serial", "_draw", "_emission", "_events", "_held", "_held_serial", "_loop", "_own",
        "_settings", "_started",
    )  # fmt: skip

    def __init__(self, *, settings: PoissonSettings, draw: Draw) -> None:
        self._settings = settings
        self._draw = draw
        self._own: deque[OwnMessage] = deque()
        # The serial decides between equal instants, and keeps packets from being compared.
        self._held: list[tuple[float, int, Transit]] = []
        self._held_serial = 0
        self._emission = _Stream(rate_per_s=settings.emission_rate_per_s, cover_kind=CoverKind.DROP)
        self._loop = _Stream(rate_per_s=settings.loop_rate_per_s if settings.cover else 0.0, cover_kind=CoverKind.LOOP)
        self._cover_serial = 0
        self._started = False
        self._events: deque[MixerEvent] = deque()

    @property
    def own_capacity(self) -> int:
        """How many messages of our own may wait for a tick."""
        return self._settings.own_capacity

    @property
    def transit_capacity(self) -> int:
        """How many packets of others, and acknowledgements, may wait."""
        return self._settings.transit_capacity

    @property
    def own_waiting(self) -> int:
        """How many messages of our own wait; the one for which the next tick is decided waits no more."""
        return len(self._own)

    @property
    def transit_waiting(self) -> int:
        """How many packets, those given back included, are held."""
        return len(self._held)

    @property
    def longest_delay_s(self) -> float:
        """Twenty times the mean: one draw in five hundred million is longer, and is cut."""
        return _LONGEST_IN_MEANS * self._settings.delay_mean_s

    def hop_delay_s(self, draw: Draw) -> float:
        """Draw the delay that this node, as a sender, asks of one hop."""
        return min(draw.exponential(self._settings.delay_mean_s), self.longest_delay_s)

    def start(self, *, now_s: float) -> None:
        """Begin both streams."""
        if self._started:
            raise LocalProtocolError("a mixer starts once")
        self._started = True
        for stream in (self._emission, self._loop):
            if stream.mean_gap_s < math.inf:
                self._schedule(stream, now_s)

    def submit_transit(self, item: Transit, *, delay_s: float, now_s: float) -> bool:
        """Hold a packet for exactly this long; False if no more may be held."""
        if len(self._held) >= self._settings.transit_capacity:
            return False
        self._held_serial += 1
        heapq.heappush(self._held, (now_s + delay_s, self._held_serial, item))
        return True

    def submit_own(self, item: OwnMessage, *, now_s: float) -> bool:
        """Queue a message of our own for a tick; False if no more may wait."""
        if len(self._own) >= self._settings.own_capacity:
            return False
        self._own.append(item)
        return True

    def requeue(self, item: Transit, *, now_s: float) -> None:
        """Take back a packet whose link was not writable, and hold it anew."""
        delay_s = self._draw.exponential(max(self._settings.delay_mean_s, RETRY_PAUSE_S))
        self._held_serial += 1
        heapq.heappush(self._held, (now_s + delay_s, self._held_serial, item))

    def next_timer_s(self) -> float | None:
        """Return the instant of the next tick or of the next release of a held packet."""
        if not self._started:
            return None
        due_s = min(self._emission.tick_at_s, self._loop.tick_at_s)
        return min(due_s, self._held[0][0]) if self._held else due_s

    def handle_timer(self, *, now_s: float) -> None:
        """Release what is due, in the order in which it became due."""
        if not self._started:
            return
        held = self._held
        while True:
            stream = self._emission if self._emission.tick_at_s <= self._loop.tick_at_s else self._loop
            if held and held[0][0] <= stream.tick_at_s:
                if held[0][0] > now_s:
                    return
                self._events.append(Released(item=heapq.heappop(held)[2]))
            elif stream.tick_at_s > now_s:
                return
            else:
                if stream.next_item is not None:
                    self._events.append(Released(item=stream.next_item))
                self._schedule(stream, now_s)

    def next_event(self) -> MixerEvent | None:
        """Return the oldest event not yet read, if any."""
        return self._events.popleft() if self._events else None

    def _schedule(self, stream: "_Stream", now_s: float) -> None:
        """Draw the stream's next tick, then decide what it sends."""
        stream.tick_at_s = now_s + self._draw.exponential(stream.mean_gap_s)
        item: OwnMessage | Cover
        if stream is self._emission and self._own:
            item = self._own.popleft()
        elif self._settings.cover:
            item = Cover(stream.cover_kind, self._cover_serial)
            self._cover_serial += 1
        else:
            stream.next_item = None
            return
        stream.next_item = item
        self._events.append(Scheduled(item=item, release_at_s=stream.tick_at_s))


class _Stream:
    """One Poisson process of ticks, and what its next tick sends; a rate of zero never ticks."""

    __slots__ = ("cover_kind", "mean_gap_s", "next_item", "tick_at_s")

    def __init__(self, *, rate_per_s: float, cover_kind: CoverKind) -> None:
        self.mean_gap_s = 1.0 / rate_per_s if rate_per_s > 0.0 else math.inf
        self.cover_kind = cover_kind
        self.tick_at_s = math.inf
        self.next_item: OwnMessage | Cover | None = None
