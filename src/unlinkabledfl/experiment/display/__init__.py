"""A run for the eyes of people: while it goes on, and what it came to."""

from unlinkabledfl.experiment.display.closing import closing_summary
from unlinkabledfl.experiment.display.live import LiveDisplay

__all__ = ["LiveDisplay", "closing_summary"]
