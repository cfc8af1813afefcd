"""What linking depends on: sweeps as curves, and linkability against what it costs."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from unlinkabledfl.experiment.report.charts import (
    Axis,
    Band,
    Frame,
    Line,
    LogAxis,
    Point,
    domain,
    line_chart,
    point_chart,
)
from unlinkabledfl.experiment.report.linking.rows import Row, adversaries, colour, of, strongest
from unlinkabledfl.experiment.report.page import Figure, Table

__all__ = ["frontier_figures", "sweep_figures"]

_LENGTHS: Final = ("K", "O")
_POINTS_LEAST: Final = 2


def sweep_figures(board: Sequence[Row], described: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """Draw a sweep of K, of O, and of the share of compromised nodes for each deployment that has one."""
    settings = {str(each["name"]): each for each in described}
    found = [_sweep(board, _swept(settings, name), name=name) for name in _LENGTHS]
    for name, each in settings.items():
        shares = [float(share) for share in each.get("compromised", ())]
        if len(shares) > 1:
            places = {(f"{name}, c={share:g}" if share else name): share for share in shares}
            found.append(_sweep(board, places, name="c", of_what=f" of {name}"))
    return [figure for figure in found if figure is not None]


def _swept(settings: Mapping[str, Mapping[str, Any]], name: str) -> dict[str, float]:
    """Return the configurations of a sweep with the value that it varies; the published design is one of each."""
    found = {}
    for configuration, each in settings.items():
        if each.get("sweep") == name or configuration == "paper" or (name == "K" and configuration == "K=1"):
            value = each.get("path_length") if name == "K" else each.get("mixer", {}).get("outbox_size")
            if isinstance(value, int):
                found[configuration] = float(value)
    return found


def _sweep(board: Sequence[Row], places: Mapping[str, float], *, name: str, of_what: str = "") -> Figure | None:
    there = {configuration for configuration in places if of(board, configuration=configuration)}
    order = sorted(there, key=lambda configuration: places[configuration])
    if len(order) < _POINTS_LEAST:
        return None
    xs = [places[configuration] for configuration in order]
    rows = [of(board, configuration=configuration) for configuration in order]
    names = [adversary for adversary in adversaries(board) if all(adversary in found for found in rows)]
    lines, bands = [], []
    for adversary in names:
        mine = [found[adversary] for found in rows]
        ys = [float(row["accuracy"]) for row in mine]
        lines.append(Line(label=adversary, xs=xs, ys=ys, class_=f"s{colour(adversary)}", dots=True))
        lows, highs = ([float(row[end]) for row in mine] for end in ("ci_low", "ci_high"))
        bands.append(
            Band(label=f"{adversary}, 95%", xs=xs, lows=lows, highs=highs, class_=f"band of{colour(adversary)}")
        )
    guesses = [float(next(iter(found.values()))["baseline"]) for found in rows]
    lines.append(Line(label="guess", xs=xs, ys=guesses, class_="ideal"))
    legend = [("ideal", "guess"), *((f"s{colour(adversary)}", adversary) for adversary in names)]
    if name == "c":
        lost = [float(next(iter(found.values()))["all_relays_compromised"]) for found in rows]
        lines.append(Line(label="every relay compromised", xs=xs, ys=lost, class_="lost"))
        legend.append(("lost", "every relay compromised"))
    words = {"K": "path length K, hops", "O": "outbox size O, packets", "c": "share c of compromised nodes"}[name]
    low, high = domain([value for band in bands for value in band.highs] + guesses, zero=True, most=1.0)
    frame = Frame(
        name=f"sweep-{name}{of_what.replace(' ', '-')}",
        title=f"Accuracy by {words}{of_what}",
        description=f"{len(xs)} values from {xs[0]:g} to {xs[-1]:g}; adversaries {', '.join(names)}.",
        x=Axis(low=xs[0], high=xs[-1], label=words, whole=name == "K"),
        y=Axis(low=low, high=high, label="top-1 accuracy"),
        legend=legend,
    )
    table = [
        [f"{x:g}", *(f"{found[adversary]['accuracy']:.4f}" for adversary in names), f"{guess:.4f}"]
        for x, found, guess in zip(xs, rows, guesses, strict=True)
    ]
    return Figure(
        title=f"Sweep of {name}{of_what}",
        caption="Bands are 95% intervals over senders; dotted: guessing among the senders that are possible.",
        svg=line_chart(frame, lines, bands=bands),
        numbers=Table(caption=f"Accuracy by {name}", headings=[name, *names, "guess"], rows=table),
    )


def frontier_figures(board: Sequence[Row], names: Sequence[str]) -> list[Figure]:
    """Draw how linkable configurations are against what they cost: delay, and bytes."""
    costs = (
        ("delay", "rtt_s_mean", "mean round trip, s", 1.0),
        ("bytes", "bytes_per_node_round", "sent by a node in a round, MB", 1e6),
    )
    return [
        figure
        for name, key, words, divisor in costs
        if (figure := _frontier(board, names, name=name, key=key, words=words, divisor=divisor)) is not None
    ]


def _frontier(
    board: Sequence[Row], names: Sequence[str], *, name: str, key: str, words: str, divisor: float
) -> Figure | None:
    points, table = [], []
    for configuration in names:
        row = strongest(board, configuration=configuration)
        if row is None or not isinstance(row.get(key), int | float) or not row[key] > 0.0:
            continue
        cost, accuracy = float(row[key]) / divisor, float(row["accuracy"])
        low, high = float(row["ci_low"]), float(row["ci_high"])
        about = f"{configuration}: {row['adversary']} {accuracy:.3f} at {cost:.3g}"
        points.append(
            Point(
                label=configuration,
                x=math.log10(cost),
                y=accuracy,
                low=low,
                high=high,
                class_=f"s{colour(str(row['adversary']))}",
                about=about,
            )
        )
        table.append([configuration, str(row["adversary"]), f"{accuracy:.4f}", f"{cost:.3g}"])
    if len(points) < _POINTS_LEAST:
        return None
    found = sorted({str(row[1]) for row in table})
    low, high = domain([point.x for point in points])
    frame = Frame(
        name=f"frontier-{name}",
        title=f"Linkability against {words}",
        description=f"{len(points)} configurations, each under the strongest adversary of one packet.",
        x=LogAxis(low=low - 0.05, high=high + 0.05, label=words),
        y=Axis(low=0.0, high=domain([point.high for point in points], zero=True, most=1.0)[1], label="top-1 accuracy"),
        legend=[(f"s{colour(adversary)}", f"strongest: {adversary}") for adversary in found],
        height=360.0,
    )
    return Figure(
        title=f"Against {name}",
        caption="Each configuration under whichever adversary of single packets names most senders; down and to the "
        "left is better. The cost is on a logarithmic axis.",
        svg=point_chart(frame, points),
        numbers=Table(
            caption=f"Linkability and {name}", headings=["configuration", "adversary", "accuracy", words], rows=table
        ),
    )
