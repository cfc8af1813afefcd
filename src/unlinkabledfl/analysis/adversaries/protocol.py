"""What an adversary is: a trace in, a posterior over senders for every target out."""

from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from unlinkabledfl.analysis.trace import Trace

Posteriors: TypeAlias = npt.NDArray[np.float64]
"""A row a target, a column a node; rows sum to one."""


class Adversary(Protocol):
    """One attack. It is given a trace and nothing else: no oracle, no node, no seed."""

    @property
    def name(self) -> str:
        """What a board calls it."""
        ...

    def posteriors(self, trace: Trace) -> Posteriors:
        """Return what it believes of each target's sender; ConfigError for a deployment that it does not know."""
        ...


class Remembering:
    """Another adversary, which thinks about a trace once however often it is asked."""

    def __init__(self, adversary: Adversary) -> None:
        self._adversary = adversary
        self._known: tuple[Trace, Posteriors] | None = None

    @property
    def name(self) -> str:
        """That of the other."""
        return self._adversary.name

    def posteriors(self, trace: Trace) -> Posteriors:
        if self._known is None or self._known[0] is not trace:
            self._known = trace, self._adversary.posteriors(trace)
        return self._known[1]


def normalized(weights: Posteriors) -> Posteriors:
    """Return each row as a distribution; a row of zeros becomes uniform, the belief of who knows nothing."""
    totals = weights.sum(axis=1, keepdims=True)
    blank = ~(totals > 0.0)
    found: Posteriors = np.where(blank, 1.0 / weights.shape[1], weights / np.where(blank, 1.0, totals))
    return found
