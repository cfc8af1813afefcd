"""The run directory: what a run leaves, how it is written while it goes on, and how it is read back."""

from unlinkabledfl.experiment.records.checkpoints import Checkpoint
from unlinkabledfl.experiment.records.directory import RunDescription, RunDirectory
from unlinkabledfl.experiment.records.recorder import EventKind, Fanout, Recorder, Status, UntilFailure
from unlinkabledfl.experiment.records.run_recorder import RunRecorder
from unlinkabledfl.experiment.records.tables import Event, MetricTable, Problems

__all__ = [
    "Checkpoint",
    "Event",
    "EventKind",
    "Fanout",
    "MetricTable",
    "Problems",
    "Recorder",
    "RunDescription",
    "RunDirectory",
    "RunRecorder",
    "Status",
    "UntilFailure",
]
