"""What a world writes down: everything that happened, byte for byte, or only what an adversary on the network sees.

The event log has one line for each event, in the order in which they happened:

    <time, float in hexadecimal> <kind> <node> <peer or -> <eight bytes that identify what it is about, or ->

Hexadecimal because it is exact: the same seed gives the same bytes, and a difference in the last bit of a clock shows.
"""

from collections.abc import Callable
from hashlib import blake2b
from typing import Protocol, TypeAlias

from unlinkabledfl.mixnet.packets import Opaque

WireHash: TypeAlias = Callable[[Opaque], bytes]
"""Eight bytes that stand for a packet's bytes on one link."""


class Observer(Protocol):
    """Sees what a global passive adversary sees: when how many bytes leave and arrive on which edge, and their hash.

    Control messages are padded to the length of a packet, so they look the same. What is lost on the way leaves only.
    """

    def packet_left(self, at_s: float, source: int, target: int, size_bytes: int, wire_hash: bytes) -> None:
        """A packet went on the wire."""

    def packet_arrived(self, at_s: float, source: int, target: int, size_bytes: int, wire_hash: bytes) -> None:
        """A packet came off the wire."""


class EventLog:
    """Writes one line an event to anything with `write(bytes)`."""

    __slots__ = ("_write",)

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write

    def record(self, at_s: float, kind: str, node: int, peer: int | None = None, about: bytes = b"") -> None:
        """Write down one event."""
        other = "-" if peer is None else peer
        self._write(f"{at_s.hex()} {kind} {node} {other} {about.hex() or '-'}\n".encode())


def hash_of(packet: Opaque) -> bytes:
    """Return eight bytes that identify a packet on one link: of its bytes, or what a sealed packet says of itself."""
    if isinstance(packet, bytes):
        return blake2b(packet, digest_size=8).digest()
    wire_hash: bytes = packet.wire_hash
    return wire_hash


class Tracer:
    """Tells a log, an observer, or both; `on_wires` says whether anybody cares for packets."""

    __slots__ = ("_log", "_observer", "_packet_bytes", "on_wires")

    def __init__(self, *, log: EventLog | None, observer: Observer | None, packet_bytes: int) -> None:
        self.on_wires = log is not None or observer is not None
        self._log = log
        self._observer = observer
        self._packet_bytes = packet_bytes

    def note(self, at_s: float, kind: str, node: int, about: bytes = b"") -> None:
        """Log something that happened to a node."""
        if self._log is not None:
            self._log.record(at_s, kind, node, about=about[:8])

    def left(self, at_s: float, kind: str, source: int, target: int, packet: Opaque) -> None:
        """A packet, or a control message in its guise, was handed to a link."""
        wire_hash = hash_of(packet)
        if self._log is not None:
            self._log.record(at_s, f"{kind}_left", source, target, wire_hash)
        if self._observer is not None:
            self._observer.packet_left(at_s, source, target, self._packet_bytes, wire_hash)

    def arrived(self, at_s: float, kind: str, source: int, target: int, packet: Opaque) -> None:
        """A packet, or a control message in its guise, came off a link."""
        wire_hash = hash_of(packet)
        if self._log is not None:
            self._log.record(at_s, f"{kind}_arrived", target, source, wire_hash)
        if self._observer is not None:
            self._observer.packet_arrived(at_s, source, target, self._packet_bytes, wire_hash)
