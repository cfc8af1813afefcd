"""Nodes in containers: each in one of its own, on a network of the run's own that leads nowhere else.

    absent --start------------------------> running
    absent --start fails, or kill---------> ended
    running --its container is over-------> ended

A thread looks at the engine's list once a second. That is when the end of a node is seen, however it came, before or
after the node has dialled; its exit code and the end of its log say how.

Invariant: after `close` the engine has nothing of this run any more, and what nodes left is with the run's records.
"""

import asyncio
import logging
import shutil
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from unlinkabledfl.errors import LocalProtocolError, RunError
from unlinkabledfl.experiment.backends.container.blueprint import MODEL, NODE_LABEL, Outfit
from unlinkabledfl.experiment.backends.container.engine import Ending, Engine, Found, last_words
from unlinkabledfl.experiment.backends.container.leftovers import RUN_LABEL
from unlinkabledfl.experiment.backends.container.place import Place
from unlinkabledfl.experiment.backends.process.hosts import NodeLaunch, Processes, Reports
from unlinkabledfl.experiment.backends.process.usage import descendants
from unlinkabledfl.experiment.tracing.logs import log_names
from unlinkabledfl.learning.worker_start import say_ending

__all__ = ["Keeper", "say_container_ending"]

_LOOK_EVERY_S: Final = 1.0
_AT_ONCE: Final = 4
_SIGNAL: Final = 128
"""The exit code of a process that a signal ended is this plus the signal's number."""
_TOLD: Final = (0, 1, 2, 3, _SIGNAL + signal.SIGKILL)
"""With these a node that has dialled has said why it ends, or somebody has ended it who knows why."""

_LOG = logging.getLogger(__name__)

Result = TypeVar("Result")


@dataclass(slots=True)
class _Node:
    launch: NodeLaunch
    place: Place
    identity: str | None = None
    """Its container's, once that has been started."""
    mix: int | None = None
    is_connected: bool = False
    is_condemned: bool = False
    """Whether its end by force was asked for here."""
    has_ended: bool = False


