"""Models on disk: whole or not there, and read without trust."""

import io
import struct
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from unlinkabledfl.errors import LocalProtocolError, RunError
from unlinkabledfl.experiment.records.checkpoints import (
    checkpoint_path,
    checkpointed_nodes,
    load_checkpoint,
    save_checkpoint,
)

STATE: dict[str, NDArray[Any]] = {
    "conv.weight": np.arange(12, dtype=np.float32).reshape(3, 4),
    "bn.num_batches_tracked": np.array(7, dtype=np.int64),
    "empty/odd name": np.zeros((0, 3), dtype=np.float64),
    "mask": np.asfortranarray(np.array([[True, False], [False, False]])),
}


def npy(array: NDArray[Any]) -> bytes:
    sink = io.BytesIO()
    np.lib.format.write_array(sink, array)
    return sink.getvalue()


def archive(path: Path, **entries: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as sink:
        for name, content in entries.items():
            sink.writestr(name.replace("__", ":") + ".npy", content)
    return path


def header_claiming(shape: tuple[int, ...]) -> bytes:
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape!r}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


def test_a_model_comes_back_as_it_was(tmp_path: Path) -> None:
    path = checkpoint_path(tmp_path, 3)

    save_checkpoint(path, round_number=5, state=STATE)
    found = load_checkpoint(path)

    assert (path.name, found.round_number, list(found.state)) == ("node-0003.npz", 5, list(STATE))
    for name, array in STATE.items():
        assert found.state[name].dtype == array.dtype
        np.testing.assert_array_equal(found.state[name], array)
        assert found.state[name].flags.writeable


def test_the_nodes_that_have_one_are_listed(tmp_path: Path) -> None:
    for node in (12, 0, 12345):
        save_checkpoint(checkpoint_path(tmp_path, node), round_number=1, state=STATE)
    (tmp_path / "node-00x1.npz").write_bytes(b"")

    assert checkpointed_nodes(tmp_path) == [0, 12, 12345]


def test_objects_are_not_stored(tmp_path: Path) -> None:
    with pytest.raises(LocalProtocolError, match="only numbers"):
        save_checkpoint(tmp_path / "x.npz", round_number=1, state={"w": np.array([{}])})

    assert list(tmp_path.iterdir()) == []


def test_one_that_is_missing_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"node-0001\.npz is not there: this node was not checkpointed"):
        load_checkpoint(checkpoint_path(tmp_path, 1))


ROUND = npy(np.array(1, dtype=np.int64))


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({"state__w": ROUND}, "does not say after which round"),
        ({"round": npy(np.array(-1))}, "does not say after which round"),
        ({"round": npy(np.array([1, 2]))}, "does not say after which round"),
        ({"round": ROUND, "other": ROUND}, "'other' does not belong here"),
        ({"round": ROUND, "state__w": header_claiming((1 << 40,))}, "0 bytes for shape"),
        ({"round": ROUND, "state__w": header_claiming((3,)) + b"1234"}, "4 bytes for shape"),
        ({"round": ROUND, "state__w": b"not an array at all"}, "no whole checkpoint"),
        ({"round": ROUND, "state__w": b"\x93NUMPY\x09\x00" + b"x" * 80}, "no whole checkpoint"),
        ({"round": ROUND, "state__w": npy(np.array(["text"]))}, "only numbers are read"),
    ],
)
def test_one_that_lies_is_refused_before_memory_is_taken(tmp_path: Path, entries: dict[str, bytes], said: str) -> None:
    with pytest.raises(RunError, match=said):
        load_checkpoint(archive(tmp_path / "node-0000.npz", **entries))


def test_pickled_objects_are_refused_unopened(tmp_path: Path) -> None:
    sink = io.BytesIO()
    np.lib.format.write_array(sink, np.array([print], dtype=object), allow_pickle=True)

    with pytest.raises(RunError, match="only numbers are read"):
        load_checkpoint(archive(tmp_path / "n.npz", round=ROUND, state__w=sink.getvalue()))


def test_one_that_is_larger_than_allowed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "n.npz"
    save_checkpoint(path, round_number=1, state={"w": np.zeros(1000)})

    with pytest.raises(RunError, match="at most 5,000 are read"):
        load_checkpoint(path, bytes_max=5000)


@given(place=st.integers(0, 10_000), change=st.integers(1, 255), cut=st.booleans())
def test_a_damaged_one_is_refused_or_reads_as_numbers(
    tmp_path_factory: pytest.TempPathFactory, place: int, change: int, cut: bool
) -> None:
    path = tmp_path_factory.mktemp("c") / "node-0000.npz"
    save_checkpoint(path, round_number=2, state=STATE)
    content = bytearray(path.read_bytes())
    place %= len(content)
    if cut:
        del content[place:]
    else:
        content[place] ^= change
    path.write_bytes(bytes(content))

    # RunError is the one way to refuse; anything else that comes out fails the test.
    with suppress(RunError):
        found = load_checkpoint(path)
        assert all(array.dtype.kind in "biuf" for array in found.state.values())
