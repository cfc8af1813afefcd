"""Curves of a metric: over rounds as it was reported, over the run clock in as many places as a screen shows.

Invariant: a place of a curve is made of all figures that fall there, so that a peak stays in `high` however few places
there are. What is no finite number is left out.
"""

import numpy as np
from numpy.typing import NDArray

from unlinkabledfl.experiment.records import MetricTable
from unlinkabledfl.experiment.records.tables import NONE
from unlinkabledfl.manager.documents import Point, Series

__all__ = ["curves_of"]


def curves_of(table: MetricTable, metric: str, *, node: int | None, points: int) -> list[Series]:
    """Return the curves of this name: none, one, or two where it is a figure of rounds and a gauge as well."""
    if metric not in table.names:
        return []
    chosen = np.equal(table.codes, table.names.index(metric)) & np.isfinite(table.values)
    if node is not None:
        chosen &= table.nodes == node
    found = []
    of_round = chosen & (table.rounds != NONE)
    if of_round.any():
        found.append(Series(metric=metric, of="round", points=_by_round(table, of_round)))
    of_moment = chosen & (table.rounds == NONE)
    if of_moment.any():
        found.append(Series(metric=metric, of="moment", points=_by_moment(table, of_moment, points)))
    return found


def _by_round(table: MetricTable, chosen: NDArray[np.bool_]) -> tuple[Point, ...]:
    rounds, nodes, values = table.rounds[chosen], table.nodes[chosen], table.values[chosen]
    # Of two figures for one node and round the later counts: the last of equal keys, seen from the end the first.
    keys = rounds[::-1].astype(np.int64) << 32 | (nodes[::-1].astype(np.int64) + 1)
    _, last = np.unique(keys, return_index=True)
    return _points(rounds[::-1][last].astype(np.float64), nodes[::-1][last], values[::-1][last])


def _by_moment(table: MetricTable, chosen: NDArray[np.bool_], points: int) -> tuple[Point, ...]:
    times_s, nodes, values = table.times_s[chosen], table.nodes[chosen], table.values[chosen]
    width_s = max(float(times_s.max()) / points, 1e-9)
    moments = (np.minimum(times_s // width_s, points - 1) + 0.5) * width_s
    order = np.argsort(moments, kind="stable")
    return _points(moments[order], nodes[order], values[order])


def _points(xs: NDArray[np.float64], nodes: NDArray[np.int32], values: NDArray[np.float64]) -> tuple[Point, ...]:
    """Gather values at equal places; they come sorted by place."""
    places, starts, counts = np.unique(xs, return_index=True, return_counts=True)
    means = np.add.reduceat(values, starts) / counts
    lows, highs = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    ends = np.append(starts[1:], len(xs))
    return tuple(
        Point(x=float(x), mean=float(mean), low=float(low), high=float(high), nodes=len(set(nodes[start:end].tolist())))
        for x, mean, low, high, start, end in zip(places, means, lows, highs, starts, ends, strict=True)
    )
