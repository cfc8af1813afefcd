"""The learner as a mix process sees it: calls that wait, in a thread, for another process and for their turn.

    closed --open, built---------------------> open
    closed --open, it cannot be built--------> LearnerError, closed
    open --train or evaluate, turn granted---> open
    open --the process dies------------------> LearnerError, open
    open --close-----------------------------> closed

The thread does nothing but wait for a socket, so it takes no time from the mix. Computing is done in turns that the
host hands out; a turn is held from before the request until after the answer, and given back whatever happens.

Invariant: `close` returns at once, also in the middle of a training.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from unlinkabledfl.errors import LearnerError
from unlinkabledfl.learning.worker import LearnerWorker
from unlinkabledfl.learning.worker_start import StartWorker, WorkerProcess, hang_up, say_ending
from unlinkabledfl.node.learner import Metrics, State

__all__ = ["HandedWorker", "ProcessLearner", "Turn"]

_ENDING_S = 5.0

Turn = Callable[[], AbstractAsyncContextManager[None]]
"""Waits until this node may compute; leaving it gives the turn back."""

Result = TypeVar("Result")


class HandedWorker:
    """A worker process that the launcher has started for us, with our end of its socket."""

    def __init__(self, process_id: int, descriptor: int) -> None:
        self.process_id: int | None = process_id
        self.connection = Connection(descriptor)
        self._end: int | None = None
        self._ended = threading.Event()

    def has_ended(self, code: int | None) -> None:
        """The launcher says how."""
        self._end = code
        self._ended.set()

    def ending(self) -> str:
        self._ended.wait(_ENDING_S)
        return say_ending(self._end)

    def hang_up(self) -> None:
        hang_up(self.connection)

    def stop(self) -> None:
        # The process itself is ended by the launcher, when it is asked for another or when this node ends.
        self.connection.close()


class ProcessLearner:
    """A `transport.driver.AsyncLearner` over a `LearnerWorker`, whose processes `start` provides."""

    def __init__(
        self,
        factory: str,
        settings: Mapping[str, Any],
        *,
        start: StartWorker,
        turn: Turn,
        on_failure: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._start = start
        self._on_failure = on_failure
        self._worker = LearnerWorker(factory, settings, start=self._start_process)
        self._turn = turn
        self._process: WorkerProcess | None = None
        self._closed = False
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="learner")

    @property
    def process_id(self) -> int | None:
        """The worker's, while there is one."""
        return None if self._process is None else self._process.process_id

    async def open(self, state: State | None = None) -> State:
        """Start the process, build the learner, give it this model if there is one, and return the model."""
        async with self._turn():
            await self._wait_for(self._worker.start)
        if state is not None:
            await self._call(lambda: self._worker.load(state))
        return self._worker.state()

    async def train(self, round_number: int) -> tuple[State, Metrics]:
        async with self._turn():
            metrics = await self._call(lambda: self._worker.train(round_number))
        return self._worker.state(), metrics

    async def adopt(self, state: State, *, evaluate: bool) -> Metrics:
        await self._call(lambda: self._worker.load(state))
        if not evaluate:
            return {}
        async with self._turn():
            return await self._call(self._worker.evaluate)

    async def state(self) -> State:
        return self._worker.state()

    def close(self) -> None:
        """Give the process up. A call under way ends with a LearnerError."""
        self._closed = True
        if self._process is not None:
            self._process.hang_up()
        self._thread.submit(self._worker.close)
        self._thread.shutdown(wait=False)

    async def _call(self, function: Callable[[], Result]) -> Result:
        """Call it of a learner that is built: a failure is told, since the node goes on without it."""
        try:
            return await self._wait_for(function)
        except LearnerError as error:
            if not self._closed:
                self._on_failure(str(error))
            raise

    async def _wait_for(self, function: Callable[[], Result]) -> Result:
        if self._closed:
            raise LearnerError("the learner is closed")
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    def _start_process(self) -> WorkerProcess:
        if self._closed:
            raise OSError("the node is stopping")
        self._process = self._start()
        return self._process
