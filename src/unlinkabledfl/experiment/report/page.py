"""One HTML page that needs nothing else: no script, no request; light or dark as the system is, fit to print."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

import unlinkabledfl
from unlinkabledfl.experiment.report.charts.svg import escaped

__all__ = ["Figure", "Table", "Tile", "badge", "figure_html", "page_html", "section_html", "table_html", "tiles_html"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of text under headings. The first column names the row."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A drawing, what it shows, and the numbers behind it."""

    title: str
    caption: str
    svg: str
    numbers: Table | None = None
    is_wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One figure of the run, large."""

    label: str
    value: str
    note: str = ""


def table_html(table: Table) -> str:
    """Write a table."""
    head = "".join(f'<th scope="col">{escaped(heading)}</th>' for heading in table.headings)
    body = "".join(
        f'<tr><th scope="row">{escaped(row[0])}</th>{"".join(f"<td>{escaped(cell)}</td>" for cell in row[1:])}</tr>'
        for row in table.rows
    )
    head = f"<thead><tr>{head}</tr></thead>" if head else ""
    caption = f"<caption>{escaped(table.caption)}</caption>" if table.caption else ""
    # A region that scrolls must be reachable by the keyboard.
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escaped(table.caption or "table")}">'
        f"<table>{caption}{head}<tbody>{body}</tbody></table></div>"
    )


def figure_html(figure: Figure) -> str:
    """Write a figure with its caption, and its numbers folded under it."""
    numbers = ""
    if figure.numbers is not None:
        numbers = f"<details><summary>Numbers</summary>{table_html(figure.numbers)}</details>"
    wide = ' class="wide"' if figure.is_wide else ""
    return (
        f"<figure{wide}><h3>{escaped(figure.title)}</h3>{figure.svg}"
        f"<figcaption>{escaped(figure.caption)}</figcaption>{numbers}</figure>"
    )


def section_html(title: str, content: str, *, name: str) -> str:
    """Write a section that the contents can point to."""
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{escaped(title)}</h2>{content}</section>'


def tiles_html(tiles: Sequence[Tile]) -> str:
    """Write the figures at the top."""
    parts = [
        f'<div class="tile"><dt>{escaped(tile.label)}</dt><dd><b>{escaped(tile.value)}</b> '
        f"<span>{escaped(tile.note)}</span></dd></div>"
        for tile in tiles
    ]
    return f'<dl class="tiles">{"".join(parts)}</dl>'


def badge(words: str, *, kind: str) -> str:
    """Write a word in a coloured frame; the colour says nothing that the word does not."""
    return f'<span class="badge {kind}">{escaped(words)}</span>'


def page_html(*, title: str, lead: str, contents: Sequence[tuple[str, str]], body: str) -> str:
    """Write the page. `contents`: names and titles of its sections; `lead` and `body` are HTML already."""
    links = "".join(f'<li><a href="#{name}">{escaped(words)}</a></li>' for name, words in contents)
    version = escaped(unlinkabledfl.__version__)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="color-scheme" content="light dark">'
        f'<meta name="generator" content="unlinkabledfl {version}">'
        # An empty icon: a browser would ask for one otherwise.
        f'<link rel="icon" href="data:,"><title>{escaped(title)}</title><style>{_style()}</style></head>'
        f'<body><a class="skip" href="#main">Skip to the figures</a><header><h1>{escaped(title)}</h1>{lead}'
        "</header>"
        f'<nav aria-label="Sections"><ul>{links}</ul></nav><main id="main">{body}</main>'
        f"<footer>Made by unlinkabledfl {version}. Everything on this page is in the page: it "
        "asks no server for anything.</footer></body></html>\n"
    )


_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@cache
def _style() -> str:
    return (resources.files(__package__) / "style.css").read_text(encoding="utf-8")
