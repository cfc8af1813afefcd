"""Learners from settings that are JSON: what a learner's process builds. The only module here that uses PyTorch.

`classifier` makes one node's learner. `every_node` makes those of all nodes for the virtual world, where one process
trains many of them. Both find the same data: which samples a node has follows from the settings, wherever it runs.
`experiment.tasks` writes these settings.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from torch import inference_mode, nn

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.learning import datasets
from unlinkabledfl.learning.dp import PrivacySettings
from unlinkabledfl.learning.images import Images, channel_statistics
from unlinkabledfl.learning.many import SharedModelLearners
from unlinkabledfl.learning.models import build_model
from unlinkabledfl.learning.partition import Indices, partitioner
from unlinkabledfl.learning.poison import PoisonedLearner, Poisoning, flip_labels
from unlinkabledfl.learning.pytorch_learner import PyTorchLearner
from unlinkabledfl.learning.settings import Epochs, OptimizerName, Schedule, Seconds, Steps, Stop, TrainingSettings
from unlinkabledfl.learning.training import choose_device
from unlinkabledfl.learning.worker_process import LearnerFactory, find_factory
from unlinkabledfl.node.learner import Learner, Metrics, State

__all__ = ["STATISTICS", "EveryNode", "classifier", "every_node", "prepare"]

Settings = Mapping[str, Any]

STATISTICS: Final[Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]]] = {
    "fashion-mnist-mini": ((0.287346454582,), (0.354379716322,)),
    "mnist": ((0.130660476274,), (0.308107803856,)),
    "fashion-mnist": ((0.286040596989,), (0.353024244515,)),
    "cifar10": ((0.491399678615, 0.482158408395, 0.446530914445), (0.247032232463, 0.243485128001, 0.261587841728)),
}
"""Mean and deviation of each channel of the train set: up to a second of computing that every process would repeat."""


def classifier(settings: Settings) -> Learner:
    """Return the learner of node `settings["index"]` for a dataset of the catalogue and a model of ours."""
    index, attack = settings["index"], settings["attack"]
    where = _parts(settings)[index]
    labels = _labels_of(settings, where, attack=attack, index=index)
    learner = PyTorchLearner(
        _model(settings),
        _train_images(settings["dataset"], settings["device"]).part(
            where, labels=labels, name=f"the data of node {index}"
        ),
        _test_images(settings["dataset"], settings["device"], settings["test_samples"], settings["data_seed"]),
        settings=training_settings(settings["training"]),
        seed=_mix(settings["seed"], index),
        privacy=_privacy(settings),
    )
    return _poisoned(learner, attack, index=index)


def prepare(settings: Settings) -> None:
    """Have in memory what all learners of a host share: a forkserver calls this once, before it forks them.

    Nothing is computed backwards here, nor on a GPU: neither survives a fork.
    """
    _parts(settings)
    if settings["device"] == "cpu":
        _train_images(settings["dataset"], settings["device"])
        test = _test_images(settings["dataset"], settings["device"], settings["test_samples"], settings["data_seed"])
        with inference_mode():
            _model(settings)(test.between(0, 1)[0])


def every_node(settings: Settings) -> "EveryNode":
    """Return the learners of all nodes."""
    return EveryNode(settings)


class EveryNode:
    """All nodes of a virtual world, for whoever trains them one at a time. Equal calls give equal results.

    The built-in learners share one model, which is loaded before each call: a thousand models would fill the memory.
    Learners of another factory are made when their node first trains, and kept.
    """

    def __init__(self, settings: Settings) -> None:
        self._task: Settings = settings["task"]
        self._attackers = frozenset(settings["attackers"])
        self._attack: Settings | None = settings["attack"]
        self._factory: LearnerFactory = _find(settings["factory"])
        self._shared = self._share() if self._factory is classifier else None
        self._own: dict[int, Learner] = {}

    def initial(self) -> State:
        """Return the model with which every node begins."""
        return self._learner(0).state() if self._shared is None else self._shared.initial()

    def train(self, node: int, *, round_number: int, state: State) -> tuple[State, Metrics]:
        """Train this model on the node's data."""
        learner = self._learner(node)
        learner.load(state)
        metrics = learner.train(round_number)
        return learner.state(), metrics

    def evaluate(self, node: int, *, state: State) -> Metrics:
        """Measure this model."""
        learner = self._learner(node)
        learner.load(state)
        return learner.evaluate()

    def _share(self) -> SharedModelLearners:
        task, parts = self._task, _parts(self._task)
        own = {node: _labels_of(task, parts[node], attack=self._attack, index=node) for node in self._attackers}
        return SharedModelLearners(
            _model(task),
            _train_images(task["dataset"], task["device"]),
            parts,
            _test_images(task["dataset"], task["device"], task["test_samples"], task["data_seed"]),
            seeds=[_mix(task["seed"], node) for node in range(len(parts))],
            settings=training_settings(task["training"]),
            privacy=_privacy(task),
            labels={node: labels for node, labels in own.items() if labels is not None},
        )

    def _learner(self, node: int) -> Learner:
        attack = self._attack if node in self._attackers else None
        if self._shared is not None:
            return _poisoned(self._shared.learner(node), attack, index=node)
        if node not in self._own:
            self._own[node] = self._factory({**self._task, "index": node, "attack": attack})
        return self._own[node]


