"""What fragments of other rounds are worth.

| policy | older than ours | newer than ours |
|---|---|---|
| `drop` (default) | refused | held for their round |
| `keep` | counts like the others | counts now |
| `weight` | counts with decay^age | counts now |

Beyond the window, in either direction, a fragment is refused whatever the policy: that bounds what peers can make us
hold.
"""

from dataclasses import dataclass
from enum import StrEnum

from unlinkabledfl.errors import ConfigError, FragmentError


class Policy(StrEnum):
    """By name, as in a scenario."""

    DROP = "drop"
    KEEP = "keep"
    WEIGHT = "weight"


@dataclass(frozen=True, slots=True, kw_only=True)
class Staleness:
    """A policy and its window, in rounds."""

    policy: Policy = Policy.DROP
    behind: int = 2
    ahead: int = 2
    decay: float = 0.5

    def __post_init__(self) -> None:
        for key in ("behind", "ahead"):
            if getattr(self, key) < 0:
                raise ConfigError(key=f"staleness.{key}", got=getattr(self, key), takes="a whole number from 0")
        if not 0.0 < self.decay <= 1.0:
            raise ConfigError(key="staleness.decay", got=self.decay, takes="a factor above 0, up to 1")

    def check(self, round_number: int, *, current: int) -> None:
        """Refuse a round outside the window."""
        behind = 0 if self.policy is Policy.DROP else self.behind
        if round_number < current - behind:
            raise FragmentError("stale_round", f"round {round_number} in round {current}")
        if round_number > current + self.ahead:
            raise FragmentError("future_round", f"round {round_number} in round {current}")

    def weight(self, round_number: int, *, current: int) -> float:
        """Return what a fragment inside the window counts now; 0: it waits."""
        age = current - round_number
        if age < 0:
            return 0.0 if self.policy is Policy.DROP else 1.0
        return float(self.decay**age) if self.policy is Policy.WEIGHT else 1.0
