"""The runs of one folder: listed, begun, stopped, deleted. A run is a directory; its name is its id.

    absent      --launch---------------------> starting
    starting    --its process takes it up----> running
    starting    --its process ends-----------> interrupted
    running     --stop-----------------------> interrupted
    running     --its process is killed------> interrupted
    running     --all rounds are done--------> finished
    running     --it cannot go on------------> failed
    interrupted --resume---------------------> starting
    failed      --resume---------------------> starting
    interrupted --delete---------------------> absent
    failed      --delete---------------------> absent
    finished    --delete---------------------> absent

Invariant: an id names a directory directly in the folder, or nothing: no other path can be written as one. What the
store says of a run is what its directory says; the processes that were begun here are known only to be waited for, and
to tell a run that is about to begin from one that was interrupted.
"""

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, Final

from unlinkabledfl.errors import ConfigError, RunError
from unlinkabledfl.experiment.records import RunDescription, RunDirectory, Status
from unlinkabledfl.experiment.records.files import writing
from unlinkabledfl.experiment.scenario import Scenario
from unlinkabledfl.manager.documents import RunBrief, RunStatus
from unlinkabledfl.manager.index import Index
from unlinkabledfl.manager.launching import Child, Launcher, last_words, stop_run

__all__ = ["ConflictError", "DiskError", "NoSuchRunError", "RunStore", "StoredRun"]

RUN_ID: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
_RUN_ID: Final = re.compile(RUN_ID[:-1] + r"\Z")
_PRIVATE: Final = 0o700
_OWN_FOLDER: Final = ".manager"


class NoSuchRunError(LookupError):
    """There is no run of this id."""


class ConflictError(Exception):
    """The run's state does not allow it; the message says why."""


class DiskError(Exception):
    """It could not be written; the message says what and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run as its directory stands at this moment."""

    id: str
    directory: RunDirectory
    status: RunStatus
    reason: str
    summary: Mapping[str, Any]
    started_at: datetime

    def description(self) -> RunDescription:
        """Say what the run is, from what is known of it already where that is enough."""
        return self.directory.description(self.summary or None)

    @property
    def is_live(self) -> bool:
        """Whether more may come."""
        return self.status in {RunStatus.STARTING, RunStatus.RUNNING}


