"""Drives one participant in the real world: asyncio, the clock, an endpoint and a learner in another process."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from unlinkabledfl.mixnet.events import MixEvent, SendPacket
from unlinkabledfl.node.events import Ending, NodeEvent
from unlinkabledfl.node.learner import Metrics, State
from unlinkabledfl.sphinx import NodeId
from unlinkabledfl.transport.endpoint import Endpoint

__all__ = ["AsyncLearner", "DrivenNode", "NodeDriver"]

AnyEvent: TypeAlias = NodeEvent | MixEvent


class AsyncLearner(Protocol):
    """The learner of a node, in another process. A failed call raises LearnerError, and leaves the model as it was."""

    async def train(self, round_number: int) -> tuple[State, Metrics]:
        """Train as much as one round takes; return the model and what was measured on the way."""
        ...

    async def adopt(self, state: State, *, evaluate: bool) -> Metrics:
        """Take over this model; measure it if asked to, else return nothing."""
        ...

    async def state(self) -> State:
        """Return the model."""
        ...


class DrivenNode(Protocol):
    """What a driver needs of a node: a `Participant`; a bare `MixNode` will do where nothing is learned."""

    node_id: NodeId

    def start(self, *, now_s: float) -> None: ...
    def receive_packet(self, packet: Any, *, from_peer: NodeId, now_s: float) -> None: ...
    def receive_control(self, data: bytes, *, from_peer: NodeId, now_s: float) -> None: ...
    def link_up(self, peer: NodeId, *, now_s: float) -> bool: ...
    def link_down(self, peer: NodeId, *, now_s: float) -> None: ...
    def dial_failed(self, peer: NodeId, *, now_s: float) -> None: ...
    def packet_unsent(self, event: SendPacket, *, now_s: float) -> None: ...
    def next_timer_s(self) -> float | None: ...
    def handle_timer(self, *, now_s: float) -> None: ...
    def next_event(self) -> AnyEvent | None: ...


@runtime_checkable
class TakesBatches(Protocol):
    """A node that rather gets the packets of one wake-up together."""

    def receive_packets(self, packets: Sequence[tuple[NodeId, Any]], *, now_s: float) -> None:
        """Take packets off links, in this order; each with the peer that handed it over."""
        ...


class NodeDriver:
    """One participant on its endpoint. `run` opens the endpoint, links, emits, learns, and returns when it is over.

    `clock` gives the node's time in seconds: of all nodes of a federation the same, within seconds, because descriptors
    expire by it. The default is the time of day when the driver was made, and monotonic from there.
    """

    def __init__(
        self,
        *,
        node: DrivenNode,
        endpoint: Endpoint,
        learner: AsyncLearner | None = None,
        wanted: Sequence[NodeId] = (),
        on_event: Callable[[AnyEvent, float], None] | None = None,
        on_ready: Callable[[], None] | None = None,
        begin_when_ready: bool = True,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.ready = asyncio.Event()  # set when every wanted link has been up, once
        raise NotImplementedError

    async def run(self, *, host: str = "127.0.0.1", port: int = 0) -> Ending:
        """Run until `stop`, or until the participant's schedule says that it leaves.

        A participant that is done with its rounds goes on relaying; `on_event` sees its `Finished`. Whatever is raised
        on the way, a bug of the node's included, is raised from here, after the links are closed.
        """
        raise NotImplementedError

    def begin(self) -> None:
        """Let the first round begin, if it has not."""
        raise NotImplementedError

    def stop(self) -> None:
        """Have `run` close the links in order and return, within two seconds. A signal handler may call it."""
        raise NotImplementedError

    @property
    def address(self) -> tuple[str, int]:
        """Where the endpoint listens, once `run` has opened it."""
        raise NotImplementedError

    def now_s(self) -> float:
        raise NotImplementedError
