"""Launchers that begin nothing: for tests of the manager that need no run to go on."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.unit.experiment.synthetic_run import create_run
from unlinkabledfl.errors import RunError
from unlinkabledfl.experiment.records import RunDirectory, RunRecorder, Status
from unlinkabledfl.manager.launching import Child


class Process:
    """A process that has ended, or has not."""

    def __init__(self, code: int | None = 0) -> None:
        self.code = code

    def poll(self) -> int | None:
        return self.code


class NoLauncher:
    """Notes what it was to begin; what it begins lives until told otherwise, if so asked."""

    def __init__(self, *, lives: bool = False) -> None:
        self.launched: list[Path] = []
        self.process = Process(None if lives else 0)

    def launch(self, directory: Path) -> Child:
        self.launched.append(directory)
        return self.process


class FullDisk:
    """Cannot begin anything."""

    def launch(self, directory: Path) -> Child:
        raise RunError(f"{directory} cannot be written: No space left on device (free some space)")


@contextmanager
def running(path: Path, *, nodes: int = 8) -> Iterator[RunRecorder]:
    """A run that this process writes; it ends as interrupted."""
    recorder = RunRecorder(create_run(path, nodes=nodes))
    try:
        yield recorder
    finally:
        recorder.finish(Status.INTERRUPTED, reason="interrupted by its operator")


def died(path: Path, *, said: str = "") -> RunDirectory:
    """A run whose writer was killed in the middle."""
    directory = create_run(path)
    RunRecorder(directory)
    directory.release()
    if said:
        (path / "logs" / "launch.log").write_text(said)
    return RunDirectory.open(path)