class RunStore:
    """All runs of a folder. Safe to be used from several threads."""

    def __init__(self, folder: Path, *, launcher: Launcher, running_max: int) -> None:
        self.folder = folder.absolute()
        self._launcher = launcher
        self._running_max = running_max
        self._children: dict[str, Child] = {}
        self._lock = Lock()
        with writing(folder):
            own = folder / _OWN_FOLDER
            own.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        self._index = Index(own / "index.sqlite")

    # ---------------------------------------------------------------------------------------------------------- to read

    def get(self, run: str) -> StoredRun:
        """Return a run, or raise NoSuchRunError."""
        path = self._path(run)
        try:
            directory = RunDirectory.open(path)
        except ConfigError:
            raise NoSuchRunError(run) from None
        status, reason, summary = self._state(run, directory)
        return StoredRun(
            id=run,
            directory=directory,
            status=status,
            reason=reason,
            summary=summary,
            started_at=_started_at(directory),
        )

    def ids(self) -> list[str]:
        """Return the ids of all runs, the youngest first."""
        found = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if not _RUN_ID.match(entry.name) or not entry.is_dir(follow_symlinks=False):
                    continue
                directory = RunDirectory(Path(entry.path))
                if directory.summary_path.is_file() or directory.metrics_path.is_file():
                    found.append((_started_at(directory), entry.name))
        self._index.keep_only({name for _, name in found})
        return [name for _, name in sorted(found, reverse=True)]

    def brief(self, run: str) -> RunBrief:
        """Return a run as a list shows it."""
        stored = self.get(run)
        return RunBrief(**brief_of(stored))

    # -------------------------------------------------------------------------------------------------------- to change

    def launch(self, scenario: Scenario) -> StoredRun:
        """Make the directory of a new run, and begin it."""
        # The page is there before what only a launch needs.
        from unlinkabledfl.experiment.conduct import create_run  # noqa: PLC0415

        with self._lock:
            self._check_room()
            run = self._fresh_id(scenario)
            path = self.folder / run
            try:
                create_run(scenario, path).release()
                os.chmod(path, _PRIVATE)
                self._children[run] = self._launcher.launch(path)
            except BaseException as error:
                shutil.rmtree(path, ignore_errors=True)
                if isinstance(error, RunError):
                    raise DiskError(str(error)) from error
                raise
        return self.get(run)

    def resume(self, run: str) -> StoredRun:
        """Let a run that was interrupted or has failed go on."""
        with self._lock:
            stored = self.get(run)
            if stored.is_live:
                raise ConflictError("it is running")
            if stored.status is RunStatus.FINISHED:
                raise ConflictError("it is finished")
            self._check_room()
            self._children[run] = self._launcher.launch(stored.directory.path)
        return self.get(run)

    def stop(self, run: str, *, force: bool) -> StoredRun:
        """Ask a run to end. It takes a moment until it has."""
        stored = self.get(run)
        if not stored.is_live:
            raise ConflictError(f"it does not run: it is {stored.status.value}")
        if not stop_run(stored.directory, force=force):
            raise ConflictError("its process has not taken it up yet; ask again in a moment")
        return self.get(run)

    def delete(self, run: str) -> None:
        """Remove a run from the disk."""
        with self._lock:
            stored = self.get(run)
            if stored.is_live:
                raise ConflictError("it is running; stop it first")
            # First out of sight: what fails half-way must not look like a run.
            gone = self.folder / _OWN_FOLDER / f"deleted-{run}"
            shutil.rmtree(gone, ignore_errors=True)
            try:
                os.rename(stored.directory.path, gone)
            except OSError as error:
                raise DiskError(f"{run} cannot be deleted: {error.strerror or error}") from error
            shutil.rmtree(gone, ignore_errors=True)

    def reap(self) -> None:
        """Take note of processes that have ended."""
        with self._lock:
            for run in [run for run, child in self._children.items() if child.poll() is not None]:
                del self._children[run]

    def close(self) -> None:
        """Let go of the index. Runs go on."""
        self._index.close()

    # -------------------------------------------------------------------------------------------------------- in detail

    def _path(self, run: str) -> Path:
        if not _RUN_ID.match(run):
            raise NoSuchRunError(run)
        path = self.folder / run
        if path.is_symlink():
            raise NoSuchRunError(run)
        return path

    def _state(self, run: str, directory: RunDirectory) -> tuple[RunStatus, str, Mapping[str, Any]]:
        try:
            stat = directory.summary_path.stat()
            summary = self._index.get(run, f"{stat.st_mtime_ns}:{stat.st_size}", directory.summary)
        except OSError as error:
            return RunStatus.DAMAGED, f"summary.json cannot be read: {error.strerror or error}", {}
        except RunError as error:
            return RunStatus.DAMAGED, str(error), {}
        try:
            noted = Status(summary.get("status", ""))
        except ValueError:
            return RunStatus.DAMAGED, "summary.json does not say how it stands", summary
        reason = said if isinstance(said := summary.get("reason"), str) else ""
        if noted is not Status.RUNNING:
            return RunStatus(noted.value), reason, summary
        if directory.has_writer():
            return RunStatus.RUNNING, "", summary
        child = self._children.get(run)
        if child is not None and child.poll() is None:
            return RunStatus.STARTING, "", summary
        words = last_words(directory.path)
        died = "its process ended without finishing it: killed, or the machine went down"
        return RunStatus.INTERRUPTED, f"{died}; its last words: {words}" if words else died, summary

    def _check_room(self) -> None:
        running = sum(self.get(run).is_live for run in self.ids())
        if running >= self._running_max:
            raise ConflictError(f"{running} runs are running, and there may be {self._running_max}; stop one first")

    def _fresh_id(self, scenario: Scenario) -> str:
        stem = f"{scenario.run.name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
        number, run = 1, stem
        while os.path.lexists(self.folder / run):
            number += 1
            run = f"{stem}-{number}"
        return run


def brief_of(stored: StoredRun) -> dict[str, Any]:
    """Return the fields of a brief."""
    description, summary = stored.description(), stored.summary
    rounds = rounds_of(summary)
    measured = [row["accuracy_mean"] for row in rounds if isinstance(row.get("accuracy_mean"), float)]
    metrics = stored.directory.metrics_path
    return {
        "id": stored.id,
        "name": description.run,
        "backend": description.backend,
        "nodes": description.nodes,
        "planned_rounds": description.planned_rounds,
        "seed": description.seed,
        "status": stored.status,
        "reason": stored.reason,
        "rounds": len(rounds),
        "accuracy_mean": measured[-1] if measured else None,
        "deaths": deaths if isinstance(deaths := summary.get("deaths"), int) else 0,
        "started_at": stored.started_at,
        "seconds": seconds if isinstance(seconds := summary.get("seconds"), int | float) else None,
        "bytes": metrics.stat().st_size if metrics.is_file() else 0,
    }


def rounds_of(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rounds of a summary that are rounds."""
    listed = summary.get("rounds")
    return [
        row
        for row in (listed if isinstance(listed, list) else ())
        if isinstance(row, dict) and isinstance(row.get("round"), int)
    ]


def _started_at(directory: RunDirectory) -> datetime:
    """Return when the run began: its scenario is written once."""
    for path in (directory.scenario_path, directory.path):
        try:
            return datetime.fromtimestamp(path.stat().st_mtime, UTC)
        except OSError:
            continue
    return datetime.fromtimestamp(0, UTC)
