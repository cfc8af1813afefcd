"""One training recipe: what is tuned, and what it may be.

A schedule runs over the steps of all rounds, not over those of one: from `steady_rounds`, until which the rate stays
whole, to `rounds`, after which it stays at its end.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from unlinkabledfl.errors import ConfigError

__all__ = ["Epochs", "OptimizerName", "Schedule", "Seconds", "Steps", "Stop", "TrainingSettings"]


class OptimizerName(StrEnum):
    """How a gradient changes the model."""

    SGD = "sgd"
    ADAMW = "adamw"


class Schedule(StrEnum):
    """How the learning rate falls over all rounds, from its full value to `final_rate` of it."""

    CONSTANT = "constant"
    LINEAR = "linear"
    COSINE = "cosine"


def _check_positive(key: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise ConfigError(key=f"training.{key}", got=value, takes="more than 0")


@dataclass(frozen=True, slots=True)
class Epochs:
    """Stop a round when every local sample was seen this many times."""

    count: int = 1

    def __post_init__(self) -> None:
        _check_positive("epochs", self.count)


@dataclass(frozen=True, slots=True)
class Steps:
    """Stop a round after this many batches, however many samples there are."""

    count: int

    def __post_init__(self) -> None:
        _check_positive("steps", self.count)


@dataclass(frozen=True, slots=True)
class Seconds:
    """Stop a round when this much time has passed. How far training gets is then up to the machine."""

    limit_s: float

    def __post_init__(self) -> None:
        _check_positive("seconds", self.limit_s)


Stop = Epochs | Steps | Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings:
    """A recipe. docs/decisions/0005-training-recipe.md says where the defaults come from.

    `centralize` takes from the gradient of each filter or row of weights its mean (Yong et al., arXiv:2004.01461):
    activations after a rectifier are all positive, and what they have in common would dominate every step.
    """

    optimizer: OptimizerName = OptimizerName.SGD
    learning_rate: float = 0.01
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 0.0
    batch_size: int = 8
    stop: Stop = Epochs(1)
    schedule: Schedule = Schedule.CONSTANT
    rounds: int = 10
    steady_rounds: float = 0.0
    final_rate: float = 0.0
    warmup_rounds: float = 0.0
    label_smoothing: float = 0.0
    centralize: bool = False
    flip: bool = False
    shift_pixels: int = 0

    def __post_init__(self) -> None:
        for key in ("learning_rate", "batch_size", "rounds"):
            _check_positive(key, getattr(self, key))
        for key in ("momentum", "label_smoothing"):
            if not 0.0 <= getattr(self, key) < 1.0:
                raise ConfigError(key=f"training.{key}", got=getattr(self, key), takes="a number from 0 to below 1")
        for key in ("weight_decay", "steady_rounds", "warmup_rounds", "shift_pixels"):
            if not 0.0 <= getattr(self, key) < math.inf:
                raise ConfigError(key=f"training.{key}", got=getattr(self, key), takes="0 or more")
        if self.steady_rounds >= self.rounds:
            takes = f"less than training.rounds, which is {self.rounds}"
            raise ConfigError(key="training.steady_rounds", got=self.steady_rounds, takes=takes)
        if not 0.0 <= self.final_rate <= 1.0:
            raise ConfigError(key="training.final_rate", got=self.final_rate, takes="a fraction from 0 to 1")
        if self.nesterov and (self.momentum == 0.0 or self.optimizer is not OptimizerName.SGD):
            raise ConfigError(key="training.nesterov", got=True, takes="true only for sgd with momentum")

    def rate_at(self, rounds_done: float) -> float:
        """Return the learning rate after that many rounds; the fraction counts the steps of a round."""
        falling = (rounds_done - self.steady_rounds) / (self.rounds - self.steady_rounds)
        progress = min(max(falling, 0.0), 1.0)
        match self.schedule:
            case Schedule.CONSTANT:
                part = 1.0
            case Schedule.LINEAR:
                part = self.final_rate + (1.0 - self.final_rate) * (1.0 - progress)
            case Schedule.COSINE:
                part = self.final_rate + (1.0 - self.final_rate) * 0.5 * (1.0 + math.cos(math.pi * progress))
            case _:
                assert_never(self.schedule)
        if rounds_done < self.warmup_rounds:
            part *= rounds_done / self.warmup_rounds
        return self.learning_rate * part
