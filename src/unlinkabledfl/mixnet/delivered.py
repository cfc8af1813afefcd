"""Hand each message to the application once, however many of its attempts arrive.

A sender that misses an acknowledgement sends its message again in a new packet, which no replay window can know: only
the message id inside tells. Ids are kept in two generations. All arrivals go into the younger one; every `horizon_s`
the older one is dropped and the younger takes its place.

    unseen --first_time, room--------> True, seen
    unseen --first_time, full--------> PacketError, unseen
    seen --first_time----------------> False, seen
    seen --timer, two generations on-> unseen

Invariant: `first_time` is true at most once for an id within `horizon_s`; an id is remembered for at least that long
and less than twice as long. So `horizon_s` is to be more than a sender keeps trying: the sum of its timeouts, and the
longest that a packet is under way.

At the bound a new id is refused (`delivered_window_full`): the message is not handed over and must not be
acknowledged. It stays with its sender, whose next attempt finds room once a generation has gone; if none does, the
sender knows that it failed. To forget an old id instead would deliver a message twice without anybody noticing, at a
moment which whoever floods the window could choose. Refusing everything lets a flood keep messages out, for as long as
it lasts: size `capacity` by what the links can carry in twice `horizon_s`, and the bound is never reached.
"""

from unlinkabledfl.errors import ConfigError, PacketError
from unlinkabledfl.mixnet.items import MessageId


class DeliveredWindow:
    """The ids of messages that were delivered here lately, at most `capacity` of them."""

    __slots__ = ("_capacity", "_horizon_s", "_older", "_rotate_at_s", "_younger")

    def __init__(self, *, horizon_s: float, capacity: int) -> None:
        if not horizon_s > 0.0:
            raise ConfigError(key="mixnet.delivered_horizon_s", got=horizon_s, takes="a time above 0")
        if capacity < 1:
            raise ConfigError(key="mixnet.delivered_capacity", got=capacity, takes="a whole number of at least 1")
        self._horizon_s = horizon_s
        self._capacity = capacity
        self._younger: set[MessageId] = set()
        self._older: set[MessageId] = set()
        self._rotate_at_s: float | None = None

    def __len__(self) -> int:
        return len(self._younger) + len(self._older)

    def first_time(self, message_id: MessageId, *, now_s: float) -> bool:
        """True: deliver and acknowledge. False: only acknowledge again. PacketError: full, do neither."""
        self.handle_timer(now_s=now_s)
        if message_id in self._younger or message_id in self._older:
            return False
        if len(self) >= self._capacity:
            raise PacketError("delivered_window_full", f"{self._capacity} messages within {self._horizon_s} s")
        if self._rotate_at_s is None:
            self._rotate_at_s = now_s + self._horizon_s
        self._younger.add(message_id)
        return True

    def next_timer_s(self) -> float | None:
        """When the older generation goes; None while nothing is remembered.

        `first_time` sees to it by itself: the timer only frees memory when nothing arrives any more.
        """
        return self._rotate_at_s

    def handle_timer(self, *, now_s: float) -> None:
        """Drop the generations whose time is over."""
        while self._rotate_at_s is not None and now_s >= self._rotate_at_s:
            self._older = self._younger
            self._younger = set()
            self._rotate_at_s = self._rotate_at_s + self._horizon_s if self._older else None
