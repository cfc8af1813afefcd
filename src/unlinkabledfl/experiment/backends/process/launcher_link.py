"""A node's end of the control pipe: what its launcher asks of it, and what it asks of its launcher.

    new --Configure---------------> configured
    configured --Contacts---------> introduced
    introduced --Begin------------> begun
    new --Stop, or pipe closed----> stopping
    configured --Stop, or pipe closed--> stopping
    introduced --Stop, or pipe closed--> stopping
    begun --Stop, or pipe closed--> stopping

It serves two threads: the event loop, and the one that waits for the learner, which may ask for a process only.

Invariant: when the pipe closes, because the launcher stopped or was killed, the node stops like one that was told to.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar, assert_never

from unlinkabledfl.errors import LearnerError
from unlinkabledfl.experiment.backends.process import messages as say
from unlinkabledfl.experiment.backends.process.channel import Channel
from unlinkabledfl.experiment.backends.process.learner import HandedWorker
from unlinkabledfl.learning.worker_start import WorkerProcess

if TYPE_CHECKING:
    from unlinkabledfl.experiment.node_config import FullNodeConfig

__all__ = ["LauncherLink"]

Answer = TypeVar("Answer")
_START_S = 60.0


class LauncherLink:
    """It fulfils `node_runtime.Surroundings`."""

    def __init__(self, end: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._loop = loop
        self.configured: asyncio.Future[say.Configure] = loop.create_future()
        self._introduced: asyncio.Future[Mapping[str, str]] = loop.create_future()
        self._begun: asyncio.Future[None] = loop.create_future()
        self._worker: asyncio.Future[HandedWorker] | None = None
        self._handed: HandedWorker | None = None
        self._turn: asyncio.Future[None] | None = None
        self._turn_lock = asyncio.Lock()
        self.stopping = asyncio.Event()
        self.lost: asyncio.Queue[str] = asyncio.Queue()
        self.trained: asyncio.Queue[int] = asyncio.Queue()
        self._begun_at_s: float | None = None
        self._channel = Channel(end, on_message=self._take, on_close=self._closed)

    # -- what a node asks of its surroundings -------------------------------------------------------------------

    async def introduce(self, address: str) -> Mapping[str, tuple[str, ...]]:
        self._channel.send(say.Bound(address=address))
        return {node_id: (where,) for node_id, where in (await self._introduced).items()}

    async def begin(self) -> None:
        await self._begun

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until the learner may compute; on leaving, the turn goes back."""
        async with self._turn_lock:
            self._turn = self._loop.create_future()
            self._channel.send(say.TurnWanted())
            try:
                await self._turn
                yield
            finally:
                self._turn = None
                self._channel.send(say.TurnReturned())

    def start_worker(self) -> WorkerProcess:
        """Get a process for the learner; called in the learner's thread. OSError if there can be none."""
        asked = asyncio.run_coroutine_threadsafe(self._ask_for_worker(), self._loop)
        return asked.result(_START_S)

    def settle(self, config: "FullNodeConfig") -> "FullNodeConfig":
        """Return the configuration with what only the node can find out."""
        return config

    def report(self, message: say.FromNode) -> None:
        """Tell the launcher something."""
        self._channel.send(message)

    @property
    def at_s(self) -> float:
        """Seconds since the launcher said to begin; before that, 0."""
        return 0.0 if self._begun_at_s is None else self._loop.time() - self._begun_at_s

    def close(self) -> None:
        self._channel.close()

    # -- what the launcher says ---------------------------------------------------------------------------------

    def _take(self, body: bytes) -> None:
        message = say.parse_to_node(body)
        match message:
            case say.Configure():
                _answer(self.configured, message)
            case say.Contacts(addresses=addresses):
                _answer(self._introduced, addresses)
            case say.Lost(node_id=node_id):
                self.lost.put_nowait(node_id)
            case say.Begin():
                if self._begun_at_s is None:
                    self._begun_at_s = self._loop.time()
                _answer(self._begun, None)
            case say.TurnGranted():
                _answer(self._turn, None)
            case say.Trained(round_number=round_number):
                self.trained.put_nowait(round_number)
            case say.Stop():
                self.stop()
            case _:
                self._take_learner(message)

    def _take_learner(self, message: say.LearnerStarted | say.LearnerRefused | say.LearnerEnded) -> None:
        match message:
            case say.LearnerStarted(process_id=process_id):
                self._handed = HandedWorker(process_id, self._channel.take_file())
                if not _answer(self._worker, self._handed):
                    self._handed.stop()
            case say.LearnerRefused(reason=reason):
                if self._worker is not None and not self._worker.done():
                    self._worker.set_exception(OSError(reason))
            case say.LearnerEnded(process_id=process_id, code=code):
                if self._handed is not None and self._handed.process_id == process_id:
                    self._handed.has_ended(code)
            case _:
                assert_never(message)

    def _closed(self, _reason: str) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop: the launcher says so or has gone, or a signal came."""
        self.stopping.set()
        self.configured.cancel()
        if self._worker is not None and not self._worker.done():
            self._worker.set_exception(OSError("the node is stopping"))
        if self._turn is not None and not self._turn.done():
            self._turn.set_exception(LearnerError("the node is stopping"))

    async def _ask_for_worker(self) -> HandedWorker:
        if self.stopping.is_set():
            raise OSError("the node is stopping")
        self._worker = self._loop.create_future()
        self._channel.send(say.LearnerWanted())
        return await self._worker


def _answer(future: asyncio.Future[Answer] | None, answer: Answer) -> bool:
    """Answer whoever waits; false if nobody does."""
    if future is None or future.done():
        return False
    future.set_result(answer)
    return True
