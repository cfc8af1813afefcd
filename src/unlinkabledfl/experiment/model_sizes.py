"""How many values the built-in models have, without building them: planning a run must not import PyTorch.

The counts follow from the layers; a test builds every model and compares.
"""

from typing import Final, assert_never

import numpy as np

from unlinkabledfl.errors import LocalProtocolError
from unlinkabledfl.experiment.scenario.learning import DatasetName, ModelName
from unlinkabledfl.fragments import StateLayout

__all__ = ["IMAGES", "TEST_SAMPLES", "TRAIN_SAMPLES", "layout_of", "layout_of_values", "training_samples_per_s"]

IMAGES: Final[dict[DatasetName, tuple[int, int, int]]] = {
    "fashion-mnist-mini": (1, 28, 10),
    "mnist": (1, 28, 10),
    "fashion-mnist": (1, 28, 10),
    "cifar10": (3, 32, 10),
}
"""Channels, pixels a side, classes."""

TRAIN_SAMPLES: Final[dict[DatasetName, int]] = {
    "fashion-mnist-mini": 5_000,
    "mnist": 60_000,
    "fashion-mnist": 60_000,
    "cifar10": 50_000,
}
TEST_SAMPLES: Final[dict[DatasetName, int]] = {
    "fashion-mnist-mini": 1_000,
    "mnist": 10_000,
    "fashion-mnist": 10_000,
    "cifar10": 10_000,
}

_SAMPLES_PER_S: Final[dict[ModelName, dict[int, float]]] = {
    # By batch size. LeNet-5: docs/decisions/0005. The others: `learning.training.train` on one core of the same kind,
    # shared with other work, so rather too low; images of 3x32x32, on 1x28x28 they are a tenth to a quarter faster.
    "lenet5": {8: 7_500, 16: 11_000, 32: 13_600, 64: 13_900},
    "squeezenet1_1": {8: 260, 32: 300},
    "mobilenet_v2": {8: 96, 32: 118},
}

_SQUEEZENET_FIRES: Final = (
    # inputs, squeezed, expanded
    (64, 16, 64), (128, 16, 64), (128, 32, 128), (256, 32, 128), (256, 48, 192), (384, 48, 192), (384, 64, 256),
    (512, 64, 256),
)  # fmt: skip
_MOBILENET_STAGES: Final = (
    # expansion, channels, blocks
    (1, 16, 1), (6, 24, 2), (6, 32, 3), (6, 64, 4), (6, 96, 3), (6, 160, 3), (6, 320, 1),
)  # fmt: skip


def training_samples_per_s(model: ModelName, batch_size: int) -> float:
    """Return how many samples a second one core trains on: that of the machine that the table was measured on."""
    rates = _SAMPLES_PER_S[model]
    nearest = min(rates, key=lambda size: abs(size - batch_size))
    return rates[nearest]


def layout_of(model: ModelName, dataset: DatasetName) -> StateLayout:
    """Return the layout of the model's state on these images, as to how many values travel of each kind."""
    channels, side, classes = IMAGES[dataset]
    match model:
        case "lenet5":
            return layout_of_values(_lenet5(channels, side, classes), 0)
        case "squeezenet1_1":
            return layout_of_values(_squeezenet(channels, classes), 0)
        case "mobilenet_v2":
            return layout_of_values(*_mobilenet(channels, classes))
        case _:
            assert_never(model)


def layout_of_values(parameters: int, normalization: int) -> StateLayout:
    """Return a layout of so many values, and so many in normalization layers; it takes no memory for them."""
    if parameters < 1 or normalization < 0:
        raise LocalProtocolError(f"no model has {parameters} parameters and {normalization} values of normalization")
    state = {"weight": np.broadcast_to(np.float32(0.0), (parameters,))}
    if normalization:
        state["normalization.running_mean"] = np.broadcast_to(np.float32(0.0), (normalization,))
    return StateLayout(state)


def _lenet5(channels: int, side: int, classes: int) -> int:
    padding = 2 if side < 32 else 0  # noqa: PLR2004 -- LeNet's own input
    pixels = ((side + 2 * padding - 4) // 2 - 4) // 2
    return (
        _convolution(channels, 6, 5)
        + _convolution(6, 16, 5)
        + _linear(16 * pixels * pixels, 120)
        + _linear(120, 84)
        + _linear(84, classes)
    )


def _squeezenet(channels: int, classes: int) -> int:
    fires = sum(
        _convolution(inputs, squeezed, 1) + _convolution(squeezed, expanded, 1) + _convolution(squeezed, expanded, 3)
        for inputs, squeezed, expanded in _SQUEEZENET_FIRES
    )
    return _convolution(channels, 64, 3) + fires + _convolution(512, classes, 1)


def _mobilenet(channels: int, classes: int) -> tuple[int, int]:
    """Return convolutions and the classifier, and the values of normalization: four for each channel that has it."""
    parameters, normalized, width = channels * 32 * 9, 32, 32
    for expansion, outputs, blocks in _MOBILENET_STAGES:
        for _ in range(blocks):
            wide = width * expansion
            if expansion != 1:
                parameters += width * wide
                normalized += wide
            parameters += wide * 9 + wide * outputs
            normalized += wide + outputs
            width = outputs
    parameters += width * 1280 + _linear(1280, classes)
    return parameters, 4 * (normalized + 1280)


def _convolution(inputs: int, outputs: int, size: int) -> int:
    return inputs * outputs * size * size + outputs


def _linear(inputs: int, outputs: int) -> int:
    return inputs * outputs + outputs
