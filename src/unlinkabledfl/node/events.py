"""What a participant tells the driver around it, beyond what its mix already says.

The driver owns the learner, because training takes time and a sans-IO machine has none to wait. It answers
`TrainRequested` with `training_finished` or `training_failed`, and `ModelReady` with `evaluation_finished`. Everything
else is for whoever records the run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from unlinkabledfl.mixnet.events import PeerChanged, SendControl, SendPacket
from unlinkabledfl.node.learner import State

__all__ = ["Ending", "Finished", "ModelReady", "NodeEvent", "PhaseChanged", "RoundFinished", "TrainRequested"]


class Ending(StrEnum):
    """Why a participant stopped taking part in rounds."""

    DONE = "done"
    """All rounds are over. It goes on relaying until its driver stops it: others may still need it."""
    EXIT = "exit"
    """The schedule says that it leaves now: its driver closes its links."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainRequested:
    """Train for this round, then answer with the state that came of it."""

    round_number: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelReady:
    """The round's aggregate: load it, evaluate it where that is asked for, and answer either way."""

    round_number: int
    state: State
    evaluate: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseChanged:
    """What the participant does now, for whoever watches: `train`, `exchange`, `aggregate`, `evaluate`, `idle`."""

    round_number: int
    phase: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundFinished:
    """One round is over; `metrics` by the names in docs/metrics.md."""

    round_number: int
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """No more rounds."""

    ending: Ending


NodeEvent: TypeAlias = (
    SendPacket | SendControl | PeerChanged | TrainRequested | ModelReady | PhaseChanged | RoundFinished | Finished
)
