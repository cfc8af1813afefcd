"""What the board has to show, as intervals, and whether it does.

- The published adversary reproduces the published figures: within two published deviations, half of our interval, and
  the rounding of the published figure.
- `route` on the published design meets the exact enumeration: within 0.02.
- Against `strong`, no adversary of one packet does better than guessing among the 31 others by more than 0.015.
- With a quarter of the nodes compromised there are packets of which every relay is, and these are lost whatever the
  mixing: a share p of the targets, counted. The others leave a guess g among the honest senders. So the bar is
  p + (1 − p)·g + 0.03, with g the mean of 1/|U| over the senders that the last hop allows.
- `grouping` against `strong` stays under 0.10, and a round trip under the published one.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from unlinkabledfl.analysis.last_hop import LastHop, walk_law
from unlinkabledfl.experiment.linking.configurations import row_name
from unlinkabledfl.experiment.linking.published import ABLATION, ROUND_TRIP_S
from unlinkabledfl.mixnet.topology import circulant

__all__ = ["bars"]

_ROUNDING = 0.005
_ENUMERATED = {"paper": 2, "K=3": 3, "K=4": 4, "K=5": 5}
_SINGLE = ("paper", "route", "flow")
_NODES, _DEGREE = 32, 4

Row = Mapping[str, Any]


def bars(board: Sequence[Row]) -> list[dict[str, Any]]:
    """Return every bar with what was measured; of deployments that were left out there is none."""
    rows = {(row["configuration"], row["adversary"]): row for row in board}
    return [*_published_bars(rows), *_route_bars(rows), *_strong_bars(rows)]


def _published_bars(rows: Mapping[tuple[str, str], Row]) -> Iterator[dict[str, Any]]:
    for published in ABLATION:
        row = rows.get((published.configuration, "paper"))
        if row is None or published.deviation is None:
            continue
        noise = 2.0 * published.deviation + _half_width(row) + _ROUNDING
        what = f"`paper` on {published.configuration}, published {published.accuracy:.2f}"
        yield _bar(what, row["accuracy"], low=published.accuracy - noise, high=published.accuracy + noise)


def _route_bars(rows: Mapping[tuple[str, str], Row]) -> Iterator[dict[str, Any]]:
    graph = circulant(_NODES, _DEGREE)
    for configuration, hops in _ENUMERATED.items():
        ends = [graph.reach_exactly(node, hops) for node in range(_NODES)]
        exact = LastHop(walk_law(graph, path_length=hops), ends).accuracy
        row = rows.get((configuration, "route"))
        if row is None:
            continue
        what = f"`route` on walks of K={hops}, enumerated {exact:.3f}"
        yield _bar(what, row["accuracy"], low=exact - 0.02, high=exact + 0.02)


def _strong_bars(rows: Mapping[tuple[str, str], Row]) -> Iterator[dict[str, Any]]:
    if ("strong", "flow") not in rows:
        return
    for adversary in _SINGLE:
        row = rows["strong", adversary]
        yield _bar(f"`{adversary}` on strong", row["accuracy"], high=1.0 / (_NODES - 1) + 0.015)
    owned = row_name("strong", 0.25)
    for adversary in _SINGLE:
        row = rows[owned, adversary]
        lost = row["all_relays_compromised"]
        high = lost + (1.0 - lost) * row["baseline"] + 0.03
        yield _bar(f"`{adversary}` on {owned}", row["accuracy"], high=high)
    yield _bar("`grouping` on strong", rows["strong", "grouping"]["accuracy"], high=0.10)
    round_trip_s = rows["strong", "flow"]["rtt_s_mean"]
    if round_trip_s is not None:
        yield _bar("round trip on strong, seconds", round_trip_s, high=ROUND_TRIP_S)


def _bar(what: str, measured: float, *, high: float, low: float = 0.0) -> dict[str, Any]:
    return {"what": what, "low": max(low, 0.0), "high": high, "measured": measured, "holds": low <= measured <= high}


def _half_width(row: Row) -> float:
    half: float = (row["ci_high"] - row["ci_low"]) / 2
    return half
