"""What a key layer is: a stateless object that the geometry takes its sizes from and the codec its secrets.

Most of it works on batches, because the X25519 layers can multiply eight points in the time of two. A relay that has
one packet at a time takes the two exact methods, which carry no lists.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from unlinkabledfl.sphinx.multiplier import Multiplier
from unlinkabledfl.sphinx.primitives import HopKeys
from unlinkabledfl.sphinx.types import Entropy, PrivateKey

Derive: TypeAlias = Callable[[bytes, bytes, bytes], HopKeys]
"""(secret, element, public key) -> the hop's keys, in the context of a geometry."""

SenderHop: TypeAlias = tuple[bytes, HopKeys]
"""What the sender knows of one hop: the element that it will see, and its keys."""


class KeyLayer(Protocol):
    """A way for a sender and every hop of a path to share a secret that nobody else knows."""

    @property
    def name(self) -> str:
        """How configurations and key derivations call it."""

    @property
    def element_bytes(self) -> int:
        """The length of α."""

    @property
    def carried_bytes(self) -> int:
        """How much of the next α travels inside a slot: all of it, or nothing where hops compute it."""

    @property
    def public_key_bytes(self) -> int:
        """The length of a node's public key."""

    def accepts(self, public_key: bytes) -> bool:
        """Whether packets can be made for this public key; a peer's word is not enough."""

    def load(self, private_bytes: bytes) -> PrivateKey:
        """A key from its 32 private bytes."""

    def sender_entropy_bytes(self, hops: int) -> int:
        """How many random bytes a sender needs for a path."""

    def sender_hops(
        self, paths: Sequence[Sequence[bytes]], seeds: Sequence[bytes], derive: Derive, multiplier: Multiplier
    ) -> list[list[SenderHop]]:
        """For each path of public keys, what its sender knows. PacketError('bad_public_key') for a bad one."""

    def secret(self, key: PrivateKey, element: bytes) -> bytes | None:
        """The secret behind an element, None where there is none; exact on every element."""

    def next_element(self, element: bytes, blind: bytes, carried: bytes) -> bytes:
        """What the next hop gets to see."""

    def secrets(self, key: PrivateKey, elements: Sequence[bytes], multiplier: Multiplier) -> list[bytes | None]:
        """`secret` of each element; as exact as the multiplier."""

    def next_elements(
        self,
        elements: Sequence[bytes],
        blinds: Sequence[bytes],
        carried: Sequence[bytes],
        multiplier: Multiplier,
    ) -> list[bytes]:
        """`next_element` of each packet."""


def generate_key(layer: KeyLayer, entropy: Entropy) -> PrivateKey:
    """A fresh key of this layer."""
    return layer.load(entropy(32))
