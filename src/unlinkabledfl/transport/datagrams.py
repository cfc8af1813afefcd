"""What a datagram says in clear: for which connection it is, and whether it asks for a new one.

QUIC's invariants (RFC 8999) put the receiver's connection id where anybody can read it. Everything here is parsed from
bytes that anybody can send, so it reads no further than it must and raises nothing.

A token (RFC 9000, 8.1.2) shows that a dialler receives at its address: a flood of first datagrams with forged senders
then costs a hash each, and no memory.

    offset  bytes  field                       all integers big-endian
    0       8      time, in µs of the endpoint's clock
    8       1      length c of the connection id
    9       c      connection id that the dialler chose first
    9+c     16     BLAKE2b under the endpoint's key of everything before, the address, and the new connection id
"""

import hmac
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

from qh3.quic.packet import encode_quic_retry

from unlinkabledfl.sphinx import Entropy
from unlinkabledfl.transport.quic import CONNECTION_ID_BYTES
from unlinkabledfl.transport.udp import Address

__all__ = ["Initial", "RetryTokens", "connection_id_of", "parse_initial", "split"]

INITIAL_MIN_BYTES: Final = 1_200
"""A first datagram is at least so long, lest we could be used to flood somebody else (RFC 9000, 14.1)."""

_LONG: Final = 0x80
_TYPE_MASK: Final = 0xF0
_INITIAL_TYPE: Final = 0xC0
_VERSION_1: Final = (1).to_bytes(4)
_CONNECTION_ID_MAX_BYTES: Final = 20
_CONNECTION_ID_MIN_BYTES: Final = 8
_TOKEN_MAC_BYTES: Final = 16
_TOKEN_LIFETIME_S: Final = 10.0
_US: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Initial:
    """The clear part of a dialler's first datagram."""

    destination: bytes
    source: bytes
    token: bytes = field(repr=False)


def connection_id_of(datagram: bytes) -> bytes | None:
    """Return the connection id that this datagram is for, if it has one."""
    if not datagram:
        return None
    if datagram[0] & _LONG:
        if len(datagram) < 6:  # noqa: PLR2004 -- first byte, version, length
            return None
        end = 6 + datagram[5]
        return datagram[6:end] if len(datagram) >= end else None
    end = 1 + CONNECTION_ID_BYTES
    return datagram[1:end] if len(datagram) >= end else None


def split(data: bytes, segment_bytes: int) -> list[bytes] | None:
    """Cut a read into its datagrams; None where all of them are short and for one connection, and need no cutting."""
    end = 1 + CONNECTION_ID_BYTES
    first = data[1:end]
    for start in range(0, len(data), segment_bytes):
        if data[start] & _LONG or data[start + 1 : start + end] != first:
            return [data[at : at + segment_bytes] for at in range(0, len(data), segment_bytes)]
    return None


def parse_initial(datagram: bytes) -> Initial | None:
    """Return what a datagram asks that may open a connection of QUIC version 1; None if it is anything else."""
    if len(datagram) < INITIAL_MIN_BYTES or datagram[0] & _TYPE_MASK != _INITIAL_TYPE or datagram[1:5] != _VERSION_1:
        return None
    destination_end = 6 + datagram[5]
    if not _CONNECTION_ID_MIN_BYTES <= datagram[5] <= _CONNECTION_ID_MAX_BYTES:
        return None
    source_length = datagram[destination_end]
    source_end = destination_end + 1 + source_length
    if source_length > _CONNECTION_ID_MAX_BYTES:
        return None
    token_length, token_start = _variable_length(datagram, source_end)
    token_end = token_start + token_length
    if token_end > len(datagram):
        return None
    return Initial(
        destination=datagram[6:destination_end],
        source=datagram[destination_end + 1 : source_end],
        token=datagram[token_start:token_end],
    )


class RetryTokens:
    """Makes and checks the tokens of one endpoint."""

    __slots__ = ("_entropy", "_key")

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy
        self._key = entropy(32)

    def retry(self, initial: Initial, address: Address, *, now_s: float) -> bytes:
        """Return the datagram that asks the dialler to come again with a token."""
        chosen = self._entropy(CONNECTION_ID_BYTES)
        stamp = max(0, int(now_s * _US)).to_bytes(8)
        clear = stamp + bytes([len(initial.destination)]) + initial.destination
        return bytes(
            encode_quic_retry(
                version=1,
                source_cid=chosen,
                destination_cid=initial.source,
                original_destination_cid=initial.destination,
                retry_token=clear + self._mac(clear, address, chosen),
            )
        )

    def check(self, initial: Initial, address: Address, *, now_s: float) -> bytes | None:
        """Return the connection id that the dialler chose first, if this is our token, for it, and fresh."""
        token = initial.token
        clear, mac = token[:-_TOKEN_MAC_BYTES], token[-_TOKEN_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(clear, address, initial.destination)):
            return None
        age_s = now_s - int.from_bytes(clear[:8]) / _US
        return clear[9:] if -1.0 <= age_s <= _TOKEN_LIFETIME_S else None

    def _mac(self, clear: bytes, address: Address, chosen: bytes) -> bytes:
        place = f"{address[0]} {address[1]}".encode()
        return blake2b(
            b"".join([clear, len(chosen).to_bytes(1), chosen, place]), key=self._key, digest_size=_TOKEN_MAC_BYTES
        ).digest()


def _variable_length(data: bytes, start: int) -> tuple[int, int]:
    """Read QUIC's integer of 1, 2, 4 or 8 bytes; return it and where it ends."""
    length = 1 << (data[start] >> 6)
    value = int.from_bytes(data[start : start + length]) & ((1 << (8 * length - 2)) - 1)
    return value, start + length
