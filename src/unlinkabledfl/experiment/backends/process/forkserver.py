"""Start processes from one that has already imported what they need, and hear of it when they end.

    stopped --start----------------> running
    running --fork-----------------> running
    running --a process ends-------> running
    running --close----------------> stopped
    running --it dies itself-------> stopped

Invariant: whoever asked for a process is told of its end exactly once, with its exit code, or, when the forkserver
itself has gone, with none: its children end then, by the kernel.
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from unlinkabledfl.errors import LocalProtocolError
from unlinkabledfl.experiment.backends.process.forkserver_process import GRACE_S, MESSAGE_BYTES_MAX

__all__ = ["ForkRequest", "ForkServer"]

_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_MEMORY: Final = {"MALLOC_ARENA_MAX": "1"}
"""A second heap for a second thread that only waits would be megabytes a process."""
_MODULE: Final = "unlinkabledfl.experiment.backends.process.forkserver_process"
_EXIT_S: Final = GRACE_S + 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkRequest:
    """What a process is to be. `main` names a `forkserver_process.Main` as `package.module:function`."""

    main: str
    name: str
    niceness: int = 0
    cores: Collection[int] | None = None
    death_signal: signal.Signals = signal.SIGKILL
    log: int | None = None
    """An open file for what it prints; none: where the launcher prints."""


OnExit = Callable[[int, int | None], None]
"""Told which process ended, and its exit code, negative for a signal; none if nobody knows. It may come before `fork`
has returned to whoever waits for it."""


class ForkServer:
    """A forkserver, and the processes that came from it.

    It imports the modules of `preload`, then calls the functions of `prepare`, each named as `package.module:function`,
    with what is given for it: what those leave in memory, all processes share.
    """

    def __init__(self, *, preload: Sequence[str], prepare: Mapping[str, Any] | None = None) -> None:
        self._preload = tuple(preload)
        self._prepare = dict(prepare or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._ready: asyncio.Future[int] | None = None
        self._asked: dict[int, tuple[asyncio.Future[int], OnExit]] = {}
        self._next = 0
        self._alive: dict[int, OnExit] = {}

    @property
    def process_id(self) -> int | None:
        """The forkserver's own, while it runs."""
        return None if self._process is None else self._process.pid

    async def start(self) -> None:
        """Start it, and wait until it has imported everything; OSError if it cannot."""
        if self._process is not None:
            raise LocalProtocolError("the forkserver is running")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(  # noqa: ASYNC220, S603 - returns at once; the command is ours
                [sys.executable, "-m", _MODULE, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                # A forked process trains on one core, and threads that an import starts would not be forked along.
                env={**os.environ, **dict.fromkeys(_THREADS, "1"), **_MEMORY},
            )
        # Where this process finds its modules, plug-ins of a user's among them, its children find theirs.
        ours.send(json.dumps({"path": sys.path, "preload": self._preload, "prepare": self._prepare}).encode())
        ours.setblocking(False)
        self._control = ours
        loop = asyncio.get_running_loop()
        self._ready = loop.create_future()
        loop.add_reader(ours, self._read)
        try:
            await self._ready
        except BaseException:
            await self.close()
            raise

    async def fork(self, request: ForkRequest, connection: socket.socket, *, on_exit: OnExit) -> int:
        """Fork a process that gets this socket; return its number. OSError if it cannot be."""
        if self._control is None:
            raise OSError("the forkserver has ended")
        number = self._next
        self._next += 1
        files = [connection.fileno()] if request.log is None else [connection.fileno(), request.log]
        message = {
            "fork": number,
            "main": request.main,
            "name": request.name,
            "niceness": request.niceness,
            "cores": None if request.cores is None else sorted(request.cores),
            "death_signal": int(request.death_signal),
        }
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer, on_exit
        socket.send_fds(self._control, [json.dumps(message).encode()], files)
        return await answer

    def is_alive(self, process_id: int) -> bool:
        """Whether one of its processes has not ended, as far as is known here."""
        return process_id in self._alive

    def signal(self, process_id: int, number: signal.Signals) -> None:
        """Send a signal to one of its processes; nothing happens if that has ended."""
        if self._control is not None and process_id in self._alive:
            with suppress(ConnectionError):
                self._control.send(json.dumps({"signal": process_id, "number": int(number)}).encode())

    async def close(self) -> None:
        """End it and all its processes, and wait for that."""
        process = self._process
        if process is None:
            return
        self._hang_up()
        try:
            await asyncio.to_thread(process.wait, _EXIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            await asyncio.to_thread(process.wait)

    def _read(self) -> None:
        while self._control is not None:
            try:
                data = self._control.recv(MESSAGE_BYTES_MAX)
            except BlockingIOError:
                return
            except ConnectionError:
                data = b""
            if not data:
                self._hang_up()
                return
            self._take(json.loads(data))

    def _take(self, message: dict[str, Any]) -> None:
        if "forked" in message:
            process_id = message["process_id"]
            answer, self._alive[process_id] = self._asked.pop(message["forked"])
            if answer.done():  # whoever asked has been cancelled
                self.signal(process_id, signal.SIGKILL)
            else:
                answer.set_result(process_id)
        elif "refused" in message:
            answer, _ = self._asked.pop(message["refused"])
            if not answer.done():
                answer.set_exception(OSError(message["reason"]))
        elif "exited" in message:
            self._alive.pop(message["exited"])(message["exited"], message["code"])
        elif self._ready is not None and not self._ready.done():
            if (problem := message["problem"]) is None:
                self._ready.set_result(message["process_id"])
            else:
                self._ready.set_exception(OSError(problem))

    def _hang_up(self) -> None:
        """Close our end, which ends the forkserver if it still lives, and tell everybody who waits."""
        if self._control is None:
            return
        asyncio.get_running_loop().remove_reader(self._control)
        self._control.close()
        self._control = None
        waiting = [answer for answer, _ in self._asked.values()]
        if self._ready is not None:
            waiting.append(self._ready)
        self._asked.clear()
        for answer in waiting:
            if not answer.done():
                answer.set_exception(OSError("the forkserver has ended"))
        alive, self._alive = self._alive, {}
        for process_id, on_exit in alive.items():
            on_exit(process_id, None)
