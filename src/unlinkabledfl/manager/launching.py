"""Runs as processes of their own: begun, stopped, and outliving the manager.

A run is what `unlinkabledfl run --resume DIR` makes of a directory that has a scenario and nothing else. It gets a
session of its own, so that neither Ctrl-C in the manager's terminal nor the manager's end reaches it; what it says goes
to its own log. Which process writes a run is asked of the run's directory, whose lock that process holds: nothing about
processes is remembered, so a manager that was started again knows as much as the one before.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final, Protocol

from unlinkabledfl.errors import RunError
from unlinkabledfl.experiment.records import RunDirectory

__all__ = ["Child", "Launcher", "ProcessLauncher", "last_words", "stop_run"]

LAUNCH_LOG: Final = "launch.log"
_TAIL_BYTES: Final = 4_096
_WORDS_MAX: Final = 500


class Child(Protocol):
    """A process that was begun here."""

    def poll(self) -> int | None:
        """Return its exit code, None while it lives."""
        ...


class Launcher(Protocol):
    """Whoever can begin a run."""

    def launch(self, directory: Path) -> Child:
        """Let the run of this directory go on from where it stands."""
        ...


class ProcessLauncher:
    """Begins runs on this machine."""

    def launch(self, directory: Path) -> Child:
        """Start the command that runs it."""
        command = [sys.executable, "-m", "unlinkabledfl.cli", "run", "--json", "--resume", str(directory)]
        try:
            with open(directory / "logs" / LAUNCH_LOG, "ab", opener=_private) as log:
                # The arguments are ours: a directory whose name was checked, and no shell reads them.
                return subprocess.Popen(  # noqa: S603
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    start_new_session=True,
                    close_fds=True,
                )
        except OSError as error:
            raise RunError(f"the run could not be started: {error.strerror or error}") from error


def stop_run(directory: RunDirectory, *, force: bool) -> bool:
    """Ask the process that writes this run to end it; by force it just dies. Return whether there was one."""
    writer = directory.writer()
    if writer is None:
        return False
    try:
        os.kill(writer, signal.SIGKILL if force else signal.SIGTERM)
    except ProcessLookupError:
        return False
    except PermissionError as error:
        raise RunError(f"process {writer} writes this run and belongs to somebody else") from error
    return True


def last_words(directory: Path) -> str:
    """Return the last line that the run's process wrote before it ended, empty if none."""
    try:
        with (directory / "logs" / LAUNCH_LOG).open("rb") as source:
            source.seek(0, os.SEEK_END)
            source.seek(max(0, source.tell() - _TAIL_BYTES))
            lines = source.read().decode("utf-8", "replace").split("\n")
    except OSError:
        return ""
    said = [line.strip() for line in lines if line.strip()]
    return said[-1].removeprefix("unlinkabledfl: ")[:_WORDS_MAX] if said else ""


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
