"""A UDP socket that moves many datagrams a system call, where the kernel can.

Linux cuts one large write into equal datagrams (`UDP_SEGMENT`) and hands over the datagrams of one sender that arrived
together as one buffer (`UDP_GRO`). A packet of 10.7 kB is nine datagrams of 1,280 bytes, and a system call costs more
than the encryption of such a datagram: without either, links cost several times the CPU. Where the kernel lacks them,
or a network card refuses a segmented write, everything still works, one datagram a call.

Invariant: `send` reorders nothing and drops nothing silently: what the socket cannot take now is kept, up to a bound,
until it can; what the network refuses is counted, and QUIC sends its content again.
"""

import contextlib
import errno
import socket
import struct
from collections import deque
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from typing import Final, NamedTuple, TypeAlias

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.mixnet.limits import Counters

__all__ = ["Address", "Arrival", "UdpSocket", "runs"]

Address: TypeAlias = tuple[str, int] | tuple[str, int, int, int]
"""As the socket module writes it: host and port first."""

_SOL_UDP: Final = 17
_UDP_SEGMENT: Final = 103
_UDP_GRO: Final = 104
_IP_MTU_DISCOVER: Final = 10
_IPV6_MTU_DISCOVER: Final = 23
_PMTUDISC_PROBE: Final = 3
_SEGMENT: Final = struct.Struct("=H")
_GRO_SEGMENT: Final = struct.Struct("=i")
_ANCILLARY_BYTES: Final = socket.CMSG_SPACE(_GRO_SEGMENT.size)
_SEGMENTS_MAX: Final = 64
_WRITE_MAX_BYTES: Final = 65_000  # an IP packet's, less its headers
_READ_MAX_BYTES: Final = 65_536
_SOCKET_BUFFER_BYTES: Final = 4 * 1024 * 1024
"""Of the system's queues. Its default of 208 kB is 20 packets: bursts of a busy mix overflow it."""
_BACKLOG_MAX: Final = 4_096
_WOULD_BLOCK: Final = (errno.EAGAIN, errno.EWOULDBLOCK, errno.ENOBUFS)
_NO_SEGMENTATION: Final = (errno.EIO, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOPROTOOPT)


class Arrival(NamedTuple):
    """What one read gave: datagrams of `segment_bytes` each from one sender, the last perhaps shorter."""

    data: bytes
    segment_bytes: int
    sender: Address


