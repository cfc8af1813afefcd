"""What is taken down while a run is traced: two files of records of one size, which only grow.

- `*.links`: every packet that leaves or arrives on a link: when, from whom, to whom, its size and its hash. An
  observer of the wires sees as much.
- `*.sealed`: what a node knows of its own packets: which it made and of what kind, which became which under its key,
  which delivered a message and of what round. The truth: no adversary reads it.

In the virtual world all nodes share one pair of files; a real node has its own pair. Nodes are written as the first
eight bytes of their ids, because a real node knows no indices. Instants are those of the writer's clock: virtual, or
the monotonic clock of the host, which is one clock for all processes on it.

Invariant: a log takes a constant amount of memory, and never more records than it was told. A disk that is full ends
the log, not the node.
"""

import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from unlinkabledfl.analysis.trace import PACKET_KINDS
from unlinkabledfl.errors import FragmentError
from unlinkabledfl.fragments.framing import parse_header
from unlinkabledfl.mixnet.items import MessageId
from unlinkabledfl.mixnet.packets import Opaque
from unlinkabledfl.simulation.log import hash_of
from unlinkabledfl.sphinx import NodeId

__all__ = [
    "CROSSING", "DELIVERED", "FIRST_KIND", "RELAYED", "SEALED", "HostLog", "Logs", "NodeLog", "RecordFile",
    "TraceFolder", "WorldLog", "log_names", "short_name",
]  # fmt: skip

RELAYED, DELIVERED, FIRST_KIND = 0, 1, 2
"""What a sealed record says; from FIRST_KIND on: a packet of that one of PACKET_KINDS was made."""

CROSSING: Final = np.dtype(
    [("at_s", "<f8"), ("hash", "<u8"), ("source", "<u8"), ("target", "<u8"), ("bytes", "<u4"), ("arrived", "<u4")]
)
SEALED: Final = np.dtype(
    [("node", "<u8"), ("hash", "<u8"), ("other", "<u8"), ("message", "V16"), ("round", "<u4"), ("what", "<u4")]
)
_CROSSING: Final = struct.Struct("<dQQQII")
_SEALED: Final = struct.Struct("<QQQ16sII")
_NO_MESSAGE: Final = bytes(16)
_NO_ROUND: Final = 0
_BEGUN: Final = "begun"
_BUFFER_BYTES: Final = 1 << 16


def short_name(name: NodeId) -> int:
    """Return the eight bytes that stand for a node in a log."""
    return int.from_bytes(name[:8])


class RecordFile:
    """A file that grows by one record at a time, up to a number of them."""

    def __init__(self, path: Path, record: struct.Struct, *, most: int) -> None:
        self.problem: str | None = None
        """Why nothing more is written, if that is so."""
        self._pack = record.pack
        self._left = most
        self._file = path.open("wb", buffering=_BUFFER_BYTES)

    def write(self, *values: float | bytes) -> None:
        """Append a record, if there is room for it."""
        if self._left <= 0 or self.problem is not None:
            return
        self._left -= 1
        try:
            self._file.write(self._pack(*values))
        except OSError as error:
            self.problem = str(error.strerror or error)

    def close(self) -> None:
        """Write what is still buffered."""
        try:
            self._file.close()
        except OSError as error:
            self.problem = self.problem or str(error.strerror or error)


