"""The paper's entropies and its bound on linking, as functions of the parameters that they speak of.

Two kinds of number are easily confused. What is *counted* (`path_entropy_bits`, `relay_entropy_bits`) says how many
explanations a trace admits if all of them are equally likely; it describes K and O, not an adversary. What is a
*posterior* (`shannon_bits`, `min_bits`) is computed from what some adversary believes about one packet, and the smaller
of the two, min-entropy, is what bounds its best guess.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unlinkabledfl.errors import ConfigError

Posterior = npt.NDArray[np.float64]
"""One probability for each node; they sum to one."""


def path_entropy_bits(path_length: int, outbox_size: int) -> float:
    """Return H_path = log2 Σ O^k over k = 1 … K: shuffled paths of up to K stages, counted."""
    _check(path_length, outbox_size)
    return math.log2(sum(outbox_size**stages for stages in range(1, path_length + 1)))


def relay_entropy_bits(hidden_shuffles: int, outbox_size: int) -> float:
    """Return H_relay = h·log2 O: what h shuffles that nobody watches from inside add to a trajectory's min-entropy."""
    _check(1, outbox_size)
    if hidden_shuffles < 0:
        raise ConfigError(key="hidden_shuffles", got=hidden_shuffles, takes="a whole number from 0")
    return hidden_shuffles * math.log2(outbox_size)


def local_relay_entropy_bits(path_length: int, outbox_size: int) -> float:
    """Return H_relay^loc: what one relay does with a packet, absorb it (1/K) or forward it from one of O places."""
    _check(path_length, outbox_size)
    absorbed = 1.0 / path_length
    forwarded = (path_length - 1) / (path_length * outbox_size)
    return -absorbed * math.log2(absorbed) - outbox_size * _times_log(forwarded)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkingBound:
    """Theorem 1 for one packet: p_link ≤ min(1, γ_T · 2^−H∞(R_K | T) · O^−h)."""

    multiplicity: int
    """γ_T: the most trajectories that any one candidate sender has."""
    route_bits: float
    """H∞(R_K | T): min-entropy left in the route once the trace is known."""
    hidden_shuffles: int
    """h: shuffles on the least hidden trajectory that no compromised relay reports."""
    outbox_size: int

    @property
    def unclipped(self) -> float:
        """The product itself; above one it bounds nothing."""
        bits = self.route_bits + relay_entropy_bits(self.hidden_shuffles, self.outbox_size)
        return self.multiplicity * math.pow(2.0, -bits)

    @property
    def value(self) -> float:
        """What the adversary's best guess is at most worth."""
        return min(1.0, self.unclipped)

    @property
    def is_vacuous(self) -> bool:
        """Whether it says nothing: each sender has as many trajectories as there are bits to hide them."""
        return self.unclipped >= 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompromiseRegime:
    """The corollary's idealized calculation: every relay of a path is compromised with probability c by itself."""

    path_length: int
    share: float

    def __post_init__(self) -> None:
        _check(self.path_length, 1)
        if not 0.0 <= self.share <= 1.0:
            raise ConfigError(key="compromised_share", got=self.share, takes="a share from 0 to 1")

    @property
    def all_compromised(self) -> float:
        """c^K: the probability that no shuffle stays hidden."""
        return float(self.share**self.path_length)

    @property
    def hidden_shuffles_mean(self) -> float:
        """K·(1 − c)."""
        return self.path_length * (1.0 - self.share)

    def all_relays_compromised(self, nodes: int) -> float:
        """Return the same for real routes: K − 1 different relays, a fixed number of compromised nodes among N.

        The mean over everybody whom the adversary might own but the sender, whatever the graph: relays of one route
        are different nodes. Of one set of compromised nodes, a graph decides (`bound.relays_owned`).
        """
        owned, relays = round(self.share * nodes), self.path_length - 1
        return math.perm(owned, relays) / math.perm(nodes - 1, relays) if relays <= min(owned, nodes - 1) else 0.0


def shannon_bits(posterior: Posterior) -> float:
    """Return the Shannon entropy of what an adversary believes."""
    positive = posterior[posterior > 0.0]
    return float(-(positive * np.log2(positive)).sum()) + 0.0


def min_bits(posterior: Posterior) -> float:
    """Return the min-entropy of what an adversary believes: minus the logarithm of its best guess."""
    return -math.log2(float(posterior.max())) + 0.0


def krum_feasible(candidates: int, byzantine: int) -> bool:
    """Return whether a range has more than 2B + 2 candidates, which the robustness theorem asks for."""
    return candidates > 2 * byzantine + 2


def krum_budget(candidates: int) -> int:
    """Return the most Byzantine slices that a range of so many candidates tolerates; −1 where it tolerates none."""
    return max((candidates - 3) // 2, -1)


def _times_log(probability: float) -> float:
    return probability * math.log2(probability) if probability > 0.0 else 0.0


def _check(path_length: int, outbox_size: int) -> None:
    if path_length < 1:
        raise ConfigError(key="mixnet.path_length", got=path_length, takes="a whole number from 1")
    if outbox_size < 1:
        raise ConfigError(key="mixnet.outbox_size", got=outbox_size, takes="a whole number from 1")
