"""The cache of datasets on this host: four .npy files each, which every process maps instead of reading.

    absent  --get: a source delivers, checksums match--> ready
    absent  --get: no source can-----------------------> DatasetError, absent
    ready   --get--------------------------------------> ready
    damaged --get--------------------------------------> ready
    ready   --load-------------------------------------> Splits, ready
    damaged --load, verify-----------------------------> DatasetError, damaged

Invariant: a directory under a dataset's name was complete and compared with its checksums when it got that name. It
is built aside and renamed, under a lock that processes on one host share. `load` maps, so it checks sizes and shapes
only; `verify` reads everything.
"""

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from unlinkabledfl.errors import ConfigError, DatasetError
from unlinkabledfl.learning.datasets.catalogue import DEFAULT, Entry, entry_of
from unlinkabledfl.learning.datasets.dataset import Bytes, Dataset, Splits
from unlinkabledfl.learning.datasets.progress import NoProgress, Progress
from unlinkabledfl.learning.datasets.sources import Source

ENVIRONMENT: Final = "UNLINKABLEDFL_DATA"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """How `get` left a dataset. No source: it was there, and whole."""

    name: str
    path: Path
    source: str | None
    seconds: float
    size_bytes: int


def data_directory(override: Path | None = None) -> Path:
    """Return where datasets lie: as told, else by the environment, else in the user's cache."""
    if override is not None:
        return override.expanduser()
    if chosen := os.environ.get(ENVIRONMENT):
        return Path(chosen).expanduser()
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The specification of these directories has relative ones ignored.
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "unlinkabledfl"


def load(name: str = DEFAULT, *, directory: Path | None = None) -> Splits:
    """Map a dataset. The packaged one needs no `get` before; where its cache cannot be written it is read instead."""
    entry = entry_of(name)
    home = data_directory(directory)
    path = home / name
    if not path.exists():
        if entry.packaged_in is None:
            raise _absent(entry, path, directory)
        try:
            get(name, directory=directory)
        except DatasetError:
            _compare_files(entry, entry.packaged_in, NoProgress())
            return _splits(entry, entry.read(entry.packaged_in))
    return _splits(entry, {array: _map(entry, path, array, directory) for array in entry.arrays})


def verify(name: str, *, directory: Path | None = None) -> dict[str, str]:
    """Read all of a dataset and compare it with its checksums; return them by array."""
    entry = entry_of(name)
    path = data_directory(directory) / name
    if not path.exists():
        raise _absent(entry, path, directory)
    for array in entry.arrays:
        _compare(_map(entry, path, array, directory), entry, path, array, directory)
    return {array: stored.sha256 for array, stored in entry.arrays.items()}


def state(name: str, *, directory: Path | None = None) -> str:
    """Say `ready`, `absent`, `packaged` (absent, but `load` unpacks it) or `damaged`, without reading all of it."""
    entry = entry_of(name)
    if not (data_directory(directory) / name).exists():
        return "absent" if entry.packaged_in is None else "packaged"
    try:
        load(name, directory=directory)
    except DatasetError:
        return "damaged"
    return "ready"


def get(
    name: str, *, directory: Path | None = None, source: str | None = None, progress: Progress | None = None
) -> Fetched:
    """Have a dataset here, whole and genuine: look, and fetch it from the first source that can."""
    entry = entry_of(name)
    candidates = _candidates(entry, source)
    home = data_directory(directory)
    started_at_s = time.perf_counter()
    try:
        home.mkdir(parents=True, exist_ok=True)
        with _locked(home / f".{name}.lock"):
            used = None if _is_whole(name, directory) else _fetch(entry, candidates, home, progress or NoProgress())
    except OSError as error:
        raise DatasetError(
            file=str(error.filename or home),
            problem=f"cannot be written: {error.strerror}",
            hint=f"choose another directory with --dir or {ENVIRONMENT}",
        ) from error
    return Fetched(
        name=name,
        path=home / name,
        source=used,
        seconds=time.perf_counter() - started_at_s,
        size_bytes=sum(file.stat().st_size for file in (home / name).iterdir()),
    )


def _candidates(entry: Entry, source: str | None) -> tuple[Source, ...]:
    chosen = tuple(candidate for candidate in entry.sources if source in {None, candidate.name})
    if not chosen:
        names = ", ".join(candidate.name for candidate in entry.sources)
        raise ConfigError(key="--source", got=source, takes=f"one of {names} for {entry.name}")
    return chosen


def _is_whole(name: str, directory: Path | None) -> bool:
    try:
        verify(name, directory=directory)
    except DatasetError:
        return False
    return True


