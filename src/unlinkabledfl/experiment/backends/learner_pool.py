"""The processes that train the nodes of a virtual world, as many as there are cores; and the same without processes.

    closed --start---------------------------------> running
    running --train or evaluate--------------------> running
    running --a process dies, its request repeated-> running
    running --it dies again and again--------------> RunError, running
    running --close--------------------------------> closed

A node always goes to the same process, which therefore maps the data of its own nodes only. Each process has a thread
here that hands it one request after another; threads mostly wait, and let the world's thread run. Trainings go before
evaluations: the world cannot go on without a trained model, and a figure can wait until there is time for it.

Invariant: a result depends on the request alone: not on the number of processes, not on the order of requests, and not
on a process that was killed on the way, because its request is made again.
"""

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from itertools import count
from queue import PriorityQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from unlinkabledfl.errors import ConfigError, DatasetError, LearnerError, LocalProtocolError, RunError
from unlinkabledfl.experiment.backends.learner_process import (
    NodeLearners,
    Parcel,
    find_factory,
    pack,
    serve,
    unpack,
)
from unlinkabledfl.learning.worker_protocol import Layout
from unlinkabledfl.learning.worker_start import NICENESS, PRELOAD, say_ending
from unlinkabledfl.node.learner import State
from unlinkabledfl.simulation.learners import Outcome

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

__all__ = ["InlinePool", "LearnerPool", "Pending", "ProcessPool", "cores"]

RESTARTS: Final = 3
_EXIT_S: Final = 5.0
_STOP, _TRAINING, _EVALUATION = range(3)

_Queued: TypeAlias = "tuple[int, int, Parcel, Future[Outcome]]"
"""Urgency, a number that no other has, the request, and who waits for it."""


class Pending(Protocol):
    """A request that is being worked on."""

    def is_done(self) -> bool:
        """Whether `outcome` would not wait for others."""
        ...

    def outcome(self) -> Outcome:
        """Wait for it."""
        ...

    def abandon(self) -> None:
        """Do not begin it if that is still possible."""
        ...


class LearnerPool(Protocol):
    """Whoever trains and evaluates models of nodes."""

    def start(self) -> State:
        """Get ready; return the model with which every node begins."""
        ...

    def train(self, *, node: int, round_number: int, state: State) -> Pending:
        """Train this model on the node's data."""
        ...

    def evaluate(self, *, node: int, state: State) -> Pending:
        """Measure this model."""
        ...

    def close(self) -> None:
        """Stop everything, at once."""
        ...


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ProcessPool:
    """Learners in processes of their own. `factory` is `package.module:function`, its settings are JSON."""

    def __init__(
        self,
        factory: str,
        settings: Mapping[str, Any],
        *,
        processes: int = 0,
        niceness: int = NICENESS,
        restarted: Callable[[str], None] | None = None,
    ) -> None:
        if ":" not in factory:
            raise ConfigError(key="learning.factory", got=factory, takes="package.module:function")
        self._factory = factory
        self._settings = json.dumps(dict(settings))
        self._niceness = niceness
        self._restarted = restarted
        self._workers: list[_Worker] = []
        self._processes = processes or cores()
        self._layout: Layout | None = None

    @property
    def process_ids(self) -> list[int]:
        """The numbers of the processes."""
        return [worker.process_id for worker in self._workers]

    def start(self) -> State:
        """Start all processes together, and wait until all are ready."""
        if self._workers:
            raise LocalProtocolError("the learner processes are running")
        try:
            for _ in range(self._processes):
                launch = (self._factory, self._settings, self._niceness)
                self._workers.append(_Worker(launch, restarted=self._restarted))
            readies = [worker.ready() for worker in self._workers]
        except BaseException:
            self.close()
            raise
        self._layout = Layout(readies[0].body["layout"])
        for worker in self._workers:
            worker.layout = self._layout
        return unpack(self._layout, readies[0].model)

    def train(self, *, node: int, round_number: int, state: State) -> Pending:
        """Have the node's process train it."""
        return self._submit({"do": "train", "node": node, "round": round_number}, state)

    def evaluate(self, *, node: int, state: State) -> Pending:
        """Have the node's process measure it."""
        return self._submit({"do": "evaluate", "node": node}, state)

    def close(self) -> None:
        """End the processes and their threads."""
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.stop()

    def _submit(self, body: Mapping[str, Any], state: State) -> Pending:
        if self._layout is None or not self._workers:
            raise LocalProtocolError("the learner processes are not running")
        node: int = body["node"]
        return self._workers[node % len(self._workers)].submit(Parcel(body, pack(self._layout, state)))


