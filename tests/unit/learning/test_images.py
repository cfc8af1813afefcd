from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests.unit.learning.samples import squares
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.learning.images import Images


def test_bytes_become_mean_zero_and_deviation_one_by_their_own_statistics() -> None:
    images = Images(*squares(200, seed=1, channels=3, side=32))

    pixels, _ = images.between(0, 200)

    assert torch.allclose(pixels.mean((0, 2, 3)), torch.zeros(3), atol=1e-5)
    assert torch.allclose(pixels.std((0, 2, 3)), torch.ones(3), atol=1e-4)


def test_given_statistics_are_used_on_the_scale_from_0_to_1() -> None:
    images = Images(np.full((1, 28, 28), 255, np.uint8), np.zeros(1, np.uint8), mean=(0.5,), std=(0.25,))

    pixels, _ = images.between(0, 1)

    assert torch.allclose(pixels, torch.full((1, 1, 28, 28), 2.0))


def test_floats_are_taken_as_they_are() -> None:
    values = np.random.default_rng(1).normal(size=(3, 2, 4, 4)).astype(np.float32)

    taken, labels = Images(values, np.array([2, 0, 1])).take(torch.tensor([2, 0]))

    assert np.array_equal(taken.numpy(), values[[2, 0]])
    assert labels.tolist() == [1, 2]


def test_a_mapped_read_only_file_is_not_copied(tmp_path: Path) -> None:
    pixels, labels = squares(10, seed=1)
    np.save(tmp_path / "images.npy", pixels)
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r")

    images = Images(mapped, labels)

    assert images._images.data_ptr() == mapped.ctypes.data  # noqa: SLF001 - that nothing is copied has no other sign


@pytest.mark.parametrize(
    ("images", "labels", "key"),
    [
        (np.zeros((0, 1, 28, 28), np.uint8), np.zeros(0, np.uint8), "node 3"),
        (np.zeros((4, 784), np.uint8), np.zeros(4, np.uint8), "node 3.shape"),
        (np.zeros((4, 1, 28, 28), np.uint8), np.zeros(5, np.uint8), "node 3.labels"),
        (np.zeros((4, 1, 28, 28), np.float64), np.zeros(4, np.uint8), "node 3.type"),
        (np.zeros((4, 1, 28, 28), np.uint8), np.zeros(4, np.float32), "node 3.labels"),
        (np.zeros((4, 1, 28, 28), np.uint8), np.array([0, 1, -1, 0]), "node 3.labels"),
    ],
)
def test_images_that_cannot_be_trained_on_are_refused_by_name(
    images: NDArray[Any], labels: NDArray[Any], key: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        Images(images, labels, name="node 3")

    assert caught.value.key == key
