"""Start the nodes of a run, lead them through it, write down what they report, and leave nothing behind.

Who keeps the nodes, as processes or in containers, is its `Hosts`. The launcher hears neither packets nor models: what
nodes tell it are figures.

The order of things is the `Supervisor`'s; this module does what that says, and tells it what happens.

Invariant: when `run` returns or raises, nothing that was started for it is left.
"""

import asyncio
import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Final, assert_never

from unlinkabledfl.errors import LocalProtocolError, RunError
from unlinkabledfl.experiment.backends.process import messages as say
from unlinkabledfl.experiment.backends.process.channel import Channel
from unlinkabledfl.experiment.backends.process.failures import first_of
from unlinkabledfl.experiment.backends.process.hosts import Hosts, NodeLaunch, Processes
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
from unlinkabledfl.experiment.records import EventKind, Recorder, Status, UntilFailure
from unlinkabledfl.node.rounds import Phase

__all__ = ["Launcher"]

_TELL_TRAINED_S: Final = 5.0
"""Small beside any deadline, and long enough that a hundred nodes are told of a hundred trainings in a few messages."""


@dataclass(slots=True)
class _Node:
    launch: NodeLaunch
    channel: Channel | None = None
    cpu_before_s: dict[int, float] = field(default_factory=dict)
    """What each of its processes had used when that was last asked."""
    counters: Mapping[str, int] = field(default_factory=dict)


