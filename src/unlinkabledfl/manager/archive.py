"""A run directory as one zip file, made while it is sent: nothing is written, and little is held."""

import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["zip_of"]

_CHUNK_BYTES: Final = 1 << 18
_LEFT_OUT: Final = frozenset({"secrets", "trace"})
"""Keys, and what nodes take down for a trace while they run."""

_STORED: Final = frozenset({".parquet", ".npz"})
_EARLIEST: Final = (1980, 1, 1, 0, 0, 0)


class _Sink(io.RawIOBase):
    """A file that cannot be sought, from which what was written is taken."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, content: "Buffer") -> int:
        part = bytes(content)
        self._parts.append(part)
        return len(part)

    def take(self) -> bytes:
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken


def zip_of(directory: Path, *, name: str) -> Iterator[bytes]:
    """Yield the archive of a run, all under one folder of that name. Keys and links to elsewhere are left out."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in _files(directory):
            try:
                source = path.open("rb")
            except OSError:
                continue  # replaced or deleted meanwhile
            with source:
                entry = zipfile.ZipInfo(f"{name}/{path.relative_to(directory).as_posix()}", date_time=_EARLIEST)
                entry.compress_type = zipfile.ZIP_STORED if path.suffix in _STORED else zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                # Of a file that grows meanwhile, as much as it has now.
                left = os.fstat(source.fileno()).st_size
                with archive.open(entry, "w", force_zip64=True) as member:
                    while left > 0 and (chunk := source.read(min(left, _CHUNK_BYTES))):
                        left -= len(chunk)
                        member.write(chunk)
                        yield sink.take()
    yield sink.take()


def _files(directory: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(directory, followlinks=False):
        folders[:] = sorted(each for each in folders if each not in _LEFT_OUT)
        for file in sorted(files):
            path = Path(folder) / file
            # A dot: a lock, or what is being written aside.
            if not file.startswith(".") and path.is_file() and not path.is_symlink():
                yield path
