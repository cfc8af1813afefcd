"""What a scenario's learners are told, as JSON: for one node in its own process, or for all nodes of a virtual world.

Nothing here imports torch. `experiment.learners` reads what is written here, in the processes that train.
"""

from typing import Any, Final

from unlinkabledfl.experiment.scenario import Learning, Scenario
from unlinkabledfl.simulation.entropy import derive_key

__all__ = ["EVERY_NODE", "PREPARE", "every_node_settings", "learner_settings", "seed_of"]

EVERY_NODE: Final = "unlinkabledfl.experiment.learners:every_node"
"""The factory of all nodes' learners."""
PREPARE: Final = "unlinkabledfl.experiment.learners:prepare"
"""Reads what the learners of one host share; called with the settings of any of them."""

_PUBLISHED_MAGNITUDES: Final = {"label_flip": 1.0, "sign_flip": 1.0, "gaussian": 10.0}
_SEED_BITS: Final = 63
_RECIPE: Final = {
    "optimizer", "learning_rate", "momentum", "nesterov", "weight_decay", "batch_size", "epochs", "steps", "seconds",
    "schedule", "steady_rounds", "final_rate", "warmup_rounds", "label_smoothing", "centralize", "flip", "shift_pixels",
}  # fmt: skip


def seed_of(scenario: Scenario, name: str) -> int:
    """Return the seed for this purpose: of all others independent, and from the scenario's alone."""
    return int.from_bytes(derive_key(scenario.run.seed, name)[:8]) >> (64 - _SEED_BITS)


def learner_settings(scenario: Scenario, *, index: int, attacks: bool) -> dict[str, Any]:
    """Return what the factory of one node's learner is called with."""
    return {**_task(scenario), "index": index, "attack": _attack(scenario) if attacks else None}


def every_node_settings(scenario: Scenario, *, attackers: tuple[int, ...]) -> dict[str, Any]:
    """Return what `EVERY_NODE` is called with."""
    return {
        "factory": scenario.learning.factory,
        "task": _task(scenario),
        "attackers": list(attackers),
        "attack": _attack(scenario) if attackers else None,
    }


def _task(scenario: Scenario) -> dict[str, Any]:
    """Return what all nodes have in common."""
    learning = scenario.learning
    return {
        "dataset": learning.dataset,
        "model": learning.model,
        "nodes": scenario.topology.nodes,
        "partition": {"name": learning.partition, "options": _partition_options(learning)},
        "train_samples": learning.train_samples,
        "test_samples": learning.test_samples,
        "device": learning.device,
        "data_seed": seed_of(scenario, "learning/data"),
        "model_seed": seed_of(scenario, "learning/model"),
        "seed": seed_of(scenario, "learning/training"),
        "training": {**learning.model_dump(include=_RECIPE), "rounds": scenario.run.rounds},
        "privacy": {
            "noise_multiplier": learning.dp_noise,
            "clip_norm": learning.dp_clip,
            "delta": learning.dp_delta,
        }
        if learning.dp_noise
        else None,
        "options": dict(learning.options),
    }


def _partition_options(learning: Learning) -> dict[str, float]:
    match learning.partition:
        case "dirichlet":
            return {"alpha": learning.alpha}
        case "shards":
            return {"per_node": learning.shards_per_node}
        case "iid":
            return {}


def _attack(scenario: Scenario) -> dict[str, Any]:
    attack = scenario.attack
    magnitude = attack.magnitude or _PUBLISHED_MAGNITUDES[attack.kind]
    return {"kind": attack.kind, "magnitude": magnitude, "seed": seed_of(scenario, "attack/noise")}
