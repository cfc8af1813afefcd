"""On what a figure was measured: part of every benchmark's document, and of every run's."""

from unlinkabledfl.experiment.records.surroundings import describe

__all__ = ["describe"]
