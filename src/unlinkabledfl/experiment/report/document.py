"""The report of a run: what to show, in which order."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from unlinkabledfl.experiment.records.recorder import Status
from unlinkabledfl.experiment.report import distributions, figures, surroundings
from unlinkabledfl.experiment.report.charts import PERCENT, bytes_unit, number, seconds_unit
from unlinkabledfl.experiment.report.charts.svg import escaped
from unlinkabledfl.experiment.report.network import timeline, topology
from unlinkabledfl.experiment.report.page import (
    Figure,
    Table,
    Tile,
    badge,
    figure_html,
    page_html,
    section_html,
    table_html,
    tiles_html,
)
from unlinkabledfl.experiment.report.run_data import RunData, spread
from unlinkabledfl.experiment.report.theory import theory_html

__all__ = ["key_figures", "report_html"]

Draw = Callable[[RunData], Figure | None]

SECTIONS: Final[Sequence[tuple[str, str, Sequence[tuple[str, Draw]]]]] = (
    (
        "learning",
        "Learning",
        (
            ("accuracy", figures.accuracy),
            ("accuracy among nodes", distributions.accuracy_among_nodes),
            ("loss", figures.losses),
            ("completeness", figures.completeness),
        ),
    ),
    (
        "network",
        "The network",
        (
            ("fragments", figures.fragments),
            ("round trips", distributions.round_trips),
            ("bytes", figures.bytes_sent),
            ("cover share", figures.cover_share),
            ("queues", figures.queues),
        ),
    ),
    (
        "cost",
        "Time, processor, memory",
        (
            ("round time", figures.round_time),
            ("accuracy over time", figures.accuracy_over_time),
            ("processor time", figures.processor),
            ("memory", figures.memory),
        ),
    ),
    ("events", "When and where", (("events", timeline), ("topology", topology))),
)
_BADGES: Final = {
    Status.FINISHED: "good",
    Status.RUNNING: "busy",
    Status.INTERRUPTED: "poor",
    Status.FAILED: "poor",
}
_EVENTS_LISTED: Final = 200


def report_html(data: RunData) -> str:
    """Write the page of a run."""
    contents: list[tuple[str, str]] = []
    parts: list[str] = []
    absent: list[str] = []
    for name, title, drawn in SECTIONS:
        found = [(label, draw(data)) for label, draw in drawn]
        absent += [label for label, figure in found if figure is None]
        shown = [figure_html(figure) for _, figure in found if figure is not None]
        if name == "events" and data.events:
            shown.append(_events(data))
        content = f'<div class="figures">{"".join(shown)}</div>' if shown else ""
        if content:
            contents.append((name, title))
            parts.append(section_html(title, content, name=name))
    for name, title, content in (
        ("theory", "What the theorems ask for", theory_html(data)),
        ("figures", "All figures", _all_figures(data)),
        ("scenario", "Scenario, machine, versions", surroundings.surroundings_html(data)),
    ):
        contents.append((name, title))
        parts.append(section_html(title, content, name=name))
    if absent:
        parts.append(f"<p>Not measured in this run: {escaped(', '.join(absent))}.</p>")
    title = f"Run {data.description.run}"
    return page_html(title=title, lead=_lead(data), contents=contents, body="".join(parts))


def key_figures(data: RunData) -> list[Tile]:
    """Return what one would ask first."""
    rounds = data.totals.rounds()
    network = data.totals.network()
    last: dict[str, Any] = rounds[-1] if rounds else {}
    planned = data.description.planned_rounds
    tiles = [Tile(label="Rounds", value=f"{len(rounds)}" + (f" of {planned}" if planned else ""))]
    evaluated = [row for row in rounds if row["accuracy_mean"] is not None]
    if evaluated:
        row = evaluated[-1]
        note = f"least {PERCENT.text(row['accuracy_min'])}, after round {row['round']}"
        tiles.append(Tile(label="Accuracy", value=PERCENT.text(row["accuracy_mean"]), note=note))
    if rounds:
        tiles.append(_mean_tile(rounds, "completeness", "Completeness", PERCENT.text, "mean of the rounds"))
        tiles.append(_mean_tile(rounds, "seconds", "A round", _seconds, "mean, on the run clock"))
        tiles.append(_mean_tile(rounds, "rtt_s_p50", "Round trip", _seconds, "median, mean of the rounds"))
        tiles.append(_mean_tile(rounds, "bytes_sent_per_node", "Traffic", _bytes, "sent by a node in a round"))
        tiles.append(_mean_tile(rounds, "cpu_s_per_node", "Processor", _seconds, "of a node in a round"))
    if network["cover_share"] is not None:
        note = "of the packets that nodes originate"
        tiles.append(Tile(label="Cover", value=PERCENT.text(network["cover_share"]), note=note))
    if network["packets_sent"] is not None:
        relayed = network["packets_relayed"]
        note = "by all nodes" + (f", {relayed:,} of them relayed" if relayed is not None else "")
        tiles.append(Tile(label="Packets sent", value=f"{network['packets_sent']:,}", note=note))
    if last and (seconds := data.summary.get("seconds")) and isinstance(seconds, int | float):
        tiles.append(Tile(label="It took", value=_seconds(seconds), note="of real time"))
    return [tile for tile in tiles if tile.value]


def _lead(data: RunData) -> str:
    description = data.description
    words = [
        f"{description.nodes:,} nodes",
        f"back end {description.backend}",
        f"seed {description.seed}",
        f"{_seconds(data.table.end_s)} on the run clock",
    ]
    lead = f"<p>{badge(data.status.value, kind=_BADGES[data.status])} {escaped(' · '.join(words))}</p>"
    reason = data.summary.get("reason")
    if isinstance(reason, str) and reason:
        lead += f"<p>{escaped(reason)}</p>"
    lead += tiles_html(key_figures(data))
    if data.problems:
        listed = "".join(f"<li>{escaped(problem)}</li>" for problem in data.problems)
        lead += f'<div class="problems"><p>While reading the records:</p><ul>{listed}</ul></div>'
    return lead


def _events(data: RunData) -> str:
    order = sorted(data.events, key=lambda event: event.time_s)
    rows = [
        [f"{event.time_s:,.1f} s", event.kind.value, "–" if event.node is None else str(event.node), event.text]
        for event in order[:_EVENTS_LISTED]
    ]
    more = len(order) - len(rows)
    caption = "On the run clock" + (f"; {more:,} more are in events.csv" if more else "")
    table = table_html(Table(caption=caption, headings=["time", "kind", "node", "what"], rows=rows))
    return f'<div class="listed"><h3>Events</h3>{table}</div>'


def _all_figures(data: RunData) -> str:
    rows = []
    for name in sorted(data.table.names):
        by_round = data.table.by_round(name)
        if not by_round:
            continue
        last = max(by_round)
        values = [value for value in by_round[last].values() if math.isfinite(value)]
        if values:
            row = spread(values)
            cells = (row.low, row.p10, row.median, row.mean, row.p90, row.high)
            rows.append([name, str(last), str(len(values)), *map(number, cells)])
    headings = ["metric", "round", "nodes", *distributions.SPREAD_HEADINGS]
    caption = "Every metric in the last round that has it, over the nodes; all rounds are in metrics.csv"
    return table_html(Table(caption=caption, headings=headings, rows=rows))


def _mean_tile(rounds: Sequence[dict[str, Any]], key: str, label: str, text: Callable[[float], str], note: str) -> Tile:
    values = [row[key] for row in rounds if row[key] is not None]
    return Tile(label=label, value=text(math.fsum(values) / len(values)) if values else "", note=note)


def _seconds(value: float) -> str:
    return seconds_unit(value).text(value)


def _bytes(value: float) -> str:
    return bytes_unit(value).text(value)