class Launcher:
    """One run of real nodes. `turns` is how many learners compute at once."""

    def __init__(
        self,
        nodes: Sequence[NodeLaunch],
        *,
        hosts: Hosts,
        recorder: Recorder,
        settings: SupervisorSettings,
        turns: int,
    ) -> None:
        self._nodes = [_Node(launch) for launch in nodes]
        self._recorder = UntilFailure(recorder, failed=self._cannot_record)
        joins = {index: launch.first_round for index, launch in enumerate(nodes) if launch.first_round > 1}
        self._supervisor = Supervisor(nodes=len(nodes), settings=settings, joins=joins)
        self._turns = Turns(count=turns)
        self._hosts = hosts
        self._over: asyncio.Future[RunOver] | None = None
        self._tasks: asyncio.TaskGroup | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._trained: set[int] = set()
        self._trained_timer: asyncio.TimerHandle | None = None
        self._begun_at_s: float | None = None

    @property
    def processes(self) -> Mapping[int, Processes]:
        """The processes of each node, while they live."""
        return {index: self._hosts.processes(index) for index in range(len(self._nodes))}

    @property
    def begun_at_s(self) -> float | None:
        """When nodes were told to begin, by the monotonic clock of this host."""
        return self._begun_at_s

    async def run(self) -> None:
        """Run until the last node has ended; RunError if the run failed. Cancelling it stops the nodes in order."""
        loop = asyncio.get_running_loop()
        self._over = loop.create_future()
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._hosts.close)
            stack.callback(self._stop_timer)
            stack.callback(self._stop_telling)
            await self._hosts.open(self)
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
            await self._hosts.start()
            self._supervisor.start(now_s=self._now_s())
            self._follow()
            return await asyncio.shield(self._over)
        except asyncio.CancelledError:
            self._supervisor.stop(status=Status.INTERRUPTED, reason="interrupted", now_s=self._now_s())
            self._follow()
            await self._over
            raise

    # -- what the keeper of nodes says ----------------------------------------------------------------------------

    def connected(self, index: int, end: socket.socket) -> None:
        node = self._nodes[index]
        node.channel = Channel(end, on_message=partial(self._heard, index), on_close=partial(self._unheard, index))
        node.channel.send(node.launch.configure)

    def ended(self, index: int, how: str) -> None:
        channel = self._nodes[index].channel
        # The last that it said may still be in the pipe, and says more than its exit code.
        if channel is not None and channel.is_open:
            channel.read_rest()
            channel.close()
        self._grant(self._turns.give_back(index))
        self._supervisor.node_ended(index, how=how, now_s=self._now_s())
        self._follow()

    def tell(self, index: int, message: say.ToNode, *, file: int | None = None) -> None:
        channel = self._nodes[index].channel
        if channel is not None:
            channel.send(message, file=file)
        elif file is not None:
            os.close(file)

    # -- what nodes say -----------------------------------------------------------------------------------------

    def _heard(self, index: int, body: bytes) -> None:
        self._take(index, say.parse_from_node(body))
        self._follow()

    def _unheard(self, index: int, reason: str) -> None:
        """The pipe of a node has closed; its end is reported by itself, unless we closed it for what it said."""
        if reason:
            self._supervisor.node_failed(index, reason=f"said what no node says: {reason}", now_s=self._now_s())
            self._hosts.kill(index)

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
                self._hosts.round_finished(index)
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
                    self._tasks.create_task(self._hosts.start_learner(index))
            case say.TurnWanted():
                self._grant(self._turns.want(index))
            case say.TurnReturned():
                self._grant(self._turns.give_back(index))
            case say.PhaseReport(at_s=at_s, round_number=round_number, phase=phase):
                self._recorder.phase(time_s=at_s, round_number=round_number, node=index, phase=phase)
                if phase == Phase.EXCHANGE:
                    self._has_trained(round_number)
            case say.GaugesReport(at_s=at_s, metrics=metrics):
                if metrics:
                    self._recorder.record(time_s=at_s, round_number=None, node=index, metrics=metrics)
            case say.Note(at_s=at_s, kind=kind, text=text):
                self._recorder.event(time_s=at_s, node=index, kind=EventKind(kind), text=text)
            case say.Stopped(counters=counters):
                self._nodes[index].counters = counters
            case _:
                assert_never(message)

    def _has_trained(self, round_number: int) -> None:
        """Let everybody know soon that somebody has trained for this round only now.

        The nodes of a run share cores, and train in turns: those who were first do not give up those who come last.
        """
        self._trained.add(round_number)
        if self._trained_timer is None:
            self._trained_timer = asyncio.get_running_loop().call_later(_TELL_TRAINED_S, self._tell_trained)

    def _tell_trained(self) -> None:
        self._trained_timer = None
        for round_number in sorted(self._trained):
            self._tell_all(range(len(self._nodes)), say.Trained(round_number=round_number))
        self._trained.clear()

    def _stop_telling(self) -> None:
        if self._trained_timer is not None:
            self._trained_timer.cancel()

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
                    self._stop(nodes)
                case EndNode(node=index):
                    self._hosts.kill(index)
                case NodeLost(node=index, reason=reason):
                    self._event(index, EventKind.DEATH, reason)
                case RunOver():
                    if self._over is not None and not self._over.done():
                        self._over.set_result(event)
                case _:
                    assert_never(event)
        self._set_timer()

    def _stop(self, nodes: Sequence[int]) -> None:
        self._tell_all(nodes, say.Stop())
        for index in nodes:
            if self._nodes[index].channel is None:  # it does not listen yet
                self._hosts.kill(index)

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

    # -- small things -------------------------------------------------------------------------------------------

    def _grant(self, nodes: Sequence[int]) -> None:
        self._tell_all(nodes, say.TurnGranted())

    def _tell_all(self, nodes: Sequence[int], message: say.ToNode) -> None:
        for index in nodes:
            self.tell(index, message)

    def _usage(self, index: int) -> dict[str, float]:
        """What the node has used since this was last asked, and the memory that it holds."""
        node, processes = self._nodes[index], self._hosts.processes(index)
        mix = None if processes.mix is None else self._used_since(node, processes.mix)
        if mix is None:
            return {}
        metrics = {"cpu_s": mix.cpu_s, "cpu_mix_s": mix.cpu_s, "pss_mib": mix.pss_mib, "pss_mix_mib": mix.pss_mib}
        learner = [used for process in processes.learner if (used := self._used_since(node, process)) is not None]
        if learner:
            metrics["cpu_learner_s"] = sum(used.cpu_s for used in learner)
            metrics["cpu_s"] += metrics["cpu_learner_s"]
            metrics["pss_mib"] += sum(used.pss_mib for used in learner)
        return metrics

    @staticmethod
    def _used_since(node: _Node, process_id: int) -> Usage | None:
        used = read_usage(process_id)
        if used is None:
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

    def _cannot_record(self, error: RunError) -> None:
        """The disk is full, say: a run that leaves no records is not worth going on with."""
        self._supervisor.stop(status=Status.FAILED, reason=str(error), now_s=self._now_s())

    def _names(self, node_ids: Sequence[str]) -> list[str]:
        indices = {node.launch.node_id: index for index, node in enumerate(self._nodes)}
        return [f"node {indices[node_id]}" if node_id in indices else node_id for node_id in node_ids]

    def _event(self, index: int, kind: EventKind, text: str) -> None:
        now_s = 0.0 if self._begun_at_s is None else self._now_s() - self._begun_at_s
        self._recorder.event(time_s=now_s, node=index, kind=kind, text=text)

    @staticmethod
    def _now_s() -> float:
        return asyncio.get_running_loop().time()
