"""Who starts the process of a learner worker: the standard library's forkserver here, a launcher for a run of many.

A worker process is a process with a socket to it. Whoever starts one knows how it ended and how to end it.
`fork_worker` is quick from the second one on; `spawn_worker` keeps no forkserver in memory, which is best where there
is one learner.
"""

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Final, Protocol

from unlinkabledfl.learning import worker_process

__all__ = [
    "NICENESS",
    "PRELOAD",
    "StartWorker",
    "WorkerProcess",
    "fork_worker",
    "hang_up",
    "say_ending",
    "spawn_worker",
]

PRELOAD: Final = ("unlinkabledfl.learning.preload",)
"""What a forkserver should import before the first learner: `set_forkserver_preload` takes it."""

NICENESS: Final = 10
_EXIT_S: Final = 5.0


class WorkerProcess(Protocol):
    """A process that runs `worker_process.run`, and our end of its socket."""

    @property
    def connection(self) -> Connection:
        """To send requests over. Whoever holds this object closes it by `stop`."""
        ...

    @property
    def process_id(self) -> int | None:
        """Its number, while it lives."""
        ...

    def ending(self) -> str:
        """Say how it ended, after its socket has closed: `was killed by SIGKILL`."""
        ...

    def hang_up(self) -> None:
        """Make whoever waits for an answer, in any thread, wait no longer."""
        ...

    def stop(self) -> None:
        """End it, if it lives; afterwards nothing is left of it."""
        ...


StartWorker = Callable[[], WorkerProcess]
"""Starts a process and returns at once; OSError if there can be none."""


def say_ending(code: int | None) -> str:
    """Return in words what an exit code, negative for a signal, says."""
    if code is None:
        return "ended"
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def hang_up(connection: Connection) -> None:
    """Shut a socket down for whoever reads it, in any thread, without closing it under their hands."""
    with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as end:
        end.shutdown(socket.SHUT_RDWR)


def fork_worker(*, niceness: int = NICENESS) -> WorkerProcess:
    """Start one by the forkserver of this process."""
    return _Forked(niceness)


def spawn_worker(*, niceness: int = NICENESS) -> WorkerProcess:
    """Start one with an interpreter of its own."""
    return _Spawned(niceness)


class _Forked:
    def __init__(self, niceness: int) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(PRELOAD))
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=worker_process.run, args=(theirs, niceness), name="learner", daemon=True)
        self._process.start()
        theirs.close()

    @property
    def process_id(self) -> int | None:
        return self._process.pid

    def ending(self) -> str:
        self._process.join(_EXIT_S)
        return say_ending(self._process.exitcode)

    def hang_up(self) -> None:
        hang_up(self.connection)

    def stop(self) -> None:
        self.connection.close()
        with suppress(ValueError):
            self._process.join(0 if self._process.exitcode is not None else 0.2)
            if self._process.is_alive():
                self._process.kill()
                self._process.join()
            self._process.close()


class _Spawned:
    def __init__(self, niceness: int) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", worker_process.__name__, str(theirs.fileno()), str(niceness)]
            self._process = subprocess.Popen(  # noqa: S603 - the command is ours
                command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
            )
        self.connection = Connection(ours.detach())

    @property
    def process_id(self) -> int | None:
        return self._process.pid

    def ending(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_S)
        return say_ending(self._process.returncode)

    def hang_up(self) -> None:
        hang_up(self.connection)

    def stop(self) -> None:
        self.connection.close()
        self._process.kill()
        self._process.wait()