class UdpSocket:
    """A bound, non-blocking socket. While it `has_backlog`, call `flush` when it is writable, and send less."""

    __slots__ = ("_backlog", "_buffer", "_counters", "_gso", "_view", "address", "family", "socket")

    def __init__(self, *, host: str, port: int, counters: Counters, offload: bool = True) -> None:
        self._counters = counters
        self._backlog: deque[tuple[bytes, Address]] = deque()
        self.socket = _bind(host, port)
        self.family = self.socket.family
        self.address: Address = self.socket.getsockname()
        self._buffer = bytearray(_READ_MAX_BYTES)
        self._view = memoryview(self._buffer)
        self._gso = offload and _can_segment(self.socket)
        if offload:
            with contextlib.suppress(OSError):  # an older kernel: one datagram a read
                self.socket.setsockopt(_SOL_UDP, _UDP_GRO, 1)

    @property
    def has_backlog(self) -> bool:
        return bool(self._backlog)

    @property
    def segments(self) -> bool:
        """Whether large writes are cut by the kernel."""
        return self._gso

    def fileno(self) -> int:
        return self.socket.fileno()

    def close(self) -> None:
        self._backlog.clear()
        self._view.release()
        self.socket.close()

    def receive(self, reads_max: int) -> Iterator[Arrival]:
        """Read until nothing is left, or so many times: other things want their turn too."""
        read = self.socket.recvmsg_into
        buffers = [self._buffer]
        for _ in range(reads_max):
            try:
                length, ancillary, flags, sender = read(buffers, _ANCILLARY_BYTES)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                # The error of an earlier write (an ICMP message) surfaces here; it says nothing about this read.
                self._counters.add("udp_read_error")
                continue
            if flags & socket.MSG_TRUNC:
                self._counters.add("udp_truncated")
                continue
            if length:
                yield Arrival(bytes(self._view[:length]), _segment_bytes(ancillary) or length, sender)

    def send(self, datagrams: Sequence[bytes], address: Address) -> None:
        """Send these to one place, in this order."""
        sent = 0
        for run in runs(datagrams) if self._gso else ([datagram] for datagram in datagrams):
            if self._backlog or not self._write(run, address):
                break
            sent += len(run)
        self._keep(datagrams[sent:], address)

    def flush(self) -> None:
        """Send what was kept, as far as it goes."""
        backlog = self._backlog
        while backlog and self._write([backlog[0][0]], backlog[0][1]):
            backlog.popleft()

    def _write(self, datagrams: Sequence[bytes], address: Address) -> bool:
        """Write equal datagrams at once; false: the socket is full, nothing was taken."""
        try:
            self._call(datagrams, len(datagrams[0]), address)
        except InterruptedError:
            return False
        except OSError as error:
            if error.errno in _WOULD_BLOCK:
                return False
            if len(datagrams) > 1:
                # Not every network card or tunnel can: fall back to one by one, for good if that is the reason.
                self._gso = self._gso and error.errno not in _NO_SEGMENTATION
                self._write_singly(datagrams, address)
                return True
            self._counters.add("udp_too_long" if error.errno == errno.EMSGSIZE else "udp_write_error")
        return True

    def _call(self, datagrams: Sequence[bytes], segment_bytes: int, address: Address) -> None:
        ancillary = [(_SOL_UDP, _UDP_SEGMENT, _SEGMENT.pack(segment_bytes))] if len(datagrams) > 1 else []
        self.socket.sendmsg(datagrams, ancillary, 0, address)

    def _write_singly(self, datagrams: Sequence[bytes], address: Address) -> None:
        for index, datagram in enumerate(datagrams):
            if not self._write([datagram], address):
                self._keep(datagrams[index:], address)
                return

    def _keep(self, datagrams: Sequence[bytes], address: Address) -> None:
        room = max(_BACKLOG_MAX - len(self._backlog), 0)
        self._backlog.extend((datagram, address) for datagram in datagrams[:room])
        if len(datagrams) > room:
            self._counters.add("udp_backlog_full", len(datagrams) - room)


def _bind(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ip_address(host).version == 6 else socket.AF_INET  # noqa: PLR2004 -- IPv6
    except ValueError:
        raise ConfigError(
            key="node.listen", got=host, takes="an IP address of this host", hint="0.0.0.0, or :: for both families"
        ) from None
    bound = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        if family is socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            bound.setsockopt(socket.SOL_SOCKET, option, _SOCKET_BUFFER_BYTES)
        _forbid_fragments(bound)
        bound.bind((host, port))
    except (OSError, OverflowError) as error:
        bound.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            key="process.base_port",
            got=f"{host}:{port}",
            takes="a free UDP port of an address of this host",
            hint=f"{reason.lower()}; 0 takes any free port",
        ) from error
    return bound


def _forbid_fragments(bound: socket.socket) -> None:
    # QUIC judges a path by what arrives whole. "Probe" also ignores what ICMP messages, which anybody can send, say.
    level, option = (
        (socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER)
        if bound.family is socket.AF_INET6
        else (socket.IPPROTO_IP, _IP_MTU_DISCOVER)
    )
    with contextlib.suppress(OSError):  # not every system has it
        bound.setsockopt(level, option, _PMTUDISC_PROBE)


def _can_segment(bound: socket.socket) -> bool:
    try:
        bound.setsockopt(_SOL_UDP, _UDP_SEGMENT, 0)
    except OSError:
        return False
    return True


def _segment_bytes(ancillary: list[tuple[int, int, bytes]]) -> int:
    for level, kind, data in ancillary:
        if level == _SOL_UDP and kind == _UDP_GRO and len(data) >= _GRO_SEGMENT.size:
            (segment_bytes,) = _GRO_SEGMENT.unpack_from(data)
            return int(segment_bytes)
    return 0


def runs(datagrams: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Cut into what one segmented write can take: equal lengths, and perhaps a shorter one to end with."""
    start = 0
    while start < len(datagrams):
        segment_bytes = len(datagrams[start])
        most = min(_SEGMENTS_MAX, max(1, _WRITE_MAX_BYTES // segment_bytes), len(datagrams) - start)
        end = start + 1
        while end < start + most and len(datagrams[end]) == segment_bytes:
            end += 1
        if end < start + most and len(datagrams[end]) < segment_bytes:
            end += 1
        yield datagrams[start:end]
        start = end
