"""The published figures of the curious recipient: what the text of the paper says of its heat maps."""

from dataclasses import dataclass
from typing import Final

__all__ = ["PUBLISHED", "PublishedFigure"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFigure:
    """One cell of the heat maps."""

    target: str
    """`identity` or `tracking`."""
    alpha: float
    ratio: float
    low: float
    high: float
    """The text gives some cells as an interval; where it gives a number both are that."""


PUBLISHED: Final = (
    PublishedFigure(target="identity", alpha=0.1, ratio=1.0, low=0.97, high=0.97),
    PublishedFigure(target="identity", alpha=0.5, ratio=1.0, low=0.95, high=0.99),
    PublishedFigure(target="identity", alpha=1.0, ratio=1.0, low=0.95, high=0.99),
    PublishedFigure(target="identity", alpha=10.0, ratio=1.0, low=0.44, high=0.44),
    PublishedFigure(target="identity", alpha=0.1, ratio=0.1, low=0.52, high=0.52),
    PublishedFigure(target="tracking", alpha=0.1, ratio=1.0, low=0.96, high=0.96),
    PublishedFigure(target="tracking", alpha=0.1, ratio=0.1, low=0.78, high=0.78),
)
