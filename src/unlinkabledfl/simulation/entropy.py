"""Entropy that a seed decides: a stream of its own for every name.

A stream is SHAKE256 of (key, counter), where the key is BLAKE2b of the seed and the name. Streams with different names
are independent, so a node that draws once more does not disturb any other. A stream keeps 256 bytes at most: ten
thousand of them weigh some megabytes, where ten thousand Mersenne twisters weigh 25.
"""

import random
from hashlib import blake2b, shake_256

_BLOCK_BYTES = 256


class SeededEntropy:
    """Calling it with n returns the next n bytes of the stream that belongs to (seed, name)."""

    __slots__ = ("_block", "_counter", "_key", "_used")

    def __init__(self, seed: int, name: str) -> None:
        self._key = derive_key(seed, name)
        self._counter = 0
        self._block = b""
        self._used = 0

    def __call__(self, n: int) -> bytes:
        """Return the next n bytes."""
        start = self._used
        end = start + n
        if end <= len(self._block):
            self._used = end
            return self._block[start:end]
        if n >= _BLOCK_BYTES:
            return self._generate(n)
        # What is left of the old block is discarded: stitching two blocks together costs more than it saves.
        self._block = self._generate(_BLOCK_BYTES)
        self._used = n
        return self._block[:n]

    def _generate(self, n: int) -> bytes:
        self._counter += 1
        return shake_256(self._key + self._counter.to_bytes(8)).digest(n)


def derive_key(seed: int, name: str) -> bytes:
    """Return 32 bytes for this seed and name; they are a seed, never a secret."""
    return blake2b(f"{seed}/{name}".encode(), digest_size=32, person=b"virtual-time").digest()


def node_entropy(seed: int, *, index: int, serial: int) -> SeededEntropy:
    """Return the stream of one life of one node."""
    return SeededEntropy(seed, f"node/{index}/{serial}")


def chances(seed: int, name: str) -> random.Random:
    """Return a generator for what the world decides: losses, jitter, workloads.

    A world has a handful of these, not one a node, so the Mersenne twister's speed counts and its size does not.
    """
    return random.Random(int.from_bytes(derive_key(seed, name)))
