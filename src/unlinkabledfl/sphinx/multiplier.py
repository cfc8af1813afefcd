"""X25519 in the number that the caller has: one by one, or eight at once where library and CPU can.

A result of 32 zero bytes stands for a point of small order; whoever asked has to refuse it.
"""

from collections.abc import Sequence
from typing import Protocol

import nacl.exceptions
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from nacl.bindings import crypto_scalarmult, crypto_scalarmult_base

from unlinkabledfl.sphinx.multibuffer import MultiBufferX25519
from unlinkabledfl.sphinx.types import PrivateKey

SMALL_ORDER = bytes(32)


class Multiplier(Protocol):
    """The three multiplications that the key layers need."""

    def shared(self, key: PrivateKey, points: Sequence[bytes]) -> list[bytes]:
        """One long-lived private key times each point."""

    def x25519(self, scalars: Sequence[bytes], points: Sequence[bytes]) -> list[bytes]:
        """Each scalar times its point."""

    def public_keys(self, scalars: Sequence[bytes]) -> list[bytes]:
        """Each scalar times the base point."""


def exchange(key: PrivateKey, point: bytes) -> bytes | None:
    """A long-lived private key times a point, by OpenSSL: faster where the key is parsed once. None for small order."""
    try:
        shared: bytes = key.handle.exchange(X25519PublicKey.from_public_bytes(point))
    except ValueError:  # what OpenSSL makes of a zero result
        return None
    return shared


def multiply(scalar: bytes, point: bytes) -> bytes:
    """A scalar that is used once times a point: libsodium."""
    # PyNaCl reports libsodium's refusal of a zero result as a RuntimeError of its own. Lengths are ours.
    try:
        return crypto_scalarmult(scalar, point)
    except nacl.exceptions.RuntimeError:
        return SMALL_ORDER


class OneByOne:
    """The exact multiplications above, one after the other."""

    def shared(self, key: PrivateKey, points: Sequence[bytes]) -> list[bytes]:
        return [exchange(key, point) or SMALL_ORDER for point in points]

    def x25519(self, scalars: Sequence[bytes], points: Sequence[bytes]) -> list[bytes]:
        return [multiply(scalar, point) for scalar, point in zip(scalars, points, strict=True)]

    def public_keys(self, scalars: Sequence[bytes]) -> list[bytes]:
        return [crypto_scalarmult_base(scalar) for scalar in scalars]


class EightAtOnce:
    """AVX-512 lanes for groups, `OneByOne` for what is too few to fill enough of them."""

    def __init__(self, lanes: MultiBufferX25519) -> None:
        self._lanes = lanes
        self._single = OneByOne()

    def shared(self, key: PrivateKey, points: Sequence[bytes]) -> list[bytes]:
        if len(points) < _WORTH_A_GROUP:
            return self._single.shared(key, points)
        return self._lanes.x25519([key.private_bytes] * len(points), points)

    def x25519(self, scalars: Sequence[bytes], points: Sequence[bytes]) -> list[bytes]:
        if len(points) < _WORTH_A_GROUP:
            return self._single.x25519(scalars, points)
        return self._lanes.x25519(scalars, points)

    def public_keys(self, scalars: Sequence[bytes]) -> list[bytes]:
        if len(scalars) < _WORTH_A_GROUP:
            return self._single.public_keys(scalars)
        return self._lanes.public_keys(scalars)


# A group of eight costs about as much as one single multiplication, full or not.
_WORTH_A_GROUP = 2
