"""Disguises of a sender's values, by name: the one that nodes offer, and those that lost against it.

| name | what a destination gets | all of a sender's noise |
|---|---|---|
| `masks` | noise shared in pairs with other senders to it (`node.masks`) | cancels at every destination |
| `zero_sum` | noise of its own | cancels over the sender's destinations |
| `noise` | noise of its own | does not cancel |
| `same_noise` | the same noise as all: what differential privacy of an update comes to | does not cancel |
| `over_time` | the same as all; the noise of a round is taken off again in the next | cancels over two rounds |

The scale of `masks` counts in typical weights, as both ends of a pair must know it; that of the others in deviations of
the sender's own update, range by range. Why the others lost: docs/decisions/0011-masks.md.
"""

from dataclasses import dataclass
from hashlib import shake_256
from struct import Struct
from typing import Final, Protocol

import numpy as np

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.fragments import Grid, StateLayout, Vector
from unlinkabledfl.node.masks import Masking, PairwiseMasks
from unlinkabledfl.node.settings import OBFUSCATION_PEERS
from unlinkabledfl.sphinx import NodeId

__all__ = ["NAMES", "Disguised", "Party", "disguise_by_name"]

NAMES: Final = ("none", "masks", "zero_sum", "noise", "same_noise", "over_time")
_SEED = Struct(">II")


class Disguised(Protocol):
    """One sender's disguise."""

    def begin(self, vector: Vector, before: Vector) -> None:
        """A round's model, and the one that its training began with."""
        ...

    def __call__(self, values: Vector, *, index: int, round_number: int, destination: NodeId) -> Vector:
        """Return what this destination gets instead of the values."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """One sender and what it knows of others."""

    own_id: NodeId
    senders_to: dict[NodeId, tuple[NodeId, ...]]
    destinations: tuple[NodeId, ...]
    grid: Grid
    layout: StateLayout
    seed: int


def disguise_by_name(name: str, scale: float, party: Party) -> Disguised | None:
    """Return a disguise of that scale; None for `none`."""
    match name:
        case "none":
            return None
        case "masks":
            return _Masks(party, scale)
        case "zero_sum":
            return _ZeroSum(party, scale)
        case "noise" | "same_noise" | "over_time":
            return _Noise(party, scale, name)
        case _:
            raise ConfigError(key="obfuscation", got=name, takes=", ".join(NAMES))


class _Masks:
    """`masks`, as nodes apply them."""

    def __init__(self, party: Party, scale: float) -> None:
        own_id = party.own_id
        self._masks = PairwiseMasks(
            own_id=own_id,
            grid=party.grid,
            sizes=party.layout.typical_deviations() * np.float32(scale),
            peers=OBFUSCATION_PEERS,
            masking=Masking(
                senders_to=party.senders_to.__getitem__,
                pair_secret=lambda peer: _secret(party.seed, *sorted((own_id, peer))),
            ),
            gone=frozenset(),
        )

    def begin(self, vector: Vector, before: Vector) -> None:
        pass

    def __call__(self, values: Vector, *, index: int, round_number: int, destination: NodeId) -> Vector:
        return self._masks(values, index=index, round_number=round_number, destination=destination)


class _ZeroSum:
    """`zero_sum`: masks once more, with a sender's destinations in the place of a destination's senders."""

    def __init__(self, party: Party, scale: float) -> None:
        self._party = party
        self._scale = scale
        self._masks: dict[NodeId, PairwiseMasks] = {}

    def begin(self, vector: Vector, before: Vector) -> None:
        party = self._party
        sizes = _deviations(vector - before, party.grid) * np.float32(self._scale)
        self._masks = {destination: self._toward(destination, sizes) for destination in party.destinations}

    def __call__(self, values: Vector, *, index: int, round_number: int, destination: NodeId) -> Vector:
        # All destinations must be in one circle, so it has the sender's name.
        masks = self._masks[destination]
        return masks(values, index=index, round_number=round_number, destination=self._party.own_id)

    def _toward(self, destination: NodeId, sizes: Vector) -> PairwiseMasks:
        party = self._party
        masking = Masking(
            senders_to=lambda _sender: party.destinations,
            pair_secret=lambda other: _secret(party.seed, party.own_id, *sorted((destination, other))),
        )
        return PairwiseMasks(
            own_id=destination,
            grid=party.grid,
            sizes=sizes,
            peers=len(party.destinations),
            masking=masking,
            gone=frozenset(),
        )


class _Noise:
    """`noise`, `same_noise` and `over_time`: normal, and each sender's own affair."""

    def __init__(self, party: Party, scale: float, name: str) -> None:
        self._grid = party.grid
        self._scale = np.float32(scale)
        self._name = name
        self._rng = np.random.default_rng(int.from_bytes(_secret(party.seed, party.own_id)))
        self._deviations = np.zeros(party.grid.values, dtype=np.float32)
        self._shared = self._deviations
        self._owed = self._deviations

    def begin(self, vector: Vector, before: Vector) -> None:
        self._deviations = _deviations(vector - before, self._grid) * self._scale
        fresh = self._draw(vector.size) * self._deviations
        self._shared = fresh - self._owed if self._name == "over_time" else fresh
        self._owed = fresh

    def __call__(self, values: Vector, *, index: int, round_number: int, destination: NodeId) -> Vector:
        place = self._grid.ranges[index].slice
        if self._name != "noise":
            return values + self._shared[place]
        return values + self._draw(values.size) * self._deviations[place]

    def _draw(self, count: int) -> Vector:
        return self._rng.standard_normal(count, dtype=np.float32)


def _deviations(update: Vector, grid: Grid) -> Vector:
    """Return the deviation of an update over each range, for each of its values."""
    sizes = np.empty_like(update)
    for place in grid.ranges:
        sizes[place.slice] = update[place.slice].std()
    return sizes


def _secret(seed: int, *names: NodeId) -> bytes:
    return shake_256(b"".join([_SEED.pack(seed, len(names)), *names])).digest(32)
