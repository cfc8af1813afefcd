"""Figures of the network as a whole: its topology, and what happened in it when."""

import math
from typing import Final

from unlinkabledfl.experiment.records.recorder import EventKind
from unlinkabledfl.experiment.report.charts import (
    PERCENT,
    Axis,
    Lane,
    Span,
    graph_chart,
    seconds_unit,
    timeline_chart,
)
from unlinkabledfl.experiment.report.page import Figure, Table
from unlinkabledfl.experiment.report.run_data import RunData

__all__ = ["timeline", "topology"]

_SHADES: Final = 5
_NODES_DRAWN_MAX: Final = 2_000
_SPANS_MAX: Final = 400


def topology(data: RunData) -> Figure | None:
    """Draw who has a link with whom, each node in the shade of its last accuracy."""
    nodes = data.description.nodes
    if not data.edges or not nodes or nodes > _NODES_DRAWN_MAX:
        return None
    accuracy = data.table.by_round("accuracy")
    last = accuracy[max(accuracy)] if accuracy else {}
    last = {node: value for node, value in last.items() if math.isfinite(value)}
    low, high = min(last.values(), default=0.0), max(last.values(), default=1.0)
    width = (high - low) / _SHADES or 1.0
    degree = [0] * nodes
    for one, other in data.edges:
        degree[one] += 1
        degree[other] += 1
    looks = []
    for node in range(nodes):
        marks, words = [], [f"node {node}, {degree[node]} links"]
        if node in last:
            marks.append(f"q{min(_SHADES - 1, int((last[node] - low) / width))}")
            words.append(f"accuracy {PERCENT.text(last[node])}")
        if node in data.attackers:
            marks.append("attacker")
            words.append("poisoning")
        if node in data.dead:
            marks.append("gone")
            words.append("ended early")
        looks.append((" ".join(marks), ", ".join(words)))
    legend = []
    shades = (f"accuracy {PERCENT.text(low)}", PERCENT.text(high)) if last else None
    if data.attackers:
        legend.append(("plain attacker", "poisoning"))
    if data.dead:
        legend.append(("plain gone", "ended early"))
    shown = f"{nodes:,} nodes and {len(data.edges):,} links"
    least, most = min(degree), max(degree)
    links = f"{least} links each" if least == most else f"{least} to {most} links each"
    title = "Topology"
    return Figure(
        title=title,
        caption=f"{shown}, {links}, as the run began"
        + ("; shaded by the accuracy after the last round." if last else "."),
        svg=graph_chart(
            name="topology",
            title=title,
            description=f"{shown}, {links}.",
            looks=looks,
            edges=data.edges,
            legend=legend,
            shades=shades,
        ),
    )


def timeline(data: RunData) -> Figure | None:
    """Draw the rounds and the events on the run's clock."""
    spans = _spans(data)
    kinds = [kind for kind in EventKind if any(event.kind is kind for event in data.events)]
    if not spans and not kinds:
        return None
    lanes = [
        Lane(
            label=kind.value,
            class_=kind.value,
            marks=[
                (event.time_s, f"{'' if event.node is None else f'node {event.node}: '}{event.text}")
                for event in data.events
                if event.kind is kind
            ],
        )
        for kind in kinds
    ]
    end_s = max([data.table.end_s, *(event.time_s for event in data.events)]) or 1.0
    headings, rows = ["round", "first node starts", "last node ends"], []
    for span in spans:
        rows.append([span.label.removeprefix("round "), f"{span.start_s:,.1f} s", f"{span.end_s:,.1f} s"])
    counted = ", ".join(f"{len(lane.marks)} {lane.label}" for lane in lanes) or "no events"
    return Figure(
        title="Rounds and events",
        caption="A round lasts from its first node's start to its last node's end; they may overlap.",
        svg=timeline_chart(
            name="timeline",
            title="Rounds and events on the run clock",
            description=f"{len(spans)} rounds; {counted}.",
            axis=Axis(low=0.0, high=end_s, label="run clock", unit=seconds_unit(end_s)),
            spans=spans,
            lanes=lanes,
        ),
        numbers=Table(caption="Rounds", headings=headings, rows=rows),
        is_wide=True,
    )


def _spans(data: RunData) -> list[Span]:
    lengths = data.table.by_round("round_s")
    ends = data.table.round_times("round_s")
    spans = []
    for number, nodes in ends.items():
        starts = [max(0.0, end_s - lengths[number][node]) for node, end_s in nodes.items()]
        spans.append(Span(label=f"round {number}", start_s=min(starts), end_s=max(nodes.values())))
    return spans[:_SPANS_MAX]
