"""One node in the real world, from its configuration to its last report: learner, participant, endpoint, driver.

    new --learner built, port bound------> bound
    bound --told where the others are----> linking
    linking --linked, and all are known--> waiting
    waiting --told to begin--------------> running
    running --rounds over----------------> running
    running --leaves by schedule---------> closed
    running --told to stop---------------> closed

What is around it, a launcher or nobody, is its `Surroundings`: where others are, when to begin, whose turn it is to
compute. This module knows no pipe and no forkserver.

Invariant: whatever ends a node, its links are closed, its learner is given up, and its last model is on disk, if it has
been given a place for it.
"""

import asyncio
import logging
import secrets
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Final, Protocol

from unlinkabledfl.errors import ConfigError, LocalProtocolError, RunError
from unlinkabledfl.experiment.assembly import NodeParts, build_participant, describe_with
from unlinkabledfl.experiment.backends.process import messages as say
from unlinkabledfl.experiment.backends.process.learner import ProcessLearner
from unlinkabledfl.experiment.node_config import FullNodeConfig, LinkConfig, named
from unlinkabledfl.experiment.records.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from unlinkabledfl.experiment.tracing.logs import HostLog, Logs, NodeLog, TraceFolder
from unlinkabledfl.learning.worker_start import WorkerProcess
from unlinkabledfl.mixnet.events import MixEvent, PeerChanged
from unlinkabledfl.node.events import Finished, ModelReady, NodeEvent, PhaseChanged, RoundFinished
from unlinkabledfl.node.learner import State
from unlinkabledfl.node.participant import Participant
from unlinkabledfl.sphinx import NodeId
from unlinkabledfl.transport.book import Contact, Contacts
from unlinkabledfl.transport.driver import NodeDriver
from unlinkabledfl.transport.endpoint import Endpoint
from unlinkabledfl.transport.settings import EndpointSettings

__all__ = ["NodeRuntime", "Place", "Surroundings"]

_HEARTBEAT_S: Final = 30.0

_LOG = logging.getLogger(__name__)


class Surroundings(Protocol):
    """What is around a node: a launcher at the other end of a pipe, or an operator who has said all beforehand."""

    stopping: asyncio.Event
    """Set when the node is to stop."""
    lost: asyncio.Queue[str]
    """Ids of nodes that have ended before the first round."""
    trained: asyncio.Queue[int]
    """Rounds for which some node has trained only now."""

    @property
    def at_s(self) -> float:
        """Seconds since the node was told to begin; before that, 0."""
        ...

    async def introduce(self, address: str) -> Mapping[str, tuple[str, ...]]:
        """Say where this node listens; return who takes part now, by id, with the addresses that are known of it."""
        ...

    async def begin(self) -> None:
        """Return when the first round is to begin."""
        ...

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Wait until the learner may compute; leaving gives the turn back."""
        ...

    def start_worker(self) -> WorkerProcess:
        """Start a process for the learner; called in a thread."""
        ...

    def report(self, message: say.FromNode) -> None:
        """Tell whoever listens."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a node's last model lies, where it goes on, and where it takes down what crosses its links."""

    checkpoint: Path | None = None
    resumes: bool = False
    first_round: int = 1
    trace: TraceFolder | None = None
    """Where it takes down what crosses its links."""


class _Book:
    """Contacts that are complete once the others have their ports."""

    def __init__(self) -> None:
        self._contacts: Contacts | None = None

    def fill(self, contacts: Contacts) -> None:
        self._contacts = contacts

    def contact(self, peer: NodeId) -> Contact | None:
        return None if self._contacts is None else self._contacts.contact(peer)

    def admit(self, peer: NodeId, *, fingerprint: bytes, introduction: bytes) -> bool:
        return self._contacts is not None and self._contacts.admit(
            peer, fingerprint=fingerprint, introduction=introduction
        )


