"""What curious recipients recognise, for people: one page of the document of `reproduce content`."""

from collections.abc import Mapping, Sequence
from typing import Any

from unlinkabledfl.experiment.report.charts import Cell, HeatTable, heat_table
from unlinkabledfl.experiment.report.charts.svg import escaped
from unlinkabledfl.experiment.report.page import Figure, Table, figure_html, page_html, section_html, table_html

__all__ = ["content_html"]

_TARGETS = {"identity": "Identity linking", "tracking": "Bucket tracking"}
_ATTACKS = {
    "published": "The published attack: each fragment by itself, by cosine distance to what came last.",
    "persistent": "The strongest attack we know: what all peers have in common is taken out, the fragments of a round"
    " are assigned together, and all rounds count.",
}


def content_html(document: Mapping[str, Any]) -> str:
    """Return the page."""
    seconds = "" if document.get("seconds") is None else f" It took {document['seconds']:.0f} s."
    lead = (
        "<p>A destination decrypts fragments of models. Given the first update of every peer, whose are the later ones?"
        f"{escaped(seconds)}</p>"
    )
    sections = [("figures", "Published figures and ours", table_html(_published(document["rows"])))]
    for attack, says in _ATTACKS.items():
        figures = [_heat_map(document["grid"], attack, target) for target in _TARGETS]
        sections.append((attack, says.partition(":")[0], "".join(figure_html(figure) for figure in figures)))
    sections.append(("accuracy", "Accuracy", table_html(_accuracy(document["accuracy"]))))
    sections.append(("bars", "What has to hold", table_html(_bars(document["bars"]))))
    return page_html(
        title="The content boundary",
        lead=lead,
        contents=[(name, title) for name, title, _ in sections],
        body="".join(section_html(title, content, name=name) for name, title, content in sections),
    )


def _published(rows: Sequence[Mapping[str, Any]]) -> Table:
    names = ("published", "paper_preset", "strong_preset")
    return Table(
        caption="Shares of fragments",
        headings=("", "published", "preset paper", "preset strong with masks"),
        rows=[(row["what"], *(_number(row[name]) for name in names)) for row in rows],
    )


def _heat_map(cells: Sequence[Mapping[str, Any]], attack: str, target: str) -> Figure:
    shown = [cell for cell in cells if cell["attack"] == attack]
    ratios = sorted({cell["ratio"] for cell in shown})
    found = {(_row_name(cell), f"r = {cell['ratio']:g}"): _cell(cell, target) for cell in shown}
    name = _TARGETS[target]
    drawn = heat_table(
        HeatTable(
            name=f"{attack}-{target}",
            title=name,
            description="Shares of fragments by kind of federation, heterogeneity α and ratio r.",
            rows=sorted({_row_name(cell) for cell in shown}),
            columns=[f"r = {ratio:g}" for ratio in ratios],
            cells=found,
            aside={},
            aside_headings=(),
            quiet="no better than guessing",
        )
    )
    caption = f"{_ATTACKS[attack]} Under each share half of its 95% interval over seeds."
    return Figure(title=name, caption=caption, svg=drawn, is_wide=True)


def _row_name(cell: Mapping[str, Any]) -> str:
    name = str(cell["preset"])
    if cell["obfuscation"] != "none":
        name += f", {cell['obfuscation']}"
    if cell["reference"] == "leaked":
        name += ", leaked reference"
    return f"{name}, α = {cell['alpha']:g}"


def _cell(cell: Mapping[str, Any], target: str) -> Cell:
    mean, half = cell[target]["mean"], cell[target]["half_width"]
    return Cell(
        value=mean,
        words=f"{mean:.2f}",
        under="" if half is None else f"± {half:.2f}",
        about=f"{cell['fragments']} fragments; guessing has {cell['chance']:.3f}",
        is_quiet=mean - (half or 0.0) <= cell["chance"],
    )


def _accuracy(kinds: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        caption="On the test set, after the last rounds; cost against the same federation without obfuscation",
        headings=("preset", "obfuscation", "α", "accuracy", "± (95%)", "cost in points", "± (95%)", "seeds"),
        rows=[
            (
                kind["preset"],
                kind["obfuscation"],
                f"{kind['alpha']:g}",
                _number(kind["accuracy"]["mean"]),
                _number(kind["accuracy"]["half_width"]),
                *(_number((kind["cost_points"] or {}).get(name)) for name in ("mean", "half_width")),
                str(kind["accuracy"]["seeds"]),
            )
            for kind in kinds
        ],
    )


def _bars(bars: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        caption="",
        headings=("", "at most", "measured", "holds"),
        rows=[
            (bar["what"], _number(bar["high"]), _number(bar["measured"]), "yes" if bar["holds"] else "no")
            for bar in bars
        ],
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
