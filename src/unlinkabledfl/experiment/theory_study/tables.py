"""The document of `reproduce theory` as tables: for a terminal here, and as text for the page."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["tables_of", "text_tables"]

Rows = tuple[str, Sequence[str], list[list[str]]]
"""A title, headings, and rows of text."""


def tables_of(document: Mapping[str, Any]) -> "list[RenderableType]":
    """Return the tables for a terminal."""
    from rich.table import Table  # noqa: PLC0415 -- readers of JSON need no tables

    found: list[RenderableType] = []
    for title, headings, rows in text_tables(document):
        table = Table(title=title, title_justify="left", padding=(0, 0, 0, 1))
        for index, heading in enumerate(headings):
            table.add_column(heading, justify="right" if index else "left")
        for row in rows:
            table.add_row(*row)
        found.append(table)
    return found


def text_tables(document: Mapping[str, Any]) -> list[Rows]:
    """Return the tables as text."""
    return [_published(document), _presets(document), _bounds(document), _reach(document)]


def _published(document: Mapping[str, Any]) -> Rows:
    rows = [
        [row["what"], f"{row['published']:.2f}", f"{row['computed']:.4f}", row["unit"], "yes" if row["holds"] else "no"]
        for row in document["published"]
    ]
    return "The published numbers", ["what", "published", "here", "", "agrees"], rows


def _presets(document: Mapping[str, Any]) -> Rows:
    rows = [
        [row["what"], *(_number(row[key]) for key in ("published", "paper_preset", "strong_preset")), row["unit"]]
        for row in document["rows"]
    ]
    return "The presets", ["what", "published", "paper", "strong", ""], rows


def _bounds(document: Mapping[str, Any]) -> Rows:
    keys = ("senders", "routes", "route_bits", "guess", "bound", "all_compromised_idealized", "all_relays_compromised")
    rows = [[row["route"], str(row["path_length"]), *(_number(row[key]) for key in keys)] for row in document["bounds"]]
    headings = ["route", "K", "|U|", "γ_R", "H∞(R|T)", "guess", "bound", "c^K", "all relays"]
    return "What last hop and destination leave, N = 32; c = 0.25", headings, rows


def _reach(document: Mapping[str, Any]) -> Rows:
    rows = [
        [
            row["family"],
            str(row["degree"]),
            str(row["path_length"]),
            *(_number(row[key]) for key in ("within", "exactly", "senders", "last_hop")),
        ]
        for row in document["reach"]
    ]
    headings = ["family", "degree", "K", "within K", "exactly K", "|U|", "last hop"]
    return "Peers that walks reach, and possible senders, N = 32", headings, rows


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if isinstance(value, int) or value == int(value) else f"{value:.4g}"