def _find(name: str) -> LearnerFactory:
    try:
        return find_factory(name)
    except (ImportError, AttributeError) as error:
        takes = "package.module:function that this interpreter can import"
        raise ConfigError(key="learning.factory", got=name, takes=takes, hint=str(error)) from error


def _labels_of(settings: Settings, where: Indices, *, attack: Settings | None, index: int) -> npt.NDArray[Any] | None:
    """Return the labels of a node that flips some; None where they are as they are."""
    if attack is None or attack["kind"] != "label_flip":
        return None
    train = datasets.load(settings["dataset"]).train
    labels: npt.NDArray[Any] = train.labels[where]
    mirrored = flip_labels(labels, len(train.classes))
    if attack["magnitude"] >= 1.0:
        return mirrored
    chosen = np.random.default_rng((attack["seed"], index)).random(len(labels)) < attack["magnitude"]
    return np.where(chosen, mirrored, labels)


def _poisoned(learner: Learner, attack: Settings | None, *, index: int) -> Learner:
    if attack is None or attack["kind"] == "label_flip":
        return learner
    poisoning = Poisoning.SIGN_FLIP if attack["kind"] == "sign_flip" else Poisoning.GAUSSIAN_NOISE
    return PoisonedLearner(learner, poisoning, seed=_mix(attack["seed"], index), factor=attack["magnitude"])


def _privacy(settings: Settings) -> PrivacySettings | None:
    privacy = settings["privacy"]
    return None if privacy is None else PrivacySettings(**privacy, reproducible=True)


def training_settings(training: Settings) -> TrainingSettings:
    """Return the recipe."""
    stop: Stop
    if training["steps"]:
        stop = Steps(training["steps"])
    elif training["seconds"]:
        stop = Seconds(training["seconds"])
    else:
        stop = Epochs(training["epochs"])
    named = {name: value for name, value in training.items() if name not in {"steps", "seconds", "epochs"}}
    named["optimizer"] = OptimizerName(named["optimizer"])
    named["schedule"] = Schedule(named["schedule"])
    return TrainingSettings(**named, stop=stop)


def _model(settings: Settings) -> nn.Module:
    train = datasets.load(settings["dataset"]).train
    return build_model(settings["model"], train.image_shape, len(train.classes), seed=settings["model_seed"])


def _parts(settings: Settings) -> list[Indices]:
    partition = settings["partition"]
    return _partition(
        settings["dataset"],
        partition["name"],
        tuple(sorted(partition["options"].items())),
        settings["nodes"],
        settings["train_samples"],
        settings["data_seed"],
    )


@lru_cache(maxsize=4)
def _partition(  # noqa: PLR0917 -- of one call site
    dataset: str, name: str, options: tuple[tuple[str, float], ...], nodes: int, samples: int, seed: int
) -> list[Indices]:
    """Return every node's samples. A process that trains many nodes asks for each of them."""
    labels = datasets.load(dataset).train.labels
    rng = np.random.default_rng((seed, 0))
    chosen = _drawn(len(labels), samples, rng, key="learning.train_samples", dataset=dataset)
    parts = partitioner(name, **dict(options)).split(labels[chosen], nodes=nodes, rng=rng)
    return [chosen[part] for part in parts]


@lru_cache(maxsize=4)
def _train_images(dataset: str, device: str) -> Images:
    """Return the whole train set, mapped from its file: all processes of a host share it."""
    train = datasets.load(dataset).train
    mean, std = _statistics(dataset)
    return Images(
        train.images, train.labels, mean=mean, std=std, device=choose_device(device), name=f"the train set of {dataset}"
    )


@lru_cache(maxsize=4)
def _test_images(dataset: str, device: str, samples: int, seed: int) -> Images:
    test = datasets.load(dataset).test
    mean, std = _statistics(dataset)
    images = Images(
        test.images, test.labels, mean=mean, std=std, device=choose_device(device), name=f"the test set of {dataset}"
    )
    if not samples:
        return images
    rng = np.random.default_rng((seed, 1))
    return images.part(_drawn(len(test), samples, rng, key="learning.test_samples", dataset=dataset))


@lru_cache(maxsize=8)
def _statistics(dataset: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return STATISTICS.get(dataset) or channel_statistics(datasets.load(dataset).train.images)


def _drawn(have: int, wanted: int, rng: np.random.Generator, *, key: str, dataset: str) -> Indices:
    """Return the positions of so many samples, ascending; 0 stands for all."""
    if wanted > have:
        raise ConfigError(key=key, got=wanted, takes=f"at most {have:,}: {dataset} has no more; 0 for all")
    if not wanted:
        return np.arange(have, dtype=np.int64)
    return np.sort(rng.choice(have, size=wanted, replace=False)).astype(np.int64)


def _mix(seed: int, index: int) -> int:
    return int(np.random.SeedSequence((seed, index)).generate_state(1, np.uint64)[0] >> np.uint64(1))
