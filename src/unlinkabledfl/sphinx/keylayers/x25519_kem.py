"""A fresh X25519 key for every hop: larger headers, one multiplication a hop instead of two."""

from collections.abc import Sequence
from hashlib import shake_256
from hmac import compare_digest

from unlinkabledfl.errors import PacketError
from unlinkabledfl.sphinx.keylayers.kem import CarriedElements
from unlinkabledfl.sphinx.keylayers.protocol import Derive, SenderHop
from unlinkabledfl.sphinx.keylayers.x25519 import accepts_x25519, load_x25519
from unlinkabledfl.sphinx.multiplier import SMALL_ORDER, Multiplier, exchange
from unlinkabledfl.sphinx.types import PrivateKey

_LABEL = b"unlinkabledfl/x25519-kem/1"


def _encapsulated(shared: bytes) -> bytes:
    return shake_256(_LABEL + shared).digest(32)


class X25519Kem(CarriedElements):
    """KEM-Sphinx with X25519 as its KEM."""

    name = "x25519-kem"
    element_bytes = 32
    carried_bytes = 32
    public_key_bytes = 32

    def accepts(self, public_key: bytes) -> bool:
        return accepts_x25519(public_key)

    def load(self, private_bytes: bytes) -> PrivateKey:
        return load_x25519(private_bytes)

    def sender_entropy_bytes(self, hops: int) -> int:
        return 32 * hops

    def sender_hops(
        self, paths: Sequence[Sequence[bytes]], seeds: Sequence[bytes], derive: Derive, multiplier: Multiplier
    ) -> list[list[SenderHop]]:
        scalars = [seed[at : at + 32] for seed in seeds for at in range(0, len(seed), 32)]
        keys = [public_key for path in paths for public_key in path]
        hops: list[SenderHop] = []
        for element, shared, public_key in zip(
            multiplier.public_keys(scalars), multiplier.x25519(scalars, keys), keys, strict=True
        ):
            if compare_digest(shared, SMALL_ORDER):
                raise PacketError("bad_public_key", "a hop's public key is a point of small order")
            hops.append((element, derive(_encapsulated(shared), element, public_key)))
        remaining = iter(hops)
        return [[next(remaining) for _ in path] for path in paths]

    def secret(self, key: PrivateKey, element: bytes) -> bytes | None:
        shared = exchange(key, element)
        return None if shared is None else _encapsulated(shared)

    def secrets(self, key: PrivateKey, elements: Sequence[bytes], multiplier: Multiplier) -> list[bytes | None]:
        return [
            None if compare_digest(shared, SMALL_ORDER) else _encapsulated(shared)
            for shared in multiplier.shared(key, elements)
        ]
