"""Divide a dataset among nodes, by name: `iid`, `dirichlet`, `shards`.

A partition is one array of sample indices a node, ascending.

Invariant: every sample is in exactly one part, and no part is empty. The laws below may leave a node without any
sample; each such node, in order, is then given one sample, drawn at random, of the node that has most (the first of
these if there are several). The same generator state gives the same partition.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.learning.datasets.dataset import LabelArray

Indices = npt.NDArray[np.int64]
_KEY: Final = "learning.partition"


class Partitioner(Protocol):
    """One law by which samples fall to nodes."""

    def split(self, labels: LabelArray, *, nodes: int, rng: np.random.Generator) -> list[Indices]:
        """Return one array of indices a node."""


@dataclass(frozen=True, slots=True)
class Iid:
    """Deal the shuffled samples: every node sees the whole distribution, and sizes differ by one at most."""

    def split(self, labels: LabelArray, *, nodes: int, rng: np.random.Generator) -> list[Indices]:
        _check(labels, nodes)
        return _ordered(np.array_split(rng.permutation(len(labels)), nodes))


@dataclass(frozen=True, slots=True)
class Dirichlet:
    """For each class, divide its samples in shares drawn from a symmetric Dirichlet law with concentration `alpha` (α).

    A large α comes close to IID in everything but sizes; below 1 most of a class falls to few nodes.
    """

    alpha: float = 10.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.alpha) and self.alpha > 0.0):
            raise ConfigError(key=f"{_KEY}.alpha", got=self.alpha, takes="a number above 0, such as 10 or 0.5")

    def split(self, labels: LabelArray, *, nodes: int, rng: np.random.Generator) -> list[Indices]:
        _check(labels, nodes)
        parts: list[list[Indices]] = [[] for _ in range(nodes)]
        for label in np.unique(labels):
            samples = rng.permutation(np.flatnonzero(labels == label))
            shares = rng.dirichlet(np.full(nodes, self.alpha))
            # Rounding the running sum instead of each share: the counts add up, and none is off by more than one.
            cuts = np.rint(np.cumsum(shares)[:-1] * len(samples)).astype(np.int64)
            for part, piece in zip(parts, np.split(samples, cuts), strict=True):
                part.append(piece)
        return _ordered(_fill_empty([np.concatenate(part) for part in parts], rng))


@dataclass(frozen=True, slots=True)
class Shards:
    """Sort the samples by label, cut them into nodes × `per_node` shards of one size, and deal these at random.

    With two a node, most nodes know two classes (McMahan et al., 2017, section 3). Shards' sizes differ by one at most.
    """

    per_node: int = 2

    def __post_init__(self) -> None:
        if self.per_node < 1 or self.per_node != int(self.per_node):
            raise ConfigError(key=f"{_KEY}.per_node", got=self.per_node, takes="a whole number from 1")

    def split(self, labels: LabelArray, *, nodes: int, rng: np.random.Generator) -> list[Indices]:
        _check(labels, nodes)
        count = nodes * self.per_node
        if count > len(labels):
            raise ConfigError(
                key=f"{_KEY}.per_node",
                got=self.per_node,
                takes=f"at most {len(labels) // nodes} with {nodes} nodes and {len(labels)} samples",
            )
        shuffled = rng.permutation(len(labels))
        by_label = shuffled[np.argsort(labels[shuffled], kind="stable")]
        shards = np.array_split(by_label, count)
        dealt = rng.permutation(count).reshape(nodes, self.per_node)
        return _ordered([np.concatenate([shards[shard] for shard in hand]) for hand in dealt])


PARTITIONERS: Final[Mapping[str, type[Iid | Dirichlet | Shards]]] = {
    "iid": Iid,
    "dirichlet": Dirichlet,
    "shards": Shards,
}


def partitioner(name: str, **options: float) -> Partitioner:
    """Return the partitioner of this name, with its options: `alpha` of `dirichlet`, `per_node` of `shards`."""
    if name not in PARTITIONERS:
        raise ConfigError(key=_KEY, got=name, takes=f"one of {', '.join(PARTITIONERS)}")
    kind = PARTITIONERS[name]
    known = [field.name for field in fields(kind)]
    for option, value in options.items():
        if option not in known:
            takes = f"no such option: those of {name} are {', '.join(known)}" if known else f"no option with {name}"
            raise ConfigError(key=f"{_KEY}.{option}", got=value, takes=takes)
    make: Callable[..., Partitioner] = kind
    return make(**options)


def _check(labels: LabelArray, nodes: int) -> None:
    if not 1 <= nodes <= len(labels):
        raise ConfigError(
            key="nodes", got=nodes, takes=f"1 to {len(labels)}: every node needs one of the {len(labels)} samples"
        )


def _fill_empty(parts: list[Indices], rng: np.random.Generator) -> list[Indices]:
    for node, part in enumerate(parts):
        if not len(part):
            richest = max(range(len(parts)), key=lambda other: (len(parts[other]), -other))
            given = int(rng.integers(len(parts[richest])))
            parts[node] = parts[richest][given : given + 1]
            parts[richest] = np.delete(parts[richest], given)
    return parts


def _ordered(parts: Sequence[Indices]) -> list[Indices]:
    """Ascending within a part: whoever reads it from a mapped file reads forwards."""
    return [np.sort(part).astype(np.int64, copy=False) for part in parts]
