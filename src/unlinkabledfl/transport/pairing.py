"""Which connection with a peer is the link, when both sides may dial at any time, and when to dial again.

    idle --dial, or retry timer--------------> Dial, dialling
    idle --proved----------------------------> Welcome, Up, up
    dialling --opened------------------------> Up, up
    dialling --failed------------------------> Failed, idle
    dialling --proved, theirs counts---------> StopDial, Welcome, Up, up
    dialling --proved, ours counts-----------> holding
    holding --opened-------------------------> Up, Reject, up
    holding --failed-------------------------> Welcome, Up, up
    holding --held one closed----------------> dialling
    up --closed------------------------------> Down, idle
    up --closed, another held----------------> Down, Welcome, Up, up
    up --hang up-----------------------------> Reject, Down, idle
    up --proved, link is young---------------> up
    up --proved, link is old-----------------> Reject, Down, Welcome, Up, up
    up --settling timer, another held--------> Reject, Down, Welcome, Up, up

When two nodes dial each other at once, both connections get as far as the proof. The one that the node with the smaller
id dialled counts: that node holds the other one back until its own has come up or failed, the other node drops its own.
No packet goes over a connection before its welcome, so none is lost with the one that loses.

A proof from a peer whose link is up means that it has started anew, or has noticed before us that the link is gone: the
new connection takes its place. Only while the link is young may the proof be the late end of such a race, and waits.

Invariant: `Up` and `Down` alternate. At most one connection with a peer is welcomed, and each connection that is handed
in is, in the end, the link, rejected, or reported closed by its owner.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

from unlinkabledfl.errors import LocalProtocolError

__all__ = ["Dial", "Down", "Failed", "Pairing", "PairingEvent", "Reject", "StopDial", "Up", "Welcome"]

C = TypeVar("C")

_YOUNG_S: Final = 3.0
"""For so long after a link came up, another proof may be the late end of a race."""
_STEADY_S: Final = 10.0
"""A link that lasted so long was a success: the next pause is the shortest again."""
_DOUBLINGS_MAX: Final = 32


@dataclass(frozen=True, slots=True)
class Dial:
    """Begin to dial; answer with `opened` or `failed`."""


@dataclass(frozen=True, slots=True)
class StopDial:
    """Forget the dial in progress, without an answer."""


@dataclass(frozen=True, slots=True)
class Welcome(Generic[C]):
    """Take this accepted connection: it is the link now."""

    connection: C


@dataclass(frozen=True, slots=True)
class Reject(Generic[C]):
    """Close this connection."""

    connection: C


@dataclass(frozen=True, slots=True)
class Up:
    """There is a link."""


@dataclass(frozen=True, slots=True)
class Down:
    """There is none any more."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The peer does not answer."""


PairingEvent: TypeAlias = Dial | StopDial | Welcome[C] | Reject[C] | Up | Down | Failed


