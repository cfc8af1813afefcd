"""What a peer says of itself, signed: its id, its addresses, and the key to wrap packets for it.

    offset  bytes  field                       all integers big-endian
    0       1      version, 1
    1       32     node id, which is the Ed25519 key that signs
    33      8      serial                      of two descriptors of one node the higher (epoch, serial) counts
    41      4      epoch
    45      2      length k of the Sphinx key
    47      k      Sphinx key
    47+k    32     fingerprint of the link certificate
    79+k    8      valid until, in whole seconds (exclusive)
    87+k    1      number of addresses, 0 to 4
    88+k           each address: length (1 byte), then `host:port` in ASCII
    end-64  64     Ed25519 signature over a label and everything before

Invariant: `parse` returns a descriptor only if these bytes are the one encoding of it, its node signed them, and it may
be acted on now. Everything that costs little is checked first: a flood of rubbish never reaches the signature, which
costs 39 µs with libsodium (OpenSSL takes 64 on the same machine).

A DNS name is checked as text only. Whoever dials must apply `check_ip` to what it resolves to, or a name would be a
way around the checks.
"""

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv4Address, IPv6Address, IPv6Network
from typing import NamedTuple

from nacl.bindings import crypto_sign, crypto_sign_open, crypto_sign_seed_keypair
from nacl.exceptions import BadSignatureError

from unlinkabledfl.errors import ConfigError, DescriptorError, LocalProtocolError
from unlinkabledfl.sphinx import NodeId, accepts_x25519

VERSION = 1
ADDRESSES_MAX = 4
ADDRESS_MAX_BYTES = 255
KEY_MAX_BYTES = 2048
LIFETIME_MAX_S = 30 * 86_400
"""How far ahead `valid until` may lie: a peer that vanished is forgotten after this long at the latest."""

SIGNATURE_LABEL = b"unlinkabledfl/descriptor/v1\x00"
SIGNATURE_BYTES = 64
FINGERPRINT_BYTES = 32
SEED_BYTES = 32

_HEAD = struct.Struct(">B32sQIH")
_TAIL = struct.Struct(">32sQB")
_BODY_MIN_BYTES = _HEAD.size + _TAIL.size
MAX_BYTES = _BODY_MIN_BYTES + KEY_MAX_BYTES + ADDRESSES_MAX * (1 + ADDRESS_MAX_BYTES) + SIGNATURE_BYTES

_LOWEST_MULTICAST = 224  # and everything above it: multicast, reserved, broadcast
_DNS_MAX_CHARACTERS = 253
_PORT_MAX = 65_535
_PORT = re.compile(r"[1-9][0-9]{0,4}")
# The last label begins with a letter. That keeps out the other spellings of IPv4 addresses (127.1, 0x7f000001), which
# resolvers accept and which would pass for names here.
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DNS_NAME = re.compile(rf"(?:{_LABEL}\.)*(?=[a-z]){_LABEL}", re.IGNORECASE)
_GLOBAL_IPV6 = IPv6Network("2000::/3")
_LOCAL_IPV6 = IPv6Network("fc00::/7")
_LOOPBACK_IPV6 = IPv6Address("::1")


class Precedence(NamedTuple):
    """Which of two descriptors of one node counts: the greater."""

    epoch: int
    serial: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """A signed descriptor. `data` is what goes over the wire, and what two equal ones have in common."""

    node_id: NodeId
    serial: int
    epoch: int
    public_key: bytes = field(repr=False)
    fingerprint: bytes = field(repr=False)
    valid_until_s: int
    addresses: tuple[str, ...]
    data: bytes = field(repr=False)

    @property
    def precedence(self) -> Precedence:
        """Which of two descriptors of one node counts."""
        return Precedence(self.epoch, self.serial)


