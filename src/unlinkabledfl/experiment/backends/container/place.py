"""A node's own directory: the socket over which it finds its launcher, and the files that it leaves behind.

    absent --make-----------------> listening
    listening --the node dials----> connected
    listening --close_door--------> closed

The directory lies in one that nobody but the launcher's user can enter, so nobody else on this host reaches the socket.
Whoever dials first is the node, and there is no second.

Invariant: what a node leaves is moved, never opened here; if it is no plain file it is not kept. Whatever a node does
to its directory, the run goes on.
"""

import logging
import os
import shutil
import socket
import stat
import struct
from pathlib import Path
from typing import Final

from unlinkabledfl.errors import RunError
from unlinkabledfl.experiment.backends.container.blueprint import CONTROL, MODEL
from unlinkabledfl.experiment.records.files import writing

__all__ = ["Place"]

_CREDENTIALS: Final = struct.Struct("3i")

_LOG = logging.getLogger(__name__)


class Place:
    """One node's."""

    def __init__(self, path: Path, *, user_id: int, group_id: int) -> None:
        self.path = path
        self._owner = (user_id, group_id)
        self.listener: socket.socket | None = None
        """Where the node will dial, until it has."""

    def make(self, *, model: Path | None = None) -> socket.socket:
        """Make the directory, with the model with which the node goes on if it does; return the socket to watch."""
        listener = socket.socket(socket.AF_UNIX)
        try:
            self.path.mkdir(mode=0o700)
            if model is not None:
                shutil.copyfile(model, self.path / MODEL)
                self._give(self.path / MODEL)
            _bind(listener, self.path)
            self._give(self.path / CONTROL)
            self._give(self.path)
            listener.listen(1)
            listener.setblocking(False)
        except OSError as error:
            listener.close()
            raise RunError(f"{self.path} cannot be made for a container: {error.strerror or error}") from error
        self.listener = listener
        return listener

    def accept(self) -> tuple[socket.socket, int | None]:
        """Let the node in and nobody after it; return the connection and the node's process, if it can be seen."""
        if self.listener is None:
            raise RunError(f"{self.path}: nobody is waited for")
        end, _ = self.listener.accept()
        self.close_door()
        credentials = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        # Zero: in a virtual machine of the engine's, or in a namespace that is not below ours.
        return end, _CREDENTIALS.unpack(credentials)[0] or None

    def close_door(self) -> None:
        """Let nobody in any more."""
        if self.listener is not None:
            self.listener.close()
            self.listener = None

    def take(self, name: str, to: Path) -> None:
        """Move a file that the node has left, if there is a new one, to where it belongs."""
        aside = to.with_name(f".{to.name}.left")
        # No directory can take the place of a file, so none is let out, with whoever may be in it.
        with writing(aside):
            aside.touch()
        try:
            (self.path / name).replace(aside)
        except OSError as error:
            aside.unlink()
            if not isinstance(error, FileNotFoundError):
                _LOG.warning("%s is not kept: %s", self.path / name, error.strerror)
            return
        if not stat.S_ISREG(aside.lstat().st_mode):
            aside.unlink()
            return
        if os.getuid() == 0:
            os.chown(aside, os.getuid(), os.getgid(), follow_symlinks=False)
        aside.replace(to)

    def _give(self, path: Path) -> None:
        """Make it the node's. Whoever is not root is the node's user already, or cannot help it."""
        if self._owner != (os.getuid(), os.getgid()):
            os.chown(path, *self._owner)


def _bind(listener: socket.socket, directory: Path) -> None:
    # The path of a socket has at most 107 bytes, and runs may lie deeper than that.
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listener.bind(f"/proc/self/fd/{descriptor}/{CONTROL}")
    finally:
        os.close(descriptor)
