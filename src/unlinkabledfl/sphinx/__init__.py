"""The packet: bytes in, bytes out. docs/packet.md is its specification."""

from unlinkabledfl.sphinx.codec import Sphinx
from unlinkabledfl.sphinx.geometry import MAX_DELAY_US, Geometry
from unlinkabledfl.sphinx.keylayers.x25519 import accepts_x25519
from unlinkabledfl.sphinx.surb import Surb, SurbKeys
from unlinkabledfl.sphinx.types import (
    Deliver,
    Entropy,
    Forward,
    Hop,
    NodeId,
    PrivateKey,
    ReplayFilter,
    Reply,
    Unwrapped,
)

__all__ = [
    "MAX_DELAY_US",
    "Deliver",
    "Entropy",
    "Forward",
    "Geometry",
    "Hop",
    "NodeId",
    "PrivateKey",
    "ReplayFilter",
    "Reply",
    "Sphinx",
    "Surb",
    "SurbKeys",
    "Unwrapped",
    "accepts_x25519",
]
