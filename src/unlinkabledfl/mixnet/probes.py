"""What became of our cover: every cover packet is also a probe of the peers that carried it.

    idle --sent----------------------> waiting
    waiting --returned---------------> ProbeReturned, idle
    waiting --returned, spoilt-------> ProbeLost, idle
    waiting --timer------------------> ProbeLost, idle

Drop cover returns as the acknowledgement of its destination, loop cover as itself. If somebody drops packets in order
to empty the mixes around a target (the n-1 attack), cover is lost like everything else, and `loss_share` says so.

Invariant: each probe ends exactly once, and only live probes are remembered.
"""

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from unlinkabledfl.mixnet.items import CoverKind
from unlinkabledfl.mixnet.limits import Deadlines
from unlinkabledfl.mixnet.packets import Opaque
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


class _Probe(NamedTuple):
    kind: CoverKind
    relays: tuple[NodeId, ...]
    secret: Opaque
    sent_at_s: float


class Probes:
    """The cover packets under way."""

    __slots__ = ("_deadlines", "_events", "_waiting", "loss_share")

    def __init__(self) -> None:
        self._waiting: dict[bytes, _Probe] = {}
        self._deadlines: Deadlines[bytes] = Deadlines()
        self._events: deque[ProbeEvent] = deque()
        self.loss_share = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, probe_id: object) -> bool:
        return probe_id in self._waiting

    def sent(
        self,
        probe_id: bytes,
        kind: CoverKind,
        relays: tuple[NodeId, ...],
        *,
        secret: Opaque = None,
        timeout_s: float,
        now_s: float,
    ) -> None:
        """This cover packet left now; `secret` opens its acknowledgement."""
        self._waiting[probe_id] = _Probe(kind, relays, secret, now_s)
        self._deadlines.set(probe_id, now_s + timeout_s)

    def secret(self, probe_id: bytes) -> Opaque:
        """What opens the acknowledgement of a probe that is under way."""
        return self._waiting[probe_id].secret

    def returned(self, probe_id: bytes) -> bool:
        """It came back; false if no probe of this id is under way."""
        probe = self._end(probe_id, lost=0.0)
        if probe is None:
            return False
        self._events.append(ProbeReturned(kind=probe.kind, relays=probe.relays, sent_at_s=probe.sent_at_s))
        return True

    def spoilt(self, probe_id: bytes) -> None:
        """What came back in its name was changed on the way: as good as lost."""
        self._lose(probe_id)

    def next_timer_s(self) -> float | None:
        return self._deadlines.next_s()

    def handle_timer(self, *, now_s: float) -> None:
        """Stop waiting for the overdue ones."""
        while (probe_id := self._deadlines.pop_due(now_s)) is not None:
            self._lose(probe_id)

    def next_event(self) -> ProbeEvent | None:
        return self._events.popleft() if self._events else None

    def _lose(self, probe_id: bytes) -> None:
        probe = self._end(probe_id, lost=1.0)
        if probe is not None:
            self._events.append(ProbeLost(kind=probe.kind, relays=probe.relays, sent_at_s=probe.sent_at_s))

    def _end(self, probe_id: bytes, *, lost: float) -> _Probe | None:
        probe = self._waiting.pop(probe_id, None)
        if probe is not None:
            self._deadlines.cancel(probe_id)
            self.loss_share += _RECENT * (lost - self.loss_share)
        return probe
