"""How the two ends of a new link learn whom they are linked with, before the first cell.

QUIC's TLS has already shown the dialler that the listener holds the certificate that it dialled. The listener knows
nothing yet. It sends a challenge; the dialler answers with its certificate and a signature; the listener welcomes it.

The listener is `Listening`, the dialler `Dialling`:

    new --listening-------------------------> Challenge, waiting
    waiting --proof, good-------------------> Proved, proved
    waiting --proof, not good---------------> refused
    proved --anything-----------------------> refused
    proved --welcome------------------------> Welcome, open
    new --dialling--------------------------> greeting
    greeting --challenge, good--------------> Proof, proving
    greeting --challenge, not good----------> refused
    proving --welcome-----------------------> Welcomed, open
    proving --anything else-----------------> refused

Invariant: the signature covers both fingerprints and both nonces under a label, in an order that tells the roles apart.
So it is worth nothing on another link, to another listener, from another dialler or the other way round; why no more is
needed stands in docs/link.md. A certificate is parsed only after its fingerprint was found to be the claimed peer's.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from unlinkabledfl.errors import ControlError, LocalProtocolError
from unlinkabledfl.mixnet.descriptor import FINGERPRINT_BYTES
from unlinkabledfl.mixnet.descriptor import MAX_BYTES as INTRODUCTION_MAX_BYTES
from unlinkabledfl.sphinx import Entropy, NodeId
from unlinkabledfl.transport.certificates import (
    CERTIFICATE_MAX_BYTES,
    SIGNATURE_BYTES,
    LinkIdentity,
    fingerprint_of,
    verify,
)
from unlinkabledfl.transport.settings import DATAGRAM_BYTES_MAX

__all__ = ["VERSION", "Dialling", "Knows", "Listening", "Proved", "Welcomed", "transcript"]

VERSION = 1
NONCE_BYTES = 32
WELCOME = b"\x01"

_LABEL = b"unlinkabledfl/link/v1/dialler\x00"
_CHALLENGE = struct.Struct(">BI32s")
_PROOF = struct.Struct(">BI32s32sHHH")
_LENGTHS_MAX = (CERTIFICATE_MAX_BYTES, INTRODUCTION_MAX_BYTES, DATAGRAM_BYTES_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proved:
    """The dialler is this peer. `welcome` opens the link, when and if its owner wants it."""

    peer: NodeId


@dataclass(frozen=True, slots=True)
class Welcomed:
    """The listener takes the link."""


Knows: TypeAlias = Callable[[NodeId, bytes, bytes], bool]
"""Says whether a peer may be linked by a certificate: its id, the fingerprint, and its introduction."""


def transcript(
    *,
    cell_bytes: int,
    dialler_fingerprint: bytes,
    listener_fingerprint: bytes,
    nonces: tuple[bytes, bytes],
    rest: bytes,
) -> bytes:
    """Return what the dialler signs. `nonces` are the dialler's and the listener's; `rest` its id and introduction."""
    head = struct.pack(">BI", VERSION, cell_bytes)
    return b"".join([_LABEL, head, dialler_fingerprint, listener_fingerprint, *nonces, rest])


class _Side:
    """What both sides do: collect bytes up to a bound."""

    __slots__ = ("_buffer", "_cell_bytes", "is_over")

    def __init__(self, *, cell_bytes: int) -> None:
        self._buffer = bytearray()
        self._cell_bytes = cell_bytes
        self.is_over = False  # refused, or open: no bytes belong here any more

    def _refuse(self, cause: str) -> ControlError:
        self.is_over = True
        self._buffer.clear()
        return ControlError(cause)

    def _check_version(self, version: int, cell_bytes: int) -> None:
        if version != VERSION:
            raise self._refuse("link_bad_version")
        if cell_bytes != self._cell_bytes:
            raise self._refuse("link_other_cells")

    def _take(self, data: bytes) -> None:
        if self.is_over:
            raise LocalProtocolError("the handshake of this link is over")
        self._buffer += data


class Listening(_Side):
    """The side that accepted the connection, and does not know whose it is."""

    __slots__ = ("_identity", "_knows", "_nonce", "_proved")

    def __init__(self, *, identity: LinkIdentity, cell_bytes: int, knows: Knows, entropy: Entropy) -> None:
        super().__init__(cell_bytes=cell_bytes)
        self._identity = identity
        self._knows = knows
        self._nonce = entropy(NONCE_BYTES)
        self._proved = False

    def challenge(self) -> bytes:
        """Return what to send first."""
        return _CHALLENGE.pack(VERSION, self._cell_bytes, self._nonce)

    def receive(self, data: bytes) -> Proved | None:
        """Take bytes of the dialler's stream; ControlError refuses it."""
        if self._proved:
            # An honest dialler waits for the welcome: cells before it would be lost if another link wins.
            raise self._refuse("link_early_data")
        self._take(data)
        buffer = self._buffer
        if buffer and buffer[0] != VERSION:
            raise self._refuse("link_bad_version")  # before the rest is waited for: other versions may be shorter
        if len(buffer) < _PROOF.size:
            return None
        version, cell_bytes, peer, nonce, *lengths = _PROOF.unpack_from(buffer)
        self._check_version(version, cell_bytes)
        if any(length > most for length, most in zip(lengths, _LENGTHS_MAX, strict=True)):
            raise self._refuse("link_proof_too_long")
        certificate_end = _PROOF.size + lengths[0]
        introduction_end = certificate_end + lengths[1]
        signature_end = introduction_end + SIGNATURE_BYTES
        length = signature_end + lengths[2]
        if len(buffer) < length:
            return None
        if len(buffer) > length:
            raise self._refuse("link_early_data")
        self._check(
            NodeId(peer),
            nonce,
            certificate=bytes(buffer[_PROOF.size : certificate_end]),
            introduction=bytes(buffer[certificate_end:introduction_end]),
            signature=bytes(buffer[introduction_end:signature_end]),
        )
        self._buffer.clear()
        self._proved = True
        return Proved(peer=NodeId(peer))

    def welcome(self) -> bytes:
        """Open the link; return what to send before the first cell."""
        if not self._proved or self.is_over:
            raise LocalProtocolError("a link is welcomed once, after its proof")
        self.is_over = True
        return WELCOME

    def _check(self, peer: NodeId, nonce: bytes, *, certificate: bytes, introduction: bytes, signature: bytes) -> None:
        fingerprint = fingerprint_of(certificate)
        if fingerprint == self._identity.fingerprint:
            raise self._refuse("link_to_itself")
        if not self._knows(peer, fingerprint, introduction):
            raise self._refuse("link_unknown_certificate")
        signed = transcript(
            cell_bytes=self._cell_bytes,
            dialler_fingerprint=fingerprint,
            listener_fingerprint=self._identity.fingerprint,
            nonces=(nonce, self._nonce),
            rest=peer + introduction,
        )
        if not verify(certificate, signature=signature, message=signed):
            raise self._refuse("link_bad_proof")


