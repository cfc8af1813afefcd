"""What an adversary sees of a network, apart from what is true of it.

A `Trace` is the whole input of every adversary: crossings of links with their times and wire hashes, what compromised
relays link, whom to find (the targets), and the public settings. An `Oracle` holds the answers; only scoring reads it.
The two are made apart and stored in separate files, so that an adversary cannot use by mistake what it must not know.

Invariant: no field of a `Trace` depends on an honest node's secrets, except through what crossed a link.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.mixnet.journal import ACKNOWLEDGEMENT, DROP, LOOP, MESSAGE
from unlinkabledfl.mixnet.mixers import MixerSettings
from unlinkabledfl.mixnet.topology import Topology

Times = npt.NDArray[np.float64]
Nodes = npt.NDArray[np.int32]
Indices = npt.NDArray[np.int64]

PACKET_KINDS = (MESSAGE, DROP, LOOP, ACKNOWLEDGEMENT)
"""What packets are, by the numbers in `Packets.kind`."""

UNKNOWN = -1
"""Of a crossing that did not arrive, or that no compromised relay can link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicSettings:
    """What everybody knows of the deployment under attack."""

    topology: Topology
    route: str
    """`direct`, or the name of the route strategy."""
    path_length: int
    mixer: MixerSettings
    destinations: tuple[tuple[int, ...], ...]
    """To whom each node writes."""
    own_rate_per_s: float
    """Packets that a node makes itself, cover included and acknowledgements not, as its settings say."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Crossings:
    """Every packet on every link, in the order of leaving."""

    left_at_s: Times
    arrived_at_s: Times
    """NaN where it was lost."""
    source: Nodes
    target: Nodes
    size_bytes: Nodes
    wire_hash: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.left_at_s)

    def __post_init__(self) -> None:
        """ConfigError for columns that cannot belong together, as those of a damaged file."""
        lengths = {len(getattr(self, name)) for name in self.__slots__}
        if len(lengths) > 1:
            raise ConfigError(key="trace.crossings", got=sorted(lengths), takes="columns of one length")
        if not np.isfinite(self.left_at_s).all() or np.isinf(self.arrived_at_s).any():
            raise ConfigError(key="trace.left_at_s", got="an instant that is none", takes="seconds")
        if len(self) and not (np.diff(self.left_at_s) >= 0.0).all():
            hint = "sort the rows by left_at_s"
            raise ConfigError(key="trace.left_at_s", got="times that go back", takes="the order of leaving", hint=hint)
        if (self.arrived_at_s < self.left_at_s).any():
            raise ConfigError(key="trace.arrived_at_s", got="an arrival before its departure", takes="times that pass")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """What the adversary is given."""

    settings: PublicSettings
    crossings: Crossings
    targets: Indices
    """Crossings that delivered a fragment, whose sender is sought."""
    compromised: tuple[int, ...]
    """Nodes of the adversary's own. What they send themselves is not among the targets."""
    before: Indices
    """For every crossing that left a compromised relay: the crossing it came from; UNKNOWN: the relay made it."""

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return self.settings.topology.nodes

    def __post_init__(self) -> None:
        crossings = len(self.crossings)
        if len(self.targets) and not (self.targets.min() >= 0 and self.targets.max() < crossings):
            raise ConfigError(key="trace.targets", got="a target outside the trace", takes=f"0 to {crossings - 1}")
        if len(self.before) != crossings:
            raise ConfigError(key="trace.before", got=len(self.before), takes=f"an entry a crossing: {crossings}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Oracle:
    """What is true of the targets, in their order."""

    origin: Nodes
    path: tuple[tuple[int, ...], ...]
    """The nodes after the origin; the destination is last."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Packets:
    """What is true of every packet whose first crossing was seen: fragments, cover and acknowledgements."""

    first: Indices
    """Its first crossing."""
    last: Indices
    """The last one that is known: where it ended, or was lost."""
    origin: Nodes
    kind: npt.NDArray[np.int8]
    path: npt.NDArray[np.int64]
    """A row a packet: the nodes after the origin, then UNKNOWN."""

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recording:
    """A trace with all that any relay could link, and the truth: what a recorder makes of a run."""

    settings: PublicSettings
    crossings: Crossings
    targets: Indices
    before: Indices
    """For every crossing the one it came from; UNKNOWN: its source made it."""
    oracle: Oracle
    groups: Indices | None = None
    """For every target the number of the model that it is a part of, where that is known."""
    packets: Packets | None = None

    def of_targets(self, rows: Indices) -> "Recording":
        """Return the same recording with only these of its targets, in this order."""
        oracle = Oracle(origin=self.oracle.origin[rows], path=tuple(self.oracle.path[row] for row in rows))
        groups = None if self.groups is None else self.groups[rows]
        return replace(self, targets=self.targets[rows], oracle=oracle, groups=groups)

    def observed(self, *, compromised: Sequence[int] = ()) -> tuple[Trace, Oracle]:
        """Return what an adversary sees who also owns these nodes, and the answers.

        What owned nodes sent themselves is no secret to it, so those targets are none.
        """
        owned = np.asarray(compromised, dtype=np.int64)
        sought = np.flatnonzero(~np.isin(self.oracle.origin, owned))
        trace = Trace(
            settings=self.settings,
            crossings=self.crossings,
            targets=self.targets[sought],
            compromised=tuple(sorted(compromised)),
            before=np.where(np.isin(self.crossings.source, owned), self.before, UNKNOWN),
        )
        oracle = Oracle(origin=self.oracle.origin[sought], path=tuple(self.oracle.path[index] for index in sought))
        return trace, oracle
