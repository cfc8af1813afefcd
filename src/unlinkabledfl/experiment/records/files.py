"""Write files so that a crash, a full disk or Ctrl-C leaves either the old content or the new, and whole lines only.

Invariant: whatever `AppendedLines` wrote ends in a newline. A write that fails half-way is cut off again, so that the
file can be read, and appended to, as if it had never been tried.
"""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from unlinkabledfl.errors import RunError

__all__ = ["AppendedLines", "reading", "replaced_file", "write_file", "writing"]

PUBLIC: Final = 0o644
SECRET: Final = 0o600
_TAIL_BYTES: Final = 1 << 16

_HINTS: Final = {
    errno.ENOSPC: "free some space, then go on with --resume",
    errno.EDQUOT: "free some space, then go on with --resume",
    errno.EFBIG: "the limit on file sizes is too low; raise it, then go on with --resume",
    errno.EACCES: "choose another directory with --out, or mend its permissions",
    errno.EPERM: "choose another directory with --out, or mend its permissions",
    errno.EROFS: "choose a directory that can be written with --out",
}


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the system says about a write into a sentence that says what to do."""
    try:
        yield
    except OSError as error:
        hint = _HINTS.get(error.errno or 0)
        problem = f"{path} cannot be written: {error.strerror or error}"
        raise RunError(problem if hint is None else f"{problem} ({hint})") from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what the system says about a read into a sentence."""
    try:
        yield
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror or error}") from error


@contextmanager
def replaced_file(path: Path, *, mode: int = PUBLIC) -> Iterator[IO[bytes]]:
    """Give a file to write that takes the place of the named one once it is complete."""
    with writing(path):
        # Created with mode 0600: a secret is never readable by others, not for a moment.
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as sink:
                yield sink
                sink.flush()
                os.fchmod(descriptor, mode)
                os.fsync(descriptor)
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise


def write_file(path: Path, content: str | bytes, *, mode: int = PUBLIC) -> None:
    """Replace a file's content at once."""
    with replaced_file(path, mode=mode) as sink:
        sink.write(content.encode(errors="replace") if isinstance(content, str) else content)


class AppendedLines:
    """A text file that only grows, by whole lines, each of which is with the system as soon as `append` returns."""

    def __init__(self, path: Path, *, header: str) -> None:
        """Open it, or begin it with the header. A last line without its end is cut off: its writer died."""
        self.path = path
        with writing(path):
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, PUBLIC)
            self._end_bytes = self._whole_lines_bytes()
            os.ftruncate(self._descriptor, self._end_bytes)
        if self._end_bytes == 0:
            self.append(header + "\n")

    @property
    def end_bytes(self) -> int:
        """How long the file is."""
        return self._end_bytes

    def append(self, lines: str) -> None:
        """Write these lines, each with its end, or none of them. What is no text becomes question marks."""
        content = memoryview(lines.encode(errors="replace"))
        with writing(self.path):
            try:
                written = 0
                while written < len(content):
                    written += os.write(self._descriptor, content[written:])
            except OSError:
                with suppress(OSError):
                    os.ftruncate(self._descriptor, self._end_bytes)
                raise
        self._end_bytes += len(content)

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _whole_lines_bytes(self) -> int:
        end = os.fstat(self._descriptor).st_size
        while end > 0:
            start = max(0, end - _TAIL_BYTES)
            newline = os.pread(self._descriptor, end - start, start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            end = start
        return 0