def log_names(node: int | None = None) -> tuple[str, str]:
    """Return the names of a node's two files, or of those of all: links, sealed."""
    stem = "world" if node is None else f"node-{node:04d}"
    return f"{stem}.links", f"{stem}.sealed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFolder:
    """Where the logs of one run lie while it goes on."""

    path: Path
    most: int
    """How many crossings the whole run may have taken down."""

    def begun(self, at_s: float) -> None:
        """Write down when the run began, by the clock of the logs."""
        (self.path / _BEGUN).write_text(f"{at_s!r}\n", encoding="ascii")

    def begun_at_s(self) -> float:
        """Return when it began: 0 in a world whose clock begins with it."""
        path = self.path / _BEGUN
        return float(path.read_text(encoding="ascii")) if path.is_file() else 0.0

    def full_at(self, share: int) -> int:
        """Return how many records a log holds if so many divide the room: a crossing leaves and arrives."""
        return max(1, 2 * self.most // share)

    def open(self, node: int | None = None, *, share: int = 1) -> "Logs":
        """Begin the logs of a node, or of all; `share` of them divide the room."""
        links, sealed = log_names(node)
        most = self.full_at(share)
        return Logs(
            links=RecordFile(self.path / links, _CROSSING, most=most),
            sealed=RecordFile(self.path / sealed, _SEALED, most=most),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Logs:
    """A pair of files."""

    links: RecordFile
    sealed: RecordFile

    @property
    def problem(self) -> str | None:
        """Why one of them ended early."""
        return self.links.problem or self.sealed.problem

    def close(self) -> None:
        """Close both files."""
        self.links.close()
        self.sealed.close()


class NodeLog:
    """Takes down what one node does: its packets on links, and, as its `Journal`, what it knows of them."""

    __slots__ = ("_crossing", "_name", "_sealed")

    def __init__(self, name: NodeId, logs: Logs) -> None:
        self._name = short_name(name)
        self._crossing = logs.links.write
        self._sealed = logs.sealed.write

    def left(self, at_s: float, to: NodeId, data: bytes, *, size_bytes: int) -> None:
        """This went on the link to a peer."""
        self._crossing(at_s, _number(data), self._name, short_name(to), size_bytes, 0)

    def arrived(self, at_s: float, of: NodeId, data: bytes, *, size_bytes: int) -> None:
        """This came off the link with a peer."""
        self._crossing(at_s, _number(data), short_name(of), self._name, size_bytes, 1)

    def originated(self, sent: Opaque, *, kind: str, path: Sequence[NodeId], message_id: MessageId | None) -> None:
        """A packet of our own. Which way it took is in what its relays take down."""
        _ = path
        what = FIRST_KIND + PACKET_KINDS.index(kind)
        self._sealed(self._name, _number(sent), 0, message_id or _NO_MESSAGE, _NO_ROUND, what)

    def relayed(self, received: Opaque, sent: Opaque) -> None:
        """One became the other."""
        self._sealed(self._name, _number(received), _number(sent), _NO_MESSAGE, _NO_ROUND, RELAYED)

    def delivered(self, received: Opaque, *, message_id: MessageId, data: bytes) -> None:
        """A message for us; a fragment says of which round it is."""
        try:
            round_number = parse_header(data).round
        except FragmentError:
            round_number = _NO_ROUND
        self._sealed(self._name, _number(received), 0, message_id, round_number, DELIVERED)


class HostLog:
    """`transport.LinkTap` of a real node: its log, with the host's clock."""

    def __init__(self, log: NodeLog, *, size_bytes: int) -> None:
        self._log = log
        self._size_bytes = size_bytes

    def left(self, to: NodeId, data: bytes) -> None:
        """This goes on the link now."""
        self._log.left(time.monotonic(), to, data, size_bytes=self._size_bytes)

    def arrived(self, of: NodeId, data: bytes) -> None:
        """This came off the link."""
        self._log.arrived(time.monotonic(), of, data, size_bytes=self._size_bytes)


class WorldLog:
    """Takes down a virtual world: `simulation.Observer` of its wires, and the journals of its nodes."""

    def __init__(self, names: Sequence[NodeId], logs: Logs) -> None:
        self._names = [short_name(name) for name in names]
        self._crossing = logs.links.write
        self._journals = [NodeLog(name, logs) for name in names]

    def packet_left(self, at_s: float, source: int, target: int, size_bytes: int, wire_hash: bytes) -> None:
        """A packet went on the wire."""
        names = self._names
        self._crossing(at_s, int.from_bytes(wire_hash), names[source], names[target], size_bytes, 0)

    def packet_arrived(self, at_s: float, source: int, target: int, size_bytes: int, wire_hash: bytes) -> None:
        """A packet came off the wire."""
        names = self._names
        self._crossing(at_s, int.from_bytes(wire_hash), names[source], names[target], size_bytes, 1)

    def journal(self, index: int) -> NodeLog:
        """Return the journal of one node."""
        return self._journals[index]


def _number(packet: Opaque) -> int:
    return int.from_bytes(hash_of(packet))
