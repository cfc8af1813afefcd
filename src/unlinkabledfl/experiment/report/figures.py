"""The figures of a run's report, one function each: figures measured by the run in, a drawing and its numbers out.

A function returns None where the run did not measure what it shows.
"""

import math
from typing import Final

from unlinkabledfl.experiment.report.by_round import (
    Part,
    Parts,
    finite_values,
    lines_by_round,
    mean_of,
    round_axis,
    stacks_by_round,
    value_axis,
)
from unlinkabledfl.experiment.report.charts import (
    PERCENT,
    PLAIN,
    Axis,
    Band,
    Frame,
    Line,
    Unit,
    bytes_unit,
    line_chart,
    seconds_unit,
)
from unlinkabledfl.experiment.report.distributions import SPREAD_HEADINGS, spread_cells
from unlinkabledfl.experiment.report.page import Figure, Table
from unlinkabledfl.experiment.report.run_data import RunData, spread

__all__ = [
    "accuracy",
    "accuracy_over_time",
    "bytes_sent",
    "completeness",
    "cover_share",
    "fragments",
    "losses",
    "memory",
    "processor",
    "queues",
    "round_time",
]

_FEW: Final = 0.1


def accuracy(data: RunData) -> Figure | None:
    """Draw the accuracy of each node and their mean."""
    return lines_by_round(
        data,
        "accuracy",
        title="Accuracy",
        axis="accuracy on the test set",
        caption="Of every node's model after the round's aggregation; in bold their mean.",
        unit=PERCENT,
        most=1.0,
    )


def completeness(data: RunData) -> Figure | None:
    """Draw the share of the expected fragments that were aggregated in time."""
    return lines_by_round(
        data,
        "completeness",
        title="Completeness",
        axis="of the expected fragments",
        caption="The share of the fragments that a node expected and that came in time to be aggregated.",
        unit=PERCENT,
        most=1.0,
    )


def cover_share(data: RunData) -> Figure | None:
    """Draw how much of what nodes originated was cover."""
    return lines_by_round(
        data,
        "cover_share",
        title="Cover share",
        axis="of the packets originated",
        caption="The share of the packets that a node originated and that carried nothing. Relays cannot tell which.",
        unit=PERCENT,
        most=1.0,
    )


def bytes_sent(data: RunData) -> Figure | None:
    """Draw what each node sent in a round."""
    values = finite_values(data.table.by_round("bytes_sent"))
    return lines_by_round(
        data,
        "bytes_sent",
        title="Bytes sent",
        axis="sent by a node in the round",
        caption="All that a node's links carried away: own fragments, acknowledgements, cover, and what it relayed.",
        unit=bytes_unit(max(values, default=0.0)),
        zero=True,
    )


def memory(data: RunData) -> Figure | None:
    """Draw the memory of each node."""
    return lines_by_round(
        data,
        "pss_mib",
        title="Memory",
        axis="proportional set size",
        caption="Memory of a node's processes; pages shared by several are counted in equal parts.",
        unit=Unit(suffix=" MiB"),
        zero=True,
    )


def losses(data: RunData) -> Figure | None:
    """Draw the mean loss in training and on the test set."""
    kinds = (("train_loss", "in training", "s2"), ("loss", "on the test set", "s1"))
    known = [(label, class_, data.table.by_round(name)) for name, label, class_ in kinds]
    known = [entry for entry in known if entry[2]]
    if not known:
        return None
    lines, rows = [], []
    for label, class_, by_round in known:
        means = {number: mean_of(nodes.values()) for number, nodes in by_round.items()}
        lines.append(Line(label=label, xs=[*means], ys=[*means.values()], class_=class_, dots=True))
        rows.append([label, *(PLAIN.text(value) for value in means.values())])
    numbers = sorted({number for _, _, by_round in known for number in by_round})
    frame = Frame(
        name="loss",
        title="Loss by round",
        description=f"Mean loss over the nodes in rounds {numbers[0]} to {numbers[-1]}.",
        x=round_axis(numbers),
        y=value_axis([value for line in lines for value in line.ys], "mean loss over nodes"),
        legend=[(class_, label) for label, class_, _ in known],
    )
    table = Table(caption="Mean loss over nodes by round", headings=["loss", *map(str, numbers)], rows=rows)
    return Figure(
        title="Loss", caption="Mean over nodes. Values that are not finite are left out.", svg=line_chart(frame, lines),
        numbers=table,
    )  # fmt: skip


def round_time(data: RunData) -> Figure | None:
    """Draw what rounds spent their time on."""
    parts = (
        Part(metric="train_s", label="training", class_="c1"),
        Part(metric="exchange_s", label="exchange", class_="c2"),
        Part(metric="aggregate_s", label="aggregation", class_="c3"),
        Part(metric="evaluate_s", label="evaluation", class_="c4"),
    )
    what = Parts(
        name="time",
        title="Round time",
        axis="a node's round, mean over nodes",
        caption="On the run's clock. Exchange lasts until the round has what it waits for.",
        parts=parts,
        unit_of=seconds_unit,
        whole="round_s",
    )
    return stacks_by_round(data, what)


