"""Figures of how something is spread: round trips over nodes and rounds, the final accuracy over nodes."""

import math
from typing import Final

from unlinkabledfl.experiment.report.by_round import finite_values
from unlinkabledfl.experiment.report.charts import (
    PERCENT,
    Axis,
    Frame,
    Histogram,
    Unit,
    bin_edges,
    count_between,
    histogram_chart,
    seconds_unit,
)
from unlinkabledfl.experiment.report.page import Figure, Table
from unlinkabledfl.experiment.report.run_data import RunData, Spread, spread

__all__ = ["SPREAD_HEADINGS", "accuracy_among_nodes", "round_trips", "spread_cells"]

SPREAD_HEADINGS: Final = ("least", "10%", "median", "mean", "90%", "most")


def spread_cells(row: Spread, unit: Unit) -> list[str]:
    """Write a spread under those headings."""
    return [unit.text(value) for value in (row.low, row.p10, row.median, row.mean, row.p90, row.high)]


def round_trips(data: RunData) -> Figure | None:
    """Draw how long acknowledgements took."""
    kinds = (("rtt_s_p50", "median", "c1"), ("rtt_s_p95", "95th percentile", "c2"))
    found = [(label, class_, finite_values(data.table.by_round(name))) for name, label, class_ in kinds]
    found = [entry for entry in found if entry[2]]
    if not found:
        return None
    everything = [value for _, _, values in found for value in values]
    unit = seconds_unit(max(everything))
    edges = bin_edges(everything)
    histograms = [
        Histogram(label=label, counts=count_between(values, edges), class_=class_) for label, class_, values in found
    ]
    top = max(count for histogram in histograms for count in histogram.counts)
    frame = Frame(
        name="rtt",
        title="Round-trip times",
        description=f"Histogram of round-trip times from {unit.text(edges[0])} to {unit.text(edges[-1])}.",
        x=Axis(low=edges[0], high=edges[-1], label="from a fragment's departure to its acknowledgement", unit=unit),
        y=Axis(low=0.0, high=top * 1.06, label="nodes × rounds", whole=True),
        legend=[(class_, label) for label, class_, _ in found],
    )
    rows = [[label, *spread_cells(spread(values), unit)] for label, _, values in found]
    headings = ["of a node's round", *SPREAD_HEADINGS]
    return Figure(
        title="Round-trip times",
        caption="Each node reports the median and the 95th percentile of its fragments' round trips in each round; "
        "these are counted here.",
        svg=histogram_chart(frame, edges, histograms, unit=unit),
        numbers=Table(caption="Round-trip times over nodes and rounds", headings=headings, rows=rows),
    )


def accuracy_among_nodes(data: RunData) -> Figure | None:
    """Draw how the final accuracy lies among the nodes."""
    by_round = data.table.by_round("accuracy")
    if not by_round:
        return None
    last = max(by_round)
    attackers = data.attackers
    groups = [("honest" if attackers else "nodes", "c1", [v for n, v in by_round[last].items() if n not in attackers])]
    if attackers:
        groups.append(("poisoning", "c2", [v for n, v in by_round[last].items() if n in attackers]))
    groups = [(label, class_, [v for v in values if math.isfinite(v)]) for label, class_, values in groups]
    everything = [value for _, _, values in groups for value in values]
    if len(everything) < 2:  # noqa: PLR2004 - one node has no distribution
        return None
    edges = bin_edges(everything)
    histograms = [Histogram(label=label, counts=count_between(v, edges), class_=class_) for label, class_, v in groups]
    top = max(count for histogram in histograms for count in histogram.counts)
    frame = Frame(
        name="accuracy-nodes",
        title=f"Accuracy among nodes after round {last}",
        description=f"Histogram over {len(everything)} nodes.",
        x=Axis(low=edges[0], high=edges[-1], label="accuracy on the test set", unit=PERCENT),
        y=Axis(low=0.0, high=top * 1.06, label="nodes", whole=True),
        legend=[(class_, label) for label, class_, _ in groups] if attackers else (),
    )
    cells = spread_cells(spread(everything), PERCENT)
    return Figure(
        title="Accuracy among nodes",
        caption=f"After round {last}, of {len(everything)} nodes.",
        svg=histogram_chart(frame, edges, histograms, unit=PERCENT),
        numbers=Table(
            caption=f"Accuracy after round {last}", headings=["", *SPREAD_HEADINGS], rows=[["nodes", *cells]]
        ),
    )
