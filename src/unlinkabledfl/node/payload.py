"""One round's model on its way into fragments: encoded a range at a time, when the first destination is to get it.

All destinations get the same bytes of a range, so it is encoded once and kept until the last one took it. With a
`Disguise`, which changes values differently for each destination, every fragment is encoded by itself.

The noise of each fragment comes from a generator of its own, seeded from the node's entropy. Rounding offsets travel in
the open towards the receiver; from one generator for all, they would tell which fragments have the same sender.

Invariant: no range is encoded twice for the same destination, and what is kept is at most one fragment a range.
"""

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.fragments import ErrorFeedback, FragmentDecoder, FragmentEncoder, Vector
from unlinkabledfl.sphinx import Entropy, NodeId

_SEED_BYTES = 16


class Disguise(Protocol):
    """Changes the values of a range before they are encoded for one destination."""

    def __call__(self, values: Vector, *, index: int, round_number: int, destination: NodeId) -> Vector:
        """Return as many finite values as given, in a fresh array."""
        ...


class Payload:
    """The model that is being sent."""

    __slots__ = (
        "_decoder",
        "_disguise",
        "_encoded",
        "_encoder",
        "_entropy",
        "_feedback",
        "_round",
        "_takers",
        "_vector",
    )

    def __init__(
        self,
        *,
        encoder: FragmentEncoder,
        decoder: FragmentDecoder,
        entropy: Entropy,
        error_feedback: bool = False,
        disguise: Disguise | None = None,
    ) -> None:
        if error_feedback and disguise is not None:
            raise ConfigError(
                key="payload.error_feedback",
                got=True,
                takes="false where destinations get different fragments",
                hint="there is not one error that all of them could be owed",
            )
        self._encoder = encoder
        self._decoder = decoder
        self._entropy = entropy
        self._feedback = ErrorFeedback(decoder.grid.values) if error_feedback else None
        self._disguise = disguise
        self._vector: Vector | None = None
        self._round = 0
        self._encoded: dict[tuple[int, NodeId | None], bytes] = {}
        self._takers: dict[int, int] = {}

    def begin(self, vector: Vector, *, round_number: int, ranges: Iterable[int], takers: int) -> None:
        """Send this vector from now on: each of these ranges to so many destinations. It is not changed."""
        self._vector = vector if self._feedback is None else self._feedback.compensate(vector)
        self._round = round_number
        self._encoded.clear()
        self._takers = dict.fromkeys(ranges, takers)

    def generator(self) -> np.random.Generator:
        """Return a fresh generator of noise."""
        return np.random.Generator(np.random.PCG64(int.from_bytes(self._entropy(_SEED_BYTES))))

    def is_ready(self, index: int, destination: NodeId) -> bool:
        """Whether `fragment` would be a look-up."""
        return self._key(index, destination) in self._encoded

    def fragment(self, index: int, destination: NodeId) -> bytes:
        """Return the message with range `index` for this destination."""
        key = self._key(index, destination)
        data = self._encoded.get(key)
        if data is None:
            data = self._encoded[key] = self._encode(index, destination)
        return data

    def taken(self, index: int, destination: NodeId) -> None:
        """The destination's fragment is under way, or will never be: it is not asked for again."""
        left = self._takers[index] = self._takers[index] - 1
        if left == 0 or self._disguise is not None:
            self._encoded.pop(self._key(index, destination), None)
        if left == 0:
            del self._takers[index]
        if not self._takers:
            self._vector = None

    def _key(self, index: int, destination: NodeId) -> tuple[int, NodeId | None]:
        return index, None if self._disguise is None else destination

    def _encode(self, index: int, destination: NodeId) -> bytes:
        vector = self._vector
        if vector is None:
            raise LocalProtocolError("every fragment of this model has been taken")
        if self._disguise is not None:
            values = vector[self._decoder.grid.ranges[index].slice]
            values = self._disguise(values, index=index, round_number=self._round, destination=destination)
            return self._encoder.encode_values(values, index, round_number=self._round, rng=self.generator())
        data = self._encoder.encode_range(vector, index, round_number=self._round, rng=self.generator())
        if self._feedback is not None:
            self._feedback.record(vector, self._decoder.decode(data))
        return data
