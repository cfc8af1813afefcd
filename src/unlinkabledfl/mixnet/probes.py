"""What became of our cover: every cover packet is also a probe of the peers that carried it.

    idle --sent----------------------> waiting
    waiting --returned---------------> ProbeReturned, idle
    waiting --timer------------------> ProbeLost, idle

Drop cover returns as the acknowledgement of its destination, loop cover as itself. If somebody drops packets in order
to empty the mixes around a target (the n-1 attack), cover is lost like everything else, and `loss_share` says so.

Invariant: each probe ends exactly once, and only live probes are remembered.
"""

from collections import deque
from dataclasses import dataclass
from typing import TypeAlias

from unlinkabledfl.mixnet.items import CoverKind
from unlinkabledfl.mixnet.limits import Deadlines
from unlinkabledfl.sphinx import NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReturned:
    """A cover packet came full circle over these peers."""

    kind: CoverKind
    relays: tuple[NodeId, ...]
    sent_at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeLost:
    """A cover packet did not come back in the time that its delays allow."""

    kind: CoverKind
    relays: tuple[NodeId, ...]
    sent_at_s: float


ProbeEvent: TypeAlias = ProbeReturned | ProbeLost

_RECENT = 0.02
"""Weight of the newest probe in `loss_share`: it remembers about the last fifty."""


class Probes:
    """The cover packets under way."""

    __slots__ = ("_deadlines", "_events", "_waiting", "loss_share")

    def __init__(self) -> None:
        self._waiting: dict[bytes, tuple[CoverKind, tuple[NodeId, ...], float]] = {}
        self._deadlines: Deadlines[bytes] = Deadlines()
        self._events: deque[ProbeEvent] = deque()
        self.loss_share = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    def sent(
        self, probe_id: bytes, kind: CoverKind, relays: tuple[NodeId, ...], *, timeout_s: float, now_s: float
    ) -> None:
        """This cover packet left now."""
        self._waiting[probe_id] = (kind, relays, now_s)
        self._deadlines.set(probe_id, now_s + timeout_s)

    def returned(self, probe_id: bytes) -> bool:
        """It came back; false if no probe of this id is under way."""
        waiting = self._waiting.pop(probe_id, None)
        if waiting is None:
            return False
        self._deadlines.cancel(probe_id)
        self._note(0.0)
        self._events.append(ProbeReturned(kind=waiting[0], relays=waiting[1], sent_at_s=waiting[2]))
        return True

    def next_timer_s(self) -> float | None:
        return self._deadlines.next_s()

    def handle_timer(self, *, now_s: float) -> None:
        """Stop waiting for the overdue ones."""
        while (probe_id := self._deadlines.pop_due(now_s)) is not None:
            kind, relays, sent_at_s = self._waiting.pop(probe_id)
            self._note(1.0)
            self._events.append(ProbeLost(kind=kind, relays=relays, sent_at_s=sent_at_s))

    def next_event(self) -> ProbeEvent | None:
        return self._events.popleft() if self._events else None

    def _note(self, lost: float) -> None:
        self.loss_share += _RECENT * (lost - self.loss_share)
