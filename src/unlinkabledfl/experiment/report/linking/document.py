"""The page of a board: what to show, in which order. It shows a document and computes nothing that is not in it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from unlinkabledfl.experiment.report.charts.svg import escaped
from unlinkabledfl.experiment.report.linking.beliefs import calibration_figure, posterior_figure
from unlinkabledfl.experiment.report.linking.board import board_figure, board_table
from unlinkabledfl.experiment.report.linking.rows import Row, configurations, of, strongest
from unlinkabledfl.experiment.report.linking.sweeps import frontier_figures, sweep_figures
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
from unlinkabledfl.experiment.report.surroundings import machine_html

__all__ = ["linking_html"]

_SHOWN: Final = ("paper", "strong", "direct", "K=1")
"""Of a whole board, the configurations whose beliefs are drawn; of a run, all."""
_FIGURES_MAX: Final = 6


def linking_html(document: Mapping[str, Any]) -> str:
    """Write the page of the document of `attack`, or of `reproduce linking`."""
    board: Sequence[Row] = document["board"]
    parts = [(name, title, content) for name, title, content in _sections(document, board) if content]
    body = "".join(section_html(title, content, name=name) for name, title, content in parts)
    contents = [(name, title) for name, title, _ in parts]
    return page_html(title=_title(document), lead=_lead(document, board), contents=contents, body=body)


def _title(document: Mapping[str, Any]) -> str:
    if document.get("experiment") == "attack":
        return f"Who could be linked in run {document['run']}"
    return "Who can be linked: the board of adversaries"


def _sections(document: Mapping[str, Any], board: Sequence[Row]) -> list[tuple[str, str, str]]:
    if not board:
        return [("board", "The board", "<p>No adversary knew this deployment.</p>")]
    names = configurations(board)
    believed = [name for name in _SHOWN if name in names] or names
    published = {
        str(row["configuration"]): float(row["accuracy"]) for row in document.get("published", {}).get("rows", ())
    }
    described = document.get("configurations", ())
    whole = [name for name in names if not of(board, configuration=name)[_any(board, name)]["compromised"]]
    return [
        ("board", "The board", _figures([board_figure(board, published)])),
        ("bars", "What has to hold", _bars(document.get("bars", ()))),
        ("sweeps", "Sweeps", _figures(sweep_figures(board, described))),
        ("frontier", "Linkability against cost", _figures(frontier_figures(board, whole or names))),
        (
            "posteriors",
            "How sure they are",
            _figures([posterior_figure(board, configuration=name) for name in believed[:_FIGURES_MAX]]),
        ),
        (
            "calibration",
            "Whether they are right as often as they say",
            _figures([calibration_figure(board, configuration=name) for name in believed[:_FIGURES_MAX]]),
        ),
        ("figures", "All figures", table_html(board_table(board))),
        ("machine", "Machine and versions", machine_html(document)),
    ]


def _any(board: Sequence[Row], configuration: str) -> str:
    return next(iter(of(board, configuration=configuration)))


def _figures(figures: Sequence[Figure]) -> str:
    shown = "".join(figure_html(figure) for figure in figures)
    return f'<div class="figures">{shown}</div>' if shown else ""


def _bars(bars: Sequence[Mapping[str, Any]]) -> str:
    if not bars:
        return ""
    rows = [
        [
            str(bar["what"]).replace("`", ""),
            f"{bar['low']:.3f} to {bar['high']:.3f}" if bar["low"] else f"at most {bar['high']:.3f}",
            f"{bar['measured']:.3f}",
            "yes" if bar["holds"] else "no",
        ]
        for bar in bars
    ]
    held = sum(bool(bar["holds"]) for bar in bars)
    caption = f"{held} of {len(bars)} hold"
    return table_html(Table(caption=caption, headings=["what", "asked", "measured", "holds"], rows=rows))


def _lead(document: Mapping[str, Any], board: Sequence[Row]) -> str:
    words = [f"seed {document['seed']}"]
    if document.get("experiment") == "attack":
        words = [f"{document['nodes']} nodes", f"back end {document['backend']}", f"the run is {document['status']}"]
        words += [f"{document['crossings']:,} packets on links"]
    lead = f"<p>{escaped(' · '.join(words))}</p>"
    lead += (
        "<p>A passive adversary sees every packet on every link, and knows the graph, the routes and the delays. For"
        " each fragment that arrives it says with which probability each node sent it.</p>"
    )
    for refusal in document.get("refused", ()):
        lead += f"<p>{escaped(refusal['adversary'])} did not take part: {escaped(refusal['reason'])}</p>"
    return lead + tiles_html(_tiles(board))


def _tiles(board: Sequence[Row]) -> list[Tile]:
    names = configurations(board)
    tiles = []
    for name in ([name for name in ("direct", "paper", "strong") if name in names] or names)[:4]:
        row = strongest(board, configuration=name)
        if row is not None:
            note = f"by {row['adversary']}, where guessing has {row['baseline']:.3f}"
            tiles.append(Tile(label=f"Linked in {name}", value=f"{row['accuracy']:.3f}", note=note))
        grouped = of(board, configuration=name).get("grouping")
        if grouped is not None and len(names) == 1:
            note = "by a destination that groups fragments of one model"
            tiles.append(Tile(label="Linked as a group", value=f"{grouped['accuracy']:.3f}", note=note))
    if board:
        least = min(int(row["targets"]) for row in board)
        tiles.append(Tile(label="Targets", value=f"{least:,}", note="at least, for each adversary"))
    return tiles
