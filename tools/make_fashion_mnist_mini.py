"""Make the dataset that ships with the package out of the full Fashion-MNIST: the same input gives the same arrays.

    unlinkabledfl data get fashion-mnist
    python tools/make_fashion_mnist_mini.py

Stratified: every class has the same number of images. They are the first of each class, in the published order, which
is a random one; so no seed and no generator's version has a say in what is chosen.
"""

import argparse
import hashlib
import sys
from pathlib import Path

import numpy as np

from unlinkabledfl.learning.datasets import Dataset, load
from unlinkabledfl.learning.datasets.dataset import Bytes

TRAIN_IMAGES_PER_CLASS = 500
TEST_IMAGES_PER_CLASS = 100
TARGET = Path(__file__).parents[1] / "src/unlinkabledfl/learning/datasets/packaged/fashion-mnist-mini.npz"


def select(dataset: Dataset, per_class: int) -> tuple[Bytes, Bytes]:
    """Return the first images of each class and their labels, in the order in which they stand."""
    chosen = np.sort(
        np.concatenate([np.flatnonzero(dataset.labels == label)[:per_class] for label in range(len(dataset.classes))])
    )
    return np.ascontiguousarray(dataset.images[chosen]), dataset.labels[chosen].astype(np.uint8)


def make(directory: Path | None) -> dict[str, Bytes]:
    """Return the four arrays of the subset."""
    full = load("fashion-mnist", directory=directory)
    train_images, train_labels = select(full.train, TRAIN_IMAGES_PER_CLASS)
    test_images, test_labels = select(full.test, TEST_IMAGES_PER_CLASS)
    return {
        "train_images": train_images,
        "train_labels": train_labels,
        "test_images": test_images,
        "test_labels": test_labels,
    }


def main() -> None:
    """Write the file, and print what the catalogue has to know about it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--dir", type=Path, help="where the full dataset lies, as in `unlinkabledfl data get --dir`")
    arguments = parser.parse_args()
    arrays = make(arguments.dir)
    TARGET.parent.mkdir(exist_ok=True)
    # numpy dates the members of such a file 1980, so that the file depends on the arrays and on zlib alone.
    np.savez_compressed(TARGET, allow_pickle=False, **arrays)
    packed = TARGET.read_bytes()
    sys.stdout.write(f"{TARGET.name}: {len(packed)} bytes, sha256 {hashlib.sha256(packed).hexdigest()}\n")
    for name, array in arrays.items():
        sys.stdout.write(f"{name}: {array.shape}, sha256 {hashlib.sha256(array.tobytes()).hexdigest()}\n")


if __name__ == "__main__":
    main()
