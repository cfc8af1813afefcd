"""A place in the world, and what the world asks of whatever runs there."""

import math
from typing import Protocol, runtime_checkable

from unlinkabledfl.mixnet.events import MixEvent, SendControl, SendPacket
from unlinkabledfl.mixnet.items import MessageId
from unlinkabledfl.mixnet.packets import Opaque
from unlinkabledfl.node.events import NodeEvent
from unlinkabledfl.simulation.links import Channel, LinkSettings
from unlinkabledfl.sphinx import Entropy, NodeId

NO_TIMER = math.inf


class SimulatedNode(Protocol):
    """A sans-IO machine that a world can drive. `MixNode` and `Participant` are two; tests have smaller ones."""

    def start(self, *, now_s: float) -> None:
        """Begin."""

    def receive_packet(self, packet: Opaque, *, from_peer: NodeId, now_s: float) -> None:
        """Take a packet off a link."""

    def receive_control(self, data: bytes, *, from_peer: NodeId, now_s: float) -> None:
        """Take a control message off a link."""

    def link_up(self, peer: NodeId, *, now_s: float) -> bool:
        """There is a link to the peer from now on; false to have it closed."""

    def link_down(self, peer: NodeId, *, now_s: float) -> None:
        """The link to the peer is gone."""

    def dial_failed(self, peer: NodeId, *, now_s: float) -> None:
        """The peer does not answer, and the packets that waited for the link are lost."""

    def packet_unsent(self, event: SendPacket, *, now_s: float) -> None:
        """The link was not writable; the packet is the node's again."""

    def control_unsent(self, event: SendControl, *, now_s: float) -> None:
        """The same of a control message."""

    def next_timer_s(self) -> float | None:
        """When to call `handle_timer`, if at all."""

    def handle_timer(self, *, now_s: float) -> None:
        """The time has come."""

    def next_event(self) -> MixEvent | NodeEvent | None:
        """What follows, one at a time, until None."""


@runtime_checkable
class Sender(Protocol):
    """A node that application messages can be given to; `World.send` needs one."""

    def send_message(self, destination: NodeId, data: bytes, *, now_s: float) -> MessageId:
        """Accept a message, or raise QueueFullError."""


class NodeFactory(Protocol):
    """Makes the node that runs at an index; `serial` counts its lives, from 0."""

    def __call__(self, *, index: int, serial: int, entropy: Entropy) -> SimulatedNode:
        """Return a node that has not started."""


class Link(Channel):
    """One side of a link: how packets travel to `target`, and who waits while it is being dialled."""

    __slots__ = ("target", "waiting")

    def __init__(self, settings: LinkSettings, *, packet_bytes: int, target: Opaque) -> None:
        super().__init__(settings, packet_bytes=packet_bytes)
        self.target = target  # the Host at the other end; unknown, perhaps, while dialling
        self.waiting: list[Opaque] | None = None


class Host:
    """One life of one node: from its start to its crash. A restart makes a new host at the same index.

    Whatever is still on its way to an old host finds it dead, so nothing reaches the new one by mistake.
    """

    __slots__ = (
        "alive",
        "bootstrap",
        "group",
        "idle_timers",
        "index",
        "links",
        "node",
        "node_id",
        "serial",
        "timer_s",
        "timer_sequence",
    )

    def __init__(self, *, index: int, node_id: NodeId, serial: int, node: Opaque) -> None:
        self.index = index
        self.node_id = node_id
        self.serial = serial
        self.node = node  # a SimulatedNode; None after its crash
        self.alive = True
        self.group = 0  # hosts reach each other if their groups are equal
        self.links: dict[NodeId, Link] = {}
        self.bootstrap: tuple[NodeId, ...] = ()
        self.timer_s = NO_TIMER  # the one timer entry that counts, and its sequence number
        self.timer_sequence = 0
        self.idle_timers = 0  # timers in a row that left the next one due at the same instant
