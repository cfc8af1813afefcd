"""One federation, attacked: figures of every attack at every ratio."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from statistics import fmean
from typing import Any, Final

import numpy as np

from unlinkabledfl.analysis.content import Attack, persistent_attack, published_attack, score_buckets
from unlinkabledfl.experiment.content.federation import Federated, federate
from unlinkabledfl.experiment.content.setting import Setting

__all__ = ["ATTACKS", "RATIOS", "measure"]

RATIOS: Final = (0.10, 0.25, 0.50, 0.75, 1.00)
ATTACKS: Final[dict[str, Attack]] = {"published": published_attack, "persistent": persistent_attack}


def measure(setting: Setting, *, ratios: Sequence[float] = RATIOS) -> dict[str, Any]:
    """Return the setting, its accuracy, and a figure for each attack, ratio and reference."""
    found = federate(setting)
    leaks = (False,) if setting.obfuscation == "none" else (False, True)
    attacked = partial(_attacked, found, setting)
    figures = [attacked(name, ratio, leaked) for name in ATTACKS for ratio in ratios for leaked in leaks]
    return {**asdict(setting), "accuracy": found.accuracy, "peers": len(found.sights[0].bare), "figures": figures}


def _attacked(found: Federated, setting: Setting, name: str, ratio: float, leaked: bool) -> dict[str, Any]:
    rng = np.random.default_rng([setting.seed, 2])
    scores = []
    for sight in found.sights:
        view, truth = sight.view(ratio=ratio, rng=rng, leaked=leaked)
        scores.append(score_buckets(ATTACKS[name](view), truth, peers=view.peers))
    return {
        "attack": name,
        "ratio": ratio,
        "reference": "leaked" if leaked else "received",
        "identity": fmean(score.identity for score in scores),
        "tracking": fmean(score.tracking for score in scores),
        "fragments": sum(score.fragments for score in scores),
    }
