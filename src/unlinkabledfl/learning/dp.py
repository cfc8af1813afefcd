"""Differentially private training (DP-SGD) through Opacus: the optional extra `dp`.

Each sample's gradient is clipped and noise is added to their sum, so that the model sent tells little about any one
sample. Batches are Poisson samples, as the accounting assumes: every sample joins each batch with the same probability.

ε is computed from the number of rounds alone (Rényi accounting), so a learner that is started again does not forget
what it has spent. Rounds that were never sent are counted too: ε is never too small for that reason.

Noise comes from PyTorch's generator. Without `reproducible` it is seeded by the operating system for every round; with
it, whoever knows the seed can take the noise off again: for experiments only. Opacus's own `secure_mode`, which also
defends against attacks on floating-point noise, needs a package that is no longer maintained, and is not used.
"""

import math
import secrets
import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from unlinkabledfl.errors import ConfigError, LearnerError
from unlinkabledfl.learning.images import Images
from unlinkabledfl.learning.settings import Epochs, Seconds, Steps, TrainingSettings
from unlinkabledfl.learning.training import make_optimizer

__all__ = ["PrivacySettings", "check_private", "epsilon_after", "train_privately"]

_SEED_BITS = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacySettings:
    """How much noise, and for which promise.

    `noise_multiplier` (σ) is the noise's deviation in units of `clip_norm`, the longest a sample's gradient may be.
    `delta` (δ) should be well below one over the number of local samples.
    """

    noise_multiplier: float = 1.0
    clip_norm: float = 1.0
    delta: float = 1e-5
    reproducible: bool = False

    def __post_init__(self) -> None:
        for key in ("noise_multiplier", "clip_norm"):
            if not 0.0 < getattr(self, key) < math.inf:
                raise ConfigError(key=f"privacy.{key}", got=getattr(self, key), takes="more than 0")
        if not 0.0 < self.delta < 1.0:
            raise ConfigError(key="privacy.delta", got=self.delta, takes="a probability between 0 and 1, such as 1e-5")


def train_privately(
    model: nn.Module,
    images: Images,
    settings: TrainingSettings,
    privacy: PrivacySettings,
    *,
    round_number: int,
    generator: torch.Generator,
) -> dict[str, float]:
    """Train the model in place for one round; return what it took, and ε (`epsilon`) after all rounds so far."""
    check_private(model, settings)
    modules = _opacus()
    rate, steps = _plan(len(images), settings)
    if not privacy.reproducible:
        generator = torch.Generator().manual_seed(secrets.randbits(_SEED_BITS))
    noise = torch.Generator(device=images.device).manual_seed(_draw_seed(generator))
    model.train()
    wrapped = modules["grad_sample"].GradSampleModule(model, loss_reduction="mean")
    try:
        optimizer = modules["optimizers"].DPOptimizer(
            make_optimizer(model, settings),
            noise_multiplier=privacy.noise_multiplier,
            max_grad_norm=privacy.clip_norm,
            expected_batch_size=max(1, round(rate * len(images))),
            generator=noise,
        )
        samples = 0
        total = torch.zeros((), device=images.device)
        for step in range(steps):
            for group in optimizer.param_groups:
                group["lr"] = settings.rate_at(round_number - 1 + step / steps)
            chosen = (torch.rand(len(images), generator=generator) < rate).nonzero()[:, 0]
            inputs, labels = images.take(chosen.to(images.device))
            loss = functional.cross_entropy(wrapped(inputs), labels, label_smoothing=settings.label_smoothing)
            optimizer.zero_grad(set_to_none=True)
            with warnings.catch_warnings():
                # The first layer's input needs no gradient, and PyTorch finds the hook that Opacus put there odd.
                warnings.filterwarnings("ignore", message="Full backward hook is firing", category=UserWarning)
                loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            if len(chosen):
                total += loss.detach() * len(chosen)
                samples += len(chosen)
    finally:
        wrapped.to_standard_module()
    loss_mean = float(total) / max(samples, 1)
    if not math.isfinite(loss_mean):
        what = f"the loss is {loss_mean}; lower the learning rate or the noise"
        raise LearnerError(f"private training diverged in round {round_number}: {what}")
    epsilon = epsilon_after(round_number, len(images), settings, privacy)
    return {"loss": loss_mean, "samples": float(samples), "steps": float(steps), "epsilon": epsilon}


def epsilon_after(rounds: int, samples: int, settings: TrainingSettings, privacy: PrivacySettings) -> float:
    """Return ε for δ = `privacy.delta`, spent by that many rounds on that many local samples."""
    rate, steps = _plan(samples, settings)
    accountant = _opacus()["accountants"].RDPAccountant()
    accountant.history = [(privacy.noise_multiplier, rate, rounds * steps)]
    with warnings.catch_warnings():
        # That the best order lies at the edge of those tried makes ε larger than need be, never smaller.
        warnings.filterwarnings("ignore", message="Optimal order is the", category=UserWarning)
        return float(accountant.get_epsilon(privacy.delta))


def check_private(model: nn.Module, settings: TrainingSettings) -> None:
    """Refuse what cannot be trained privately, before the first round."""
    if isinstance(settings.stop, Seconds):
        takes = "epochs or steps with privacy: ε counts steps, and these must be known"
        raise ConfigError(key="training.stop", got="seconds", takes=takes)
    if settings.flip or settings.shift_pixels:
        raise ConfigError(key="training.flip", got="augmentation", takes="none with privacy")
    if settings.centralize:
        raise ConfigError(key="training.centralize", got=True, takes="false with privacy")
    for name, module in model.named_modules():
        if getattr(module, "inplace", False):
            takes = "inplace=False with privacy: Opacus reads what the layer before it gave"
            raise ConfigError(key=f"model.{name}", got=f"{type(module).__name__}(inplace=True)", takes=takes)
        if isinstance(module, nn.modules.batchnorm._BatchNorm):  # noqa: SLF001 - the only name that covers them all
            raise ConfigError(
                key=f"model.{name}",
                got=type(module).__name__,
                takes="no batch normalization with privacy: it mixes the samples of a batch",
                hint="lenet5 and squeezenet1_1 have none; or use GroupNorm",
            )


def _plan(samples: int, settings: TrainingSettings) -> tuple[float, int]:
    """Return the probability by which a sample joins a batch, and the steps of one round."""
    per_epoch = -(-samples // settings.batch_size)
    match settings.stop:
        case Epochs(epochs):
            return 1.0 / per_epoch, epochs * per_epoch
        case Steps(steps):
            return 1.0 / per_epoch, steps
        case Seconds():
            raise ConfigError(key="training.stop", got="seconds", takes="epochs or steps with privacy")


def _draw_seed(generator: torch.Generator) -> int:
    return int(torch.randint(0, 2**_SEED_BITS - 1, (), generator=generator))


def _opacus() -> dict[str, Any]:
    try:
        return {name: import_module(f"opacus.{name}") for name in ("accountants", "grad_sample", "optimizers")}
    except ImportError as error:
        raise ConfigError(
            key="privacy",
            got=f"no Opacus ({error})",
            takes="the extra `dp`",
            hint="pip install 'unlinkabledfl[dp]', or in a checkout: .venv/bin/pip install -e '.[dp]'",
        ) from error
