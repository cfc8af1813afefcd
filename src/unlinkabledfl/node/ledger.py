"""What a participant reports of a round, by the names in docs/metrics.md.

Flows (fragments, packets, bytes) are reported as what passed since the report before, so that over all rounds they add
up to the totals; what belongs to the round itself is reported as it was when the round ended.

Invariant: the sum of all reports and of what is still open is what `Totals` says.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from unlinkabledfl.fragments import Aggregate, Tally
from unlinkabledfl.node.rounds import RoundOver
from unlinkabledfl.node.sending import Sending

_TRAINING = "train_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Everything that flowed since the participant was made."""

    fragments_sent: int = 0
    fragments_acknowledged: int = 0
    fragments_given_up: int = 0
    fragments_withdrawn: int = 0
    fragments_resent: int = 0
    fragments_received: int = 0
    fragments_aggregated: int = 0
    fragments_late: int = 0
    fragments_refused: int = 0
    packets_sent: int = 0
    packets_relayed: int = 0
    cover_sent: int = 0
    bytes_sent: int = 0

    def since(self, before: "Totals") -> dict[str, float]:
        """Return the differences by name."""
        return {field.name: float(getattr(self, field.name) - getattr(before, field.name)) for field in fields(Totals)}

    @property
    def cover_share(self) -> float:
        """The share of cover among the packets that began their way here, acknowledgements aside."""
        return _share(self.cover_sent, self.fragments_sent + self.fragments_resent)


@dataclass(slots=True)
class RoundNotes:
    """What is known of the round under way before it is over."""

    train_metrics: Mapping[str, float]
    train_failed: bool = False
    evaluation: Mapping[str, float] | None = None
    aggregate: Aggregate | None = None
    expected: int = 0
    collected: int = 0
    completeness: float = 1.0


class Ledger:
    """Makes the reports of one participant."""

    __slots__ = ("_before", "_round_trips_s", "notes")

    def __init__(self) -> None:
        self._before = Totals()
        self._round_trips_s: list[float] = []
        self.notes = RoundNotes({})

    def begin(self) -> None:
        """A round begins."""
        self.notes = RoundNotes({})

    def round_trip(self, round_trip_s: float) -> None:
        """A fragment was acknowledged after this time."""
        self._round_trips_s.append(round_trip_s)

    def close(self, over: RoundOver, totals: Totals, *, peers_routable: int) -> dict[str, float]:
        """Return the report of the round that is over."""
        notes = self.notes
        passed = totals.since(self._before)
        report = {
            "train_s": over.train_s,
            "exchange_s": over.exchange_s,
            "aggregate_s": over.aggregate_s,
            "evaluate_s": over.evaluate_s,
            "round_s": over.train_s + over.exchange_s + over.aggregate_s + over.evaluate_s,
            "train_failed": float(notes.train_failed),
            "completeness": notes.completeness,
            "fragments_expected": float(notes.expected),
            "fragments_collected": float(notes.collected),
            "peers_routable": float(peers_routable),
            "cover_share": _share(passed["cover_sent"], passed["fragments_sent"] + passed["fragments_resent"]),
            **passed,
            **_trained(notes.train_metrics),
            **_round_trips(self._round_trips_s),
        }
        if notes.aggregate is not None:
            report |= _aggregated(notes.aggregate)
        if notes.evaluation is not None:
            report |= notes.evaluation
        self._before = totals
        self._round_trips_s = []
        return report


def totals_of(
    sending: Sending, tally: Tally, counters: Mapping[str, int], *, packets_sent: int, bytes_sent: int
) -> Totals:
    """Return the totals as the machines have them."""
    return Totals(
        fragments_sent=sending.sent,
        fragments_acknowledged=sending.acknowledged,
        fragments_given_up=sending.lost,
        fragments_withdrawn=sending.withdrawn,
        fragments_resent=counters.get("resent", 0),
        fragments_received=tally.received,
        fragments_aggregated=tally.aggregated,
        fragments_late=tally.late,
        fragments_refused=sum(tally.refused.values()),
        packets_sent=packets_sent,
        packets_relayed=counters.get("relayed", 0),
        cover_sent=counters.get("sent_drop_cover", 0) + counters.get("sent_loop_cover", 0),
        bytes_sent=bytes_sent,
    )


def _trained(metrics: Mapping[str, float]) -> dict[str, float]:
    return {name if name.startswith(_TRAINING) else _TRAINING + name: value for name, value in metrics.items()}


def _round_trips(round_trips_s: Sequence[float]) -> dict[str, float]:
    if not round_trips_s:
        return {}
    middle_s, high_s = np.percentile(round_trips_s, (50, 95))
    return {
        "rtt_s_mean": sum(round_trips_s) / len(round_trips_s),
        "rtt_s_p50": float(middle_s),
        "rtt_s_p95": float(high_s),
    }


def _aggregated(aggregate: Aggregate) -> dict[str, float]:
    candidates = aggregate.candidates
    return {
        "candidates_mean": sum(candidates) / len(candidates),
        "candidates_min": float(min(candidates)),
        "infeasible_ranges": float(len(aggregate.infeasible)),
        "uncovered_ranges": float(len(aggregate.uncovered)),
    }


def _share(part: float, rest: float) -> float:
    return part / (part + rest) if part + rest else 0.0
