"""What a dataset is in memory: images and their labels, most often mapped from a file and shared by all who read it."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unlinkabledfl.errors import DatasetError

Bytes = npt.NDArray[np.uint8]
LabelArray = npt.NDArray[np.uint8] | npt.NDArray[np.int64]

_IMAGE_DIMENSIONS = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dataset:
    """Images as bytes of shape (count, channels, height, width), and one label each, an index into `classes`."""

    name: str
    images: Bytes
    labels: LabelArray
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.images.dtype != np.uint8 or self.images.ndim != _IMAGE_DIMENSIONS:
            raise self._wrong(
                f"images are {self.images.dtype} of shape {self.images.shape}",
                "give uint8 of shape (count, channels, height, width)",
            )
        if self.labels.dtype not in {np.dtype(np.uint8), np.dtype(np.int64)} or self.labels.shape != (len(self),):
            raise self._wrong(
                f"labels are {self.labels.dtype} of shape {self.labels.shape}",
                f"give uint8 or int64, one for each of the {len(self)} images",
            )
        if len(self) and not 0 <= int(self.labels.min()) <= int(self.labels.max()) < len(self.classes):
            raise self._wrong(
                f"labels go from {self.labels.min()} to {self.labels.max()}",
                f"a label is an index into {len(self.classes)} classes",
            )

    def __len__(self) -> int:
        return len(self.images)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height, width."""
        _, channels, height, width = self.images.shape
        return channels, height, width

    def _wrong(self, problem: str, hint: str) -> DatasetError:
        return DatasetError(file=self.name, problem=problem, hint=hint)


class Splits(NamedTuple):
    """The two halves in which every one of these datasets was published."""

    train: Dataset
    test: Dataset