def processor(data: RunData) -> Figure | None:
    """Draw the processor time of learning and of mixing."""
    parts = [
        Part(metric="cpu_learner_s", label="learner", class_="c1"),
        Part(metric="cpu_mix_s", label="mix", class_="c2"),
    ]
    if not any(data.table.by_round(part.metric) for part in parts):
        parts = [Part(metric="cpu_s", label="node", class_="c1")]
    what = Parts(
        name="cpu",
        title="Processor time",
        axis="a node's round, mean over nodes",
        caption="Processor time of a node's processes, as the system counts it.",
        parts=parts,
        unit_of=seconds_unit,
        whole="cpu_s",
    )
    return stacks_by_round(data, what)


def fragments(data: RunData) -> Figure | None:
    """Draw how received fragments ended, and which sent ones were given up."""
    aggregated = Part(metric="fragments_aggregated", label="aggregated", class_="c1")
    lost = (
        Part(metric="fragments_late", label="late", class_="c5"),
        Part(metric="fragments_refused", label="refused", class_="c4"),
        Part(metric="fragments_given_up", label="given up by their sender", class_="bad"),
    )
    ends = data.totals.fragments()
    received = ends["aggregated"] + ends["late"] + ends["refused"]
    missed = ends["late"] + ends["refused"] + ends["given_up"]
    # Beside all that went well, the few that did not could not be seen.
    are_few = 0 < missed < _FEW * received
    share = (
        f" Of {received:,} received, {PERCENT.text(ends['aggregated'] / received)} were aggregated." if received else ""
    )
    rule = "A received fragment ends once: aggregated, late or refused. A sent one is acknowledged or given up."
    what = Parts(
        name="fragments",
        title="Fragments that were not aggregated" if are_few else "What became of the fragments",
        axis="fragments of all nodes",
        caption=rule + share if are_few else rule,
        parts=lost if are_few else (aggregated, *lost),
        unit_of=lambda _: PLAIN,
        whole=aggregated.metric if are_few else None,
        whole_label="aggregated",
        is_sum=True,
    )
    return stacks_by_round(data, what)


def accuracy_over_time(data: RunData) -> Figure | None:
    """Draw the mean accuracy against the run's clock: what a minute buys."""
    by_round = data.table.by_round("accuracy")
    times = data.table.round_times("accuracy")
    rows = [(mean_of(times[number].values()), mean_of(row.values()), number) for number, row in by_round.items()]
    rows = [row for row in rows if math.isfinite(row[1])]
    if not rows:
        return None
    xs, ys, numbers = zip(*sorted(rows), strict=True)
    unit = seconds_unit(xs[-1])
    frame = Frame(
        name="accuracy-time",
        title="Accuracy over time",
        description=f"Mean accuracy from {unit.text(xs[0])} to {unit.text(xs[-1])} on the run clock.",
        x=Axis(low=0.0, high=xs[-1] or 1.0, label="run clock", unit=unit),
        y=value_axis(ys, "mean accuracy on the test set", unit=PERCENT, most=1.0),
    )
    listed = [[str(number), unit.text(x), PERCENT.text(y)] for x, y, number in zip(xs, ys, numbers, strict=True)]
    return Figure(
        title="Accuracy over time",
        caption="The mean over nodes, at the mean instant at which they had evaluated the round.",
        svg=line_chart(frame, [Line(label="mean", xs=xs, ys=ys, class_="mean", dots=True)]),
        numbers=Table(caption="Accuracy over time", headings=["round", "time", "mean accuracy"], rows=listed),
    )


def queues(data: RunData) -> Figure | None:
    """Draw how full the mixes' queues were."""
    kinds = (("queue_own", "own packets", "s1", "band"), ("queue_transit", "packets in transit", "s2", "band2"))
    lines, bands, rows = [], [], []
    for name, label, class_, band in kinds:
        samples = data.table.samples(name)
        if not samples:
            continue
        moments: dict[float, list[float]] = {}
        width = max(data.table.end_s / 240.0, 1e-6)
        for times_s, values in samples.values():
            for time_s, value in zip(times_s.tolist(), values.tolist(), strict=True):
                if math.isfinite(value):
                    moments.setdefault((math.floor(time_s / width) + 0.5) * width, []).append(value)
        xs = sorted(moments)
        rows_of = [spread(moments[x]) for x in xs]
        if not rows_of:
            continue
        bands.append(
            Band(label=f"{label}: 80% of the nodes", xs=xs, lows=[row.p10 for row in rows_of],
                 highs=[row.p90 for row in rows_of], class_=band)
        )  # fmt: skip
        lines.append(Line(label=f"{label}: median", xs=xs, ys=[row.median for row in rows_of], class_=class_))
        everything = [value for values in moments.values() for value in values]
        rows.append([label, *spread_cells(spread(everything), PLAIN)])
    if not lines:
        return None
    frame = Frame(
        name="queues",
        title="Queues over time",
        description="Median over nodes of the packets that wait, with a band that holds 80% of the nodes.",
        x=Axis(low=0.0, high=data.table.end_s or 1.0, label="run clock", unit=seconds_unit(data.table.end_s)),
        y=value_axis([value for band in bands for value in band.highs], "packets that wait in a node", zero=True),
        legend=[(line.class_, line.label) for line in lines],
        width=1320.0,
        height=280.0,
    )
    return Figure(
        title="Queues",
        caption="Sampled while the run went on; the line is the median over nodes, the band holds 80% of them.",
        svg=line_chart(frame, lines, bands=bands),
        numbers=Table(caption="Over nodes and samples", headings=["waiting", *SPREAD_HEADINGS], rows=rows),
        is_wide=True,
    )
