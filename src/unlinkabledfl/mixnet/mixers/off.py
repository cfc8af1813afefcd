"""Send everything at once: no delay, no cover, no order changed. The baseline for every mixer.

    new --submitted, is held-------------> new
    new --start--------------------------> running
    running --own message submitted------> Scheduled, Released, running
    running --transit submitted----------> Released, running
    running --given back, is held--------> running
    running --timer, packet held---------> Released, running
    running --timer, message held--------> Scheduled, Released, running

Only two things are ever held: what was submitted before the start, and for `RETRY_PAUSE_S` a packet whose
link was not writable.

Invariant: what is accepted is released, and released at once unless its link refused it. Packets that were
refused count against the bound for transit, so dead links turn into refusals instead of a queue without end.
"""

import math
from collections import deque
from dataclasses import dataclass

from unlinkabledfl.errors import LocalProtocolError
from unlinkabledfl.mixnet.draw import Draw
from unlinkabledfl.mixnet.items import OwnMessage, Transit
from unlinkabledfl.mixnet.mixers._checks import check_capacities
from unlinkabledfl.mixnet.mixers.protocol import RETRY_PAUSE_S, MixerEvent, Released, Scheduled


@dataclass(frozen=True, slots=True, kw_only=True)
class OffSettings:
    """How much may wait, for the start or for links that are not writable."""

    transit_capacity: int = 1000
    """How many packets may wait."""
    own_capacity: int = 1000
    """How many messages of our own may wait."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, naming the key."""
        check_capacities(transit_capacity=self.transit_capacity, own_capacity=self.own_capacity)


class Off:
    """A mixer that mixes nothing."""

    __slots__ = ("_events", "_held", "_own_waiting", "_settings", "_started")

    def __init__(self, *, settings: OffSettings) -> None:
        self._settings = settings
        # Every pause is equally long, so the order of arrival is the order of release.
        self._held: deque[tuple[float, Transit | OwnMessage]] = deque()
        self._own_waiting = 0
        self._started = False
        self._events: deque[MixerEvent] = deque()

    @property
    def own_capacity(self) -> int:
        """How many messages of our own may wait."""
        return self._settings.own_capacity

    @property
    def transit_capacity(self) -> int:
        """How many packets of others, and acknowledgements, may wait."""
        return self._settings.transit_capacity

    @property
    def own_waiting(self) -> int:
        """How many messages of our own wait for the start."""
        return self._own_waiting

    @property
    def transit_waiting(self) -> int:
        """How many packets wait for the start, or for their link after it refused them."""
        return len(self._held) - self._own_waiting

    @property
    def longest_delay_s(self) -> float:
        """Infinite: what senders ask for is not heard here."""
        return math.inf

    def hop_delay_s(self, draw: Draw) -> float:
        """Return 0: nothing is delayed."""
        return 0.0

    def start(self, *, now_s: float) -> None:
        """Begin to release; what was submitted before is due at once."""
        if self._started:
            raise LocalProtocolError("a mixer starts once")
        self._started = True

    def submit_transit(self, item: Transit, *, delay_s: float, now_s: float) -> bool:
        """Release a packet now; False if too many wait for their links."""
        if len(self._held) - self._own_waiting >= self._settings.transit_capacity:
            return False
        if self._started:
            self._events.append(Released(item=item))
        else:
            self._held.append((now_s, item))
        return True

    def submit_own(self, item: OwnMessage, *, now_s: float) -> bool:
        """Release a message of our own now; False if too many wait for the start."""
        if self._own_waiting >= self._settings.own_capacity:
            return False
        if self._started:
            self._events.append(Scheduled(item=item, release_at_s=now_s))
            self._events.append(Released(item=item))
        else:
            self._held.append((now_s, item))
            self._own_waiting += 1
        return True

    def requeue(self, item: Transit, *, now_s: float) -> None:
        """Take back a packet whose link was not writable, and try again after a pause."""
        self._held.append((now_s + RETRY_PAUSE_S, item))

    def next_timer_s(self) -> float | None:
        """Return the instant at which the first held item is due."""
        return self._held[0][0] if self._held and self._started else None

    def handle_timer(self, *, now_s: float) -> None:
        """Release the held items that are due."""
        while self._started and self._held and self._held[0][0] <= now_s:
            _, item = self._held.popleft()
            if isinstance(item, OwnMessage):
                self._own_waiting -= 1
                self._events.append(Scheduled(item=item, release_at_s=now_s))
            self._events.append(Released(item=item))

    def next_event(self) -> MixerEvent | None:
        """Return the oldest event not yet read, if any."""
        return self._events.popleft() if self._events else None
