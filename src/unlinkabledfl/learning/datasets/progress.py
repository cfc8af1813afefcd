"""How fetching tells whoever waits how far it is, without knowing what they look at."""

from typing import Protocol


class Progress(Protocol):
    """Hears of one step at a time; a step ends where the next begins."""

    def begin(self, step: str, *, total_bytes: int | None) -> None:
        """Begin a step; no total where nobody knows how much is left."""

    def advance(self, count_bytes: int) -> None:
        """Have that many more bytes of the current step."""


class NoProgress:
    """For those who do not watch."""

    def begin(self, step: str, *, total_bytes: int | None) -> None:
        """Go unnoticed."""

    def advance(self, count_bytes: int) -> None:
        """Go unnoticed."""
