"""Start the nodes of a run on this host, lead them through it, write down what they report, and leave nothing behind.

Two forkservers, one with and one without PyTorch; from each a process a node. The launcher joins the two processes of a
node by a socket and hears neither packets nor models: what nodes tell it are figures.

The order of things is the `Supervisor`'s; this module does what that says, and tells it what happens.

Invariant: when `run` returns or raises, no process that it started is left.
"""

import asyncio
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, assert_never

from unlinkabledfl.errors import LocalProtocolError, RunError
from unlinkabledfl.experiment.backends.process import messages as say
from unlinkabledfl.experiment.backends.process.channel import Channel
from unlinkabledfl.experiment.backends.process.failures import first_of
from unlinkabledfl.experiment.backends.process.forkserver import ForkRequest, ForkServer
from unlinkabledfl.experiment.backends.process.supervisor import (
    EndNode,
    NodeLost,
    RunOver,
    SendBegin,
    SendContacts,
    SendLost,
    SendStop,
    Supervisor,
    SupervisorSettings,
)
from unlinkabledfl.experiment.backends.process.turns import Turns
from unlinkabledfl.experiment.backends.process.usage import Usage, read_usage
from unlinkabledfl.experiment.records import EventKind, Recorder, Status
from unlinkabledfl.learning.worker_start import NICENESS, say_ending

