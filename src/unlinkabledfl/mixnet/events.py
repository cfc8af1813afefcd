"""What a mix node tells the world around it: facts, in the order in which they happened.

The driver (QUIC in the real world, the heap in virtual time) carries out the two `Send…` events; the participant
above reads the others. No event names the sender of anything: the node does not know it.
"""

from dataclasses import dataclass
from typing import TypeAlias

from unlinkabledfl.mixnet.items import MessageId
from unlinkabledfl.sphinx import NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class SendPacket:
    """Put this packet on the link to `to` now; dial it first if there is none."""

    to: NodeId
    packet: object


@dataclass(frozen=True, slots=True, kw_only=True)
class SendControl:
    """Send this control message to a linked neighbour, padded by the link to the length of a packet."""

    to: NodeId
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageReceived:
    """A message for the application, for the first and only time. From whom is not known."""

    message_id: MessageId
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageAcknowledged:
    """The reply block of one attempt at our message came back."""

    message_id: MessageId
    attempts: int
    round_trip_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageGivenUp:
    """No attempt at our message was acknowledged; it may or may not have arrived."""

    message_id: MessageId
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerChanged:
    """The peer view changed: `routable` says whether routes may use the peer now."""

    peer: NodeId
    routable: bool
    reason: str


MixEvent: TypeAlias = SendPacket | SendControl | MessageReceived | MessageAcknowledged | MessageGivenUp | PeerChanged
