"""What a mixer holds: somebody else's packet, a message of our own that waits for its turn, or cover.

A `Transit` is bytes already; the other two are promises, turned into a packet only when the mixer has decided
at which instant they leave. So a message that waits long is wrapped with a fresh route and a fresh reply
block, and cover costs nothing before it is needed.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

from unlinkabledfl.sphinx import NodeId

MessageId = NewType("MessageId", bytes)
"""16 random bytes that name one message at its sender; they never travel in the clear."""


class CoverKind(StrEnum):
    """What becomes of a cover packet at the end of its path."""

    DROP = "drop"
    """Goes to a destination drawn like a fragment's, which acknowledges it and throws it away."""
    LOOP = "loop"
    """Comes back to its sender, and so tells whether somebody on the way drops packets."""


@dataclass(frozen=True, slots=True)
class Transit:
    """A packet that is ready to leave: one to relay, or an acknowledgement.

    `packet` is the simulation's or the node's own idea of a packet: a mixer only carries it.
    """

    next_hop: NodeId
    packet: object
    via: NodeId | None = None
    """The neighbour that handed it to us, whose share of the mixer it takes up; None once it has left the mixer."""


@dataclass(frozen=True, slots=True)
class OwnMessage:
    """A message of this node; `attempt` is 1 when it is sent for the first time."""

    message_id: MessageId
    attempt: int


@dataclass(frozen=True, slots=True)
class Cover:
    """A cover packet to be made; `serial` tells apart the cover items of one mixer."""

    kind: CoverKind
    serial: int


Item = Transit | OwnMessage | Cover
