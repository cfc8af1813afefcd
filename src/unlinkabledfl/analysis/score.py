"""How well an adversary did: the only place where posteriors meet the truth.

Accuracy is that of its best guess; where several senders are equally likely it draws one, so a tie of four counts a
quarter. Targets of one sender resemble each other, so the interval is that of a mean over senders as clusters, not over
targets, which would make it look narrower than it is.

An adversary is calibrated if what it claims comes true as often as it says: of all targets for which its best guess has
probability 0.3, three in ten are right. One that is not has drawn wrong conclusions, and a better one exists.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from unlinkabledfl.analysis.adversaries.protocol import Posteriors
from unlinkabledfl.analysis.trace import Nodes, Oracle
from unlinkabledfl.errors import ConfigError

_LEVEL = 0.975
_TIE = 1e-12
_BINS = 10
HISTOGRAM_BINS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Targets for which the adversary claimed about the same."""

    claimed: float
    """The mean probability of its best guess."""
    hit_rate: float
    targets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One adversary against one trace."""

    adversary: str
    targets: int
    accuracy: float
    ci_low: float
    ci_high: float
    p_link_mean: float
    """What it believed of its best guesses, on average."""
    baseline: float
    """Guessing among the senders that are possible given route and last hop: the mean of 1/|U|."""
    published_baseline: float
    """Guessing among all nodes within K hops, as the published evaluation counts."""
    shannon_bits_mean: float
    min_bits_mean: float
    calibration: tuple[Claim, ...]
    calibration_error: float
    """How far claims and hit rates lie apart, on average over targets."""
    best_counts: tuple[int, ...]
    """How many targets have a best guess of about so much probability: a histogram from 0 to 1."""
    truth_counts: tuple[int, ...]
    """The same of the probability given to the true sender."""

    @property
    def advantage(self) -> float:
        """ε: what its best guesses are worth above a uniform guess among possible senders."""
        return self.p_link_mean - self.baseline

    def document(self) -> dict[str, Any]:
        """Return it as boards print it."""
        return {
            "adversary": self.adversary,
            "accuracy": self.accuracy,
            "ci_low": self.ci_low,
            "ci_high": self.ci_high,
            "baseline": self.baseline,
            "published_baseline": self.published_baseline,
            "p_link_mean": self.p_link_mean,
            "advantage": self.advantage,
            "shannon_bits": self.shannon_bits_mean,
            "min_bits": self.min_bits_mean,
            "calibration_error": self.calibration_error,
            "calibration": [
                {"claimed": claim.claimed, "hit_rate": claim.hit_rate, "targets": claim.targets}
                for claim in self.calibration
            ],
            "posterior": {"best": list(self.best_counts), "true_sender": list(self.truth_counts)},
            "targets": self.targets,
        }


def score(
    adversary: str, posteriors: Posteriors, oracle: Oracle, *, feasible: Posteriors, published_candidates: Nodes
) -> Score:
    """Score beliefs against the truth. `feasible` is positive where a sender is possible at all."""
    targets = len(oracle.origin)
    if posteriors.shape != feasible.shape or len(posteriors) != targets or not targets:
        raise ConfigError(
            key="attack.targets", got=posteriors.shape, takes=f"a posterior for each of {targets} targets"
        )
    best = posteriors.max(axis=1)
    tied = posteriors >= best[:, None] - _TIE
    hits = tied[np.arange(targets), oracle.origin] / tied.sum(axis=1)
    half = _half_width(hits, oracle.origin)
    accuracy = float(hits.mean())
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(posteriors > 0.0, posteriors * np.log2(posteriors), 0.0)
    calibration = _calibration(best, hits)
    return Score(
        adversary=adversary,
        targets=targets,
        accuracy=accuracy,
        ci_low=max(0.0, accuracy - half),
        ci_high=min(1.0, accuracy + half),
        p_link_mean=float(best.mean()),
        baseline=float((1.0 / np.count_nonzero(feasible, axis=1)).mean()),
        published_baseline=float((1.0 / published_candidates).mean()),
        shannon_bits_mean=float(-terms.sum(axis=1).mean()) + 0.0,
        min_bits_mean=float(-np.log2(best).mean()) + 0.0,
        calibration=calibration,
        best_counts=_histogram(best),
        truth_counts=_histogram(posteriors[np.arange(targets), oracle.origin]),
        calibration_error=sum(abs(claim.claimed - claim.hit_rate) * claim.targets for claim in calibration) / targets,
    )


def _histogram(probabilities: Posteriors) -> tuple[int, ...]:
    counts, _ = np.histogram(np.clip(probabilities, 0.0, 1.0), bins=HISTOGRAM_BINS, range=(0.0, 1.0))
    return tuple(counts.tolist())


def _half_width(hits: Posteriors, clusters: Nodes) -> float:
    """Return half of a 95% interval of the mean, whose terms may depend on each other within a cluster."""
    names, which = np.unique(clusters, return_inverse=True)
    count = len(names)
    if count < 2:  # noqa: PLR2004 -- one cluster says nothing about others
        return 1.0
    residuals = np.bincount(which, weights=hits - hits.mean(), minlength=count)
    deviation = math.sqrt(float((residuals**2).sum()) * count / (count - 1)) / len(hits)
    return _student(count - 1) * deviation


def _student(freedom: int) -> float:
    """Return Student's t at 0.975, by the first terms of its expansion around the normal quantile."""
    z = NormalDist().inv_cdf(_LEVEL)
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def _calibration(best: Posteriors, hits: Posteriors) -> tuple[Claim, ...]:
    """Return claims in bins of about equally many targets, in ascending order of what was claimed."""
    order = np.argsort(best, kind="stable")
    parts = [part for part in np.array_split(order, min(_BINS, len(order))) if len(part)]
    return tuple(
        Claim(claimed=float(best[part].mean()), hit_rate=float(hits[part].mean()), targets=len(part)) for part in parts
    )