class _Worker:
    """One process, the thread that talks to it, and its restarts."""

    def __init__(self, launch: tuple[str, str, int], *, restarted: Callable[[str], None] | None) -> None:
        self.layout: Layout | None = None
        self._launch = launch
        self._restarted = restarted
        self._restarts_left = RESTARTS
        self._closed = False
        self._replacing = Lock()  # a process that is being replaced while all is stopped must not be left over
        self._requests: PriorityQueue[_Queued] = PriorityQueue()
        self._numbers = count()
        self._process, self._connection = self._spawn()
        self._thread = Thread(target=self._work, name="learner", daemon=True)
        self._thread.start()

    @property
    def process_id(self) -> int:
        return self._process.pid or 0

    def ready(self) -> Parcel:
        """Wait until it has built its learners."""
        try:
            ready = Parcel.from_bytes(self._connection.recv_bytes())
        except (EOFError, OSError) as error:
            raise RunError(f"a learner process {self._ending()} before it was ready") from error
        _raise_planned(ready)
        return ready

    def submit(self, request: Parcel) -> "_Waiting":
        future: Future[Outcome] = Future()
        urgency = _TRAINING if request.body["do"] == "train" else _EVALUATION
        self._requests.put((urgency, next(self._numbers), request, future))
        return _Waiting(future)

    def stop(self) -> None:
        with self._replacing:
            self._closed = True
            self._end_process()
        self._requests.put((_STOP, next(self._numbers), Parcel({}), Future()))
        self._thread.join()

    def _work(self) -> None:
        """In the thread: one request after another, the most urgent first."""
        while True:
            urgency, _, request, future = self._requests.get()
            if urgency == _STOP:
                return
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(self._ask(request))
                except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits
                    future.set_exception(error)

    def _ask(self, request: Parcel) -> Outcome:
        """Make the request, again where the process dies over it."""
        data = request.to_bytes()
        while True:
            try:
                self._connection.send_bytes(data)
                reply = Parcel.from_bytes(self._connection.recv_bytes())
            except (EOFError, OSError) as error:
                if self._closed:
                    raise CancelledError from error
                self._replace(str(request.body["do"]), int(request.body["node"]))
                continue
            return self._outcome(reply)

    def _outcome(self, reply: Parcel) -> Outcome:
        body = reply.body
        if "failure" in body:
            return Outcome(metrics={}, cpu_s=body["cpu_s"], failure=body["failure"])
        _raise_planned(reply)
        if self.layout is None:
            raise LocalProtocolError("an answer before the layout is known")
        state = unpack(self.layout, reply.model) if reply.model else None
        return Outcome(metrics=body["metrics"], cpu_s=body["cpu_s"], state=state)

    def _replace(self, doing: str, node: int) -> None:
        what = f"a learner process {self._ending()} while it had to {doing} for node {node}"
        if self._restarts_left == 0:
            raise RunError(f"{what}; processes have died too often here. Is there enough memory?")
        with self._replacing:
            if self._closed:
                raise CancelledError
            self._restarts_left -= 1
            self._end_process()
            self._process, self._connection = self._spawn()
        self.ready()
        if self._restarted is not None:
            self._restarted(f"{what}; a new one does it again")

    def _spawn(self) -> "tuple[BaseProcess, Connection]":
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(PRELOAD))
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs, *self._launch), name="learners", daemon=True)
        process.start()
        theirs.close()
        return process, ours

    def _ending(self) -> str:
        self._process.join(_EXIT_S)
        return say_ending(self._process.exitcode)

    def _end_process(self) -> None:
        if self._process.is_alive():
            self._process.kill()
        self._process.join()
        self._connection.close()


class _Waiting:
    """The answer that a thread waits for."""

    __slots__ = ("_future",)

    def __init__(self, future: "Future[Outcome]") -> None:
        self._future = future

    def is_done(self) -> bool:
        return self._future.done()

    def outcome(self) -> Outcome:
        return self._future.result()

    def abandon(self) -> None:
        self._future.cancel()


class InlinePool:
    """Learners in this process: for a GPU, which one process uses best, and where processes are not worth their start.

    A request is worked on when its outcome is wanted.
    """

    def __init__(self, factory: str, settings: Mapping[str, Any]) -> None:
        self._factory = factory
        self._settings = dict(settings)
        self._learners: NodeLearners | None = None

    def start(self) -> State:
        """Build the learners here."""
        self._learners = find_factory(self._factory)(self._settings)
        return self._learners.initial()

    def train(self, *, node: int, round_number: int, state: State) -> Pending:
        """Note it."""
        learners = self._running()

        def work() -> Outcome:
            trained, metrics = learners.train(node, round_number=round_number, state=state)
            return Outcome(metrics=metrics, state=trained)

        return _Later(work)

    def evaluate(self, *, node: int, state: State) -> Pending:
        """Note it."""
        learners = self._running()
        return _Later(lambda: Outcome(metrics=learners.evaluate(node, state=state)))

    def close(self) -> None:
        """Forget them."""
        self._learners = None

    def _running(self) -> NodeLearners:
        if self._learners is None:
            raise LocalProtocolError("the learners are not built")
        return self._learners


class _Later:
    """Work that is done once, when its outcome is wanted. Its seconds are those of the wall: a GPU has no CPU time."""

    __slots__ = ("_outcome", "_work")

    def __init__(self, work: Callable[[], Outcome]) -> None:
        self._work = work
        self._outcome: Outcome | None = None

    def is_done(self) -> bool:
        return True

    def outcome(self) -> Outcome:
        if self._outcome is None:
            started_s = time.perf_counter()
            try:
                done = self._work()
            except LearnerError as error:
                done = Outcome(metrics={}, failure=str(error))
            seconds = time.perf_counter() - started_s
            self._outcome = Outcome(metrics=done.metrics, cpu_s=seconds, state=done.state, failure=done.failure)
        return self._outcome

    def abandon(self) -> None:
        """Nothing has begun."""


def _raise_planned(reply: Parcel) -> None:
    """Raise here what was raised there."""
    body = reply.body
    match body.get("error"):
        case None:
            return
        case "ConfigError":
            raise ConfigError(**body["fields"])
        case "DatasetError":
            raise DatasetError(**body["fields"])
        case _:
            raise RunError(f"a learner process failed: {body['message']}")