class NodeRuntime:
    """Runs one node."""

    def __init__(self, config: FullNodeConfig, *, surroundings: Surroundings, place: Place) -> None:
        if config.link is None:
            raise ConfigError(key="node.link", got=None, takes="where this node listens, in the real world")
        self._config = config
        self._link: LinkConfig = config.link
        self._around = surroundings
        self._place = place
        self._book = _Book()
        self._changed = asyncio.Event()  # a link or a peer has come or gone
        self._lost: set[NodeId] = set()
        self._unsaved: Checkpoint | None = None
        self._saving = asyncio.Event()
        self._logs: Logs | None = None
        self._driver: NodeDriver | None = None

    async def run(self) -> None:
        """Run until the schedule or the surroundings end it."""
        async with asyncio.TaskGroup() as tasks:
            life = tasks.create_task(self._live())
            watch = tasks.create_task(self._end_when_told(life))
            life.add_done_callback(lambda _: watch.cancel())

    async def _end_when_told(self, life: asyncio.Task[None]) -> None:
        await self._around.stopping.wait()
        _LOG.info("stopping")
        if self._driver is None:
            life.cancel()
        else:
            self._driver.stop()

    async def _live(self) -> None:
        learner = ProcessLearner(
            self._config.learner.factory,
            self._config.learner.settings,
            start=self._around.start_worker,
            turn=self._around.turn,
            on_failure=self._note,
        )
        try:
            before = self._last_model()
            state = await learner.open(None if before is None else before.state)
            _LOG.info("the learner is built")
            await self._take_part(learner, state)
        finally:
            learner.close()
            if self._unsaved is not None:
                self._save(self._unsaved)
            self._close_trace()

    async def _take_part(self, learner: ProcessLearner, state: State) -> None:
        config, link = self._config, self._link
        identity = link.identity()
        parts, tap = self._watched(NodeParts.of(config))
        participant = build_participant(
            config,
            state=state,
            entropy=secrets.token_bytes,
            describe=describe_with(
                config.signing_seed,
                fingerprint=identity.fingerprint,
                addresses=lambda: (self._address(),),
                allow_loopback=link.allow_loopback,
            ),
            parts=parts,
            # More than any serial of a former life, which counted from its own start.
            first_serial=int(datetime.now(UTC).timestamp()),
            first_round=self._place.first_round,
        )
        endpoint = Endpoint(
            node_id=config.own_id,
            identity=identity,
            book=self._book,
            settings=EndpointSettings(
                packet_bytes=parts.packets.packet_bytes,
                datagram_bytes=link.datagram_bytes,
                allow_loopback=link.allow_loopback,
            ),
            entropy=secrets.token_bytes,
            tap=tap,
        )
        self._driver = driver = NodeDriver(
            node=participant,
            endpoint=endpoint,
            learner=learner,
            on_event=self._follow,
            on_link=lambda _peer, _up: self._changed.set(),
            begin_when_ready=False,
        )
        async with asyncio.TaskGroup() as tasks:
            beside = [
                tasks.create_task(self._introduce(participant, endpoint)),
                tasks.create_task(self._hear_of_losses()),
                tasks.create_task(self._hear_of_training()),
                tasks.create_task(self._begin()),
                tasks.create_task(self._beat(participant, endpoint)),
                tasks.create_task(self._save_models()),
            ]
            try:
                ending = await driver.run(host=link.host, port=link.port)
            finally:
                for task in beside:
                    task.cancel()
        _LOG.info("links closed: %s", ending)
        counters = {**participant.counters, **{f"link_{name}": n for name, n in endpoint.counters.items()}}
        self._around.report(say.Stopped(at_s=self._around.at_s, counters=counters))
        _LOG.info("counted: %s", ", ".join(f"{name} {count}" for name, count in sorted(counters.items())))

    # -- from the port to the first round -----------------------------------------------------------------------

    async def _introduce(self, participant: Participant, endpoint: Endpoint) -> None:
        """Tell where we listen, link with our neighbours, and say when we are linked and know everybody."""
        driver = self._opened()
        await driver.ready.wait()
        address = self._address()
        _LOG.info("listening at %s", address)
        addresses = await self._around.introduce(address)
        contacts = {
            NodeId(bytes.fromhex(contact.node_id)): Contact(
                fingerprint=bytes.fromhex(contact.fingerprint),
                addresses=addresses.get(contact.node_id, ()),
            )
            for contact in self._config.contacts
        }
        self._book.fill(Contacts(contacts, described=participant.mix.peers.descriptor))
        there = {NodeId(bytes.fromhex(node_id)) for node_id in addresses} - {self._config.own_id}
        neighbours = {NodeId(bytes.fromhex(node_id)) for node_id in self._config.neighbours}
        for peer in {*named(self._config.destinations), *named(self._config.expected_from)} - there:
            participant.expect_absence(peer)
        for peer in sorted(there & neighbours):
            endpoint.want(peer)
        while not self._is_linked(participant, endpoint, there=there, wanted=there & neighbours):
            for peer in self._lost & there:
                endpoint.release(peer)
                participant.expect_absence(peer)
            there -= self._lost
            self._changed.clear()
            await self._changed.wait()
        _LOG.info("linked with %d neighbours, %d peers are known", len(there & neighbours), len(there))
        self._around.report(
            say.Ready(links=len(there & neighbours), missing=tuple(sorted(peer.hex() for peer in self._lost)))
        )

    async def _hear_of_losses(self) -> None:
        while True:
            self._lost.add(NodeId(bytes.fromhex(await self._around.lost.get())))
            self._changed.set()

    async def _hear_of_training(self) -> None:
        while True:
            self._opened().peer_trained(await self._around.trained.get())

    @staticmethod
    def _is_linked(participant: Participant, endpoint: Endpoint, *, there: set[NodeId], wanted: set[NodeId]) -> bool:
        return participant.mix.peers.routable_count >= len(there) and all(endpoint.is_linked(peer) for peer in wanted)

    async def _begin(self) -> None:
        await self._around.begin()
        _LOG.info("beginning")
        self._opened().begin()

    def _opened(self) -> NodeDriver:
        if self._driver is None:
            raise LocalProtocolError("the driver is made before anything is led")
        return self._driver

    def _address(self) -> str:
        host, port = self._opened().address
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    # -- while rounds turn --------------------------------------------------------------------------------------

    def _follow(self, event: NodeEvent | MixEvent, _now_s: float) -> None:
        at_s = self._around.at_s
        match event:
            case PhaseChanged(round_number=round_number, phase=phase):
                self._around.report(say.PhaseReport(at_s=at_s, round_number=round_number, phase=phase))
            case RoundFinished(round_number=round_number, metrics=metrics):
                _LOG.info("round %d is over", round_number)
                self._around.report(say.RoundReport(at_s=at_s, round_number=round_number, metrics=_finite(metrics)))
            case Finished(ending=ending):
                self._around.report(say.Finished(at_s=at_s, ending=ending.value))
            case ModelReady(round_number=round_number, state=state):
                self._unsaved = Checkpoint(round_number=round_number, state=state)
                self._saving.set()
            case PeerChanged(peer=peer, routable=routable, reason=reason):
                _LOG.debug("peer %s is %s: %s", peer.hex()[:8], "routable" if routable else "not routable", reason)
                self._changed.set()
            case _:
                return

    async def _beat(self, participant: Participant, endpoint: Endpoint) -> None:
        """Report gauges at their interval; without one, at least a sign of life."""
        interval_s = self._config.gauges_interval_s
        while True:
            await asyncio.sleep(interval_s or _HEARTBEAT_S)
            gauges = {**participant.gauges(), **endpoint.gauges()} if interval_s else {}
            self._around.report(say.GaugesReport(at_s=self._around.at_s, metrics=_finite(gauges)))

    # -- traces -------------------------------------------------------------------------------------------------

    def _watched(self, parts: NodeParts) -> tuple[NodeParts, HostLog | None]:
        """Return the parts of a node that takes down what it does, and what listens at its links, if so asked."""
        if self._place.trace is None:
            return parts, None
        try:
            self._logs = self._place.trace.open(self._config.index, share=self._config.nodes)
        except OSError as error:
            self._note(f"no trace of this node: {error.strerror or error}")
            return parts, None
        log = NodeLog(self._config.own_id, self._logs)
        return parts.journaled(log), HostLog(log, size_bytes=parts.packets.packet_bytes)

    def _close_trace(self) -> None:
        if self._logs is not None:
            self._logs.close()
            if self._logs.problem is not None:
                self._note(f"the trace ends early: {self._logs.problem}")

    # -- models on disk -----------------------------------------------------------------------------------------

    def _last_model(self) -> Checkpoint | None:
        if not self._place.resumes or self._place.checkpoint is None:
            return None
        return load_checkpoint(self._place.checkpoint)

    async def _save_models(self) -> None:
        while True:
            await self._saving.wait()
            self._saving.clear()
            if self._unsaved is not None:
                # In a thread, because disks take their time, and packets leave in time.
                model, self._unsaved = self._unsaved, None
                await asyncio.to_thread(self._save, model)

    def _save(self, model: Checkpoint) -> None:
        if self._place.checkpoint is None:
            return
        try:
            save_checkpoint(self._place.checkpoint, round_number=model.round_number, state=model.state)
        except RunError as error:
            _LOG.warning("the model after round %d is not saved: %s", model.round_number, error)

    def _note(self, text: str) -> None:
        _LOG.warning("%s", text)
        self._around.report(say.Note(at_s=self._around.at_s, kind="note", text=text))


def _finite(metrics: Mapping[str, float]) -> dict[str, float]:
    """JSON has neither infinity nor not-a-number, and neither tells a reader more than a gap."""
    return {name: float(value) for name, value in metrics.items() if isfinite(value)}
