"""The default: one element for the whole path, blinded at every hop.

The sender knows the discrete logarithm z of every element that the hops will see, because each hop multiplies
by a factor that the sender derives as well. Textbook Sphinx applies the chain of factors to the base point again for
every hop. Here the factors are multiplied as integers, and the product is brought into a form that X25519's clamp
leaves as it is, so that each hop costs the sender two multiplications whatever its place in the path.
"""

from collections.abc import Sequence
from hmac import compare_digest

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from unlinkabledfl.errors import LocalProtocolError, PacketError
from unlinkabledfl.sphinx.keylayers.protocol import Derive, SenderHop
from unlinkabledfl.sphinx.multiplier import SMALL_ORDER, Multiplier, exchange, multiply
from unlinkabledfl.sphinx.small_order import is_small_order
from unlinkabledfl.sphinx.types import PrivateKey

_KEY_BYTES = 32
_ORDER_TIMES_EIGHT = 8 * ((1 << 252) + 27742317777372353535851937790883648493)
_LOW = 1 << 254
_HIGH = 1 << 255


def load_x25519(private_bytes: bytes) -> PrivateKey:
    """Parse once what every packet of an epoch is multiplied with."""
    handle = X25519PrivateKey.from_private_bytes(private_bytes)
    return PrivateKey(private_bytes, handle.public_key().public_bytes_raw(), handle)


def accepts_x25519(public_key: bytes) -> bool:
    """Whether these are 32 bytes of a point that shares secrets."""
    return len(public_key) == _KEY_BYTES and not is_small_order(public_key)


def clamped(scalar: bytes) -> int:
    """The integer that X25519 makes of these bytes."""
    value = int.from_bytes(scalar, "little")
    return (value & (_HIGH - 8)) & (_LOW - 1) | _LOW


def clamp_stable_product(left: int, right: int) -> int:
    """The multiple of 8 in [2^254, 2^255) that gives the same u-coordinate as left · right.

    Both factors are multiples of 8, so the residue modulo eight times the group's order is one too; its negative gives
    the same u. One of the two lies in the interval, except for residues within 2^131 of its ends.
    """
    residue = left * right % _ORDER_TIMES_EIGHT
    for candidate in (residue, _ORDER_TIMES_EIGHT - residue):
        if _LOW <= candidate < _HIGH:
            return candidate
    # One draw in 2^120. Refusing is simpler than redrawing, and nobody will ever see it.
    raise LocalProtocolError("blinding product has no clamp-stable form; send again with fresh entropy")


class BlindedX25519:
    """Classic Sphinx over X25519."""

    name = "x25519"
    element_bytes = 32
    carried_bytes = 0
    public_key_bytes = 32

    def accepts(self, public_key: bytes) -> bool:
        return accepts_x25519(public_key)

    def load(self, private_bytes: bytes) -> PrivateKey:
        return load_x25519(private_bytes)

    def sender_entropy_bytes(self, hops: int) -> int:
        return 32

    def sender_hops(
        self, paths: Sequence[Sequence[bytes]], seeds: Sequence[bytes], derive: Derive, multiplier: Multiplier
    ) -> list[list[SenderHop]]:
        scalars = [clamped(seed) for seed in seeds]
        result: list[list[SenderHop]] = [[] for _ in paths]
        for position in range(max(map(len, paths), default=0)):
            live = [index for index, path in enumerate(paths) if position < len(path)]
            encoded = [scalars[index].to_bytes(32, "little") for index in live]
            keys = [paths[index][position] for index in live]
            elements = multiplier.public_keys(encoded)
            shared = multiplier.x25519(encoded, keys)
            for index, element, secret, public_key in zip(live, elements, shared, keys, strict=True):
                if compare_digest(secret, SMALL_ORDER):
                    raise PacketError("bad_public_key", "a hop's public key is a point of small order")
                hop_keys = derive(secret, element, public_key)
                result[index].append((element, hop_keys))
                if position + 1 < len(paths[index]):
                    scalars[index] = clamp_stable_product(scalars[index], clamped(hop_keys.blind))
        return result

    def secret(self, key: PrivateKey, element: bytes) -> bytes | None:
        return exchange(key, element)

    def next_element(self, element: bytes, blind: bytes, carried: bytes) -> bytes:
        return multiply(blind, element)

    def secrets(self, key: PrivateKey, elements: Sequence[bytes], multiplier: Multiplier) -> list[bytes | None]:
        return [None if compare_digest(secret, SMALL_ORDER) else secret for secret in multiplier.shared(key, elements)]

    def next_elements(
        self,
        elements: Sequence[bytes],
        blinds: Sequence[bytes],
        carried: Sequence[bytes],
        multiplier: Multiplier,
    ) -> list[bytes]:
        return multiplier.x25519(blinds, elements)
