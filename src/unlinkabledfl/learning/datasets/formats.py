"""From the files in which a dataset was published to arrays: IDX (MNIST and its like), CIFAR binary, and npz.

Each `read_*` takes the directory that holds the files, already compared with their checksums, and returns the four
arrays by name. They check what they read all the same: a checksum says who made a file, not that it was meant here.
"""

import math
import re
import zlib
from pathlib import Path
from typing import Final
from zipfile import BadZipFile, ZipFile

import numpy as np

from unlinkabledfl.errors import DatasetError
from unlinkabledfl.learning.datasets.dataset import Bytes

ARRAYS: Final = ("train_images", "train_labels", "test_images", "test_labels")

IDX_FILES: Final = {
    "train_images": "train-images-idx3-ubyte",
    "train_labels": "train-labels-idx1-ubyte",
    "test_images": "t10k-images-idx3-ubyte",
    "test_labels": "t10k-labels-idx1-ubyte",
}

CIFAR_TRAIN: Final = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
CIFAR_TEST: Final = "test_batch.bin"
CIFAR_SIDE: Final = 32
CIFAR_PIXELS: Final = CIFAR_SIDE * CIFAR_SIDE
CIFAR_RECORD_BYTES: Final = 1 + 3 * CIFAR_PIXELS

_IDX_UNSIGNED_BYTE: Final = 8
_MOST_DIMENSIONS: Final = 4
_LONGEST_ARRAY_BYTES: Final = 64 << 20
# What numpy writes before an array of bytes in C order.
_NPY_HEADER: Final = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '\|u1', 'fortran_order': False, 'shape': \((?P<shape>[0-9, ]{1,64})\), \} *\n",
    re.DOTALL,
)
_BAD_FILE: Final = "the file is not what it should be: remove it and fetch the dataset again"


def read_idx(directory: Path) -> dict[str, Bytes]:
    """Read the four files of MNIST or Fashion-MNIST."""
    arrays = {name: _read_idx_file(directory / file) for name, file in IDX_FILES.items()}
    # Grey images have one channel, and models expect to be told.
    return {name: array[:, np.newaxis] if name.endswith("images") else array for name, array in arrays.items()}


def read_cifar(directory: Path) -> dict[str, Bytes]:
    """Read the six files of CIFAR-10's binary version."""
    train_images, train_labels = _read_cifar_files([directory / file for file in CIFAR_TRAIN])
    test_images, test_labels = _read_cifar_files([directory / CIFAR_TEST])
    return dict(zip(ARRAYS, (train_images, train_labels, test_images, test_labels), strict=True))


def read_npz(directory: Path, file: str) -> dict[str, Bytes]:
    """Read four arrays of bytes from one compressed file. Numpy's own reader would allocate what a header claims."""
    path = directory / file
    try:
        with ZipFile(path) as archive:
            names = sorted(name.removesuffix(".npy") for name in archive.namelist())
            if names != sorted(ARRAYS):
                raise DatasetError(file=str(path), problem=f"it holds {names}, not {list(ARRAYS)}", hint=_BAD_FILE)
            return {name: _array_of(archive, f"{name}.npy", path) for name in ARRAYS}
    # KeyError: a member without the ending. NotImplementedError, RuntimeError: an unknown or encrypted way of packing.
    except (
        BadZipFile,
        OSError,
        EOFError,
        KeyError,
        NotImplementedError,
        RuntimeError,
        ValueError,
        zlib.error,
    ) as error:
        raise DatasetError(file=str(path), problem=f"it cannot be unpacked: {error}", hint=_BAD_FILE) from error


def _array_of(archive: ZipFile, name: str, path: Path) -> Bytes:
    with archive.open(name) as member:
        content = member.read(_LONGEST_ARRAY_BYTES + 1)
    header = _NPY_HEADER.match(content)
    shape = (
        () if header is None else tuple(int(side) for side in header["shape"].replace(b" ", b"").split(b",") if side)
    )
    start = 0 if header is None else header.end()
    if header is None or len(shape) > _MOST_DIMENSIONS or len(content) - start != math.prod(shape):
        raise DatasetError(
            file=str(path), problem=f"{name} is no array of bytes, or not as long as it says", hint=_BAD_FILE
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def _read_idx_file(path: Path) -> Bytes:
    content = _map(path)
    head = content[:4].tobytes()
    if len(head) < len(b"\0\0tn") or head[:2] != b"\0\0" or head[2] != _IDX_UNSIGNED_BYTE:
        raise DatasetError(file=str(path), problem="it does not begin as an IDX file of bytes does", hint=_BAD_FILE)
    dimensions = head[3]
    if dimensions > _MOST_DIMENSIONS:
        raise DatasetError(file=str(path), problem=f"it announces {dimensions} dimensions", hint=_BAD_FILE)
    start = 4 + 4 * dimensions
    shape = tuple(int.from_bytes(content[at : at + 4].tobytes(), "big") for at in range(4, start, 4))
    expected_bytes = start + math.prod(shape)
    if len(content) != expected_bytes:
        raise DatasetError(
            file=str(path),
            problem=f"it has {len(content)} bytes; its header announces shape {shape}, which makes {expected_bytes}",
            hint=_BAD_FILE,
        )
    return content[start:].reshape(shape)


def _read_cifar_files(paths: list[Path]) -> tuple[Bytes, Bytes]:
    batches = []
    for path in paths:
        content = _map(path)
        if len(content) % CIFAR_RECORD_BYTES:
            raise DatasetError(
                file=str(path),
                problem=f"it has {len(content)} bytes, which is no multiple of a record's {CIFAR_RECORD_BYTES}",
                hint=_BAD_FILE,
            )
        batches.append(content.reshape(-1, CIFAR_RECORD_BYTES))
    records = np.concatenate(batches)
    images = records[:, 1:].reshape(-1, 3, CIFAR_SIDE, CIFAR_SIDE)
    return images, records[:, 0]


def _map(path: Path) -> Bytes:
    if not path.stat().st_size:
        raise DatasetError(file=str(path), problem="it is empty", hint=_BAD_FILE)
    return np.memmap(path, dtype=np.uint8, mode="r")