class Keeper:
    """It fulfils `process.hosts.Hosts`.

    `places` is a directory for those of the nodes. Where a launch has its checkpoint and its trace, there goes what a
    node leaves of them.
    """

    def __init__(self, nodes: Sequence[NodeLaunch], *, engine: Engine, outfit: Outfit, places: Path) -> None:
        self._engine = engine
        self._outfit = outfit
        self._label = f"{RUN_LABEL}={outfit.run}"
        self._places = places
        owner = {"user_id": outfit.user_id, "group_id": outfit.group_id}
        self._nodes = [
            _Node(launch, Place(self._places / f"{index:04d}", **owner)) for index, launch in enumerate(nodes)
        ]
        self._reports: Reports | None = None
        self._threads = ThreadPoolExecutor(max_workers=_AT_ONCE, thread_name_prefix="containers")
        self._closing = threading.Event()
        self._watching: asyncio.Future[None] | None = None

    async def open(self, reports: Reports) -> None:
        self._reports = reports
        loop = asyncio.get_running_loop()
        self._make_places(loop)
        await self._call(lambda: self._engine.create_network(self._outfit.network, labels=self._outfit.labels))
        self._watching = loop.run_in_executor(None, self._watch, loop)

    async def start(self) -> None:
        await asyncio.gather(*(self._start(index) for index in range(len(self._nodes))))

    async def start_learner(self, index: int) -> None:
        raise LocalProtocolError(f"node {index} starts its learner itself")

    def kill(self, index: int) -> None:
        identity = self._nodes[index].identity
        self._nodes[index].is_condemned = True
        if identity is None:
            self._ended(index, "was not started")
        elif not self._closing.is_set():
            self._threads.submit(self._kill, identity)

    def round_finished(self, index: int) -> None:
        self._take_model(self._nodes[index])

    def processes(self, index: int) -> Processes:
        mix = self._nodes[index].mix
        return Processes() if mix is None else Processes(mix=mix, learner=descendants(mix))

    async def close(self) -> None:
        self._closing.set()
        for node in self._nodes:
            self._close_door(node)
        # What is being started is waited for, or it would be there after everything has been taken away.
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
        if self._watching is not None:
            await self._watching
        await asyncio.to_thread(self._take_all_away)

    # -- places -------------------------------------------------------------------------------------------------

    def _make_places(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            # What a launcher that was killed has left here is of no use: where its models belong, they are already.
            shutil.rmtree(self._places, ignore_errors=True)
            self._places.mkdir(mode=0o700)
        except OSError as error:
            raise RunError(f"{self._places} cannot be made: {error.strerror}") from error
        for index, node in enumerate(self._nodes):
            configure = node.launch.configure
            listener = node.place.make(model=Path(configure.checkpoint) if configure.resumes else None)
            loop.add_reader(listener, self._dialled, index)

    def _dialled(self, index: int) -> None:
        node = self._nodes[index]
        listener = node.place.listener
        if listener is not None:
            asyncio.get_running_loop().remove_reader(listener)
            end, node.mix = node.place.accept()
            node.is_connected = True
            self._told.connected(index, end)

    @staticmethod
    def _close_door(node: _Node) -> None:
        if node.place.listener is not None:
            asyncio.get_running_loop().remove_reader(node.place.listener)
            node.place.close_door()

    @staticmethod
    def _take_model(node: _Node) -> None:
        node.place.take(MODEL, Path(node.launch.configure.checkpoint))

    def _take_traces(self) -> None:
        for index, node in enumerate(self._nodes):
            if folder := node.launch.configure.trace:
                for name in log_names(index):
                    node.place.take(name, Path(folder, name))

    # -- containers ---------------------------------------------------------------------------------------------

    async def _start(self, index: int) -> None:
        node = self._nodes[index]
        blueprint = self._outfit.blueprint(index, place=node.place.path.resolve(), core=node.launch.core)

        def start() -> str | None:
            # It may have been given up while it waited for a thread.
            return None if node.has_ended or self._closing.is_set() else self._engine.start(blueprint)

        try:
            node.identity = await self._call(start)
        except RunError as error:
            self._ended(index, f"could not be started: {error}")

    def _kill(self, identity: str) -> None:
        try:
            self._engine.kill(identity)
        except RunError as error:
            _LOG.warning("%s", error)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look who is over until the run closes; in a thread of its own."""
        known: set[str] = set()
        while not self._closing.wait(_LOOK_EVERY_S):
            try:
                self._look(loop, known)
            except RunError as error:
                # Nodes that live go on without the engine, so the run does; it is asked again in a moment.
                _LOG.warning("%s", error)

    def _look(self, loop: asyncio.AbstractEventLoop, known: set[str]) -> None:
        started = {node.identity: index for index, node in enumerate(self._nodes) if node.identity is not None}
        found = {container.identity: container for container in self._engine.containers(label=self._label)}
        for identity, index in started.items():
            if identity in known or (identity in found and not found[identity].is_over):
                continue
            how = "was taken away from outside"
            if identity in found:
                # If the engine fails here, the node is not known to be over yet: it is looked at again.
                ending = self._engine.ending(identity)
                how = say_container_ending(
                    ending,
                    log=self._keep_log(index, identity),
                    has_spoken=self._nodes[index].is_connected,
                    memory_mib=None if self._nodes[index].is_condemned else self._outfit.memory_mib,
                )
            known.add(identity)
            loop.call_soon_threadsafe(self._ended, index, how)

    def _ended(self, index: int, how: str) -> None:
        node = self._nodes[index]
        if node.has_ended:
            return
        node.has_ended = True
        node.mix = None
        self._close_door(node)
        self._take_model(node)
        self._told.ended(index, how)

    # -- the end ------------------------------------------------------------------------------------------------

    def _take_all_away(self) -> None:
        """Take away whatever carries the label of this run, also what nobody here knows to have been started."""
        try:
            with ThreadPoolExecutor(max_workers=_AT_ONCE) as threads:
                list(threads.map(self._take_away, self._engine.containers(label=self._label)))
            for network in self._engine.networks(label=self._label):
                self._engine.remove_network(network.identity)
        except RunError as error:
            raise RunError(f"{error}; `unlinkabledfl containers clean` takes away what may be left") from error
        finally:
            for node in self._nodes:
                self._take_model(node)
            self._take_traces()
            shutil.rmtree(self._places, ignore_errors=True)

    def _take_away(self, container: Found) -> None:
        index = int(container.labels[NODE_LABEL])
        if not self._nodes[index].has_ended:
            self._keep_log(index, container.identity)
        self._engine.remove(container.identity)

    def _keep_log(self, index: int, identity: str) -> str:
        """Append what a container has printed to the node's log, and return it."""
        try:
            text = self._engine.log(identity)
            with self._nodes[index].launch.log.open("a", encoding="utf-8") as log:
                log.write(text)
        except (OSError, RunError) as error:
            _LOG.warning("the log of node %d is not kept: %s", index, error)
            return ""
        return text

    # -- small things -------------------------------------------------------------------------------------------

    @property
    def _told(self) -> Reports:
        if self._reports is None:
            raise LocalProtocolError("nodes are started after their network")
        return self._reports

    async def _call(self, function: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)


def say_container_ending(ending: Ending, *, log: str, has_spoken: bool, memory_mib: int | None) -> str:
    """Return in words how a container ended; the last line of its log where nothing else says why.

    `memory_mib` is what it was allowed, unless it was ended for another reason. Not every engine tells that the kernel
    took a process for its memory.
    """
    code = ending.code
    with suppress(ValueError):
        code = -signal.Signals(code - _SIGNAL).value
    how = say_ending(code)
    if code == -signal.SIGKILL and memory_mib is not None:
        sure = "" if ending.out_of_memory else "perhaps "
        return f"{how}, {sure}for more memory than container.memory_mib, {memory_mib} MiB"
    words = last_words(log) or ending.error
    return how if not words or (has_spoken and ending.code in _TOLD) else f"{how}: {words}"
