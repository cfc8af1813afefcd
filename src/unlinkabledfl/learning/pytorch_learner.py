"""Any PyTorch classifier with data as a `Learner`.

Everything a round draws comes from (seed, round number): a worker that is started again in the middle of a run goes on
as if it had never stopped.

Invariant: a failed `train` leaves the model as it was, and every state has the names, shapes and types of the first.
"""

from collections.abc import Mapping
from copy import copy
from typing import Self

import numpy as np
import torch
from torch import nn

from unlinkabledfl.errors import ConfigError, LearnerError, LocalProtocolError
from unlinkabledfl.learning import training
from unlinkabledfl.learning.dp import PrivacySettings, check_private, train_privately
from unlinkabledfl.learning.images import Images
from unlinkabledfl.learning.settings import TrainingSettings
from unlinkabledfl.node.learner import State, difference

__all__ = ["PyTorchLearner"]


class PyTorchLearner:
    """Train `model` on `train` by a recipe, and measure it on `test`. It fulfils `node.learner.Learner`.

    The model is moved to the device of the data and used in place. It maps a batch of images to one score a class.
    With `privacy` it is trained by DP-SGD, and the metrics of a round tell ε.
    """

    def __init__(
        self,
        model: nn.Module,
        train: Images,
        test: Images,
        *,
        settings: TrainingSettings | None = None,
        seed: int = 0,
        privacy: PrivacySettings | None = None,
    ) -> None:
        _check_alike(train, test)
        self._model = model.to(train.device)
        self._train = train
        self._test = test
        self._settings = TrainingSettings() if settings is None else settings
        self._seed = seed
        self._privacy = privacy
        if privacy is not None:
            check_private(model, self._settings)
        self._check_outputs()
        # Kept for its names, shapes and types; the values are no use.
        self._first = self._read()

    @property
    def model(self) -> nn.Module:
        """The model itself, in place."""
        return self._model

    def with_data(self, train: Images, *, seed: int) -> Self:
        """Return a learner of the same model, in place, on other data. Whoever calls it next loads its state first."""
        _check_alike(train, self._test)
        other = copy(self)
        other._train = train  # noqa: SLF001 - a copy of this very object
        other._seed = seed  # noqa: SLF001
        return other

    def state(self) -> State:
        state = self._read()
        if (what := difference(self._first, state)) is not None:
            layer, _, problem = what.partition(": ")
            raise ConfigError(key=f"model.{layer}", got=problem, takes="the same layers in every round")
        return state

    def load(self, state: State) -> None:
        if (what := difference(self._first, state)) is not None:
            layer, _, problem = what.partition(": ")
            raise ConfigError(key=f"model.{layer}", got=problem, takes="a state of this very model")
        self._write(state)

    def train(self, round_number: int) -> Mapping[str, float]:
        if round_number < 1:
            raise LocalProtocolError(f"rounds are numbered from 1, and this is round {round_number}")
        before = self._read()
        generator = torch.Generator().manual_seed(_mix(self._seed, round_number))
        devices = [self._train.device] if self._train.device.type == "cuda" else []
        try:
            with torch.random.fork_rng(devices=devices):
                torch.manual_seed(_mix(self._seed, round_number))
                metrics = self._train_round(round_number, generator)
            self.state()
        except LearnerError:
            self._write(before)
            raise
        except RuntimeError as error:  # what PyTorch raises for shapes, memory and devices alike
            self._write(before)
            raise LearnerError(f"training failed in round {round_number}: {error}") from error
        return metrics

    def _train_round(self, round_number: int, generator: torch.Generator) -> dict[str, float]:
        parts = (self._model, self._train, self._settings)
        if self._privacy is None:
            return training.train(*parts, round_number=round_number, generator=generator)
        return train_privately(*parts, self._privacy, round_number=round_number, generator=generator)

    def evaluate(self) -> Mapping[str, float]:
        return training.evaluate(self._model, self._test)

    def _read(self) -> State:
        state = self._model.state_dict()
        return {name: np.array(tensor.detach().cpu().numpy()) for name, tensor in state.items()}

    def _write(self, state: State) -> None:
        own = self._model.state_dict()
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(torch.from_numpy(np.array(state[name])))

    def _check_outputs(self) -> None:
        """One image through the model shows at once what would otherwise fail in the middle of a round."""
        self._model.eval()
        inputs, _ = self._test.between(0, 1)
        try:
            with torch.inference_mode():
                outputs = self._model(inputs)
        except RuntimeError as error:
            takes = f"a model for images of shape {self._train.shape}"
            raise ConfigError(key="model", got=str(error).splitlines()[0], takes=takes) from error
        classes = max(self._train.classes, self._test.classes)
        if outputs.ndim != 2 or outputs.shape[1] < classes:  # noqa: PLR2004 - batch and scores
            takes = f"one score for each of {classes} classes"
            raise ConfigError(key="model.outputs", got=tuple(outputs.shape[1:]), takes=takes)


def _check_alike(train: Images, test: Images) -> None:
    if train.device != test.device:
        raise ConfigError(key="learning.device", got=str(test.device), takes=f"the train set's: {train.device}")
    if train.shape != test.shape:
        raise ConfigError(key="test.shape", got=test.shape, takes=f"the shape of the train set: {train.shape}")


def _mix(seed: int, round_number: int) -> int:
    """Return one seed for a round of a learner; numpy's hash keeps neighbouring seeds apart."""
    return int(np.random.SeedSequence((seed, round_number)).generate_state(1, np.uint64)[0] >> np.uint64(1))
