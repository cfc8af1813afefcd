"""A dataset small enough to write down, and the ways to have it, or to fail to."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from unlinkabledfl.errors import DatasetError
from unlinkabledfl.learning.datasets.catalogue import Entry, StoredArray
from unlinkabledfl.learning.datasets.dataset import Bytes
from unlinkabledfl.learning.datasets.formats import IDX_FILES, read_idx
from unlinkabledfl.learning.datasets.progress import Progress
from unlinkabledfl.learning.datasets.sources import Source


def idx(array: Bytes) -> bytes:
    """Return the array as an IDX file of bytes."""
    return b"\0\0\x08" + bytes([array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape) + array.tobytes()


RNG = np.random.default_rng(1)
ARRAYS: dict[str, Bytes] = {
    "train_images": RNG.integers(0, 256, (12, 1, 4, 5), dtype=np.uint8),
    "train_labels": np.arange(12, dtype=np.uint8) % 3,
    "test_images": RNG.integers(0, 256, (6, 1, 4, 5), dtype=np.uint8),
    "test_labels": np.arange(6, dtype=np.uint8) % 3,
}
FILES = {IDX_FILES[name]: idx(array[:, 0] if name.endswith("images") else array) for name, array in ARRAYS.items()}


@dataclass
class ToySource:
    """Delivers these files, or fails with this problem; counts how often it was asked."""

    name: str = "toy"
    files: Mapping[str, bytes] = field(default_factory=lambda: FILES)
    problem: str | None = None
    asked: int = 0
    before: Callable[[], None] = lambda: None

    def fetch(self, raw: Path, *, downloads: Path, progress: Progress) -> None:
        self.asked += 1
        self.before()
        progress.begin("playing", total_bytes=None)
        for name, content in self.files.items():
            (raw / name).write_bytes(content)
        if self.problem is not None:
            raise DatasetError(file=self.name, problem=self.problem, hint="try another source")


def toy_entry(*sources: Source) -> Entry:
    return Entry(
        name="toy",
        title="a toy",
        licence="none",
        classes=("a", "b", "c"),
        files={name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()},
        arrays={
            name: StoredArray(array.shape, hashlib.sha256(array.tobytes()).hexdigest())
            for name, array in ARRAYS.items()
        },
        read=read_idx,
        sources=sources,
    )
