"""Build a header: the last hop's slot first, every hop before it wrapped around the rest (docs/packet.md §5)."""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from unlinkabledfl.sphinx.geometry import DELAY_BYTES, NODE_ID_BYTES, Geometry
from unlinkabledfl.sphinx.keylayers.protocol import SenderHop
from unlinkabledfl.sphinx.primitives import MAC_BYTES, header_mac, stream_xor
from unlinkabledfl.sphinx.types import Hop


class Command(IntEnum):
    """What a slot tells its hop to do."""

    FORWARD = 1
    DELIVER = 2
    REPLY = 3


class HeaderBuilder:
    """Headers of one geometry."""

    def __init__(self, geometry: Geometry) -> None:
        self._max_hops = geometry.max_hops
        self._slot_bytes = geometry.slot_bytes
        self._carried_bytes = geometry.layer.carried_bytes
        self._zero_stream = bytes((geometry.max_hops + 1) * geometry.slot_bytes)

    def padding_bytes(self, hops: int) -> int:
        """How much random padding a path of this length needs."""
        return (self._max_hops - hops) * self._slot_bytes

    def build(
        self,
        path: Sequence[Hop],
        sender_hops: Sequence[SenderHop],
        *,
        last_command: Command,
        last_id: bytes,
        padding: bytes,
    ) -> bytes:
        """α₀ ‖ β₀ ‖ γ₀ for a path whose last hop obeys `last_command`."""
        last = len(path) - 1
        # A reply ends with its maker, who holds nothing.
        delay_us = 0 if last_command is Command.REPLY else path[last].delay_us
        slot = self._slot(last_command, delay_us, last_id, bytes(MAC_BYTES), b"")
        element, keys = sender_hops[last]
        beta = stream_xor(keys.header, slot + padding) + self._filler(sender_hops[:last])
        mac = header_mac(keys.mac, element + beta)
        kept = (self._max_hops - 1) * self._slot_bytes
        for index in range(last - 1, -1, -1):
            slot = self._slot(Command.FORWARD, path[index].delay_us, path[index + 1].node_id, mac, element)
            element, keys = sender_hops[index]
            beta = stream_xor(keys.header, slot + beta[:kept])
            mac = header_mac(keys.mac, element + beta)
        return element + beta + mac

    def _filler(self, sender_hops: Sequence[SenderHop]) -> bytes:
        """What the hops before the last will have shifted into β's end, computed in advance."""
        filler = b""
        for _, keys in sender_hops:
            extended = filler + bytes(self._slot_bytes)
            stream = stream_xor(keys.header, self._zero_stream)[-len(extended) :]
            filler = _xor(extended, stream)
        return filler

    def _slot(self, command: Command, delay_us: int, node_id: bytes, mac: bytes, element: bytes) -> bytes:
        return (
            command.to_bytes(1)
            + delay_us.to_bytes(DELAY_BYTES)
            + node_id
            + mac
            + element[: self._carried_bytes].ljust(self._carried_bytes, b"\0")
        )


class Slot(NamedTuple):
    """What one hop reads: its own slot, and the β that it hands on."""

    command: int
    delay_us: int
    node_id: bytes
    next_mac: bytes
    carried: bytes
    next_beta: bytes


class SlotReader:
    """Takes apart the slot that a hop has just decrypted."""

    def __init__(self, geometry: Geometry) -> None:
        self._id_at = 1 + DELAY_BYTES
        self._mac_at = self._id_at + NODE_ID_BYTES
        self._element_at = self._mac_at + MAC_BYTES
        self._end = geometry.slot_bytes

    def read(self, opened: bytes) -> Slot:
        """The slot in front of a decrypted β, and what is behind it."""
        return Slot(
            opened[0],
            int.from_bytes(opened[1 : self._id_at]),
            opened[self._id_at : self._mac_at],
            opened[self._mac_at : self._element_at],
            opened[self._element_at : self._end],
            opened[self._end :],
        )


def _xor(left: bytes, right: bytes) -> bytes:
    return (int.from_bytes(left) ^ int.from_bytes(right)).to_bytes(len(left))
