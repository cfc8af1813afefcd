"""One participant: a mix, a pool of fragments, and rounds of local training between which they meet."""

from collections.abc import Mapping

from unlinkabledfl.mixnet.events import SendPacket
from unlinkabledfl.mixnet.mix_node import MixNode
from unlinkabledfl.mixnet.packets import Opaque, PacketFormat
from unlinkabledfl.node.events import NodeEvent
from unlinkabledfl.node.learner import State
from unlinkabledfl.node.settings import Exchange, ParticipantSettings
from unlinkabledfl.sphinx import Entropy, NodeId


class Participant:
    """What a driver sees of one node. Starts nothing when it is made."""

    def __init__(
        self,
        *,
        mix: MixNode,
        packets: PacketFormat,
        settings: ParticipantSettings,
        exchange: Exchange,
        state: State,
        entropy: Entropy,
    ) -> None:
        self.mix = mix
        self.node_id: NodeId = mix.node_id
        raise NotImplementedError

    @property
    def counters(self) -> Mapping[str, int]:
        """What the mix counted, by cause."""
        raise NotImplementedError

    def start(self, *, now_s: float) -> None:
        """Begin to emit and to relay; no training yet."""
        raise NotImplementedError

    def begin(self, *, now_s: float) -> None:
        """Begin the first round."""
        raise NotImplementedError

    def receive_packet(self, packet: Opaque, *, from_peer: NodeId, now_s: float) -> None:
        """A neighbour handed us a packet."""
        raise NotImplementedError

    def receive_control(self, data: bytes, *, from_peer: NodeId, now_s: float) -> None:
        """A neighbour handed us a control message."""
        raise NotImplementedError

    def link_up(self, peer: NodeId, *, now_s: float) -> bool:
        """A link to this peer stands; false to have it closed."""
        raise NotImplementedError

    def link_down(self, peer: NodeId, *, now_s: float) -> None:
        """The link to this peer is gone."""
        raise NotImplementedError

    def dial_failed(self, peer: NodeId, *, now_s: float) -> None:
        """This peer does not answer."""
        raise NotImplementedError

    def packet_unsent(self, event: SendPacket, *, now_s: float) -> None:
        """The link could not take this packet."""
        raise NotImplementedError

    def training_finished(self, *, round_number: int, state: State, metrics: Mapping[str, float], now_s: float) -> None:
        """The training that was asked for is done."""
        raise NotImplementedError

    def training_failed(self, *, round_number: int, reason: str, now_s: float) -> None:
        """It could not be done: the round goes on with the model as it was."""
        raise NotImplementedError

    def evaluation_finished(self, *, round_number: int, metrics: Mapping[str, float], now_s: float) -> None:
        """The model is loaded, and measured if that was asked for."""
        raise NotImplementedError

    def next_timer_s(self) -> float | None:
        """When `handle_timer` is due."""
        raise NotImplementedError

    def handle_timer(self, *, now_s: float) -> None:
        """Do all that is due."""
        raise NotImplementedError

    def next_event(self) -> NodeEvent | None:
        """The next thing for the driver."""
        raise NotImplementedError

    def gauges(self) -> Mapping[str, float]:
        """What can be measured at any instant, by the names in docs/metrics.md."""
        raise NotImplementedError
