"""A launcher that begins nothing: for tests of the manager that need no run to go on."""

from pathlib import Path

from unlinkabledfl.manager.launching import Child


class Ended:
    """A process that has ended at once."""

    def poll(self) -> int | None:
        return 0


class NoLauncher:
    """Notes what it was to begin."""

    def __init__(self) -> None:
        self.launched: list[Path] = []

    def launch(self, directory: Path) -> Child:
        self.launched.append(directory)
        return Ended()
