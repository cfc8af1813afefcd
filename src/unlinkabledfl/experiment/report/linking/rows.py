"""The rows of a board, as the figures need them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

__all__ = ["ADVERSARIES", "SINGLE", "Row", "adversaries", "colour", "configurations", "of", "strongest"]

Row = Mapping[str, Any]

ADVERSARIES: Final = {"paper": "6", "route": "2", "flow": "1", "grouping": "4", "disclosure": "5"}
"""Each has its colour on every figure."""
SINGLE: Final = ("paper", "route", "flow", "disclosure")
"""Those that judge one packet by itself."""


def configurations(board: Sequence[Row]) -> list[str]:
    """Return the names of configurations, in their order."""
    return list(dict.fromkeys(str(row["configuration"]) for row in board))


def adversaries(board: Sequence[Row]) -> list[str]:
    """Return those that took part, the known ones first."""
    there = list(dict.fromkeys(str(row["adversary"]) for row in board))
    return sorted(there, key=lambda name: [*ADVERSARIES].index(name) if name in ADVERSARIES else len(ADVERSARIES))


def colour(adversary: str) -> str:
    """Return the number of its colour."""
    return ADVERSARIES.get(adversary, "3")


def of(board: Sequence[Row], *, configuration: str) -> dict[str, Row]:
    """Return the rows of one configuration, by adversary."""
    return {str(row["adversary"]): row for row in board if row["configuration"] == configuration}


def strongest(board: Sequence[Row], *, configuration: str, names: Sequence[str] = SINGLE) -> Row | None:
    """Return the row of the adversary that is right most often."""
    rows = [row for name, row in of(board, configuration=configuration).items() if name in names]
    return max(rows, key=lambda row: float(row["accuracy"]), default=None)
