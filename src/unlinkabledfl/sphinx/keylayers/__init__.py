"""How a sender and each hop of its path come to share a secret: one module a way."""

from types import MappingProxyType

from unlinkabledfl.sphinx.keylayers.protocol import KeyLayer
from unlinkabledfl.sphinx.keylayers.x25519 import BlindedX25519
from unlinkabledfl.sphinx.keylayers.x25519_kem import X25519Kem
from unlinkabledfl.sphinx.keylayers.xwing import XWing

__all__ = ["KEY_LAYERS", "KeyLayer"]

KEY_LAYERS: MappingProxyType[str, KeyLayer] = MappingProxyType(
    {layer.name: layer for layer in (BlindedX25519(), X25519Kem(), XWing())}
)
