"""A learner in another process, of lower priority, so that training cannot disturb when packets are sent.

    stopped --start----------------------------------> running
    running --request, answered----------------------> running
    running --request fails, last state loaded again-> LearnerError, running
    running --process dies, new one with last state--> LearnerError, running
    running --restarts used up-----------------------> LearnerError, stopped
    running --close----------------------------------> stopped

Invariant: the current slot of the shared memory always holds a complete state, the one that the learner had when its
last request was done. The worker only ever writes to the other slot; the two change roles when its reply has come. So
nothing that a worker does, not even being killed in the middle of a write, loses the model.

Calls wait for the worker: a driver with an event loop makes them in a thread. A call at a time.
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from unlinkabledfl.errors import ConfigError, LearnerError, LocalProtocolError
from unlinkabledfl.learning.worker_protocol import Kind, Layout, Message, Slots, send_descriptor
from unlinkabledfl.learning.worker_start import NICENESS, PRELOAD, StartWorker, WorkerProcess, fork_worker
from unlinkabledfl.node.learner import Metrics, State, difference

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["PRELOAD", "LearnerWorker"]


class LearnerWorker:
    """A `node.learner.Learner` whose work is done elsewhere.

    `factory` names a function as `package.module:function`; the worker calls it with the settings, which are JSON. A
    call that takes longer than `limit_s` counts as a dead process. After `restarts` deaths it is not started again.
    `start` is who starts the processes: by default this process's own forkserver, at that niceness.
    """

    def __init__(
        self,
        factory: str,
        settings: Mapping[str, Any],
        *,
        niceness: int = NICENESS,
        restarts: int = 3,
        limit_s: float | None = None,
        start: StartWorker | None = None,
    ) -> None:
        if ":" not in factory:
            raise ConfigError(key="learner.factory", got=factory, takes="package.module:function")
        self._factory = factory
        self._settings = dict(settings)
        self._start = partial(fork_worker, niceness=niceness) if start is None else start
        self._restarts_left = restarts
        self._limit_s = limit_s
        self._process: WorkerProcess | None = None
        self._layout: Layout | None = None
        self._slots: Slots | None = None
        self._current = 0

    @property
    def process_id(self) -> int | None:
        """The worker's, while there is one."""
        return None if self._process is None else self._process.process_id

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start the process and wait until its learner is built."""
        if self._process is not None:
            raise LocalProtocolError("the learner worker is running")
        try:
            self._launch()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the process and give back the memory. The model goes with it."""
        self._stop_process()
        if self._slots is not None:
            self._slots.close()
            self._slots = None

    def state(self) -> State:
        return self._memory().read(self._current)

    def load(self, state: State) -> None:
        if (what := difference(self.state(), state)) is not None:
            layer, _, problem = what.partition(": ")
            raise ConfigError(key=f"model.{layer}", got=problem, takes="a state of this very model")
        spare = 1 - self._current
        self._memory().write(spare, state)
        self._ask(Message(kind=Kind.LOAD, slot=spare), "loading a state")
        self._current = spare

    def train(self, round_number: int) -> Metrics:
        spare = 1 - self._current
        request = Message(kind=Kind.TRAIN, round_number=round_number, slot=spare)
        metrics = self._ask(request, f"training round {round_number}")
        self._current = spare
        return metrics

    def evaluate(self) -> Metrics:
        return self._ask(Message(kind=Kind.EVALUATE), "evaluating")

    def _ask(self, request: Message, doing: str) -> dict[str, Any]:
        if self._process is None:
            raise LearnerError(f"the learner worker is not running, so it cannot start {doing}")
        try:
            reply = self._exchange(request)
        except (EOFError, OSError, TimeoutError) as error:
            raise LearnerError(self._recover(doing, error)) from error
        if reply.kind is Kind.DONE:
            return dict(reply.body)
        message = f"the learner failed while {doing}: {reply.body['error']}: {reply.body['message']}"
        if request.kind is Kind.TRAIN:
            self._ask(Message(kind=Kind.LOAD, slot=self._current), "going back to its last state")
        raise LearnerError(message)

    def _exchange(self, request: Message, *, descriptor: int | None = None) -> Message:
        if self._process is None:
            raise EOFError
        connection = self._process.connection
        connection.send_bytes(request.to_bytes())
        if descriptor is not None:
            send_descriptor(connection, descriptor)
        if self._limit_s is not None and not connection.poll(self._limit_s):
            raise TimeoutError(f"no reply in {self._limit_s:g} s")
        return Message.from_bytes(connection.recv_bytes())

    def _launch(self) -> None:
        try:
            self._process = self._start()
        except OSError as error:
            raise LearnerError(f"the learner worker could not be started: {error}") from error
        try:
            ready = self._exchange(
                Message(kind=Kind.BUILD, body={"factory": self._factory, "settings": self._settings})
            )
            if ready.kind is not Kind.READY:
                raise LearnerError(f"the learner could not be built: {ready.body['error']}: {ready.body['message']}")
            self._attach(Layout(ready.body["layout"]))
        except (EOFError, OSError, TimeoutError) as error:
            raise LearnerError(f"the learner worker {self._ending(error)} before it was ready") from error

    def _attach(self, layout: Layout) -> None:
        if self._slots is None:
            self._layout = layout
            self._slots = Slots(layout)
            self._current = 0
            self._demand(Message(kind=Kind.ATTACH, slot=0), descriptor=self._slots.descriptor)
            return
        if layout != self._layout:
            takes = "the same layers in every process"
            raise ConfigError(key="model", got="other layers after a restart", takes=takes)
        self._demand(Message(kind=Kind.ATTACH, slot=1 - self._current), descriptor=self._slots.descriptor)
        self._demand(Message(kind=Kind.LOAD, slot=self._current))

    def _demand(self, request: Message, *, descriptor: int | None = None) -> None:
        reply = self._exchange(request, descriptor=descriptor)
        if reply.kind is not Kind.DONE:
            raise LearnerError(f"the learner could not be set up: {reply.body['error']}: {reply.body['message']}")

    def _recover(self, doing: str, error: BaseException) -> str:
        """Replace the process; return what to tell."""
        message = f"the learner worker {self._ending(error)} while {doing}"
        self._stop_process()
        if self._restarts_left == 0:
            return f"{message}; it is not started again, having died too often"
        self._restarts_left -= 1
        try:
            self._launch()
        except (ConfigError, LearnerError) as again:
            self._stop_process()
            return f"{message}; starting it again failed: {again}"
        return f"{message}; a new one has taken over with its last state"

    def _ending(self, error: BaseException) -> str:
        if isinstance(error, TimeoutError):
            return f"gave {error}"
        return "ended" if self._process is None else self._process.ending()

    def _stop_process(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None

    def _memory(self) -> Slots:
        if self._slots is None:
            raise LearnerError("the learner worker is not running, so it has no state")
        return self._slots