def sign(
    signing_key_seed: bytes,
    *,
    serial: int,
    epoch: int,
    public_key: bytes,
    fingerprint: bytes,
    valid_until_s: int,
    addresses: Sequence[str],
    allow_loopback: bool = False,
) -> Descriptor:
    """Make our own descriptor: what `parse` will accept elsewhere, or an error here."""
    if len(signing_key_seed) != SEED_BYTES:
        raise LocalProtocolError(f"an Ed25519 seed has {SEED_BYTES} bytes, not {len(signing_key_seed)}")
    if len(fingerprint) != FINGERPRINT_BYTES:
        raise LocalProtocolError(f"a fingerprint has {FINGERPRINT_BYTES} bytes, not {len(fingerprint)}")
    if not 0 < len(public_key) <= KEY_MAX_BYTES:
        raise LocalProtocolError(f"a public key has 1 to {KEY_MAX_BYTES} bytes, not {len(public_key)}")
    _check_own_addresses(addresses, allow_loopback=allow_loopback)
    node_id, secret_key = crypto_sign_seed_keypair(signing_key_seed)
    encoded = [address.encode("ascii") for address in addresses]
    try:
        body = b"".join(
            [
                _HEAD.pack(VERSION, node_id, serial, epoch, len(public_key)),
                public_key,
                _TAIL.pack(fingerprint, valid_until_s, len(encoded)),
                *(bytes([len(address)]) + address for address in encoded),
            ]
        )
    except struct.error as error:
        raise LocalProtocolError(f"not a descriptor: {error}") from error
    return Descriptor(
        node_id=NodeId(node_id),
        serial=serial,
        epoch=epoch,
        public_key=public_key,
        fingerprint=fingerprint,
        valid_until_s=valid_until_s,
        addresses=tuple(addresses),
        data=body + crypto_sign(SIGNATURE_LABEL + body, secret_key)[:SIGNATURE_BYTES],
    )


def peek(data: bytes) -> tuple[NodeId, Precedence]:
    """Whose descriptor this claims to be, and which. Nothing is verified: only good for throwing it away unread."""
    _check_length(data)
    version, node_id, serial, epoch, _ = _HEAD.unpack_from(data)
    if version != VERSION:
        raise DescriptorError("bad_version")
    return NodeId(node_id), Precedence(epoch, serial)


def parse(
    data: bytes, *, now_s: float, allow_loopback: bool, accepts_key: Callable[[bytes], bool] = accepts_x25519
) -> Descriptor:
    """The descriptor that a peer sent; DescriptorError with a cause if it is not one to act on.

    `accepts_key` is the packet format's say on whether packets can be made for a key. One bad key among the peers would
    empty every slot whose route it was drawn for, so it has to be known before the peer is.
    """
    _check_length(data)
    version, node_id, serial, epoch, key_length = _HEAD.unpack_from(data)
    if version != VERSION:
        raise DescriptorError("bad_version")
    key_end = _HEAD.size + key_length
    body_end = len(data) - SIGNATURE_BYTES
    if key_end + _TAIL.size > body_end:
        raise DescriptorError("truncated")
    public_key = data[_HEAD.size : key_end]
    fingerprint, valid_until_s, count = _TAIL.unpack_from(data, key_end)
    if valid_until_s <= now_s:
        raise DescriptorError("stale")
    if valid_until_s > now_s + LIFETIME_MAX_S:
        raise DescriptorError("too_far_ahead")
    if not accepts_key(public_key):
        raise DescriptorError("bad_key")
    addresses = _parse_addresses(data[key_end + _TAIL.size : body_end], count=count, allow_loopback=allow_loopback)
    try:
        crypto_sign_open(data[body_end:] + SIGNATURE_LABEL + data[:body_end], node_id)
    except BadSignatureError:
        raise DescriptorError("bad_signature") from None
    return Descriptor(
        node_id=NodeId(node_id),
        serial=serial,
        epoch=epoch,
        public_key=public_key,
        fingerprint=fingerprint,
        valid_until_s=valid_until_s,
        addresses=addresses,
        data=data,
    )


