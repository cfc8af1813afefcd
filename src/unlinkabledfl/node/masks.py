"""`payload.obfuscation = "masks"`: a destination alone cannot tell senders by their values, and its mean is exact.

A fragment's values say a good deal about who trained them (docs/content-boundary.md). So each sender adds to what it
sends to a destination the noise that it shares with other senders to the same destination (`fragments.masks`). All of
it cancels in the mean over them.

With whom a sender shares noise changes with each round and destination: senders stand in a circle, in the order of
their ids, and everybody has partners at the same distances on both sides, which are drawn from a public hash. So both
ends of a pair know of it without a word, a sender's work does not grow with the federation, and a destination that
wants to take the noise off again must collude with all of a sender's partners. One of them is enough to name the
sender: it knows what it shares with whom, and finds that in the fragments.

A partner that is gone sends nothing that would cancel, so its noise is left out; but only as long as half of the
partners are left. Otherwise whoever cuts a node off from the others could make it send its values bare.

Invariant: if all senders to a destination send a range in a round, and none holds another for gone, their masks of that
range sum to zero.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from hashlib import shake_256
from math import sqrt
from struct import Struct

import numpy as np

from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.fragments import Grid, StateLayout, Vector, pair_noise
from unlinkabledfl.node.settings import PayloadSettings
from unlinkabledfl.sphinx import NodeId

_LABEL = b"unlinkabledfl/masks/v1"
_PLACE = Struct(">II")
_WORD = Struct(">I")


@dataclass(frozen=True, slots=True, kw_only=True)
class Masking:
    """What a participant must know of others to share noise with them."""

    senders_to: Callable[[NodeId], Sequence[NodeId]]
    """Who sends to this destination, ourselves included: public knowledge, from the topology."""
    pair_secret: Callable[[NodeId], bytes]
    """What this node shares with that one, and nobody else."""


class PairwiseMasks:
    """The masks of one sender. `gone` is a live view of the peers that are gone."""

    __slots__ = ("_circles", "_gone", "_grid", "_masking", "_own_id", "_peers", "_round", "_sizes")

    def __init__(
        self, *, own_id: NodeId, grid: Grid, sizes: Vector, peers: int, masking: Masking, gone: AbstractSet[NodeId]
    ) -> None:
        """`sizes` is the deviation of the whole mask, value by value; `peers` with how many others it is shared."""
        self._own_id = own_id
        self._grid = grid
        self._sizes = sizes
        self._peers = peers
        self._masking = masking
        self._gone = gone
        self._round = -1
        self._circles: dict[NodeId, tuple[NodeId, ...]] = {}

    def __call__(self, values: Vector, *, index: int, round_number: int, destination: NodeId) -> Vector:
        """Return the values with our mask for this destination."""
        partners = self._partners(round_number, destination)
        mask = np.zeros_like(values)
        label = _PLACE.pack(round_number, index) + destination
        for peer in self._present(partners):
            noise = pair_noise(self._masking.pair_secret(peer), label, values.size)
            if self._own_id < peer:
                mask += noise
            else:
                mask -= noise
        if partners:
            mask *= self._sizes[self._grid.ranges[index].slice]
            mask *= np.float32(1.0 / sqrt(len(partners)))
        mask += values
        return mask

    def _partners(self, round_number: int, destination: NodeId) -> tuple[NodeId, ...]:
        """Return with whom we share the noise of this round's fragments to this destination."""
        if round_number != self._round:
            self._round = round_number
            self._circles.clear()
        if destination not in self._circles:
            circle = sorted(self._masking.senders_to(destination))
            at = circle.index(self._own_id)
            distances = _distances(len(circle), self._peers, _PLACE.pack(round_number, 0) + destination)
            self._circles[destination] = tuple([circle[(at + distance) % len(circle)] for distance in distances])
        return self._circles[destination]

    def _present(self, partners: Sequence[NodeId]) -> Sequence[NodeId]:
        present = [peer for peer in partners if peer not in self._gone]
        return present if 2 * len(present) >= len(partners) else partners


def masks_for(
    settings: PayloadSettings,
    *,
    own_id: NodeId,
    layout: StateLayout,
    grid: Grid,
    masking: Masking | None,
    gone: AbstractSet[NodeId],
) -> PairwiseMasks | None:
    """Return the masks that the settings ask for, if they do."""
    if settings.obfuscation == "none":
        return None
    if masking is None:
        raise LocalProtocolError("masks need to know who else sends, and what is shared with whom")
    if layout.statistics:
        raise ConfigError(
            key="payload.obfuscation",
            got=settings.obfuscation,
            takes="none with a model that has normalization statistics",
            hint="where a fragment is lost, what is left of a mask would turn a running variance negative",
        )
    sizes = layout.typical_deviations() * np.float32(settings.obfuscation_scale)
    return PairwiseMasks(
        own_id=own_id, grid=grid, sizes=sizes, peers=settings.obfuscation_peers, masking=masking, gone=gone
    )


def _distances(senders: int, peers: int, label: bytes) -> list[int]:
    """Return at which distances around the circle everybody has partners: at most `peers`, as many on both sides."""
    if senders <= peers + 1:
        return list(range(1, senders))
    most = (senders - 1) // 2
    chosen: list[int] = []
    stream = 0
    while len(chosen) < peers // 2:
        (word,) = _WORD.unpack(shake_256(_LABEL + label + _WORD.pack(stream)).digest(_WORD.size))
        stream += 1
        distance = 1 + word % most
        if distance not in chosen:
            chosen.append(distance)
    return [*chosen, *(senders - distance for distance in chosen)]