__all__ = ["Launcher", "NodeLaunch", "Program"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLaunch:
    """What one node is started with."""

    node_id: str
    configure: say.Configure
    log: Path
    first_round: int = 1
    core: int | None = None


@dataclass(slots=True)
class _Node:
    launch: NodeLaunch
    channel: Channel | None = None
    mix: int | None = None
    """Its mix process, while it lives."""
    learner: int | None = None
    cpu_before_s: dict[int, float] = field(default_factory=dict)
    """What each of its processes had used when that was last asked."""
    counters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What the processes of nodes run, and what their forkservers import before."""

    mix: str = "unlinkabledfl.experiment.node_main:main"
    mix_preload: Sequence[str] = ("unlinkabledfl.experiment.node_preload",)
    learner: str = "unlinkabledfl.experiment.backends.process.learner_main:main"
    learner_preload: Sequence[str] = (
        "unlinkabledfl.learning.preload",
        "unlinkabledfl.experiment.backends.process.learner_main",
    )
    prepare_learners: Mapping[str, Any] = field(default_factory=dict)
    """See `ForkServer`: what the learners of all nodes share."""


_NODES = Program()


class Launcher:
    """One run of real nodes. `turns` is how many learners compute at once."""

    def __init__(
        self,
        nodes: Sequence[NodeLaunch],
        *,
        recorder: Recorder,
        settings: SupervisorSettings,
        turns: int,
        program: Program = _NODES,
    ) -> None:
        self._nodes = [_Node(launch) for launch in nodes]
        self._recorder = recorder
        joins = {index: launch.first_round for index, launch in enumerate(nodes) if launch.first_round > 1}
        self._supervisor = Supervisor(nodes=len(nodes), settings=settings, joins=joins)
        self._turns = Turns(count=turns)
        self._program = program
        self._mixes = ForkServer(preload=program.mix_preload)
        self._learners = ForkServer(preload=program.learner_preload, prepare=program.prepare_learners)
        self._over: asyncio.Future[RunOver] | None = None
        self._tasks: asyncio.TaskGroup | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._begun_at_s: float | None = None

    @property
    def processes(self) -> Mapping[int, tuple[int | None, int | None]]:
        """The mix process and the learner of each node, while they live."""
        return {index: (node.mix, node.learner) for index, node in enumerate(self._nodes)}

    async def run(self) -> None:
        """Run until the last node has ended; RunError if the run failed. Cancelling it stops the nodes in order."""
        loop = asyncio.get_running_loop()
        self._over = loop.create_future()
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._learners.close)
            stack.push_async_callback(self._mixes.close)
            stack.callback(self._stop_timer)
            try:
                await asyncio.gather(self._mixes.start(), self._learners.start())
            except OSError as error:
                raise RunError(f"the processes for nodes cannot be started: {error}") from error
            try:
                async with asyncio.TaskGroup() as self._tasks:
                    over = await self._lead()
            except BaseExceptionGroup as group:
                raise first_of(group) from group
        if over.status is Status.FAILED:
            raise RunError(over.reason)

    async def _lead(self) -> RunOver:
        if self._over is None:
            raise LocalProtocolError("a launcher leads what it has started")
        try:
            for index in range(len(self._nodes)):
                await self._fork(index)
            self._supervisor.start(now_s=self._now_s())
            self._follow()
            return await asyncio.shield(self._over)
        except asyncio.CancelledError:
            self._supervisor.stop(status=Status.INTERRUPTED, reason="interrupted", now_s=self._now_s())
            self._follow()
            await self._over
            raise

    # -- processes ----------------------------------------------------------------------------------------------

    async def _fork(self, index: int) -> None:
        """Start the mix process of a node, and send it its configuration."""
        node, launch = self._nodes[index], self._nodes[index].launch
        ours, theirs = socket.socketpair()
        node.channel = Channel(ours, on_message=partial(self._heard, index), on_close=partial(self._unheard, index))
        node.channel.send(launch.configure)
        with theirs, _appended(launch.log) as log:
            request = ForkRequest(
                main=self._program.mix,
                name=f"unl-node-{index}",
                cores=None if launch.core is None else (launch.core,),
                death_signal=signal.SIGTERM,
                log=log.fileno(),
            )
            try:
                process_id = await self._mixes.fork(request, theirs, on_exit=partial(self._mix_ended, index))
            except OSError as error:
                node.channel.close()
                self._ended(index, f"could not be started: {error}")
                return
        if self._mixes.is_alive(process_id):
            node.mix = process_id

    def _mix_ended(self, index: int, _process_id: int, code: int | None) -> None:
        node = self._nodes[index]
        # The last that it said may still be in the pipe, and says more than its exit code.
        if node.channel is not None and node.channel.is_open:
            node.channel.read_rest()
            node.channel.close()
        node.mix = None
        if node.learner is not None:
            self._learners.signal(node.learner, signal.SIGKILL)
        self._ended(index, say_ending(code))

    def _ended(self, index: int, how: str) -> None:
        self._grant(self._turns.give_back(index))
        self._supervisor.node_ended(index, how=how, now_s=self._now_s())
        self._follow()

    async def _start_learner(self, index: int) -> None:
        """Start a process for the learner of a node, in the place of the one before."""
        node, launch = self._nodes[index], self._nodes[index].launch
        if node.learner is not None:
            self._learners.signal(node.learner, signal.SIGKILL)
        ours, theirs = socket.socketpair()
        with ours, theirs, _appended(launch.log) as log:
            request = ForkRequest(
                main=self._program.learner,
                name=f"unl-learner-{index}",
                niceness=NICENESS,
                cores=None if launch.core is None else (launch.core,),
                log=log.fileno(),
            )
            try:
                process_id = await self._learners.fork(request, theirs, on_exit=partial(self._learner_ended, index))
            except OSError as error:
                self._tell(index, say.LearnerRefused(reason=str(error)))
                return
            node.learner = process_id
            self._tell(index, say.LearnerStarted(process_id=process_id), file=ours.detach())
        if not self._learners.is_alive(process_id):
            self._learner_ended(index, process_id, None)
        elif node.mix is None:  # it ended while we waited
            self._learners.signal(process_id, signal.SIGKILL)

    def _learner_ended(self, index: int, process_id: int, code: int | None) -> None:
        node = self._nodes[index]
        if node.learner == process_id:
            node.learner = None
            self._tell(index, say.LearnerEnded(process_id=process_id, code=code))

    # -- what nodes say -----------------------------------------------------------------------------------------

    def _heard(self, index: int, body: bytes) -> None:
        self._take(index, say.parse_from_node(body))
        self._follow()

    def _unheard(self, index: int, reason: str) -> None:
        """The pipe of a node has closed; its end is reported by itself, unless we closed it for what it said."""
        if reason:
            self._supervisor.node_failed(index, reason=f"said what no node says: {reason}", now_s=self._now_s())
            self._kill(index)

    def _take(self, index: int, message: say.FromNode) -> None:
        supervisor, now_s = self._supervisor, self._now_s()
        match message:
            case say.Bound(address=address):
                supervisor.node_bound(index, address=address, now_s=now_s)
            case say.Ready(missing=missing):
                if missing:
                    self._event(index, EventKind.LINK, f"begins without {', '.join(self._names(missing))}")
                supervisor.node_ready(index, now_s=now_s)
            case say.Finished(ending=ending):
                if ending == "exit":
                    self._event(index, EventKind.EXIT, "left as scheduled")
                supervisor.node_finished(index, leaves=ending == "exit", now_s=now_s)
            case say.Failed(text=text):
                supervisor.node_failed(index, reason=text, now_s=now_s)
            case say.RoundReport(at_s=at_s, round_number=round_number, metrics=metrics):
                used = self._usage(index)
                self._recorder.record(time_s=at_s, round_number=round_number, node=index, metrics={**metrics, **used})
                supervisor.round_finished(index, round_number=round_number, now_s=now_s)
            case _:
                supervisor.node_said(index, now_s=now_s)
                self._take_aside(index, message)

    def _take_aside(
        self,
        index: int,
        message: say.LearnerWanted
        | say.TurnWanted
        | say.TurnReturned
        | say.PhaseReport
        | say.GaugesReport
        | say.Note
        | say.Stopped,
    ) -> None:
        """Take what does not change how far the run is."""
        match message:
            case say.LearnerWanted():
                if self._tasks is not None:
                    self._tasks.create_task(self._start_learner(index))
            case say.TurnWanted():
                self._grant(self._turns.want(index))
            case say.TurnReturned():
                self._grant(self._turns.give_back(index))
            case say.PhaseReport(at_s=at_s, round_number=round_number, phase=phase):
                self._recorder.phase(time_s=at_s, round_number=round_number, node=index, phase=phase)
            case say.GaugesReport(at_s=at_s, metrics=metrics):
                if metrics:
                    self._recorder.record(time_s=at_s, round_number=None, node=index, metrics=metrics)
            case say.Note(at_s=at_s, kind=kind, text=text):
                self._recorder.event(time_s=at_s, node=index, kind=EventKind(kind), text=text)
            case say.Stopped(counters=counters):
                self._nodes[index].counters = counters
            case _:
                assert_never(message)

    # -- what the supervisor says -------------------------------------------------------------------------------

    def _follow(self) -> None:
        while (event := self._supervisor.next_event()) is not None:
            match event:
                case SendContacts(nodes=nodes, addresses=addresses):
                    by_id = {self._nodes[index].launch.node_id: address for index, address in addresses.items()}
                    self._tell_all(nodes, say.Contacts(addresses=by_id))
                case SendLost(nodes=nodes, lost=lost):
                    self._tell_all(nodes, say.Lost(node_id=self._nodes[lost].launch.node_id))
                case SendBegin(nodes=nodes):
                    self._begin(nodes)
                case SendStop(nodes=nodes):
                    self._tell_all(nodes, say.Stop())
                case EndNode(node=index):
                    self._kill(index)
                case NodeLost(node=index, reason=reason):
                    self._event(index, EventKind.DEATH, reason)
                case RunOver():
                    if self._over is not None and not self._over.done():
                        self._over.set_result(event)
                case _:
                    assert_never(event)
        self._set_timer()

    def _set_timer(self) -> None:
        self._stop_timer()
        due_s = self._supervisor.next_timer_s()
        if due_s is not None:
            self._timer = asyncio.get_running_loop().call_at(due_s, self._wake)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake(self) -> None:
        self._supervisor.handle_timer(now_s=self._now_s())
        self._follow()

    def _kill(self, index: int) -> None:
        process_id = self._nodes[index].mix
        if process_id is not None:
            self._mixes.signal(process_id, signal.SIGKILL)

    # -- small things -------------------------------------------------------------------------------------------

    def _grant(self, nodes: Sequence[int]) -> None:
        self._tell_all(nodes, say.TurnGranted())

    def _tell_all(self, nodes: Sequence[int], message: say.ToNode) -> None:
        for index in nodes:
            self._tell(index, message)

    def _tell(self, index: int, message: say.ToNode, *, file: int | None = None) -> None:
        channel = self._nodes[index].channel
        if channel is not None:
            channel.send(message, file=file)
        elif file is not None:
            os.close(file)

    def _usage(self, index: int) -> dict[str, float]:
        """What the node has used since this was last asked, and the memory that it holds."""
        node = self._nodes[index]
        mix, learner = self._used_since(node, node.mix), self._used_since(node, node.learner)
        if mix is None:
            return {}
        metrics = {"cpu_s": mix.cpu_s, "cpu_mix_s": mix.cpu_s, "pss_mib": mix.pss_mib, "pss_mix_mib": mix.pss_mib}
        if learner is not None:
            metrics["cpu_learner_s"] = learner.cpu_s
            metrics["cpu_s"] += learner.cpu_s
            metrics["pss_mib"] += learner.pss_mib
        return metrics

    @staticmethod
    def _used_since(node: _Node, process_id: int | None) -> Usage | None:
        used = None if process_id is None else read_usage(process_id)
        if used is None or process_id is None:
            return None
        before_s = node.cpu_before_s.get(process_id, 0.0)
        node.cpu_before_s[process_id] = used.cpu_s
        return Usage(cpu_s=used.cpu_s - before_s, pss_mib=used.pss_mib)

    def _begin(self, nodes: Sequence[int]) -> None:
        if self._begun_at_s is None:
            self._begun_at_s = self._now_s()
        for index in nodes:
            self._usage(index)  # what it took to start belongs to no round
            if (first := self._nodes[index].launch.first_round) > 1:
                self._event(index, EventKind.JOIN, f"for round {first}")
        self._tell_all(nodes, say.Begin())

    def _names(self, node_ids: Sequence[str]) -> list[str]:
        indices = {node.launch.node_id: index for index, node in enumerate(self._nodes)}
        return [f"node {indices[node_id]}" if node_id in indices else node_id for node_id in node_ids]

    def _event(self, index: int, kind: EventKind, text: str) -> None:
        now_s = 0.0 if self._begun_at_s is None else self._now_s() - self._begun_at_s
        self._recorder.event(time_s=now_s, node=index, kind=kind, text=text)

    @staticmethod
    def _now_s() -> float:
        return asyncio.get_running_loop().time()


def _appended(path: Path) -> IO[bytes]:
    try:
        return path.open("ab", buffering=0)
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror}") from error
