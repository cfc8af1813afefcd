"""The run directory: what a run leaves, how it is written while it goes on, and how it is read back."""

from unlinkabledfl.experiment.records.recorder import EventKind, Fanout, Recorder, Status

__all__ = ["EventKind", "Fanout", "Recorder", "Status"]