def _fetch(entry: Entry, candidates: tuple[Source, ...], home: Path, progress: Progress) -> str:
    """Try one source after the other and return the name of the one that delivered."""
    failures = []
    work = home / f".{entry.name}.work"
    for source in candidates:
        shutil.rmtree(work, ignore_errors=True)
        (work / "raw").mkdir(parents=True)
        try:
            source.fetch(work / "raw", downloads=home / "downloads" / entry.name, progress=progress)
            _compare_files(entry, work / "raw", progress)
            progress.begin(f"storing {entry.name}", total_bytes=None)
            _store(entry, work)
        except DatasetError as error:
            place = source.name if error.file == source.name else f"{source.name}: {error.file}"
            failures.append(f"{place}: {error.problem}")
            continue
        finally:
            shutil.rmtree(work / "raw", ignore_errors=True)
        _replace(work, home / entry.name)
        shutil.rmtree(home / "downloads" / entry.name, ignore_errors=True)
        return source.name
    shutil.rmtree(work, ignore_errors=True)
    tried = "".join(f"\n  {failure}" for failure in failures)
    raise DatasetError(
        file=entry.name,
        problem=f"no source could deliver it. Tried:{tried}\n",
        hint=(
            "connect this machine or set HTTPS_PROXY and run the command again; or run it with --dir on a machine that "
            f"is online and copy the directory {entry.name} to {home}; or use {DEFAULT}, which needs no network"
        ),
    )


def _compare_files(entry: Entry, raw: Path, progress: Progress) -> None:
    """Compare what a source left with what was published."""
    for name, wanted in entry.files.items():
        path = raw / name
        if not path.is_file():
            raise DatasetError(file=name, problem="the source does not have it", hint="try another source")
        progress.begin(f"checking {name}", total_bytes=path.stat().st_size)
        with path.open("rb") as content:
            found = hashlib.file_digest(content, "sha256").hexdigest()
        if found != wanted:
            raise DatasetError(
                file=name, problem=f"its SHA-256 is {found}, published is {wanted}", hint="try another source"
            )
        progress.advance(path.stat().st_size)


def _store(entry: Entry, work: Path) -> None:
    for name, array in entry.read(work / "raw").items():
        with (work / f"{name}.npy").open("wb") as sink:
            np.save(sink, array, allow_pickle=False)
            sink.flush()
            os.fsync(sink.fileno())
        _compare(_map(entry, work, name, None), entry, work, name, None)


def _replace(built: Path, target: Path) -> None:
    """Put a directory under its name. Whoever has the old one mapped keeps it until they let go."""
    old = target.with_name(f".{target.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        target.rename(old)
    built.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def _map(entry: Entry, path: Path, array: str, directory: Path | None) -> Bytes:
    file = path / f"{array}.npy"
    wanted = entry.arrays[array].shape
    hint = f"fetch it again: {_get_command(entry.name, directory)}"
    try:
        mapped = np.lib.format.open_memmap(file, mode="r")  # refuses arrays of objects, and archives
    except (OSError, ValueError, EOFError) as error:
        raise DatasetError(file=str(file), problem=f"it is missing or damaged: {error}", hint=hint) from error
    if (mapped.dtype, mapped.shape) != (np.dtype(np.uint8), wanted):
        found = f"{mapped.dtype} of shape {mapped.shape}"
        raise DatasetError(file=str(file), problem=f"it holds {found}, not uint8 of shape {wanted}", hint=hint)
    expected_bytes = mapped.offset + mapped.nbytes
    if file.stat().st_size != expected_bytes or not mapped.flags.c_contiguous:
        raise DatasetError(
            file=str(file), problem=f"it has {file.stat().st_size} bytes, not {expected_bytes}", hint=hint
        )
    # A plain array over the same pages: the subclass would cost time at every batch.
    plain: Bytes = mapped.view(np.ndarray)
    return plain


def _compare(content: Bytes, entry: Entry, path: Path, array: str, directory: Path | None) -> None:
    found, wanted = hashlib.sha256(content.data).hexdigest(), entry.arrays[array].sha256
    if found != wanted:
        raise DatasetError(
            file=str(path / f"{array}.npy"),
            problem=f"the SHA-256 of its array is {found}, not {wanted}",
            hint=f"fetch it again: {_get_command(entry.name, directory)}",
        )


def _splits(entry: Entry, arrays: dict[str, Bytes]) -> Splits:
    return Splits(
        *(
            Dataset(
                name=entry.name,
                images=arrays[f"{split}_images"],
                labels=arrays[f"{split}_labels"],
                classes=entry.classes,
            )
            for split in Splits._fields
        )
    )


def _absent(entry: Entry, path: Path, directory: Path | None) -> DatasetError:
    return DatasetError(
        file=str(path), problem=f"{entry.name} is not here yet", hint=f"fetch it: {_get_command(entry.name, directory)}"
    )


def _get_command(name: str, directory: Path | None) -> str:
    return f"unlinkabledfl data get {name}" + ("" if directory is None else f" --dir {directory}")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process of this host at a time build a dataset; the others wait, and then find it done."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
