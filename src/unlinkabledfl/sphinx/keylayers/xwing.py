"""`pq`: X-Wing at every hop. Safe while either X25519 or ML-KEM-768 is.

X-Wing (draft-connolly-cfrg-xwing-kem) is a vetted combination of the two; both come from `cryptography`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha3_256, shake_256
from hmac import compare_digest

from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM768PublicKey

from unlinkabledfl.errors import PacketError
from unlinkabledfl.sphinx.keylayers.kem import CarriedElements
from unlinkabledfl.sphinx.keylayers.protocol import Derive, SenderHop
from unlinkabledfl.sphinx.keylayers.x25519 import accepts_x25519, load_x25519
from unlinkabledfl.sphinx.multiplier import SMALL_ORDER, Multiplier, exchange
from unlinkabledfl.sphinx.types import PrivateKey

_LABEL = bytes.fromhex("5c2e2f2f5e5c")
_MLKEM_KEY_BYTES = 1_184
_MLKEM_CIPHERTEXT_BYTES = 1_088
_MLKEM_SEED_BYTES = 64


@dataclass(frozen=True, slots=True)
class _Handle:
    mlkem: MLKEM768PrivateKey
    x25519: PrivateKey


def _combined(mlkem_secret: bytes, x25519_secret: bytes, ciphertext: bytes, public_key: bytes) -> bytes:
    return sha3_256(mlkem_secret + x25519_secret + ciphertext + public_key + _LABEL).digest()


class XWing(CarriedElements):
    """KEM-Sphinx with the hybrid KEM."""

    name = "pq"
    element_bytes = _MLKEM_CIPHERTEXT_BYTES + 32
    carried_bytes = _MLKEM_CIPHERTEXT_BYTES + 32
    public_key_bytes = _MLKEM_KEY_BYTES + 32

    def accepts(self, public_key: bytes) -> bool:
        if len(public_key) != self.public_key_bytes or not accepts_x25519(public_key[_MLKEM_KEY_BYTES:]):
            return False
        try:
            MLKEM768PublicKey.from_public_bytes(public_key[:_MLKEM_KEY_BYTES])
        except ValueError:
            return False
        return True

    def load(self, private_bytes: bytes) -> PrivateKey:
        expanded = shake_256(private_bytes).digest(_MLKEM_SEED_BYTES + 32)
        mlkem = MLKEM768PrivateKey.from_seed_bytes(expanded[:_MLKEM_SEED_BYTES])
        x25519 = load_x25519(expanded[_MLKEM_SEED_BYTES:])
        public = mlkem.public_key().public_bytes_raw() + x25519.public_bytes
        return PrivateKey(private_bytes, public, _Handle(mlkem, x25519))

    def sender_entropy_bytes(self, hops: int) -> int:
        return 32 * hops

    def sender_hops(
        self, paths: Sequence[Sequence[bytes]], seeds: Sequence[bytes], derive: Derive, multiplier: Multiplier
    ) -> list[list[SenderHop]]:
        return [
            [
                self._encapsulate(public_key, seed[32 * index : 32 * (index + 1)], derive, multiplier)
                for index, public_key in enumerate(path)
            ]
            for path, seed in zip(paths, seeds, strict=True)
        ]

    def _encapsulate(self, public_key: bytes, scalar: bytes, derive: Derive, multiplier: Multiplier) -> SenderHop:
        x25519_key = public_key[_MLKEM_KEY_BYTES:]
        try:
            mlkem_key = MLKEM768PublicKey.from_public_bytes(public_key[:_MLKEM_KEY_BYTES])
        except ValueError as error:
            raise PacketError("bad_public_key", "a hop's ML-KEM key does not parse") from error
        mlkem_secret, mlkem_ciphertext = mlkem_key.encapsulate()
        (ephemeral,) = multiplier.public_keys([scalar])
        (shared,) = multiplier.x25519([scalar], [x25519_key])
        if compare_digest(shared, SMALL_ORDER):
            raise PacketError("bad_public_key", "a hop's public key is a point of small order")
        element = mlkem_ciphertext + ephemeral
        return element, derive(_combined(mlkem_secret, shared, ephemeral, x25519_key), element, public_key)

    def secret(self, key: PrivateKey, element: bytes) -> bytes | None:
        handle: _Handle = key.handle
        shared = exchange(handle.x25519, element[_MLKEM_CIPHERTEXT_BYTES:])
        return None if shared is None else _decapsulated(handle, element, shared)

    def secrets(self, key: PrivateKey, elements: Sequence[bytes], multiplier: Multiplier) -> list[bytes | None]:
        handle: _Handle = key.handle
        ephemerals = [element[_MLKEM_CIPHERTEXT_BYTES:] for element in elements]
        return [
            None if compare_digest(shared, SMALL_ORDER) else _decapsulated(handle, element, shared)
            for element, shared in zip(elements, multiplier.shared(handle.x25519, ephemerals), strict=True)
        ]


def _decapsulated(handle: _Handle, element: bytes, shared: bytes) -> bytes:
    mlkem_secret = handle.mlkem.decapsulate(element[:_MLKEM_CIPHERTEXT_BYTES])
    return _combined(mlkem_secret, shared, element[_MLKEM_CIPHERTEXT_BYTES:], handle.x25519.public_bytes)
