"""Figures over rounds: a metric of every node as lines, or parts of a whole as bars, with the numbers behind them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from unlinkabledfl.experiment.report.charts import (
    PLAIN,
    Axis,
    Band,
    Frame,
    Line,
    Stack,
    Unit,
    domain,
    line_chart,
    stacked_bars,
)
from unlinkabledfl.experiment.report.page import Figure, Table
from unlinkabledfl.experiment.report.run_data import RunData, spread

__all__ = ["Part", "Parts", "finite_values", "lines_by_round", "mean_of", "round_axis", "stacks_by_round", "value_axis"]

THIN_LINES_MAX: Final = 200
"""Beyond so many nodes, lines would hide each other: a band shows how the nodes are spread."""

NODES_LISTED_MAX: Final = 100
"""Up to so many nodes, the table behind a plot has a column for each."""

ByRound = Mapping[int, Mapping[int, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A metric that is a part of a whole."""

    metric: str
    label: str
    class_: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a chart of stacked bars shows. `whole`: a metric that its table lists beside the parts."""

    name: str
    title: str
    axis: str
    caption: str
    parts: Sequence[Part]
    unit_of: Callable[[float], Unit]
    whole: str | None = None
    whole_label: str = "whole, as measured"
    is_sum: bool = False
    """Whether values are added up over the nodes; else bars are their mean."""


def lines_by_round(
    data: RunData,
    metric: str,
    *,
    title: str,
    axis: str,
    caption: str,
    unit: Unit,
    most: float | None = None,
    zero: bool = False,
) -> Figure | None:
    """Draw a metric over rounds: a thin line a node, or a band where nodes are many, and the mean in bold."""
    by_round = data.table.by_round(metric)
    values = finite_values(by_round)
    if not values:
        return None
    numbers = [*by_round]
    nodes = sorted({node for row in by_round.values() for node in row})
    means = [mean_of(row.values()) for row in by_round.values()]
    known = [mean for mean in means if math.isfinite(mean)]
    lines: list[Line] = []
    bands: list[Band] = []
    legend = [("mean", "mean")]
    attackers = data.attackers
    if len(nodes) <= THIN_LINES_MAX:
        for node in nodes:
            is_attacker = node in attackers
            label = f"node {node}{', poisoning' if is_attacker else ''}"
            ys = [row.get(node, math.nan) for row in by_round.values()]
            lines.append(Line(label=label, xs=numbers, ys=ys, class_="thin attack" if is_attacker else "thin"))
        legend.append(("thin", "a node each"))
        if attackers:
            legend.append(("attack", "poisoning"))
    else:
        rows = [spread([value for value in row.values() if math.isfinite(value)] or [0.0]) for row in by_round.values()]
        lows, highs = [row.low for row in rows], [row.high for row in rows]
        bands.append(Band(label="all nodes", xs=numbers, lows=lows, highs=highs))
        tens, nineties = [row.p10 for row in rows], [row.p90 for row in rows]
        bands.append(Band(label="80% of the nodes", xs=numbers, lows=tens, highs=nineties))
        legend.append(("thin", "all nodes, and 80% of them"))
    lines.append(Line(label="mean", xs=numbers, ys=means, class_="mean", dots=True))
    frame = Frame(
        name=metric.replace("_", "-"),
        title=f"{title} by round",
        description=f"{len(nodes)} nodes, rounds {numbers[0]} to {numbers[-1]}. The mean goes from "
        f"{unit.text(known[0])} to {unit.text(known[-1])}.",
        x=round_axis(numbers),
        y=value_axis(values, axis, unit=unit, most=most, zero=zero),
        legend=legend,
    )
    svg = line_chart(frame, lines, bands=bands)
    return Figure(title=title, caption=caption, svg=svg, numbers=_numbers(title, by_round, nodes, unit))


def _numbers(title: str, by_round: ByRound, nodes: Sequence[int], unit: Unit) -> Table:
    is_listed = len(nodes) <= NODES_LISTED_MAX
    rows = []
    for number, row in by_round.items():
        finite = [value for value in row.values() if math.isfinite(value)]
        of_all = spread(finite) if finite else None
        cells = ["–"] * 4
        if of_all is not None:
            cells = [unit.text(value) for value in (of_all.mean, of_all.low, of_all.median, of_all.high)]
        if is_listed:
            cells += [unit.text(row[node]) if node in row else "–" for node in nodes]
        rows.append([str(number), *cells])
    headings = ["round", "mean", "least", "median", "most", *(f"node {node}" for node in nodes if is_listed)]
    caption = title if is_listed else f"{title}; each of the {len(nodes):,} nodes is in metrics.csv"
    return Table(caption=caption, headings=headings, rows=rows)


def stacks_by_round(data: RunData, what: Parts) -> Figure | None:
    """Draw a bar a round, of parts that add up."""
    found = [(part, data.table.by_round(part.metric)) for part in what.parts]
    found = [entry for entry in found if entry[1]]
    numbers = sorted({number for _, by_round in found for number in by_round})
    if not numbers:
        return None
    combine = sum_of if what.is_sum else mean_of
    stacks = [
        Stack(
            label=part.label,
            class_=part.class_,
            heights=[combine(by_round.get(number, {}).values()) for number in numbers],
        )
        for part, by_round in found
    ]
    tops = [sum_of(stack.heights[index] for stack in stacks) for index in range(len(numbers))]
    unit = what.unit_of(max(tops))
    labels = ", ".join(stack.label for stack in stacks)
    frame = Frame(
        name=what.name,
        title=f"{what.title} by round",
        description=f"Stacked bars for rounds {numbers[0]} to {numbers[-1]}: {labels}.",
        x=round_axis(numbers, room=0.6),
        y=value_axis(tops, what.axis, unit=unit, zero=True),
        legend=[(stack.class_, stack.label) for stack in stacks],
    )
    headings = ["round", *(stack.label for stack in stacks)]
    columns = [stack.heights for stack in stacks]
    if what.whole is not None and (wholes := data.table.by_round(what.whole)):
        headings.append(what.whole_label)
        columns.append([combine(wholes.get(number, {}).values()) for number in numbers])
    rows = [
        [str(number), *("–" if math.isnan(column[index]) else unit.text(column[index]) for column in columns)]
        for index, number in enumerate(numbers)
    ]
    return Figure(
        title=what.title,
        caption=what.caption,
        svg=stacked_bars(frame, numbers, stacks, unit=unit),
        numbers=Table(caption=what.title, headings=headings, rows=rows),
    )


def round_axis(numbers: Sequence[int], *, room: float = 0.0) -> Axis:
    """Return an axis of rounds; bars need room at its ends."""
    low, high = float(numbers[0]), float(numbers[-1])
    if low == high:
        room = room or 0.5
    return Axis(low=low - room, high=high + room, label="round", whole=True)


def value_axis(
    values: Sequence[float], label: str, *, unit: Unit = PLAIN, zero: bool = False, most: float | None = None
) -> Axis:
    """Return an axis that holds these values."""
    low, high = domain(values, zero=zero, most=most)
    return Axis(low=low, high=high, label=label, unit=unit)


def finite_values(by_round: ByRound) -> list[float]:
    """Return the values of all rounds and nodes, without those that are no numbers."""
    return [value for row in by_round.values() for value in row.values() if math.isfinite(value)]


def mean_of(values: Iterable[float]) -> float:
    """Return the mean of the finite values, NaN where there is none."""
    finite = [value for value in values if math.isfinite(value)]
    return fmean(finite) if finite else math.nan


def sum_of(values: Iterable[float]) -> float:
    """Return the sum of the finite values."""
    return math.fsum(value for value in values if math.isfinite(value))
