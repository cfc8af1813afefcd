"""How far a run is, from what its recorders are told: nothing is printed here.

Invariant: a round of a node counts once, and `share_done` never falls.
"""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final

from unlinkabledfl.experiment.records import Event, EventKind, RunDescription, Status
from unlinkabledfl.experiment.records.totals import Totals

__all__ = ["Progress", "RoundSoFar"]

_EVENTS_KEPT: Final = 4
_RATE_SAMPLES: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundSoFar:
    """A round as far as nodes have reported it; what nobody has reported is None."""

    number: int
    nodes: int
    accuracy_mean: float | None
    accuracy_min: float | None
    completeness: float | None
    round_s: float | None
    rtt_s: float | None


class Progress:
    """What is known of a run that goes on."""

    def __init__(self, description: RunDescription) -> None:
        self.description = description
        self.clock_s = 0.0
        self.status = Status.RUNNING
        self.reason = ""
        self.events: deque[Event] = deque(maxlen=_EVENTS_KEPT)
        self.deaths = 0
        self._totals = Totals()
        self._phases: dict[int, str] = {}
        self._gone: set[int] = set()
        self._done: dict[int, set[int]] = {}
        self._first_round: int | None = None
        self._packets: dict[int, float] = {}
        self._packets_sent = 0.0
        self._cover: dict[int, float] = {}
        self._rate: deque[tuple[float, float]] = deque(maxlen=_RATE_SAMPLES)

    # ------------------------------------------------------------------------------------------------ what is told

    def record(
        self, *, time_s: float, round_number: int | None, node: int | None, metrics: Mapping[str, float]
    ) -> None:
        """Take figures."""
        self.clock_s = max(self.clock_s, time_s)
        if node is None:
            return
        if round_number is None:
            self._sample(time_s, node, metrics)
            return
        self._see_round(round_number)
        self._totals.add(round_number=round_number, node=node, metrics=metrics)
        if "round_s" in metrics:
            self._done.setdefault(round_number, set()).add(node)

    def event(self, *, time_s: float, node: int | None, kind: EventKind, text: str) -> None:
        """Take an event."""
        self.clock_s = max(self.clock_s, time_s)
        self.events.append(Event(time_s=time_s, node=node, kind=kind, text=text))
        self.deaths += kind is EventKind.DEATH
        if node is None:
            return
        if kind in {EventKind.DEATH, EventKind.EXIT}:
            self._gone.add(node)
            self._phases.pop(node, None)
        elif kind is EventKind.JOIN:
            self._gone.discard(node)

    def phase(self, *, time_s: float, round_number: int, node: int, phase: str) -> None:
        """Take what a node does now."""
        self.clock_s = max(self.clock_s, time_s)
        self._see_round(round_number)
        if node not in self._gone:
            self._phases[node] = phase

    def finish(self, status: Status, *, reason: str = "") -> None:
        """Take how it ended."""
        self.status, self.reason = status, reason

    # ----------------------------------------------------------------------------------------------- what is known

    @property
    def phases(self) -> list[tuple[str, int]]:
        """How many nodes do what, in the order of a round."""
        counted = Counter(self._phases.values())
        order = {name: place for place, name in enumerate(("train", "exchange", "aggregate", "evaluate", "idle"))}
        return sorted(counted.items(), key=lambda entry: (order.get(entry[0], len(order)), entry[0]))

    @property
    def present(self) -> int:
        """How many nodes take part."""
        return max(0, self.description.nodes - len(self._gone))

    @property
    def rounds_complete(self) -> int:
        """The last round that all present nodes have reported."""
        return max((number for number in self._done if self.is_complete(number)), default=0)

    @property
    def current_round(self) -> int:
        """The latest round that any node is in."""
        return max([self._first_round or 0, *self._done, self._totals.last_round()])

    @property
    def share_done(self) -> float:
        """How much of what was to do when this run was started or taken up is done, from 0 to 1."""
        planned = self.description.nodes * (self.description.planned_rounds - (self._first_round or 1) + 1)
        done = sum(map(len, self._done.values())) + sum(
            1
            for node in self._gone
            for number in range(self._first_round or 1, self.description.planned_rounds + 1)
            if node not in self._done.get(number, ())
        )
        return min(1.0, done / planned) if planned > 0 else 0.0

    @property
    def packets_per_s(self) -> float | None:
        """What all nodes together send, on the run's clock, of late."""
        if len(self._rate) < 2:  # noqa: PLR2004 - a rate needs two samples
            return None
        (from_s, before), (until_s, now) = self._rate[0], self._rate[-1]
        return max(0.0, now - before) / (until_s - from_s) if until_s > from_s else None

    @property
    def cover_share(self) -> float | None:
        """The mean of what nodes last said."""
        return fmean(self._cover.values()) if self._cover else self._totals.network()["cover_share"]

    def is_complete(self, number: int) -> bool:
        """Return whether all present nodes have reported this round."""
        done = self._done.get(number, set())
        return bool(done) and len(done) >= self.present and len(done - self._gone) >= self.present

    def done_in(self, number: int) -> int:
        """Return how many nodes have reported this round."""
        return len(self._done.get(number, ()))

    def round(self, number: int) -> RoundSoFar:
        """Return a round as far as it has been reported."""

        def values(name: str) -> list[float]:
            return list(self._totals.by_node(name, number).values())

        accuracy, rtt_s = values("accuracy"), values("rtt_s_p50")
        completeness, round_s = values("completeness"), values("round_s")
        return RoundSoFar(
            number=number,
            nodes=self.done_in(number),
            accuracy_mean=fmean(accuracy) if accuracy else None,
            accuracy_min=min(accuracy, default=None),
            completeness=fmean(completeness) if completeness else None,
            round_s=fmean(round_s) if round_s else None,
            rtt_s=median(rtt_s) if rtt_s else None,
        )

    def reported_rounds(self) -> list[int]:
        """Return the rounds of which anything is known."""
        return sorted(self._done)

    def _see_round(self, number: int) -> None:
        self._first_round = number if self._first_round is None else min(self._first_round, number)

    def _sample(self, time_s: float, node: int, metrics: Mapping[str, float]) -> None:
        if "cover_share" in metrics:
            self._cover[node] = metrics["cover_share"]
        if "packets_sent" not in metrics:
            return
        self._packets_sent += metrics["packets_sent"] - self._packets.get(node, 0.0)
        self._packets[node] = metrics["packets_sent"]
        total = self._packets_sent
        # Samples of one instant come node by node: the last of them counts.
        if self._rate and self._rate[-1][0] >= time_s:
            self._rate[-1] = (self._rate[-1][0], total)
        else:
            self._rate.append((time_s, total))
