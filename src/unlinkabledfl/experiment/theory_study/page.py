"""The page of `reproduce theory`: its curves, its tables and what they mean."""

from collections.abc import Mapping, Sequence
from typing import Any

from unlinkabledfl.experiment.report.charts import Axis, Frame, Line, domain, line_chart
from unlinkabledfl.experiment.report.charts.svg import escaped
from unlinkabledfl.experiment.report.page import Figure, Table, figure_html, page_html, section_html, table_html
from unlinkabledfl.experiment.report.surroundings import machine_html
from unlinkabledfl.experiment.theory_study.tables import text_tables

__all__ = ["theory_page_html"]

_COLOURS = ("s1", "s2", "s3", "s4", "s5", "s6")


def theory_page_html(document: Mapping[str, Any]) -> str:
    """Write the page of the document."""
    statements = "".join(
        f"<h3>{escaped(name)}</h3><p>{escaped(words)}</p>" for name, words in document["statements"].items()
    )
    figures = [
        _entropies(document, key="path_bits", title="Path entropy, counted", name="path"),
        _entropies(document, key="local_relay_bits", title="Local relay entropy", name="relay"),
        _bounds(document),
        _reach(document),
    ]
    # The last table is as long as the others together.
    *others, longest = [
        table_html(Table(caption=title, headings=headings, rows=rows))
        for title, headings, rows in text_tables(document)
    ]
    tables = f'<div class="columns"><div>{"".join(others)}</div><div>{longest}</div></div>'
    parts = [
        ("statements", "What is claimed", statements),
        ("curves", "Over path length and outbox", f'<div class="figures">{"".join(map(figure_html, figures))}</div>'),
        ("tables", "Numbers", tables),
        ("machine", "Machine and versions", machine_html(document)),
    ]
    held = sum(bool(row["holds"]) for row in document["published"])
    lead = f"<p>{held} of the {len(document['published'])} published numbers are met.</p>"
    return page_html(
        title="The theory, in numbers",
        lead=lead,
        contents=[(name, title) for name, title, _ in parts],
        body="".join(section_html(title, content, name=name) for name, title, content in parts),
    )


def _entropies(document: Mapping[str, Any], *, key: str, title: str, name: str) -> Figure:
    sizes = sorted({row["outbox_size"] for row in document["entropies"]})
    series = {
        f"O={size}": [(row["path_length"], row[key]) for row in document["entropies"] if row["outbox_size"] == size]
        for size in sizes
    }
    caption = (
        "Counted: how many explanations there are if all are equally likely. It describes K and O, not an adversary."
    )
    return _curves(series, name=name, title=title, axis="bits", caption=caption)


def _bounds(document: Mapping[str, Any]) -> Figure:
    series = {
        f"{route}, {words}": [(row["path_length"], row[key]) for row in document["bounds"] if row["route"] == route]
        for route in ("walk", "overlay")
        for key, words in (("guess", "best guess"), ("bound", "Theorem 1"))
    }
    caption = (
        "N = 32. What the last hop tells of the sender, exactly, and what the theorem allows where nothing is"
        " compromised: it cannot be below the best guess, and O is in neither."
    )
    return _curves(series, name="bound", title="The bound and what it bounds", axis="probability", caption=caption)


def _reach(document: Mapping[str, Any]) -> Figure:
    kinds = dict.fromkeys((row["family"], row["degree"]) for row in document["reach"] if row["degree"] in {2, 4, 31})
    series = {
        f"{family}, degree {degree}": [
            (row["path_length"], row["within"])
            for row in document["reach"]
            if (row["family"], row["degree"]) == (family, degree)
        ]
        for family, degree in kinds
    }
    caption = "Peers within K links, mean over nodes, N = 32: 12 on the published graph at K = 2, 31 in a full mesh."
    return _curves(series, name="reach", title="Peers that routes reach", axis="peers", caption=caption)


def _curves(
    series: Mapping[str, Sequence[tuple[float, float]]], *, name: str, title: str, axis: str, caption: str
) -> Figure:
    classes = dict(zip(series, _COLOURS, strict=False))
    lines = [
        Line(label=label, xs=[x for x, _ in points], ys=[y for _, y in points], class_=classes[label], dots=True)
        for label, points in series.items()
    ]
    xs = [x for points in series.values() for x, _ in points]
    low, high = domain([y for points in series.values() for _, y in points], zero=True)
    frame = Frame(
        name=name,
        title=title,
        description=f"{title} for path lengths {min(xs):g} to {max(xs):g}: {', '.join(series)}.",
        x=Axis(low=min(xs), high=max(xs), label="path length K, hops", whole=True),
        y=Axis(low=low, high=high, label=axis),
        legend=[(classes[label], label) for label in series],
    )
    return Figure(title=title, caption=caption, svg=line_chart(frame, lines))