def check_address(address: str, *, allow_loopback: bool) -> None:
    """DescriptorError `bad_address` unless this is `host:port` with a host that a stranger may make us dial."""
    host, colon, port = address.rpartition(":")
    if not colon or len(address) > ADDRESS_MAX_BYTES or not address.isascii():
        raise DescriptorError("bad_address")
    if _PORT.fullmatch(port) is None or int(port) > _PORT_MAX:
        raise DescriptorError("bad_address")
    if host.startswith("[") and host.endswith("]"):
        try:
            ip: IPv4Address | IPv6Address | None = IPv6Address(host[1:-1])
        except AddressValueError:
            raise DescriptorError("bad_address") from None
    else:
        try:
            ip = IPv4Address(host)
        except AddressValueError:
            ip = None
    if ip is not None:
        check_ip(ip, allow_loopback=allow_loopback)
    elif len(host) > _DNS_MAX_CHARACTERS or _DNS_NAME.fullmatch(host) is None:
        raise DescriptorError("bad_address")
    elif not allow_loopback and f".{host.lower()}".endswith(".localhost"):
        raise DescriptorError("bad_address")


def check_ip(ip: IPv4Address | IPv6Address, *, allow_loopback: bool) -> None:
    """DescriptorError `bad_address` unless one host may answer there: private networks yes, link-local ones no.

    Link-local addresses mean nothing outside the link, and 169.254.169.254 is where clouds keep their secrets.
    """
    if isinstance(ip, IPv4Address):
        good = allow_loopback if ip.is_loopback else 0 < ip.packed[0] < _LOWEST_MULTICAST and not ip.is_link_local
    elif ip == _LOOPBACK_IPV6:
        good = allow_loopback
    else:
        # A positive list: the rest of IPv6 is no host, or wraps an IPv4 address, which is to be written as such.
        wraps = ip.sixtofour is not None or ip.teredo is not None
        good = ip.scope_id is None and not wraps and (ip in _GLOBAL_IPV6 or ip in _LOCAL_IPV6)
    if not good:
        raise DescriptorError("bad_address")


def _check_length(data: bytes) -> None:
    if len(data) > MAX_BYTES:
        raise DescriptorError("too_long")
    if len(data) < _BODY_MIN_BYTES + SIGNATURE_BYTES:
        raise DescriptorError("truncated")


def _parse_addresses(data: bytes, *, count: int, allow_loopback: bool) -> tuple[str, ...]:
    if count > ADDRESSES_MAX:
        raise DescriptorError("bad_address")
    texts: list[bytes] = []
    start = 0
    for _ in range(count):
        if start >= len(data):
            raise DescriptorError("truncated")
        end = start + 1 + data[start]
        if end > len(data):
            raise DescriptorError("truncated")
        texts.append(data[start + 1 : end])
        start = end
    if start != len(data):
        raise DescriptorError("trailing_bytes")
    try:
        addresses = tuple(text.decode("ascii") for text in texts)
    except UnicodeDecodeError:
        raise DescriptorError("bad_address") from None
    _check_addresses(addresses, allow_loopback=allow_loopback)
    return addresses


def _check_addresses(addresses: Sequence[str], *, allow_loopback: bool) -> None:
    if len(addresses) > ADDRESSES_MAX or len(set(addresses)) != len(addresses):
        raise DescriptorError("bad_address")
    for address in addresses:
        check_address(address, allow_loopback=allow_loopback)


def _check_own_addresses(addresses: Sequence[str], *, allow_loopback: bool) -> None:
    try:
        _check_addresses(addresses, allow_loopback=allow_loopback)
    except DescriptorError:
        raise ConfigError(
            key="node.addresses",
            got=list(addresses),
            takes=f"up to {ADDRESSES_MAX} different addresses of the form host:port that other hosts can dial",
            hint="name:4433, 192.0.2.1:4433 or [2001:db8::1]:4433; loopback addresses only if they are allowed",
        ) from None
