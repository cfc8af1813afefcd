"""A table as a picture: a cell for every row and column, the darker the larger its value, with an interval under it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from unlinkabledfl.experiment.report.charts.svg import drawing, element, escaped, text

__all__ = ["Cell", "HeatTable", "heat_table"]

_WIDTH: Final = 1320.0
_ROW_HEIGHT: Final = 40.0
_HEAD_HEIGHT: Final = 34.0
_FOOT_HEIGHT: Final = 40.0
_ASIDE_WIDTH: Final = 110.0
_CHARACTER_WIDTH: Final = 6.6
_LEAST, _MOST = 0.03, 0.62
"""How strong the faintest and the darkest cell is: what is written in it stays readable in both."""
_RAMP: Final = (0.0, 0.03, 0.1, 0.25, 0.5, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One value from 0 to 1. `is_quiet`: it says no more than guessing does."""

    value: float
    words: str
    under: str = ""
    about: str = ""
    is_quiet: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatTable:
    """What is drawn. `aside`: plain words at the end of each row; `quiet`: what a framed cell means."""

    name: str
    title: str
    description: str
    rows: Sequence[str]
    columns: Sequence[str]
    cells: Mapping[tuple[str, str], Cell]
    aside: Mapping[str, Sequence[str]]
    aside_headings: Sequence[str]
    quiet: str


def heat_table(table: HeatTable) -> str:
    """Draw it."""
    left = 16.0 + _CHARACTER_WIDTH * max((len(row) for row in table.rows), default=1)
    wide = min(150.0, (_WIDTH - left - _ASIDE_WIDTH * len(table.aside_headings)) / max(1, len(table.columns)))
    ends = [
        left + wide * len(table.columns) + _ASIDE_WIDTH * (place + 1) - 20 for place in range(len(table.aside_headings))
    ]
    head = _HEAD_HEIGHT - 12
    parts = [
        text(column, x=left + wide * (place + 0.5), y=head, class_="label", anchor="middle")
        for place, column in enumerate(table.columns)
    ]
    parts += [
        text(heading, x=end, y=head, class_="label", anchor="end")
        for heading, end in zip(table.aside_headings, ends, strict=True)
    ]
    for line, row in enumerate(table.rows):
        y = _HEAD_HEIGHT + _ROW_HEIGHT * line
        parts.append(text(row, x=left - 10, y=y + _ROW_HEIGHT / 2 + 4, class_="label", anchor="end"))
        for place, column in enumerate(table.columns):
            parts.append(_cell(table.cells.get((row, column)), x=left + wide * place, y=y, wide=wide))
        for words, end in zip(table.aside.get(row, ()), ends, strict=False):
            parts.append(text(words, x=end, y=y + _ROW_HEIGHT / 2 + 4, anchor="end"))
    bottom = _HEAD_HEIGHT + _ROW_HEIGHT * len(table.rows)
    parts.append(_legend(left, bottom + 12.0, table.quiet))
    height = bottom + _FOOT_HEIGHT
    about = {"name": table.name, "title": table.title, "description": table.description}
    return drawing("".join(parts), width=_WIDTH, height=height, **about)


def _cell(cell: Cell | None, *, x: float, y: float, wide: float) -> str:
    middle = x + wide / 2
    if cell is None:
        return text("–", x=middle, y=y + _ROW_HEIGHT / 2 + 4, anchor="middle")
    box: dict[str, float | str] = {"x": x + 1.5, "y": y + 1.5, "width": wide - 3, "height": _ROW_HEIGHT - 3, "rx": 4}
    about = f"<title>{escaped(cell.about)}</title>" if cell.about else ""
    drawn = element("rect", about, class_="heat", fill_opacity=f"{_strength(cell.value):.2f}", **box)
    if cell.is_quiet:
        drawn += element("rect", "", class_="quiet", **box)
    drawn += text(cell.words, x=middle, y=y + 18, class_="figure", anchor="middle")
    return drawn + text(cell.under, x=middle, y=y + 31, class_="under", anchor="middle")


def _strength(value: float) -> float:
    """Small values differ more to the eye than large ones: what matters lies between a thirtieth and a half."""
    return _LEAST + (_MOST - _LEAST) * math.sqrt(min(1.0, max(0.0, value)))


def _legend(x: float, y: float, quiet: str) -> str:
    parts = []
    for value in _RAMP:
        box: dict[str, float | str] = {"x": x, "y": y, "width": 40.0, "height": 14.0, "rx": 3}
        parts.append(element("rect", "", class_="heat", fill_opacity=f"{_strength(value):.2f}", **box))
        parts.append(text(f"{value:g}", x=x + 20, y=y + 11, class_="under", anchor="middle"))
        x += 42.0
    parts.append(element("rect", class_="quiet", x=x + 24, y=y, width=40.0, height=14.0, rx=3))
    parts.append(text(quiet, x=x + 72, y=y + 11))
    return "".join(parts)