class Pairing(Generic[C]):
    """All connections with one peer. `chance` draws from 0 to 1, for the jitter of pauses."""

    __slots__ = (
        "_chance",
        "_dialling",
        "_events",
        "_failures",
        "_first_s",
        "_held",
        "_longest_s",
        "_ours_counts",
        "_retry_at_s",
        "_up_at_s",
        "link",
        "wanted",
    )

    def __init__(
        self, *, ours_counts: bool, backoff_first_s: float, backoff_max_s: float, chance: Callable[[], float]
    ) -> None:
        self.link: C | None = None
        self.wanted = False
        self._ours_counts = ours_counts
        self._first_s = backoff_first_s
        self._longest_s = backoff_max_s
        self._chance = chance
        self._dialling = False
        self._held: C | None = None
        self._failures = 0
        self._retry_at_s: float | None = None
        self._up_at_s = 0.0
        self._events: deque[PairingEvent[C]] = deque()

    @property
    def is_dialling(self) -> bool:
        return self._dialling

    @property
    def is_idle(self) -> bool:
        """Whether nothing would be forgotten with this object."""
        return self.link is None and self._held is None and not (self._dialling or self.wanted or self._events)

    def next_event(self) -> PairingEvent[C] | None:
        return self._events.popleft() if self._events else None

    # -- what the owner wants -----------------------------------------------------------------------------------

    def want(self, *, now_s: float) -> None:
        """Keep a link to this peer from now on."""
        self.wanted = True
        if self._retry_at_s is None:
            self.dial(now_s=now_s)

    def release(self) -> None:
        self.wanted = False
        self._retry_at_s = None

    def dial(self, *, now_s: float) -> None:
        """Dial, unless there is a link or a dial in progress already. A pause ends early."""
        if self.link is None and not self._dialling:
            self._dialling = True
            self._retry_at_s = None
            self._events.append(Dial())

    def hang_up(self, *, now_s: float) -> None:
        """Give up whatever there is. A wanted peer is dialled again after a pause."""
        if self._dialling:
            self._dialling = False
            self._events.append(StopDial())
        if self._held is not None:
            self._events.append(Reject(self._held))
            self._held = None
        if self.link is not None:
            self._events.append(Reject(self.link))
            self._lose(now_s)
        self._pause(now_s)

    # -- what happens to connections ----------------------------------------------------------------------------

    def opened(self, connection: C, *, now_s: float) -> None:
        """The connection that we dialled is welcome at the peer."""
        if not self._dialling:
            raise LocalProtocolError("a dial that is not in progress cannot succeed")
        self._dialling = False
        self._come_up(connection, now_s)
        if self._held is not None:
            self._events.append(Reject(self._held))
            self._held = None

    def failed(self, *, now_s: float) -> None:
        """The dial in progress came to nothing."""
        if not self._dialling:
            raise LocalProtocolError("a dial that is not in progress cannot fail")
        self._dialling = False
        self._failures += 1
        if self._held is None:
            self._events.append(Failed())
        self._take_held(now_s)
        self._pause(now_s)

    def proved(self, connection: C, *, now_s: float) -> None:
        """The peer has proved on a connection that it dialled that it is there."""
        if self.link is not None and now_s - self._up_at_s >= _YOUNG_S:
            self._events.append(Reject(self.link))
            self._lose(now_s)
        if self.link is not None or (self._dialling and self._ours_counts):
            if self._held is not None:
                self._events.append(Reject(self._held))
            self._held = connection
            return
        if self._dialling:
            self._dialling = False
            self._events.append(StopDial())
        self._welcome(connection, now_s)

    def closed(self, connection: C, *, now_s: float) -> None:
        """A connection that was handed in, or that opened, is gone."""
        if connection is self._held:
            self._held = None
        elif connection is self.link:
            self._lose(now_s)
            self._take_held(now_s)
            self._pause(now_s)

    # -- time ---------------------------------------------------------------------------------------------------

    def next_timer_s(self) -> float | None:
        if self.link is not None and self._held is not None:
            return self._up_at_s + _YOUNG_S
        return self._retry_at_s

    def handle_timer(self, *, now_s: float) -> None:
        held = self._held
        if self.link is not None and held is not None and now_s >= self._up_at_s + _YOUNG_S:
            self._held = None
            self.proved(held, now_s=now_s)
        elif self._retry_at_s is not None and now_s >= self._retry_at_s:
            self.dial(now_s=now_s)

    # -- inside -------------------------------------------------------------------------------------------------

    def _come_up(self, connection: C, now_s: float) -> None:
        self.link = connection
        self._up_at_s = now_s
        self._retry_at_s = None
        self._events.append(Up())

    def _welcome(self, connection: C, now_s: float) -> None:
        self._events.append(Welcome(connection))
        self._come_up(connection, now_s)

    def _take_held(self, now_s: float) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            self._welcome(held, now_s)

    def _lose(self, now_s: float) -> None:
        self.link = None
        self._failures = 0 if now_s - self._up_at_s >= _STEADY_S else self._failures + 1
        self._events.append(Down())

    def _pause(self, now_s: float) -> None:
        if not self.wanted or self.link is not None or self._dialling:
            return
        doublings = min(max(self._failures - 1, 0), _DOUBLINGS_MAX)
        mean_s = min(self._first_s * 2.0**doublings, self._longest_s)
        self._retry_at_s = now_s + mean_s * (0.5 + self._chance())
