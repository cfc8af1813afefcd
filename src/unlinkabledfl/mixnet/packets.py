"""What a mix node needs of a packet format, and the real one: Sphinx packets around envelopes.

The node is written against `PacketFormat` so that a study of ten thousand peers can leave the cryptography out
(`unlinkabledfl.simulation.sealed`) and keep every size, route and delay.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from unlinkabledfl.errors import PacketError
from unlinkabledfl.mixnet.items import MessageId
from unlinkabledfl.sphinx import Entropy, Hop, NodeId, ReplayFilter

Opaque: TypeAlias = Any
"""A packet, key or reply block of whichever format is in use: handed on here, never looked into."""


@dataclass(frozen=True, slots=True)
class Message:
    """A fragment, or anything else the application sends: acknowledged through `surb`."""

    message_id: MessageId
    data: bytes
    surb: Opaque


@dataclass(frozen=True, slots=True)
class Drop:
    """Cover: acknowledged like a message, then discarded."""

    surb: Opaque


@dataclass(frozen=True, slots=True)
class Loop:
    """Cover that its own sender gets back; it says which packets of ours still arrive."""

    loop_id: MessageId


Envelope: TypeAlias = Message | Drop | Loop


@dataclass(frozen=True, slots=True)
class Relayed:
    """Forward this packet after the delay, if the mixing strategy lets the sender choose."""

    next_hop: NodeId
    delay_s: float
    packet: Opaque


@dataclass(frozen=True, slots=True)
class Delivered:
    """This envelope is for us; hold the acknowledgement for the delay."""

    delay_s: float
    envelope: Envelope


@dataclass(frozen=True, slots=True)
class Returned:
    """A reply block of ours came back; `body` is for `open_acknowledgement`."""

    surb_id: bytes
    body: Opaque


Unwrapped: TypeAlias = Relayed | Delivered | Returned


class PacketFormat(Protocol):
    """Builds and opens packets. `packet_bytes` is what each weighs on a link, `data_bytes` what a message can hold."""

    packet_bytes: int
    data_bytes: int
    max_hops: int

    def generate_key(self, entropy: Entropy) -> Opaque:
        """A fresh private key with `.public_bytes`."""

    def accepts_key(self, public_key: bytes) -> bool:
        """Whether packets can be made for this public key of somebody else's."""

    def make_surb(self, path: Sequence[Hop], *, entropy: Entropy) -> tuple[Opaque, bytes, Opaque]:
        """A reply block along `path` (we are its last hop), its id, and the secret that opens its reply."""

    def wrap(self, path: Sequence[Hop], envelope: Envelope, *, entropy: Entropy) -> Opaque:
        """The packet that carries the envelope along `path` to its last hop."""

    def unwrap(self, packet: Opaque, *, key: Opaque, replays: ReplayFilter) -> Unwrapped:
        """Remove our layer; PacketError with a cause if the packet is not good."""

    def unwrap_batch(
        self, packets: Sequence[Opaque], *, key: Opaque, replays: ReplayFilter
    ) -> list[Unwrapped | PacketError]:
        """The same for several: one result a packet, in their order, what it is or why it was refused."""

    def acknowledge(self, surb: Opaque) -> tuple[NodeId, Opaque]:
        """The first hop and the packet of the acknowledgement."""

    def open_acknowledgement(self, secret: Opaque, body: Opaque) -> None:
        """Check the reply; PacketError if it is not the destination's."""


def unwrap_one_by_one(
    packets: PacketFormat, batch: Sequence[Opaque], *, key: Opaque, replays: ReplayFilter
) -> list[Unwrapped | PacketError]:
    """`unwrap_batch` of a format to which a batch offers nothing to share."""
    results: list[Unwrapped | PacketError] = []
    for packet in batch:
        try:
            results.append(packets.unwrap(packet, key=key, replays=replays))
        except PacketError as refusal:
            results.append(refusal.with_traceback(None))
    return results
