"""What a driver drives: a node, which may learn, and its learner."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from unlinkabledfl.mixnet.events import MixEvent, SendControl, SendPacket
from unlinkabledfl.mixnet.packets import Opaque
from unlinkabledfl.node.events import NodeEvent
from unlinkabledfl.node.learner import Metrics, State
from unlinkabledfl.sphinx import NodeId

__all__ = ["AsyncLearner", "DrivenEvent", "DrivenNode", "LearningNode", "TakesBatches"]

DrivenEvent: TypeAlias = NodeEvent | MixEvent
"""What a participant, or a bare mix node, tells."""


class AsyncLearner(Protocol):
    """The learner of a node, in another process. A failed call raises LearnerError, and leaves the model as it was.

    Calls do not overlap. A cancelled call returns at once, whatever the process behind it still does.
    """

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
    """What a driver needs of a node: of a `Participant`, or of a bare `MixNode` where nothing is learned."""

    @property
    def node_id(self) -> NodeId: ...
    def start(self, *, now_s: float) -> None: ...
    def receive_packet(self, packet: Opaque, *, from_peer: NodeId, now_s: float) -> None: ...
    def receive_control(self, data: bytes, *, from_peer: NodeId, now_s: float) -> None: ...
    def link_up(self, peer: NodeId, *, now_s: float) -> bool: ...
    def link_down(self, peer: NodeId, *, now_s: float) -> None: ...
    def dial_failed(self, peer: NodeId, *, now_s: float) -> None: ...
    def packet_unsent(self, event: SendPacket, *, now_s: float) -> None: ...
    def control_unsent(self, event: SendControl, *, now_s: float) -> None: ...
    def next_timer_s(self) -> float | None: ...
    def handle_timer(self, *, now_s: float) -> None: ...
    def next_event(self) -> DrivenEvent | None: ...


@runtime_checkable
class LearningNode(Protocol):
    """What more it needs of one that learns."""

    def begin(self, *, now_s: float) -> None: ...
    def training_finished(self, *, round_number: int, state: State, metrics: Metrics, now_s: float) -> None: ...
    def training_failed(self, *, round_number: int, reason: str, now_s: float) -> None: ...
    def evaluation_finished(self, *, round_number: int, metrics: Metrics, now_s: float) -> None: ...
    def peer_trained(self, *, round_number: int, now_s: float) -> None: ...


@runtime_checkable
class TakesBatches(Protocol):
    """A node that rather gets the packets of one wake-up together."""

    def receive_packets(self, packets: Sequence[tuple[NodeId, Opaque]], *, now_s: float) -> None:
        """Take packets off links, in this order; each with the peer that handed it over."""
        ...
