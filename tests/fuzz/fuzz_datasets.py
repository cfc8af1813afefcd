"""Feed broken dataset files to everything that reads one: arrays of bytes, or an error that names the file.

    python tests/fuzz/fuzz_datasets.py                     for FUZZ_SECONDS, 60 by default
    python tests/fuzz/fuzz_datasets.py -runs=1000          or with any option of libFuzzer
    python tests/fuzz/fuzz_datasets.py crash-0123abcd      one input again

The first byte of an input says which reader gets the rest of it, and how: as it is, or as changes to a good file.
"""

import gzip
import io
import json
import os
import struct
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Final

import numpy as np

try:
    import atheris
except ImportError:  # the module stays importable, so that type checks and tests see it
    atheris = None

with atheris.instrument_imports(include=["unlinkabledfl"]) if atheris else nullcontext():
    from unlinkabledfl.errors import DatasetError
    from unlinkabledfl.learning.datasets.dataset import Bytes
    from unlinkabledfl.learning.datasets.formats import (
        ARRAYS,
        CIFAR_TEST,
        CIFAR_TRAIN,
        IDX_FILES,
        read_cifar,
        read_idx,
        read_npz,
    )
    from unlinkabledfl.learning.datasets.png import PngError, read_png
    from unlinkabledfl.learning.datasets.sources import gunzip, take_members, unpack_cifar_pictures

MAX_BYTES: Final = 1 << 20
OPTIONS: Final = ("-max_len=4096", "-timeout=10", "-rss_limit_mb=1024")
WANTED: Final = {"package/y": "y"}


def _idx() -> bytes:
    return b"\0\0\x08\x03" + struct.pack(">III", 2, 2, 2) + bytes(8)


def _npz() -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ARRAYS:
            array = io.BytesIO()
            np.save(array, np.zeros(3, np.uint8))
            archive.writestr(f"{name}.npy", array.getvalue())
    return sink.getvalue()


def _png() -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\x04" + bytes(6) + b"\x03" + bytes(6))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def _tar(members: dict[str, bytes]) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return sink.getvalue()


def _pictures(labels: bytes) -> bytes:
    lists = {f"package/{name}_lables.json": labels for name in ("train", "test")}
    images = {f"package/{name}.png": _png() for name in (*(f"data_batch_{one}" for one in range(1, 6)), "test_batch")}
    return _tar({**lists, **images})


def _read_idx(data: bytes, work: Path) -> None:
    for name in IDX_FILES.values():
        (work / name).write_bytes(data)
    _check(read_idx(work))


def _read_cifar(data: bytes, work: Path) -> None:
    for name in (*CIFAR_TRAIN, CIFAR_TEST):
        (work / name).write_bytes(data)
    _check(read_cifar(work))


def _read_npz(data: bytes, work: Path) -> None:
    (work / "a.npz").write_bytes(data)
    _check(read_npz(work, "a.npz"))


def _read_png(data: bytes, work: Path) -> None:
    del work
    try:
        pixels = read_png(data, width=2, height=2)
    except PngError:
        return
    if pixels.shape[:2] != (2, 2):
        raise AssertionError(f"an image of shape {pixels.shape}")


def _gunzip(data: bytes, work: Path) -> None:
    (work / "y.gz").write_bytes(data)
    gunzip(work / "y.gz", work)


def _untar(data: bytes, work: Path) -> None:
    # Packed here: an input that must be a gzip would hardly ever reach the archive inside.
    (work / "a.tgz").write_bytes(gzip.compress(data, compresslevel=1))
    take_members(WANTED)(work / "a.tgz", work)


def _unpack_pictures(data: bytes, work: Path) -> None:
    (work / "a.tgz").write_bytes(gzip.compress(data, compresslevel=1))
    unpack_cifar_pictures(work / "a.tgz", work)


READERS: Final[tuple[tuple[Callable[[bytes, Path], None], bytes], ...]] = (
    (_read_idx, _idx()),
    (_read_cifar, bytes(3073)),
    (_read_npz, _npz()),
    (_read_png, _png()),
    (_gunzip, gzip.compress(bytes(100), mtime=0)),
    (_untar, _tar({"package/x": b"1", "package/y": b"2"})),
    (_unpack_pictures, _pictures(json.dumps([1, 2, 3]).encode())),
    (lambda data, work: _unpack_pictures(_pictures(data), work), b'[[1], {"a": null}]'),
)


def _check(arrays: dict[str, Bytes]) -> None:
    if tuple(sorted(arrays)) != tuple(sorted(ARRAYS)) or any(array.dtype != np.uint8 for array in arrays.values()):
        raise AssertionError(f"read { ({name: (array.dtype, array.shape) for name, array in arrays.items()}) }")


def mutated(good: bytes, data: bytes) -> bytes:
    """Return the good file with some bytes changed (two of position and a mask each), cut where the last byte says."""
    file = bytearray(good)
    for at in range(0, len(data) - 2, 3):
        file[int.from_bytes(data[at : at + 2], "big") % len(file)] ^= data[at + 2]
    return bytes(file[: len(file) - data[-1]] if len(data) % 3 == 1 else file)


def fuzz_one(data: bytes) -> None:
    """Try one input."""
    selector, rest = (data[0], data[1:]) if data else (0, b"")
    read, good = READERS[selector // 2 % len(READERS)]
    content = mutated(good, rest) if selector & 1 else rest
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        try:
            read(content, work)
        except DatasetError as error:
            if not error.file or not error.problem:
                raise AssertionError("an error without a file or a reason") from error
        left = sum(path.stat().st_size for path in work.rglob("*") if path.is_file())
    if left > MAX_BYTES + 100 * len(content):
        raise AssertionError(f"{len(content)} bytes left {left} behind")


def main(arguments: Sequence[str]) -> None:
    """Run libFuzzer, for a limited time unless the arguments say how long."""
    if atheris is None:
        sys.exit("atheris is not installed; `make fuzz` installs it")
    limits = [] if arguments else [f"-max_total_time={os.environ.get('FUZZ_SECONDS', '60')}"]
    atheris.Setup([sys.argv[0], *OPTIONS, *limits, *arguments], fuzz_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
