"""The models of the published experiments, by name: LeNet-5, SqueezeNet 1.1 and MobileNetV2.

They are written here because torchvision's Linux wheels do not import beside a CPU build of PyTorch. Layers, and so
parameter counts, are the published ones: 61,706 for LeNet-5 on 1x28x28; 1,235,496 for SqueezeNet 1.1 and 3,504,872 for
MobileNetV2 on ImageNet.

On images of up to 64 pixels SqueezeNet and MobileNetV2 begin with stride 1 instead of 2: otherwise their last layers
would see a single pixel. No parameter depends on it.
"""

from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor, nn

from unlinkabledfl.errors import ConfigError

__all__ = ["MODELS", "Shape", "build_model", "parameter_count"]

Shape = tuple[int, int, int]
"""Channels, height and width of one image."""

_SMALL_PIXELS: Final = 64
_LENET_INPUT: Final = 32
_LENET_SMALLEST: Final = 16


def build_model(name: str, shape: Shape, classes: int, *, seed: int | None = None) -> nn.Module:
    """Return an untrained model. The same seed gives the same weights, whatever was drawn elsewhere before."""
    if name not in MODELS:
        raise ConfigError(key="model", got=name, takes=f"one of {', '.join(MODELS)}")
    channels, height, width = shape
    if channels < 1 or height != width or height < _LENET_SMALLEST:
        takes = f"square images of at least {_LENET_SMALLEST} pixels, channels first"
        raise ConfigError(key="model.shape", got=shape, takes=takes)
    if classes < 2:  # noqa: PLR2004 - with one class there is nothing to learn
        raise ConfigError(key="model.classes", got=classes, takes="at least 2 classes")
    if seed is None:
        return MODELS[name](shape, classes)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return MODELS[name](shape, classes)


def parameter_count(model: nn.Module) -> int:
    """Return how many numbers training may change."""
    return sum(parameter.numel() for parameter in model.parameters())


class Halved(nn.MaxPool2d):
    """The maximum of every two by two pixels.

    PyTorch's own kernel is not vectorized on a CPU and takes half of LeNet-5's evaluation. Without gradients two maxima
    of strided views give the same numbers in a tenth of its time; with gradients and small batches they are slower.
    """

    def __init__(self) -> None:
        super().__init__(2)

    def forward(self, input: Tensor) -> Tensor:
        """Return the smaller images."""
        if torch.is_grad_enabled() or input.is_cuda:
            whole: Tensor = super().forward(input)
            return whole
        height, width = input.shape[-2] & ~1, input.shape[-1] & ~1
        rows = torch.maximum(input[..., 0:height:2, :width], input[..., 1:height:2, :width])
        return torch.maximum(rows[..., ::2], rows[..., 1::2])


def lenet5(shape: Shape, classes: int) -> nn.Module:
    """LeCun et al., Gradient-Based Learning Applied to Document Recognition (1998), in today's form.

    Rectifiers and maxima instead of scaled tanh and trained averages. Images under 32 pixels are padded by two on each
    side. Weights start as Glorot and Bengio's uniform law has them and biases at zero: of the usual laws the one with
    which it learns fastest here (docs/decisions/0005-training-recipe.md).
    """
    channels, side, _ = shape
    padding = 2 if side < _LENET_INPUT else 0
    pixels = ((side + 2 * padding - 4) // 2 - 4) // 2
    model = nn.Sequential(
        nn.Conv2d(channels, 6, 5, padding=padding),
        nn.ReLU(),
        Halved(),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        Halved(),
        nn.Flatten(),
        nn.Linear(16 * pixels * pixels, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, classes),
    )
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:  # they all have one; the type says they may not
                nn.init.zeros_(module.bias)
    return model


class _Fire(nn.Module):
    """Squeeze to few channels, then expand by 1x1 and by 3x3 side by side."""

    def __init__(self, inputs: int, squeeze: int, expand: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeeze, 1)
        self.expand1x1 = nn.Conv2d(squeeze, expand, 1)
        self.expand3x3 = nn.Conv2d(squeeze, expand, 3, padding=1)

    def forward(self, images: Tensor) -> Tensor:
        narrow = torch.relu(self.squeeze(images))
        return torch.relu(torch.cat((self.expand1x1(narrow), self.expand3x3(narrow)), dim=1))


def squeezenet1_1(shape: Shape, classes: int) -> nn.Module:
    """Iandola et al., SqueezeNet (arXiv:1602.07360), in the authors' cheaper release 1.1."""
    channels, side, _ = shape
    small = side <= _SMALL_PIXELS
    last = nn.Conv2d(512, classes, 1)
    model = nn.Sequential(
        nn.Conv2d(channels, 64, 3, stride=1 if small else 2, padding=1 if small else 0),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, ceil_mode=True),
        _Fire(64, 16, 64),
        _Fire(128, 16, 64),
        nn.MaxPool2d(3, stride=2, ceil_mode=True),
        _Fire(128, 32, 128),
        _Fire(256, 32, 128),
        nn.MaxPool2d(3, stride=2, ceil_mode=True),
        _Fire(256, 48, 192),
        _Fire(384, 48, 192),
        _Fire(384, 64, 256),
        _Fire(512, 64, 256),
        nn.Dropout(0.5),
        last,
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            if module is last:
                nn.init.normal_(module.weight, std=0.01)
            else:
                nn.init.kaiming_uniform_(module.weight, nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return model


def _normalised(inputs: int, outputs: int, size: int, *, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    convolution = nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, groups=groups, bias=False)
    return [convolution, nn.BatchNorm2d(outputs)]


class _InvertedResidual(nn.Module):
    """Widen, convolve each channel by itself, narrow again; add the input where its shape allows."""

    def __init__(self, inputs: int, outputs: int, *, stride: int, expansion: int) -> None:
        super().__init__()
        wide = inputs * expansion
        widen = [*_normalised(inputs, wide, 1), nn.ReLU6()] if expansion != 1 else []
        self.layers = nn.Sequential(
            *widen,
            *_normalised(wide, wide, 3, stride=stride, groups=wide),
            nn.ReLU6(),
            *_normalised(wide, outputs, 1),
        )
        self.adds_input = stride == 1 and inputs == outputs

    def forward(self, images: Tensor) -> Tensor:
        outputs: Tensor = self.layers(images)
        return images + outputs if self.adds_input else outputs


_MOBILENET_STAGES: Final = (
    # expansion, channels, blocks, stride of the first block: table 2 of the paper
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def mobilenet_v2(shape: Shape, classes: int) -> nn.Module:
    """Sandler et al., MobileNetV2 (arXiv:1801.04381), width 1."""
    channels, side, _ = shape
    width = 32
    layers = [*_normalised(channels, width, 3, stride=1 if side <= _SMALL_PIXELS else 2), nn.ReLU6()]
    for expansion, outputs, blocks, stride in _MOBILENET_STAGES:
        for block in range(blocks):
            layers.append(_InvertedResidual(width, outputs, stride=stride if block == 0 else 1, expansion=expansion))
            width = outputs
    layers += [*_normalised(width, 1280, 1), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    model = nn.Sequential(*layers, nn.Dropout(0.2), nn.Linear(1280, classes))
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out")
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.01)
            nn.init.zeros_(module.bias)
    return model


MODELS: Final[dict[str, Callable[[Shape, int], nn.Module]]] = {
    "lenet5": lenet5,
    "squeezenet1_1": squeezenet1_1,
    "mobilenet_v2": mobilenet_v2,
}
