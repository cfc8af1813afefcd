"""Drives one participant in the real world: asyncio, the clock, an endpoint, and a learner in another process.

    new --run-------------------------> linking
    linking --every wanted link up----> Ready, running
    linking --out of patience---------> Ready, running
    running --training asked for------> running
    running --stop, exit, a bug-------> closing
    closing --links let go of---------> over

The participant is handed what happens, one thing at a time, and everything that follows is carried out before the
next: packets go to their links, training to the learner, the next timer to the event loop. Training and evaluation
happen in another process and are awaited in tasks, so that instants of emission do not depend on them.

Invariant: the participant's clock never runs backwards. Nothing happens after `stop`, and whatever a participant raises
comes out of `run`.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from typing import Final

from unlinkabledfl.errors import LearnerError, LocalProtocolError
from unlinkabledfl.mixnet.events import SendControl, SendPacket
from unlinkabledfl.node.events import Ending, Finished, ModelReady, TrainRequested
from unlinkabledfl.node.learner import State
from unlinkabledfl.sphinx import NodeId
from unlinkabledfl.transport.driven import AsyncLearner, DrivenEvent, DrivenNode, LearningNode, TakesBatches
from unlinkabledfl.transport.endpoint import Endpoint

__all__ = ["AsyncLearner", "DrivenEvent", "DrivenNode", "LearningNode", "NodeClock", "NodeDriver", "TakesBatches"]

_PATIENCE_S: Final = 60.0


class NodeClock:
    """The time of day when it was made, and monotonic from there: descriptors of all hosts expire by the same clock."""

    __slots__ = ("_offset_s",)

    def __init__(self) -> None:
        self._offset_s = datetime.now(UTC).timestamp() - time.monotonic()

    def __call__(self) -> float:
        return self._offset_s + time.monotonic()


class NodeDriver:
    """One participant on its endpoint. `run` opens the endpoint, links, emits, learns, and returns when it is over.

    Once all of `wanted` have been linked, or after `patience_s`, it is `ready`. The first round begins then, or, if not
    `begin_when_ready`, at `begin`. `on_event` sees all that the node tells, except what it sends; `on_link` which links
    come and go.
    """

    def __init__(  # noqa: PLR0913 -- what it drives, and whom it tells
        self,
        *,
        node: DrivenNode,
        endpoint: Endpoint,
        learner: AsyncLearner | None = None,
        wanted: Sequence[NodeId] = (),
        on_event: Callable[[DrivenEvent, float], None] | None = None,
        on_ready: Callable[[], None] | None = None,
        on_link: Callable[[NodeId, bool], None] | None = None,
        begin_when_ready: bool = True,
        patience_s: float = _PATIENCE_S,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.ready = asyncio.Event()
        self._node = node
        self._takes_batches = node if isinstance(node, TakesBatches) else None
        self._endpoint = endpoint
        self._learner = learner
        self._wanted = tuple(wanted)
        self._missing = set(wanted)
        self._on_event = on_event
        self._on_ready = on_ready
        self._on_link = on_link
        self._begin_when_ready = begin_when_ready
        self._has_begun = False
        self._is_stopped = False
        self._patience_s = patience_s
        self._clock = clock or NodeClock()
        self._last_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due_s = 0.0
        self._is_draining = False
        self._over: asyncio.Future[Ending] | None = None
        self._tasks: asyncio.TaskGroup | None = None
        self._learning: set[asyncio.Task[None]] = set()
        self._address = ("", 0)

    # -- life ---------------------------------------------------------------------------------------------------

    async def run(self, *, host: str = "127.0.0.1", port: int = 0) -> Ending:
        """Run until `stop`, or until the participant's schedule says that it leaves.

        A participant that is done with its rounds goes on relaying; `on_event` sees its `Finished`. Whatever is raised
        on the way, a bug of the node's included, is raised from here, after the links are closed.
        """
        loop = asyncio.get_running_loop()
        over: asyncio.Future[Ending] = loop.create_future()
        self._over = over
        if self._is_stopped:
            return Ending.DONE
        patience: asyncio.TimerHandle | None = None
        try:
            self._address = await self._endpoint.open(self, host=host, port=port)
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                self._step(lambda now_s: self._node.start(now_s=now_s))
                for peer in self._wanted:
                    self._endpoint.want(peer)
                patience = loop.call_later(self._patience_s, self._become_ready)
                if not self._missing:
                    self._become_ready()
                await asyncio.wait([over])
                self._quieten()
        finally:
            if patience is not None:
                patience.cancel()
            self._quieten()
            await self._endpoint.close()
        return over.result()

    def begin(self) -> None:
        """Let the first round begin, if it has not."""
        node = self._node
        if isinstance(node, LearningNode) and not self._has_begun:
            self._has_begun = True
            self._step(lambda now_s: node.begin(now_s=now_s))

    def peer_trained(self, round_number: int) -> None:
        """Let the participant know, from whoever started it, that a peer has trained for this round only now."""
        node = self._node
        if isinstance(node, LearningNode):
            self._step(lambda now_s: node.peer_trained(round_number=round_number, now_s=now_s))

    def stop(self) -> None:
        """Have `run` close the links in order and return, within two seconds. A signal handler may call it."""
        self._is_stopped = True
        self._end(Ending.DONE)

    @property
    def address(self) -> tuple[str, int]:
        """Where the endpoint listens, once `run` has opened it."""
        return self._address

    @property
    def missing(self) -> frozenset[NodeId]:
        """The wanted peers that have not been linked yet."""
        return frozenset(self._missing)

    def now_s(self) -> float:
        """The participant's time."""
        self._last_s = max(self._last_s, self._clock())
        return self._last_s

    # -- what the endpoint tells ----------------------------------------------------------------------------------

    def link_up(self, peer: NodeId) -> bool:
        """There is a link."""
        taken = False

        def act(now_s: float) -> None:
            nonlocal taken
            taken = self._node.link_up(peer, now_s=now_s)

        self._step(act)
        if taken and peer in self._missing:
            self._missing.discard(peer)
            if not self._missing:
                self._become_ready()
        if taken:
            self._tell_link(peer, up=True)
        return taken

    def link_down(self, peer: NodeId) -> None:
        """There is none any more."""
        self._step(lambda now_s: self._node.link_down(peer, now_s=now_s))
        self._tell_link(peer, up=False)

    def dial_failed(self, peer: NodeId) -> None:
        """The peer does not answer."""
        self._step(lambda now_s: self._node.dial_failed(peer, now_s=now_s))

    def packets_received(self, packets: Sequence[tuple[NodeId, bytes]]) -> None:
        """These arrived together."""
        self._step(lambda now_s: self._receive(packets, now_s))

    def control_received(self, peer: NodeId, data: bytes) -> None:
        """A peer sent a control message."""
        self._step(lambda now_s: self._node.receive_control(data, from_peer=peer, now_s=now_s))

    def _receive(self, packets: Sequence[tuple[NodeId, bytes]], now_s: float) -> None:
        if self._takes_batches is not None:
            self._takes_batches.receive_packets(packets, now_s=now_s)
            return
        for peer, packet in packets:
            self._node.receive_packet(packet, from_peer=peer, now_s=now_s)

    def _tell_link(self, peer: NodeId, *, up: bool) -> None:
        try:
            if self._on_link is not None:
                self._on_link(peer, up)
        except Exception as error:  # noqa: BLE001 -- raised again by `run`
            self._fail(error)

    # -- steps ------------------------------------------------------------------------------------------------------

    def _step(self, act: Callable[[float], None]) -> None:
        """Let the participant know something, and carry out what follows."""
        if self._over is None or self._over.done():
            return
        try:
            now_s = self.now_s()
            act(now_s)
            self._drain(now_s)
        except Exception as error:  # noqa: BLE001 -- raised again by `run`: a callback of the loop must not swallow it
            self._fail(error)
            return
        self._arm()

    def _drain(self, now_s: float) -> None:
        if self._is_draining:  # called back by the endpoint while draining: the loop below goes on
            return
        self._is_draining = True
        try:
            node, send_packet = self._node, self._endpoint.send_packet
            while (event := node.next_event()) is not None:
                if type(event) is SendPacket:
                    packet: bytes = event.packet  # type: ignore[assignment]  # opaque to the mix, bytes here
                    if not send_packet(event.to, packet):
                        node.packet_unsent(event, now_s=now_s)
                elif type(event) is SendControl:
                    if not self._endpoint.send_control(event.to, event.data):
                        node.control_unsent(event, now_s=now_s)
                else:
                    self._follow(event, now_s)
        finally:
            self._is_draining = False

    def _follow(self, event: DrivenEvent, now_s: float) -> None:
        if self._on_event is not None:
            self._on_event(event, now_s)
        match event:
            case TrainRequested(round_number=round_number):
                self._learn(self._train(round_number))
            case ModelReady(round_number=round_number, state=state, evaluate=evaluate):
                self._learn(self._adopt(round_number, state, evaluate=evaluate))
            case Finished(ending=Ending.EXIT):
                self._end(Ending.EXIT)
            case _:
                pass

    def _arm(self) -> None:
        """Have the loop call when the participant asks for it."""
        due_s = self._node.next_timer_s()
        timer = self._timer
        if timer is not None:
            if due_s == self._timer_due_s:
                return
            timer.cancel()
            self._timer = None
        if due_s is not None:
            loop = asyncio.get_running_loop()
            self._timer_due_s = due_s
            self._timer = loop.call_at(loop.time() + max(0.0, due_s - self._clock()), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._last_s = max(self._last_s, self._timer_due_s)  # the loop rounds: what it calls for is due
        self._endpoint.hold()
        self._step(self._handle_timer)
        self._endpoint.flush()

    def _handle_timer(self, now_s: float) -> None:
        self._node.handle_timer(now_s=now_s)

    # -- learning ---------------------------------------------------------------------------------------------------

    def _learn(self, work: Coroutine[None, None, None]) -> None:
        if self._tasks is None or self._learner is None:
            work.close()
            raise LocalProtocolError("a node that learns needs a learner")
        task = self._tasks.create_task(self._guard(work))
        self._learning.add(task)
        task.add_done_callback(self._learning.discard)

    async def _guard(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 -- raised again by `run`
            self._fail(error)

    async def _train(self, round_number: int) -> None:
        learner, node = self._learning_pair()
        try:
            state, metrics = await learner.train(round_number)
        except LearnerError as error:
            reason = str(error)
            self._step(lambda now_s: node.training_failed(round_number=round_number, reason=reason, now_s=now_s))
        else:
            self._step(
                lambda now_s: node.training_finished(
                    round_number=round_number, state=state, metrics=metrics, now_s=now_s
                )
            )

    async def _adopt(self, round_number: int, state: State, *, evaluate: bool) -> None:
        learner, node = self._learning_pair()
        try:
            metrics = await learner.adopt(state, evaluate=evaluate)
        except LearnerError:
            metrics = {}  # as if nothing was measured: the next training starts from what the learner has
        self._step(lambda now_s: node.evaluation_finished(round_number=round_number, metrics=metrics, now_s=now_s))

    def _learning_pair(self) -> tuple[AsyncLearner, LearningNode]:
        if self._learner is None or not isinstance(self._node, LearningNode):
            raise LocalProtocolError("only a node that learns is trained")
        return self._learner, self._node

    # -- beginning and end --------------------------------------------------------------------------------------------

    def _become_ready(self) -> None:
        if self.ready.is_set():
            return
        self.ready.set()
        try:
            if self._on_ready is not None:
                self._on_ready()
        except Exception as error:  # noqa: BLE001 -- raised again by `run`
            self._fail(error)
        if self._begin_when_ready:
            self.begin()

    def _end(self, ending: Ending) -> None:
        if self._over is not None and not self._over.done():
            self._over.set_result(ending)

    def _fail(self, error: Exception) -> None:
        if self._over is not None and not self._over.done():
            self._over.set_exception(error)

    def _quieten(self) -> None:
        """Nothing more is asked of the participant or the learner."""
        self._end(Ending.DONE)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for task in self._learning:
            task.cancel()
