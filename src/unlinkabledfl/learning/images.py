"""Labelled images in memory: bytes stay bytes until a batch needs them.

Measured with LeNet-5 and batches of 16 on one core (1.4 ms a step): converting batch by batch costs 2% and takes a
quarter of the memory of floats. A read-only array, such as a test set mapped from its file and shared by all nodes of
a host, is not copied.
"""

from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unlinkabledfl.errors import ConfigError

__all__ = ["Images", "channel_statistics"]

_PIXEL_MAX: Final = 255
_AXES_GREY: Final = 3
_AXES: Final = 4

PerChannel = tuple[float, ...]


class Images:
    """Images, channels first, with their labels, on a device.

    Bytes are scaled to mean 0 and deviation 1, by the statistics given (one number a channel, on the scale from 0 to 1)
    or by their own. Nodes of one federation should be given the same. Floats are taken as they are.

    `name` is how an error calls them: the file or partition that they come from.
    """

    __slots__ = ("_images", "_labels", "_offset", "_positions", "_scale")

    def __init__(
        self,
        images: NDArray[Any],
        labels: NDArray[Any],
        *,
        mean: PerChannel | None = None,
        std: PerChannel | None = None,
        device: torch.device | str = "cpu",
        name: str = "images",
    ) -> None:
        images = _check(images, labels, name)
        # DLPack, because `from_numpy` warns about read-only arrays, and nothing here writes to them.
        self._images = torch.utils.dlpack.from_dlpack(images).to(device)
        self._labels = torch.from_numpy(np.array(labels, dtype=np.int64)).to(device)
        self._positions: Tensor | None = None
        self._scale: Tensor | None = None
        self._offset: Tensor | None = None
        if images.dtype == np.uint8:
            if mean is None or std is None:
                mean, std = channel_statistics(images)
            channels = images.shape[1]
            if len(mean) != channels or len(std) != channels or min(std) <= 0.0:
                takes = f"{channels} means and positive deviations, one a channel"
                raise ConfigError(key=f"{name}.mean_and_std", got=(mean, std), takes=takes)
            scale = [1.0 / (_PIXEL_MAX * one) for one in std]
            offset = [-one / other for one, other in zip(mean, std, strict=True)]
            self._scale = torch.tensor(scale, device=device).view(1, -1, 1, 1)
            self._offset = torch.tensor(offset, device=device).view(1, -1, 1, 1)

    def __len__(self) -> int:
        return int(self._labels.shape[0])

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width."""
        _, channels, height, width = self._images.shape
        return channels, height, width

    @property
    def device(self) -> torch.device:
        """Where they are, and where batches will be."""
        return self._images.device

    @property
    def classes(self) -> int:
        """One more than the largest label."""
        return int(self._labels.max()) + 1

    def part(self, positions: NDArray[np.int64], *, labels: NDArray[Any] | None = None, name: str = "part") -> "Images":
        """Return the images at these positions, sharing their memory, with their own labels or those given."""
        if len(positions) == 0:
            raise ConfigError(key=name, got="no images", takes="at least one", hint="is the partition empty?")
        if int(positions.min()) < 0 or int(positions.max()) >= len(self):
            takes = f"positions from 0 to {len(self) - 1}"
            raise ConfigError(key=f"{name}.positions", got=(int(positions.min()), int(positions.max())), takes=takes)
        if labels is not None:
            _check_labels(labels, len(positions), name)
        chosen = torch.from_numpy(np.array(positions, dtype=np.int64)).to(self.device)
        part = object.__new__(Images)
        part._images, part._scale, part._offset = self._images, self._scale, self._offset
        part._positions = chosen if self._positions is None else self._positions.index_select(0, chosen)
        own = self._labels.index_select(0, chosen)
        part._labels = own if labels is None else torch.from_numpy(np.array(labels, dtype=np.int64)).to(self.device)
        return part

    def take(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return the images at these positions, ready for a model, and their labels."""
        labels = self._labels.index_select(0, positions)
        if self._positions is not None:
            positions = self._positions.index_select(0, positions)
        return self._ready(self._images.index_select(0, positions)), labels

    def between(self, start: int, stop: int) -> tuple[Tensor, Tensor]:
        """Return the images of a range, ready for a model, and their labels."""
        labels = self._labels[start:stop]
        if self._positions is None:
            return self._ready(self._images[start:stop]), labels
        return self._ready(self._images.index_select(0, self._positions[start:stop])), labels

    def _ready(self, images: Tensor) -> Tensor:
        if self._scale is None or self._offset is None:
            return images
        return images.to(torch.float32).mul_(self._scale).add_(self._offset)


def _check(images: NDArray[Any], labels: NDArray[Any], name: str) -> NDArray[Any]:
    if images.ndim == _AXES_GREY:
        images = images[:, None]
    if images.ndim != _AXES:
        takes = "images as (count, channels, height, width), or (count, height, width) for grey ones"
        raise ConfigError(key=f"{name}.shape", got=images.shape, takes=takes)
    if images.shape[0] == 0:
        raise ConfigError(key=name, got="no images", takes="at least one", hint="is the partition empty?")
    if images.dtype not in (np.uint8, np.float32):
        raise ConfigError(key=f"{name}.type", got=str(images.dtype), takes="uint8 or float32")
    _check_labels(labels, images.shape[0], name)
    return np.ascontiguousarray(images)


def _check_labels(labels: NDArray[Any], count: int, name: str) -> None:
    if labels.shape != (count,):
        raise ConfigError(key=f"{name}.labels", got=labels.shape, takes=f"one label an image: ({count},)")
    if labels.dtype.kind not in "iu" or labels.min() < 0:
        raise ConfigError(key=f"{name}.labels", got=str(labels.dtype), takes="whole numbers from 0")


def channel_statistics(images: NDArray[Any]) -> tuple[PerChannel, PerChannel]:
    """Return mean and standard deviation of each channel of byte images, on the scale from 0 to 1."""
    # By histogram: exact, and without a copy of the images as floats.
    values = np.arange(_PIXEL_MAX + 1) / _PIXEL_MAX
    means: list[float] = []
    deviations: list[float] = []
    for channel in range(images.shape[1]):
        counts = np.bincount(images[:, channel].reshape(-1), minlength=_PIXEL_MAX + 1)
        mean = float(np.average(values, weights=counts))
        means.append(mean)
        # A channel of a single value carries nothing; dividing by one leaves it at zero.
        deviations.append(float(np.sqrt(np.average((values - mean) ** 2, weights=counts))) or 1.0)
    return tuple(means), tuple(deviations)
