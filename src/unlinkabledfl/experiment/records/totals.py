"""Sum a run up while it goes on: the rounds, the fragments, and what the network carried.

The same code makes `summary.json` from the figures as they come in, and the document of `unlinkabledfl report` from
the table read back, so that the two cannot disagree. A figure that nobody measured is null.

Invariant: every sent fragment ends exactly once at its sender, every received one exactly once at its receiver; the
sums say whether that held.
"""

import math
from collections.abc import Mapping
from statistics import fmean, median
from typing import Any, Final

from unlinkabledfl.experiment.records.tables import VALUE_MAX

__all__ = ["Totals"]

_SUMMED: Final = {
    "fragments_sent": "sent",
    "fragments_acknowledged": "acknowledged",
    "fragments_given_up": "given_up",
    "fragments_withdrawn": "withdrawn",
    "fragments_received": "received",
    "fragments_aggregated": "aggregated",
    "fragments_late": "late",
    "fragments_refused": "refused",
}
_NETWORK: Final = ("packets_sent", "packets_relayed", "cover_sent", "bytes_sent", "fragments_resent")
_AVERAGED: Final = ("accuracy", "completeness", "round_s", "rtt_s_p50", "cpu_s")
_WANTED: Final = frozenset((*_SUMMED, *_NETWORK, *_AVERAGED))


class Totals:
    """What the figures of a run add up to. A figure that comes twice for a node and round replaces the first."""

    def __init__(self) -> None:
        self._figures: dict[str, dict[int, dict[int, float]]] = {}

    def add(self, *, round_number: int, node: int, metrics: Mapping[str, float]) -> None:
        """Take figures of a node's round."""
        for name, value in metrics.items():
            if name in _WANTED and math.isfinite(value) and abs(value) < VALUE_MAX:
                self._figures.setdefault(name, {}).setdefault(round_number, {})[node] = float(value)

    def last_round(self) -> int:
        """Return the last round of which anything is known, 0 before the first."""
        return max((max(by_round) for by_round in self._figures.values()), default=0)

    def rounds(self) -> list[dict[str, Any]]:
        """Return the rounds as the documents of `run` and `report` list them."""
        numbers = sorted({number for by_round in self._figures.values() for number in by_round})
        return [self._round(number) for number in numbers]

    def fragments(self) -> dict[str, int]:
        """Return what became of all fragments."""
        return {key: round(self._sum(name) or 0) for name, key in _SUMMED.items()}

    def network(self) -> dict[str, Any]:
        """Return what the network saw, all nodes and rounds together.

        The cover share is that of the packets that began their way at a node, acknowledgements aside.
        """
        counted: dict[str, Any] = {
            name: None if (total := self._sum(name)) is None else round(total) for name in _NETWORK
        }
        cover, messages = self._sum("cover_sent"), self._sum("fragments_sent")
        began = (cover or 0.0) + (messages or 0.0) + (self._sum("fragments_resent") or 0.0)
        counted["cover_share"] = cover / began if cover is not None and messages is not None and began else None
        return counted

    def by_node(self, name: str, round_number: int) -> Mapping[int, float]:
        """Return a figure of a round by node."""
        return self._figures.get(name, {}).get(round_number, {})

    def _round(self, number: int) -> dict[str, Any]:
        def over_nodes(name: str) -> list[float]:
            return list(self.by_node(name, number).values())

        def mean(name: str) -> float | None:
            values = over_nodes(name)
            return fmean(values) if values else None

        rtt_s = over_nodes("rtt_s_p50")
        return {
            "round": number,
            "accuracy_mean": mean("accuracy"),
            "accuracy_min": min(over_nodes("accuracy"), default=None),
            "completeness": mean("completeness"),
            "seconds": mean("round_s"),
            "rtt_s_p50": median(rtt_s) if rtt_s else None,
            "bytes_sent_per_node": mean("bytes_sent"),
            "cpu_s_per_node": mean("cpu_s"),
        }

    def _sum(self, name: str) -> float | None:
        by_round = self._figures.get(name)
        return None if by_round is None else math.fsum(value for nodes in by_round.values() for value in nodes.values())
