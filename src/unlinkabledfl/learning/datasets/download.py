"""Download one file over HTTP so that an interruption costs only what is missing.

    absent --download---------------------------> part
    part --connection breaks, asks for the rest-> part
    part --server has no ranges, begins again---> part
    part --size and checksum are right----------> whole
    part --wrong checksum, begins again once----> absent

Invariant: the final name never holds anything but the whole file with the published checksum. It appears by a rename.
"""

import hashlib
import http.client
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from unlinkabledfl.errors import DatasetError
from unlinkabledfl.learning.datasets.progress import Progress

TIMEOUT_S: Final = 20.0
_ATTEMPTS: Final = 5
_BLOCK_BYTES: Final = 1 << 18
_OK, _PARTIAL, _RANGE_REFUSED = 200, 206, 416
_TRY_AGAIN: Final = "run the command again: it goes on where it stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """A file as its publisher describes it. MD5 is what was published; what decides is the SHA-256 of the contents."""

    name: str
    size_bytes: int
    md5: str


class _BrokenError(Exception):
    """The transfer stopped before the end; what has come is kept."""


def download(file: RemoteFile, *, base_url: str, into: Path, progress: Progress, timeout_s: float = TIMEOUT_S) -> Path:
    """Fetch `base_url`/name into a directory and return its path; go on with what an earlier attempt has left."""
    target, part = into / file.name, into / f"{file.name}.part"
    if target.exists() and _is_genuine(target, file):
        return target
    url = f"{base_url.rstrip('/')}/{file.name}"
    if urllib.parse.urlsplit(url).scheme not in {"http", "https"}:
        raise DatasetError(file=url, problem="this is no web address", hint="give one that begins with https://")
    into.mkdir(parents=True, exist_ok=True)
    problem, restarted = "", False
    for _ in range(_ATTEMPTS):
        progress.begin(f"{file.name} from {urllib.parse.urlsplit(url).hostname}", total_bytes=file.size_bytes)
        try:
            _continue(url, part, file, progress, timeout_s)
        except _BrokenError as error:
            problem = str(error)
            continue
        if _is_genuine(part, file):
            part.replace(target)
            return target
        # Perhaps an old part and a new rest do not belong together: once more, as a whole.
        problem = f"{part.stat().st_size} bytes came, and not those that were published (MD5 {file.md5})"
        part.unlink()
        if restarted:
            break
        restarted = True
    raise DatasetError(file=url, problem=problem, hint=_TRY_AGAIN)


def _continue(url: str, part: Path, file: RemoteFile, progress: Progress, timeout_s: float) -> None:
    have_bytes = part.stat().st_size if part.exists() else 0
    if have_bytes >= file.size_bytes:
        return
    headers = {"User-Agent": "unlinkabledfl", "Accept-Encoding": "identity"}
    if have_bytes:
        headers["Range"] = f"bytes={have_bytes}-"
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - its scheme is checked above
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as response:  # noqa: S310
            goes_on = response.status == _PARTIAL and (response.headers.get("Content-Range") or "").startswith(
                f"bytes {have_bytes}-"
            )
            if response.status != _OK and not goes_on:
                part.unlink(missing_ok=True)
                raise _BrokenError(f"the server answered {response.status} with another range than asked for")
            if goes_on:
                progress.advance(have_bytes)
            _receive(response, part, file.size_bytes, progress, have_bytes=have_bytes if goes_on else 0)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == _RANGE_REFUSED:
            part.unlink(missing_ok=True)
            raise _BrokenError("the server refuses to go on from where we stopped") from error
        raise DatasetError(
            file=url, problem=f"the server answers {error.code} {error.reason}", hint="it may work later"
        ) from error
    except urllib.error.URLError as error:
        raise DatasetError(
            file=url, problem=f"cannot be reached: {error.reason}", hint="is this machine online?"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise _BrokenError(f"the connection broke: {error}") from error


def _receive(
    response: http.client.HTTPResponse, part: Path, size_bytes: int, progress: Progress, *, have_bytes: int
) -> None:
    with part.open("ab" if have_bytes else "wb") as sink:
        # One byte more than published is enough to know that this is another file: nobody fills our disk.
        while block := response.read(min(_BLOCK_BYTES, size_bytes + 1 - have_bytes)):
            sink.write(block)
            have_bytes += len(block)
            progress.advance(len(block))
    if have_bytes < size_bytes:
        raise _BrokenError(f"{have_bytes} of {size_bytes} bytes came, then the connection ended")


def _is_genuine(path: Path, file: RemoteFile) -> bool:
    if path.stat().st_size != file.size_bytes:
        return False
    with path.open("rb") as source:
        return hashlib.file_digest(source, lambda: hashlib.md5(usedforsecurity=False)).hexdigest() == file.md5
