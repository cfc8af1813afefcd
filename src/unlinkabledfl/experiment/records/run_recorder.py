"""Write a run down while it goes on.

    recording --finish-----------> closed
    recording --the disk is full-> RunError, recording

What was written before the disk was full stays, and `finish` may still be called.

Invariant: a figure is on disk, as a whole line, when `record` returns. The summary on disk is at most a second and a
round behind, and says `running` until the run has ended.
"""

import time
from collections.abc import Mapping
from typing import Any, Final

from unlinkabledfl.errors import RunError
from unlinkabledfl.experiment.records.directory import RunDirectory
from unlinkabledfl.experiment.records.journal import Journal, TableName
from unlinkabledfl.experiment.records.recorder import EventKind, Status
from unlinkabledfl.experiment.records.surroundings import RUN_PACKAGES, describe
from unlinkabledfl.experiment.records.tables import (
    NONE,
    Event,
    Phase,
    Problems,
    event_line,
    metric_lines,
    phase_line,
    write_parquet,
)
from unlinkabledfl.experiment.records.totals import Totals

__all__ = ["RunRecorder"]

RESUMED: Final = "resumed"
"""What the event of a run that goes on says."""
_SUMMARY_EVERY_S: Final = 1.0
_SECONDS_DIGITS: Final = 3


class RunRecorder:
    """The recorder that fills a run directory. On a resumed run, its clock goes on where the old one stopped."""

    def __init__(self, directory: RunDirectory) -> None:
        self.directory = directory
        self._totals = Totals()
        self._problems = Problems()
        self._offset_s = 0.0
        self._end_s = 0.0
        self._deaths = 0
        self._closed = False
        self._surroundings = describe(*RUN_PACKAGES)
        self._summary = directory.summary()
        self._seconds_before = _number(self._summary.get("seconds"))
        self._started_at_s = time.perf_counter()
        self._summarised_at_s = self._started_at_s
        self._summarised_round = 0
        if directory.metrics_path.is_file():
            self._take_up()
        self._journal = Journal(directory.path)
        if self._offset_s:
            self.event(time_s=0.0, node=None, kind=EventKind.NOTE, text=RESUMED)

    def record(
        self, *, time_s: float, round_number: int | None, node: int | None, metrics: Mapping[str, float]
    ) -> None:
        """Write figures down."""
        if self._closed or not metrics:
            return
        self._end_s = max(self._end_s, time_s + self._offset_s)
        self._journal.append(
            TableName.METRICS,
            metric_lines(time_s=time_s + self._offset_s, round_number=round_number, node=node, metrics=metrics),
        )
        if round_number is None or node is None:
            return
        self._totals.add(round_number=round_number, node=node, metrics=metrics)
        if round_number > self._summarised_round:
            now_s = time.perf_counter()
            if now_s - self._summarised_at_s >= _SUMMARY_EVERY_S:
                self._summarised_at_s, self._summarised_round = now_s, round_number
                self._write_summary(Status.RUNNING, "")

    def event(self, *, time_s: float, node: int | None, kind: EventKind, text: str) -> None:
        """Write an event down."""
        if self._closed:
            return
        self._end_s = max(self._end_s, time_s + self._offset_s)
        self._deaths += kind is EventKind.DEATH
        line = event_line(Event(time_s=time_s + self._offset_s, node=node, kind=kind, text=text))
        self._journal.append(TableName.EVENTS, line)

    def phase(self, *, time_s: float, round_number: int, node: int, phase: str) -> None:
        """Write down what a node does now."""
        if self._closed:
            return
        turned = Phase(time_s=time_s + self._offset_s, round_number=round_number, node=node, phase=phase)
        self._journal.append(TableName.PHASES, phase_line(turned))

    def finish(self, status: Status, *, reason: str = "") -> None:
        """Write the summary and the columnar table, and let go of the directory."""
        if self._closed:
            return
        self._closed = True
        try:
            self._journal.close()
            # First what matters most: with a full disk the large table may fail.
            self._write_summary(status, reason)
            self._write_parquet()
            self._write_summary(status, reason)
        finally:
            self.directory.release()

    def document(self) -> dict[str, Any]:
        """Return the summary as it stands."""
        return self._summary

    def _take_up(self) -> None:
        problems = self._problems
        for time_s, round_number, node, name, value in self.directory.metrics(problems).rows():
            self._end_s = max(self._end_s, time_s)
            if NONE not in (round_number, node):
                self._totals.add(round_number=round_number, node=node, metrics={name: value})
        events = self.directory.events(problems)
        self._end_s = max([self._end_s, *(event.time_s for event in events)])
        self._deaths = sum(event.kind is EventKind.DEATH for event in events)
        self._offset_s = self._end_s

    def _write_summary(self, status: Status, reason: str) -> None:
        seconds = self._seconds_before + time.perf_counter() - self._started_at_s
        kept = ("run", "backend", "nodes", "planned_rounds", "seed")
        self._summary = {
            **{key: self._summary.get(key) for key in kept},
            "status": status.value,
            **({"reason": reason} if reason else {}),
            "rounds": self._totals.rounds(),
            "fragments": self._totals.fragments(),
            "network": self._totals.network(),
            "deaths": self._deaths,
            "run_clock_s": round(self._end_s, _SECONDS_DIGITS),
            "notes": self._problems.sentences(),
            **self._surroundings,
            "seconds": round(seconds, _SECONDS_DIGITS),
        }
        self.directory.write_summary(self._summary)

    def _write_parquet(self) -> None:
        without = "metrics.csv holds the same rows"
        try:
            if not write_parquet(self.directory.metrics(Problems()), self.directory.parquet_path):
                install = "pip install 'unlinkabledfl[experiment]'"
                self._problems.add(f"metrics.parquet was not written: pyarrow is not installed ({install}); {without}")
        except RunError as error:
            self._problems.add(f"metrics.parquet was not written: {error}; {without}")


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
