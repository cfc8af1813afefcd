"""The learners of many nodes in one process: one model, one copy of the data, a node at a time.

A thousand `PyTorchLearner`s would hold a thousand models. Here a node is a list of positions in the train set and a
seed; its model comes with every call and goes back with the answer, so what a call returns does not depend on the calls
before it, nor on the process that made them.

Invariant: `train(node, …)` returns what a `PyTorchLearner` with that node's samples and seed would have, bit for bit.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray
from torch import nn

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.learning.dp import PrivacySettings
from unlinkabledfl.learning.images import Images
from unlinkabledfl.learning.partition import Indices
from unlinkabledfl.learning.pytorch_learner import PyTorchLearner
from unlinkabledfl.learning.settings import TrainingSettings
from unlinkabledfl.node.learner import Metrics, State

__all__ = ["SharedModelLearners"]


class SharedModelLearners:
    """Train `model` on any of the `parts` of `train`, and measure it on `test`.

    `parts` and `seeds` have an entry for every node. `labels` replaces the labels of some nodes, such as those that
    flip them. The model is used in place; nobody else may use it meanwhile.
    """

    def __init__(
        self,
        model: nn.Module,
        train: Images,
        parts: Sequence[Indices],
        test: Images,
        *,
        seeds: Sequence[int],
        settings: TrainingSettings | None = None,
        privacy: PrivacySettings | None = None,
        labels: Mapping[int, NDArray[Any]] | None = None,
    ) -> None:
        if len(seeds) != len(parts):
            raise ConfigError(key="learners.seeds", got=len(seeds), takes=f"one for each of {len(parts)} nodes")
        own = {} if labels is None else labels
        if (unknown := next((node for node in own if not 0 <= node < len(parts)), None)) is not None:
            raise ConfigError(key="learners.labels", got=unknown, takes=f"nodes from 0 to {len(parts) - 1}")
        self._parts = [
            train.part(part, labels=own.get(node), name=f"the data of node {node}") for node, part in enumerate(parts)
        ]
        self._seeds = tuple(seeds)
        # Of its own data only shape and device count: every call uses the part of its node.
        self._shared = PyTorchLearner(model, train, test, settings=settings, privacy=privacy)
        self._initial = self._shared.state()

    def __len__(self) -> int:
        return len(self._parts)

    def initial(self) -> State:
        """Return the model as it was given: that with which every node begins."""
        return self._initial

    def learner(self, node: int) -> PyTorchLearner:
        """Return the learner of one node. Its model is everybody's: `load` before anything else."""
        return self._shared.with_data(self._parts[node], seed=self._seeds[node])

    def train(self, node: int, *, round_number: int, state: State) -> tuple[State, Metrics]:
        """Train this model on the node's data for one round. `LearnerError` says that it failed."""
        learner = self.learner(node)
        learner.load(state)
        metrics = learner.train(round_number)
        return learner.state(), metrics

    def evaluate(self, node: int = 0, *, state: State) -> Metrics:
        """Measure this model. All nodes share the test set, so the result is the same for each."""
        self._shared.load(state)
        return self._shared.evaluate()
