"""Nodes as processes of this machine: two forkservers, with and without PyTorch, and from each a process a node.

    absent --start-------------------> running
    absent --start fails, or kill----> ended
    running --its process ends-------> ended

Invariant: the learner of a node does not outlive its mix, and nothing outlives `close`.
"""

import asyncio
import signal
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

from unlinkabledfl.errors import LocalProtocolError, RunError
from unlinkabledfl.experiment.backends.process import messages as say
from unlinkabledfl.experiment.backends.process.forkserver import ForkRequest, ForkServer
from unlinkabledfl.experiment.backends.process.hosts import NodeLaunch, Processes, Reports
from unlinkabledfl.learning.worker_start import NICENESS, say_ending

__all__ = ["Forks", "Program"]


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


@dataclass(slots=True)
class _Node:
    launch: NodeLaunch
    mix: int | None = None
    """Its mix process, while it lives."""
    learner: int | None = None
    has_ended: bool = False


class Forks:
    """It fulfils `hosts.Hosts`."""

    def __init__(self, nodes: Sequence[NodeLaunch], *, program: Program = _NODES) -> None:
        self._nodes = [_Node(launch) for launch in nodes]
        self._program = program
        self._mixes = ForkServer(preload=program.mix_preload)
        self._learners = ForkServer(preload=program.learner_preload, prepare=program.prepare_learners)
        self._reports: Reports | None = None

    async def open(self, reports: Reports) -> None:
        self._reports = reports
        try:
            await asyncio.gather(self._mixes.start(), self._learners.start())
        except OSError as error:
            raise RunError(f"the processes for nodes cannot be started: {error}") from error

    async def start(self) -> None:
        for index, node in enumerate(self._nodes):
            if not node.has_ended:
                await self._start_mix(index)

    async def start_learner(self, index: int) -> None:
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
                self._told.tell(index, say.LearnerRefused(reason=str(error)))
                return
            node.learner = process_id
            self._told.tell(index, say.LearnerStarted(process_id=process_id), file=ours.detach())
        if not self._learners.is_alive(process_id):
            self._learner_ended(index, process_id, None)
        elif node.mix is None:  # it ended while we waited
            self._learners.signal(process_id, signal.SIGKILL)

    def kill(self, index: int) -> None:
        node = self._nodes[index]
        if node.mix is not None:
            self._mixes.signal(node.mix, signal.SIGKILL)
        elif not node.has_ended:
            self._ended(index, "was not started")

    def round_finished(self, index: int) -> None:
        """Nothing to do: a node puts its model where it belongs."""

    def processes(self, index: int) -> Processes:
        node = self._nodes[index]
        return Processes(mix=node.mix, learner=() if node.learner is None else (node.learner,))

    async def close(self) -> None:
        try:
            await self._mixes.close()
        finally:
            await self._learners.close()

    @property
    def _told(self) -> Reports:
        if self._reports is None:
            raise LocalProtocolError("nodes are started after their forkservers")
        return self._reports

    async def _start_mix(self, index: int) -> None:
        """Start the mix process of a node, with its end of the control pipe."""
        node, launch = self._nodes[index], self._nodes[index].launch
        ours, theirs = socket.socketpair()
        self._told.connected(index, ours)
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
                self._ended(index, f"could not be started: {error}")
                return
        if self._mixes.is_alive(process_id):
            node.mix = process_id

    def _mix_ended(self, index: int, _process_id: int, code: int | None) -> None:
        node = self._nodes[index]
        node.mix = None
        if node.learner is not None:
            self._learners.signal(node.learner, signal.SIGKILL)
        self._ended(index, say_ending(code))

    def _ended(self, index: int, how: str) -> None:
        if not self._nodes[index].has_ended:
            self._nodes[index].has_ended = True
            self._told.ended(index, how)

    def _learner_ended(self, index: int, process_id: int, code: int | None) -> None:
        node = self._nodes[index]
        if node.learner == process_id:
            node.learner = None
            self._told.tell(index, say.LearnerEnded(process_id=process_id, code=code))


def _appended(path: Path) -> IO[bytes]:
    try:
        return path.open("ab", buffering=0)
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror}") from error
