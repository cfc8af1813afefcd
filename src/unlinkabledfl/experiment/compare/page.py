"""The comparison of two runs for people: one page, and tables for a terminal."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from unlinkabledfl.experiment.compare.comparison import CONFIDENCE, AccuracyComparison, Comparison, Cost
from unlinkabledfl.experiment.report.charts import (
    PERCENT,
    PLAIN,
    Axis,
    Band,
    Frame,
    Line,
    Unit,
    bytes_unit,
    domain,
    line_chart,
    number,
    seconds_unit,
)
from unlinkabledfl.experiment.report.charts.svg import escaped
from unlinkabledfl.experiment.report.page import (
    Figure,
    Table,
    Tile,
    figure_html,
    page_html,
    section_html,
    table_html,
    tiles_html,
)
from unlinkabledfl.experiment.report.run_data import RunData, spread

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["comparison_html", "comparison_tables", "cost_text", "names_of"]

_SETTING_MAX = 120


def names_of(comparison: Comparison) -> tuple[str, str]:
    """Return what to call the runs: by their names, or by their directories where those are equal."""
    a, b = comparison.a, comparison.b
    if a.description.run != b.description.run:
        return a.description.run, b.description.run
    if a.path.name != b.path.name:
        return a.path.name, b.path.name
    return str(a.path), str(b.path)


def comparison_html(comparison: Comparison) -> str:
    """Write the page."""
    one, other = names_of(comparison)
    sections = (
        ("curves", "Curves", _curves(comparison, one, other)),
        ("costs", "Costs", table_html(_cost_table(comparison, one, other))),
        ("scenario", "What was asked of them", _asked(comparison, one, other)),
    )
    body = "".join(section_html(title, content, name=name) for name, title, content in sections)
    contents = [(name, title) for name, title, _ in sections]
    return page_html(title=f"{one} and {other}", lead=_lead(comparison, one, other), contents=contents, body=body)


def comparison_tables(comparison: Comparison, *, page: Path | None = None) -> "RenderableType":
    """Make the tables for a terminal."""
    from rich.console import Group  # noqa: PLC0415 - readers of JSON need no tables
    from rich.table import Table as Rows  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    one, other = names_of(comparison)
    parts: list[RenderableType] = []
    for table in (_setting_table(comparison, one, other), _cost_table(comparison, one, other)):
        rows = Rows(title=table.caption, title_justify="left")
        for index, heading in enumerate(table.headings):
            rows.add_column(Text(heading), justify="right" if index else "left", overflow="fold")
        for row in table.rows:
            rows.add_row(*map(Text, row))
        parts.append(rows)
    accuracy = comparison.accuracy
    parts.append(Text("no accuracy to compare" if accuracy is None else _sentence(accuracy, one, other), style="bold"))
    parts += [Text(f"note: {problem}", style="yellow") for problem in comparison.problems]
    if page is not None:
        parts.append(Text.assemble("page: ", (str(page), "bold")))
    return Group(*parts)


def cost_text(cost: Cost, value: float | None) -> str:
    """Write a cost in its unit."""
    if value is None:
        return "–"
    match cost.unit:
        case "s":
            unit = seconds_unit(value)
        case "B":
            unit = bytes_unit(value)
        case "%":
            unit = PERCENT
        case "":
            unit = PLAIN
        case name:
            unit = Unit(suffix=f" {name}")
    return unit.text(value)


def _sentence(accuracy: AccuracyComparison, one: str, other: str) -> str:
    points = 100.0 * accuracy.difference.mean
    said = (
        f"accuracy: {other} {PERCENT.text(accuracy.mean_b)} after round {accuracy.round_b}, {one} "
        f"{PERCENT.text(accuracy.mean_a)} after round {accuracy.round_a}: {points:+.2f} points"
    )
    if accuracy.difference.low is None or accuracy.difference.high is None:
        return said
    low, high = 100.0 * accuracy.difference.low, 100.0 * accuracy.difference.high
    how = "paired by node" if accuracy.is_paired else "nodes unpaired"
    return f"{said} ({CONFIDENCE:.0%} interval over nodes: {low:+.2f} to {high:+.2f}, {how})"


def _lead(comparison: Comparison, one: str, other: str) -> str:
    accuracy = comparison.accuracy
    tiles = []
    if accuracy is not None:
        difference = accuracy.difference
        note = "too few nodes for an interval"
        if difference.low is not None and difference.high is not None:
            note = f"points; {100 * difference.low:+.2f} to {100 * difference.high:+.2f} ({CONFIDENCE:.0%}, over nodes)"
        tiles = [
            Tile(label=f"Accuracy of {one}", value=PERCENT.text(accuracy.mean_a), note=f"round {accuracy.round_a}"),
            Tile(label=f"Accuracy of {other}", value=PERCENT.text(accuracy.mean_b), note=f"round {accuracy.round_b}"),
            Tile(label="Difference", value=f"{100 * difference.mean:+.2f}", note=note),
        ]
    for cost in comparison.costs:
        if cost.name in {"round_s", "bytes_sent", "cpu_s", "rtt_s_p50"} and cost.ratio is not None:
            tiles.append(Tile(label=cost.what.capitalize(), value=f"{number(cost.ratio)}×", note=f"{other} to {one}"))
    lead = f"<p>{escaped(f'{one}: {_in_short(comparison.a)}')}<br>{escaped(f'{other}: {_in_short(comparison.b)}')}</p>"
    lead += tiles_html(tiles)
    if accuracy is not None:
        paired = "Nodes are paired: the same node has the same data in both. " if accuracy.is_paired else ""
        lead += (
            f"<p>{paired}The interval is over nodes: it says how sure the means of these two runs are, not what other "
            "seeds would give.</p>"
        )
    if comparison.problems:
        listed = "".join(f"<li>{escaped(problem)}</li>" for problem in comparison.problems)
        lead += f'<div class="problems"><p>While reading the records:</p><ul>{listed}</ul></div>'
    return lead


def _in_short(run: RunData) -> str:
    description = run.description
    rounds = len(run.totals.rounds())
    return f"{description.nodes:,} nodes, {rounds} rounds, {description.backend}, seed {description.seed}, {run.status}"


def _asked(comparison: Comparison, one: str, other: str) -> str:
    parts = [table_html(_setting_table(comparison, one, other))]
    if comparison.versions:
        rows = [[row.key, str(row.a), str(row.b)] for row in comparison.versions]
        parts.append(table_html(Table(caption="Versions that differ", headings=["package", one, other], rows=rows)))
    return "".join(parts)


def _setting_table(comparison: Comparison, one: str, other: str) -> Table:
    rows = [[row.key, _setting(row.a), _setting(row.b)] for row in comparison.settings]
    caption = "Settings that differ" if rows else "The scenarios are the same"
    return Table(caption=caption, headings=["setting", one, other], rows=rows)


def _setting(value: Any) -> str:  # noqa: ANN401 - whatever TOML can hold
    text = "–" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= _SETTING_MAX else text[: _SETTING_MAX - 1] + "…"


def _cost_table(comparison: Comparison, one: str, other: str) -> Table:
    rows = [
        [
            cost.what,
            cost_text(cost, cost.a),
            cost_text(cost, cost.b),
            "–" if cost.ratio is None else f"{number(cost.ratio)}×",
        ]
        for cost in comparison.costs
    ]
    return Table(caption="Costs, means over nodes and rounds", headings=["cost", one, other, "ratio"], rows=rows)


def _curves(comparison: Comparison, one: str, other: str) -> str:
    runs = ((comparison.a, one, "1"), (comparison.b, other, "2"))
    drawn = [
        _curve(runs, "accuracy", "Accuracy", "accuracy on the test set", lambda _: PERCENT, most=1.0),
        _curve(
            runs,
            "accuracy",
            "Accuracy over time",
            "accuracy on the test set",
            lambda _: PERCENT,
            most=1.0,
            by_time=True,
        ),
        _curve(runs, "loss", "Loss", "loss on the test set", lambda _: PLAIN),
        _curve(runs, "completeness", "Completeness", "of the expected fragments", lambda _: PERCENT, most=1.0),
        _curve(runs, "round_s", "Round time", "a node's round", seconds_unit, zero=True),
        _curve(runs, "rtt_s_p50", "Round trip", "median of a node's fragments", seconds_unit, zero=True),
        _curve(runs, "bytes_sent", "Bytes sent", "by a node in the round", bytes_unit, zero=True),
        _curve(runs, "cpu_s", "Processor time", "of a node in the round", seconds_unit, zero=True),
    ]
    shown = [figure_html(figure) for figure in drawn if figure is not None]
    if not shown:
        return "<p>Neither run has figures of a round yet.</p>"
    return f'<div class="figures">{"".join(shown)}</div>'


def _curve(
    runs: Sequence[tuple[RunData, str, str]],
    metric: str,
    title: str,
    label: str,
    unit_of: Callable[[float], Unit],
    *,
    most: float | None = None,
    zero: bool = False,
    by_time: bool = False,
) -> Figure | None:
    """Draw a metric of both runs: the means as lines, and bands that hold 80% of the nodes."""
    lines: list[Line] = []
    bands: list[Band] = []
    rows: list[list[str]] = []
    found = []
    for run, name, place in runs:
        times = run.table.round_times(metric)
        for_round = {
            at: [value for value in nodes.values() if math.isfinite(value)]
            for at, nodes in run.table.by_round(metric).items()
        }
        points = [(fmean(times[at].values()) if by_time else at, at, spread(v)) for at, v in for_round.items() if v]
        if points:
            found.append((name, place, sorted(points, key=lambda point: point[0])))
    if not found:
        return None
    everything = [value for _, _, points in found for _, _, row in points for value in (row.p10, row.p90, row.mean)]
    unit = unit_of(max(everything))
    for name, place, points in found:
        xs = [point[0] for point in points]
        spreads = [point[2] for point in points]
        lows, highs = [row.p10 for row in spreads], [row.p90 for row in spreads]
        class_ = "band" if place == "1" else "band2"
        bands.append(Band(label=f"{name}: 80% of the nodes", xs=xs, lows=lows, highs=highs, class_=class_))
        lines.append(Line(label=name, xs=xs, ys=[row.mean for row in spreads], class_=f"s{place}", dots=True))
        rows += [[name, str(at), unit.text(row.mean), unit.text(row.p10), unit.text(row.p90)] for _, at, row in points]
    low, high = domain(everything, zero=zero, most=most)
    ends = [x for line in lines for x in line.xs]
    first, last = (0.0 if by_time else min(ends)), max(ends)
    if first == last:
        first, last = first - 0.5, last + 0.5
    x = Axis(low=first, high=last, label="run clock", unit=seconds_unit(last)) if by_time else None
    frame = Frame(
        name=f"{metric.replace('_', '-')}{'-time' if by_time else ''}",
        title=title,
        description=f"{title} of {' and '.join(name for name, _, _ in found)}, means over nodes with bands.",
        x=x or Axis(low=first, high=last, label="round", whole=True),
        y=Axis(low=low, high=high, label=label, unit=unit),
        legend=[(f"s{place}", name[:60]) for name, place, _ in found],
    )
    headings = ["run", "round", "mean", "10%", "90%"]
    return Figure(
        title=title,
        caption="Means over nodes; the bands hold 80% of them.",
        svg=line_chart(frame, lines, bands=bands),
        numbers=Table(caption=title, headings=headings, rows=rows),
    )
