"""What a node would tell about its own packets if it were asked: for experiments, and nothing of it is on a wire.

To score an adversary one must know the truth, and to grant it compromised relays one must know what such relays link.
Both are visible where packets are made and opened, so a `JournaledPackets` stands around the node's packet format and
the node itself never knows that it is watched.

Invariant: with a journal every packet, draw and delay is the same as without.
"""

from collections.abc import Sequence
from typing import Protocol

from unlinkabledfl.errors import PacketError
from unlinkabledfl.mixnet.items import MessageId
from unlinkabledfl.mixnet.packets import (
    Delivered,
    Drop,
    Envelope,
    Loop,
    Message,
    Opaque,
    PacketFormat,
    Relayed,
    Unwrapped,
)
from unlinkabledfl.sphinx import Entropy, Hop, NodeId, ReplayFilter

MESSAGE, DROP, LOOP, ACKNOWLEDGEMENT = "message", "drop", "loop", "acknowledgement"


class Journal(Protocol):
    """Takes down what one node does. Packets are as they are on the link: `sent` before, `received` after it."""

    def originated(self, sent: Opaque, *, kind: str, path: Sequence[NodeId], message_id: MessageId | None) -> None:
        """This packet is ours. Of an acknowledgement the path is its first hop: the rest is sealed in the block."""

    def relayed(self, received: Opaque, sent: Opaque) -> None:
        """One became the other under our key."""

    def delivered(self, received: Opaque, *, message_id: MessageId, data: bytes) -> None:
        """A message for us, and what it says; perhaps one that had arrived before."""


class JournaledPackets:
    """A packet format that takes down what its node does with it."""

    __slots__ = ("_format", "_journal", "data_bytes", "max_hops", "packet_bytes")

    def __init__(self, packets: PacketFormat, journal: Journal) -> None:
        self._format = packets
        self._journal = journal
        self.packet_bytes = packets.packet_bytes
        self.data_bytes = packets.data_bytes
        self.max_hops = packets.max_hops

    def generate_key(self, entropy: Entropy) -> Opaque:
        return self._format.generate_key(entropy)

    def accepts_key(self, public_key: bytes) -> bool:
        return self._format.accepts_key(public_key)

    def make_surb(self, path: Sequence[Hop], *, entropy: Entropy) -> tuple[Opaque, bytes, Opaque]:
        return self._format.make_surb(path, entropy=entropy)

    def wrap(self, path: Sequence[Hop], envelope: Envelope, *, entropy: Entropy) -> Opaque:
        packet = self._format.wrap(path, envelope, entropy=entropy)
        kind, message_id = _of(envelope)
        self._journal.originated(packet, kind=kind, path=[hop.node_id for hop in path], message_id=message_id)
        return packet

    def unwrap(self, packet: Opaque, *, key: Opaque, replays: ReplayFilter) -> Unwrapped:
        unwrapped = self._format.unwrap(packet, key=key, replays=replays)
        self._opened(packet, unwrapped)
        return unwrapped

    def unwrap_batch(
        self, packets: Sequence[Opaque], *, key: Opaque, replays: ReplayFilter
    ) -> list[Unwrapped | PacketError]:
        results = self._format.unwrap_batch(packets, key=key, replays=replays)
        for packet, result in zip(packets, results, strict=True):
            self._opened(packet, result)
        return results

    def acknowledge(self, surb: Opaque) -> tuple[NodeId, Opaque]:
        next_hop, packet = self._format.acknowledge(surb)
        self._journal.originated(packet, kind=ACKNOWLEDGEMENT, path=[next_hop], message_id=None)
        return next_hop, packet

    def open_acknowledgement(self, secret: Opaque, body: Opaque) -> None:
        self._format.open_acknowledgement(secret, body)

    def _opened(self, packet: Opaque, result: Unwrapped | PacketError) -> None:
        if isinstance(result, Relayed):
            self._journal.relayed(packet, result.packet)
        elif isinstance(result, Delivered) and isinstance(result.envelope, Message):
            self._journal.delivered(packet, message_id=result.envelope.message_id, data=result.envelope.data)


def _of(envelope: Envelope) -> tuple[str, MessageId | None]:
    match envelope:
        case Message(message_id):
            return MESSAGE, message_id
        case Drop():
            return DROP, None
        case Loop():
            return LOOP, None