class Dialling(_Side):
    """The side that dialled. TLS has pinned the listener's certificate to `listener_fingerprint`.

    Its proof is padded to `padded_bytes`, a datagram: if the path loses such datagrams, no link comes up over it.
    """

    __slots__ = (
        "_entropy",
        "_identity",
        "_introduction",
        "_listener_fingerprint",
        "_node_id",
        "_padded_bytes",
        "_proving",
    )

    def __init__(
        self,
        *,
        node_id: NodeId,
        identity: LinkIdentity,
        listener_fingerprint: bytes,
        cell_bytes: int,
        entropy: Entropy,
        introduction: bytes = b"",
        padded_bytes: int = 0,
    ) -> None:
        super().__init__(cell_bytes=cell_bytes)
        if len(listener_fingerprint) != FINGERPRINT_BYTES or len(introduction) > INTRODUCTION_MAX_BYTES:
            raise LocalProtocolError("a fingerprint or an introduction of the wrong length")
        self._node_id = node_id
        self._identity = identity
        self._listener_fingerprint = listener_fingerprint
        self._introduction = introduction
        self._padded_bytes = padded_bytes
        self._entropy = entropy
        self._proving = False

    def receive(self, data: bytes) -> bytes | Welcomed | None:
        """Take bytes of the listener's stream: the proof to send, the welcome, or nothing yet. ControlError refuses.

        Bytes behind the welcome are cells already; `rest` hands them over.
        """
        self._take(data)
        buffer = self._buffer
        if not buffer:
            return None
        if self._proving:
            if buffer[:1] != WELCOME:
                raise self._refuse("link_bad_welcome")
            del buffer[:1]
            self.is_over = True
            return Welcomed()
        if buffer[0] != VERSION:
            raise self._refuse("link_bad_version")
        if len(buffer) < _CHALLENGE.size:
            return None
        version, cell_bytes, nonce = _CHALLENGE.unpack_from(buffer)
        self._check_version(version, cell_bytes)
        if len(buffer) > _CHALLENGE.size:
            raise self._refuse("link_bad_welcome")
        buffer.clear()
        self._proving = True
        return self._proof(nonce)

    def rest(self) -> bytes:
        """Return what came behind the welcome."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        return rest

    def _proof(self, listener_nonce: bytes) -> bytes:
        nonce = self._entropy(NONCE_BYTES)
        certificate = self._identity.certificate
        unpadded = _PROOF.size + len(certificate) + len(self._introduction) + SIGNATURE_BYTES
        padding = bytes(max(0, self._padded_bytes - unpadded))
        lengths = (len(certificate), len(self._introduction), len(padding))
        head = _PROOF.pack(VERSION, self._cell_bytes, self._node_id, nonce, *lengths)
        signed = transcript(
            cell_bytes=self._cell_bytes,
            dialler_fingerprint=self._identity.fingerprint,
            listener_fingerprint=self._listener_fingerprint,
            nonces=(nonce, listener_nonce),
            rest=self._node_id + self._introduction,
        )
        return b"".join([head, certificate, self._introduction, self._identity.sign(signed), padding])
