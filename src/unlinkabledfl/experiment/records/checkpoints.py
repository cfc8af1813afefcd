"""A node's last model on disk, so that an interrupted run can go on from it: one npz file a node, no pickle.

Invariant: a checkpoint is whole or not there. Loading takes nothing on trust: sizes are bounded and compared with what
each array's header claims before memory is taken, and arrays of objects are refused.
"""

import math
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from unlinkabledfl.errors import LocalProtocolError, RunError
from unlinkabledfl.experiment.records.files import replaced_file

__all__ = ["Checkpoint", "load_checkpoint", "save_checkpoint"]

State = Mapping[str, NDArray[Any]]

_ROUND: Final = "round"
_PREFIX: Final = "state:"
_NPY: Final = ".npy"
_ARRAYS_MAX: Final = 10_000
_NUMERIC_KINDS: Final = "biuf"
# numpy's own names for the two layouts of a header that it writes.
_HEADERS: Final = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_FILE: Final = re.compile(r"node-(\d{4,7})\.npz")

BYTES_MAX: Final = 4 << 30


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Checkpoint:
    """A node's model after a round."""

    round_number: int
    state: State


def checkpoint_path(directory: Path, node: int) -> Path:
    """Return where a node's checkpoint lies."""
    return directory / f"node-{node:04d}.npz"


def checkpointed_nodes(directory: Path) -> list[int]:
    """Return the nodes that have one."""
    matches = (_FILE.fullmatch(path.name) for path in directory.glob("node-*.npz"))
    return sorted(int(match[1]) for match in matches if match)


def save_checkpoint(path: Path, *, round_number: int, state: State) -> None:
    """Replace a node's checkpoint at once."""
    arrays = {_PREFIX + name: np.asarray(array) for name, array in state.items()}
    for name, array in arrays.items():
        if array.dtype.kind not in _NUMERIC_KINDS:
            raise LocalProtocolError(f"{name} is of type {array.dtype}: only numbers can be stored")
    with replaced_file(path) as sink:
        np.savez(sink, allow_pickle=False, **arrays, **{_ROUND: np.array(round_number, dtype=np.int64)})


def load_checkpoint(path: Path, *, bytes_max: int = BYTES_MAX) -> Checkpoint:
    """Read a checkpoint back, or raise `RunError` with what is wrong with it."""
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = _read(archive, bytes_max)
    except FileNotFoundError as error:
        raise RunError(f"{path} is not there: this node was not checkpointed") from error
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise RunError(f"{path} is no whole checkpoint: {error} (delete it to start this node afresh)") from error
    round_number = arrays.pop(_ROUND)
    return Checkpoint(
        round_number=int(round_number), state={name.removeprefix(_PREFIX): array for name, array in arrays.items()}
    )


def _read(archive: zipfile.ZipFile, bytes_max: int) -> dict[str, NDArray[Any]]:
    entries = archive.infolist()
    if len(entries) > _ARRAYS_MAX:
        raise ValueError(f"{len(entries):,} arrays, at most {_ARRAYS_MAX:,} are read")
    if (claimed := sum(entry.file_size for entry in entries)) > bytes_max:
        raise ValueError(f"{claimed:,} bytes, at most {bytes_max:,} are read")
    arrays: dict[str, NDArray[Any]] = {}
    for entry in entries:
        name = entry.filename.removesuffix(_NPY)
        if name in arrays or not (name == _ROUND or name.startswith(_PREFIX)):
            raise ValueError(f"{name[:64]!r} does not belong here")
        with archive.open(entry) as source:
            arrays[name] = _read_array(source, entry.file_size, name)
    rounds = arrays.get(_ROUND)
    if rounds is None or rounds.shape != () or rounds.dtype != np.int64 or rounds < 0:
        raise ValueError("it does not say after which round")
    return arrays


def _read_array(source: IO[bytes], size_bytes: int, name: str) -> NDArray[Any]:
    read_header = _HEADERS.get(np.lib.format.read_magic(source))
    if read_header is None:
        raise ValueError(f"{name[:64]}: a format that is not written here")
    shape, is_fortran, dtype = read_header(source)
    if dtype.kind not in _NUMERIC_KINDS:
        raise ValueError(f"{name[:64]}: type {dtype}, only numbers are read")
    # The claim is compared with the stored size before any memory is taken for it.
    body_bytes = size_bytes - source.tell()
    if math.prod(shape) * dtype.itemsize != body_bytes:
        raise ValueError(f"{name[:64]}: {body_bytes} bytes for shape {shape} of {dtype}")
    content = bytearray(source.read(body_bytes + 1))
    if len(content) != body_bytes:
        raise ValueError(f"{name[:64]}: cut off")
    return np.frombuffer(content, dtype=dtype).reshape(shape, order="F" if is_fortran else "C")
