"""Noise that every two senders of one destination share: one adds it, the other subtracts it.

    a sends   values + n(ab) + n(ac)
    b sends   values − n(ab)         + n(bc)
    c sends   values         − n(ac) − n(bc)

Their sum is the sum of the values; a single one, or any two, looks like noise to the destination. The noise follows
from a secret of the pair and a label, so nobody sends it. It is a key stream rather than the output of a statistical
generator: the destination sees it through a model, and must not be able to work out how it goes on.

Its size is told in units of `StateLayout.typical_deviations`, which follow from the model's shapes: both ends of a pair
must reckon with the same size, and no node knows how far another's values have moved.

Invariant: the two ends of a pair make the same noise, to the bit, on every machine.
"""

from hashlib import blake2b
from math import sqrt

import numpy as np

from unlinkabledfl.fragments.arrays import Vector
from unlinkabledfl.sphinx.primitives import stream_xor

_KEY_BYTES = 32
_PERSON = b"udfl/noise/v1"
_WORD = np.dtype("<u2")
_LEVELS = 2**16
_DEVIATION = sqrt((_LEVELS**2 - 1) / 12)  # of a uniform choice among so many neighbouring whole numbers


def pair_noise(secret: bytes, label: bytes, count: int) -> Vector:
    """Return that many values of mean 0 and deviation 1, unrelated to each other and to those of any other label.

    They are uniform: a sender adds the noise of several pairs, and a sum of several such values is as good as normal.
    """
    key = blake2b(label, key=secret, digest_size=_KEY_BYTES, person=_PERSON).digest()
    words = np.frombuffer(stream_xor(key, bytes(count * _WORD.itemsize)), dtype=_WORD)
    noise: Vector = words.astype(np.float32)
    noise -= np.float32((_LEVELS - 1) / 2)
    noise *= np.float32(1.0 / _DEVIATION)
    return noise
