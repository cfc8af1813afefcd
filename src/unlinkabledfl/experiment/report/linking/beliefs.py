"""What adversaries believed: how sure they were, and whether they were right as often as they said."""

from collections.abc import Sequence

from unlinkabledfl.experiment.report.charts import (
    PLAIN,
    Axis,
    Frame,
    Histogram,
    Line,
    histogram_chart,
    line_chart,
)
from unlinkabledfl.experiment.report.linking.rows import Row, adversaries, colour, of
from unlinkabledfl.experiment.report.page import Figure, Table

__all__ = ["calibration_figure", "posterior_figure"]

_BINS_SHOWN = 40


def calibration_figure(board: Sequence[Row], *, configuration: str) -> Figure:
    """Draw, for one configuration, what each adversary claimed against how often it was right."""
    rows = of(board, configuration=configuration)
    names = [name for name in adversaries(board) if name in rows]
    claims = {name: rows[name]["calibration"] for name in names}
    most = max((max(claim["claimed"], claim["hit_rate"]) for found in claims.values() for claim in found), default=1.0)
    most = min(1.0, 1.08 * most + 0.02)
    lines = [Line(label="as often as claimed", xs=[0.0, most], ys=[0.0, most], class_="ideal")]
    lines += [
        Line(
            label=name,
            xs=[claim["claimed"] for claim in claims[name]],
            ys=[claim["hit_rate"] for claim in claims[name]],
            class_=f"s{colour(name)}",
            dots=True,
        )
        for name in names
    ]
    frame = Frame(
        name=f"calibration-{_slug(configuration)}",
        title=f"Calibration on {configuration}",
        description=f"Claimed probability against hit rate, of {', '.join(names)}.",
        x=Axis(low=0.0, high=most, label="probability of the best guess, as claimed"),
        y=Axis(low=0.0, high=most, label="how often it was right"),
        legend=[("ideal", "honest"), *((f"s{colour(name)}", name) for name in names)],
    )
    table = [
        [name, f"{claim['claimed']:.4f}", f"{claim['hit_rate']:.4f}", f"{claim['targets']:,}"]
        for name in names
        for claim in claims[name]
    ]
    return Figure(
        title=configuration,
        caption="Targets in ten parts of equal size, by what was claimed. On the dotted line claims come true as often "
        "as they say; below it the adversary is too sure of itself.",
        svg=line_chart(frame, lines),
        numbers=Table(caption="Claims", headings=["adversary", "claimed", "right", "targets"], rows=table),
    )


def posterior_figure(board: Sequence[Row], *, configuration: str) -> Figure:
    """Draw, for one configuration, how much probability the best guesses have."""
    rows = of(board, configuration=configuration)
    names = [name for name in adversaries(board) if name in rows]
    counts = {name: [int(count) for count in rows[name]["posterior"]["best"]] for name in names}
    bins = len(next(iter(counts.values())))
    used = max((index + 1 for found in counts.values() for index, count in enumerate(found) if count), default=bins)
    together = -(-used // _BINS_SHOWN)
    counts = {name: _joined(found[:used], together) for name, found in counts.items()}
    edges = [index * together / bins for index in range(-(-used // together) + 1)]
    histograms = [Histogram(label=name, counts=counts[name], class_=f"c{colour(name)}") for name in names]
    frame = Frame(
        name=f"posterior-{_slug(configuration)}",
        title=f"Best guesses on {configuration}",
        description=f"Histogram of the largest posterior probability, of {', '.join(names)}.",
        x=Axis(low=0.0, high=edges[-1], label="probability of the best guess"),
        y=Axis(low=0.0, high=1.06 * max(max(found) for found in counts.values()), label="targets", whole=True),
        legend=[(f"c{colour(name)}", name) for name in names],
    )
    table = [
        [
            name,
            f"{rows[name]['p_link_mean']:.4f}",
            f"{rows[name]['shannon_bits']:.3f}",
            f"{rows[name]['min_bits']:.3f}",
            f"{_truth(rows[name]):.4f}",
        ]
        for name in names
    ]
    headings = ["adversary", "mean p_link", "Shannon bits", "min-entropy bits", "given to the true sender"]
    return Figure(
        title=configuration,
        caption="How sure each adversary is of its best guess; the further left, the less it has learned.",
        svg=histogram_chart(frame, edges, histograms, unit=PLAIN),
        numbers=Table(caption="Posteriors, means over targets", headings=headings, rows=table),
    )


def _joined(counts: Sequence[int], together: int) -> list[int]:
    return [sum(counts[start : start + together]) for start in range(0, len(counts), together)]


def _truth(row: Row) -> float:
    """Return the mean probability of the true sender, to half a bin of its histogram."""
    counts = row["posterior"]["true_sender"]
    return float(sum((index + 0.5) / len(counts) * count for index, count in enumerate(counts)) / sum(counts))


def _slug(words: str) -> str:
    return "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in words.lower())
