"""What flows over an authenticated link, in both directions: cells, all of one size.

    offset  bytes  field                       all integers big-endian
    0       1      type: 1 a packet, 2 control messages
    1       4      length n of the content
    5       n      content
    5+n     rest   zeros

A packet's content is the packet. That of a control cell is one message after the other, each behind its length in two
bytes. Packets and control messages look alike on the wire: what tells them apart is encrypted.

Invariant: the reader holds less than one cell, however much arrives and in whatever pieces. A cell that cannot be is
refused as soon as its head has been read, and nothing is read after it.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from unlinkabledfl.errors import ControlError, LocalProtocolError
from unlinkabledfl.mixnet.descriptor import MAX_BYTES as DESCRIPTOR_MAX_BYTES

__all__ = ["CONTROL_MAX_BYTES", "Cell", "CellFormat", "CellReader", "ControlCell", "PacketCell"]

CONTROL_MAX_BYTES = DESCRIPTOR_MAX_BYTES
"""The longest control message."""

_HEAD = struct.Struct(">BI")
_LENGTH = struct.Struct(">H")
_PACKET = 1
_CONTROL = 2


@dataclass(frozen=True, slots=True)
class PacketCell:
    """A packet."""

    packet: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ControlCell:
    """Control messages, in the order in which they were sent."""

    messages: tuple[bytes, ...]


Cell: TypeAlias = PacketCell | ControlCell


class CellFormat:
    """Makes and reads the cells of a deployment whose packets have `packet_bytes` bytes."""

    __slots__ = ("_packet_head", "_packet_tail", "cell_bytes", "content_bytes", "packet_bytes")

    def __init__(self, packet_bytes: int) -> None:
        if packet_bytes < 1:
            raise LocalProtocolError(f"a packet has at least one byte, not {packet_bytes}")
        self.packet_bytes = packet_bytes
        self.content_bytes = max(packet_bytes, _LENGTH.size + CONTROL_MAX_BYTES)
        self.cell_bytes = _HEAD.size + self.content_bytes
        self._packet_head = _HEAD.pack(_PACKET, packet_bytes)
        self._packet_tail = bytes(self.content_bytes - packet_bytes)

    def packet(self, packet: bytes) -> bytes:
        """Return the cell around a packet."""
        if len(packet) != self.packet_bytes:
            raise LocalProtocolError(f"packets here have {self.packet_bytes} bytes, not {len(packet)}")
        return self._packet_head + packet + self._packet_tail

    def control(self, messages: Iterable[bytes]) -> tuple[bytes, int]:
        """Return one cell with as many of these messages as fit, from the first on, and their number."""
        content = bytearray()
        count = 0
        for message in messages:
            if len(message) > CONTROL_MAX_BYTES:
                raise LocalProtocolError(f"a control message has up to {CONTROL_MAX_BYTES} bytes, not {len(message)}")
            if len(content) + _LENGTH.size + len(message) > self.content_bytes:
                break
            content += _LENGTH.pack(len(message)) + message
            count += 1
        return _HEAD.pack(_CONTROL, len(content)) + content + bytes(self.content_bytes - len(content)), count

    def check_head(self, kind: int, length: int) -> None:
        """ControlError unless a cell may begin like this."""
        if kind == _PACKET:
            if length != self.packet_bytes:
                raise ControlError("cell_bad_length")
        elif kind != _CONTROL:
            raise ControlError("cell_bad_type")
        elif length > self.content_bytes:
            raise ControlError("cell_bad_length")


class CellReader:
    """Cuts one direction of a link's stream into cells again."""

    __slots__ = ("_buffer", "_format")

    def __init__(self, cell_format: CellFormat) -> None:
        self._format = cell_format
        self._buffer = bytearray()

    @property
    def pending_bytes(self) -> int:
        """How much of the next cell is here."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[Cell]:
        """Take what arrived; return the cells that are complete now. ControlError ends the link."""
        cell_bytes = self._format.cell_bytes
        buffer = self._buffer
        buffer += data
        cells: list[Cell] = []
        start, end = 0, len(buffer)
        while end - start >= _HEAD.size:
            kind, length = _HEAD.unpack_from(buffer, start)
            self._format.check_head(kind, length)
            if end - start < cell_bytes:
                break
            first = start + _HEAD.size
            content = bytes(buffer[first : first + length])
            cells.append(PacketCell(content) if kind == _PACKET else ControlCell(_split(content)))
            start += cell_bytes
        if start:
            del buffer[:start]
        return cells


def _split(content: bytes) -> tuple[bytes, ...]:
    messages = []
    start = 0
    while start < len(content):
        if start + _LENGTH.size > len(content):
            raise ControlError("cell_truncated")
        (length,) = _LENGTH.unpack_from(content, start)
        start += _LENGTH.size
        if length > CONTROL_MAX_BYTES or start + length > len(content):
            raise ControlError("cell_truncated")
        messages.append(content[start : start + length])
        start += length
    return tuple(messages)
