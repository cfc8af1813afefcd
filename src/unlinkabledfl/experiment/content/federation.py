"""A federation in memory with curious recipients in it.

Every node trains on its part of the data, sends its model to its partners as a preset says (graph, exchange, codec),
and averages what it gets with its own. Recipients do the same, and keep all that they were sent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Final

import numpy as np

from unlinkabledfl.experiment.content.gossip import Gossip
from unlinkabledfl.experiment.content.setting import Setting
from unlinkabledfl.experiment.content.sight import Received, Sight
from unlinkabledfl.fragments import StateLayout

if TYPE_CHECKING:
    from unlinkabledfl.analysis.content.views import Matrix
    from unlinkabledfl.learning.many import SharedModelLearners

__all__ = ["Federated", "federate"]

_EVALUATED: Final = 4
_LAST_ROUNDS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Federated:
    """What became of a federation."""

    accuracy: float
    """On the test set: the mean over the last three rounds and a few nodes, as single rounds of skewed data differ."""
    sights: Sequence[Sight]
    """One for each recipient."""


def federate(setting: Setting) -> Federated:
    """Let the federation learn."""
    learners = _learners(setting)
    initial = learners.initial()
    layout = StateLayout(initial)
    gossip = Gossip(setting, layout)
    nodes = range(setting.nodes)
    models = [layout.flatten(initial)] * setting.nodes
    kept: dict[int, list[Received]] = {
        number * setting.nodes // setting.recipients: [] for number in range(setting.recipients)
    }
    bare: dict[int, Matrix] = {}
    accuracies = []
    for number in range(1, setting.rounds + 1):
        trained = [
            layout.flatten(learners.train(node, round_number=number, state=layout.unflatten(models[node], initial))[0])
            for node in nodes
        ]
        gossip.begin(trained, models, round_number=number)
        aggregates = []
        for node in nodes:
            rows = gossip.receive(node)
            aggregates.append(gossip.average(node, rows))
            if node in kept:
                kept[node].append(Received(before=models[node], own=trained[node], rows=rows))
                bare.setdefault(node, np.stack([trained[partner] for partner in gossip.partners[node]]))
        models = aggregates
        if number > setting.rounds - _LAST_ROUNDS:
            some = models[:: max(1, setting.nodes // _EVALUATED)]
            accuracies += [learners.evaluate(state=layout.unflatten(model, initial))["accuracy"] for model in some]
    sights = [Sight(grid=gossip.grid, rounds=rounds, bare=bare[node]) for node, rounds in kept.items()]
    return Federated(accuracy=fmean(accuracies), sights=sights)


def _learners(setting: Setting) -> "SharedModelLearners":
    from unlinkabledfl.learning import datasets  # noqa: PLC0415 -- takes PyTorch a second to load
    from unlinkabledfl.learning.images import Images, channel_statistics  # noqa: PLC0415
    from unlinkabledfl.learning.many import SharedModelLearners  # noqa: PLC0415
    from unlinkabledfl.learning.models import build_model  # noqa: PLC0415
    from unlinkabledfl.learning.partition import Dirichlet  # noqa: PLC0415
    from unlinkabledfl.learning.settings import TrainingSettings  # noqa: PLC0415

    rng = np.random.default_rng(setting.seed)
    train, test = datasets.load(setting.dataset)
    chosen = rng.permutation(len(train.labels))[: setting.samples]
    tested = rng.permutation(len(test.labels))[: setting.test_samples]
    images, labels = train.images[chosen], train.labels[chosen]
    mean, std = channel_statistics(images)
    return SharedModelLearners(
        build_model("lenet5", train.image_shape, len(train.classes), seed=setting.seed),
        Images(images, labels, mean=mean, std=std, name="train"),
        Dirichlet(setting.alpha).split(labels, nodes=setting.nodes, rng=rng),
        Images(test.images[tested], test.labels[tested], mean=mean, std=std, name="test"),
        seeds=[setting.seed * setting.nodes + node for node in range(setting.nodes)],
        settings=TrainingSettings(batch_size=setting.batch_size),
    )
