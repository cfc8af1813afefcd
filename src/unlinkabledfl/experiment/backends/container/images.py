"""What containers are made from: an image with everything in it, or an empty root into which this host is mounted.

The image is built by the engine from the `Containerfile` beside this module. The package goes in as a wheel, which is
made here from the files that are running now: so it does not matter whether they came from an index, a wheel or a
checkout, and an image never holds other code than its builder.

The empty root is a handful of links. It needs no registry and no build, takes a moment, and weighs nothing; but its
containers see the programs of this host, all of /usr, read-only.
"""

import base64
import hashlib
import io
import os
import tarfile
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

import unlinkabledfl
from unlinkabledfl.errors import RunError
from unlinkabledfl.experiment.backends.container.blueprint import HOST_LINKS
from unlinkabledfl.experiment.backends.container.engine import Engine

__all__ = ["CODE_LABEL", "build_context", "build_image", "code_digest", "host_root", "import_host_root", "make_wheel"]

CODE_LABEL: Final = "unlinkabledfl.code"
"""What an image says of the code in it."""
_CONTAINERFILE: Final = Path(__file__).with_name("Containerfile")
_PACKAGE: Final = Path(unlinkabledfl.__file__).parent
_WHEEL: Final = "Wheel-Version: 1.0\nGenerator: unlinkabledfl\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_DATE: Final = (1980, 1, 1, 0, 0, 0)


def import_host_root(engine: Engine, name: str) -> None:
    """Give the engine the empty root."""
    engine.import_image(host_root(), name=name, labels={"unlinkabledfl.root": "host"})


def build_image(engine: Engine, name: str, *, base: str | None = None, extras: str = "learning") -> Iterator[str]:
    """Have the engine build the image with everything in it; say line by line what it does."""
    arguments = {"EXTRAS": extras, "TORCH": _torch()} | ({} if base is None else {"BASE": base})
    return engine.build_image(build_context(), name=name, arguments=arguments, labels={CODE_LABEL: code_digest()})


def host_root() -> bytes:
    """Return a tar archive with the links of this host that stand beside /usr, and nothing else."""
    links = {name: os.readlink(f"/{name}") for name in HOST_LINKS if Path("/", name).is_symlink()}
    with io.BytesIO() as sink:
        with tarfile.open(fileobj=sink, mode="w") as archive:
            for name, target in links.items():
                link = tarfile.TarInfo(name)
                link.type, link.linkname = tarfile.SYMTYPE, target
                archive.addfile(link)
        return sink.getvalue()


def build_context() -> bytes:
    """Return a tar archive with the Containerfile and the wheel."""
    name, wheel = make_wheel()
    with io.BytesIO() as sink:
        with tarfile.open(fileobj=sink, mode="w") as archive:
            for path, content in ((_CONTAINERFILE.name, _CONTAINERFILE.read_bytes()), (name, wheel)):
                entry = tarfile.TarInfo(path)
                entry.size, entry.mode = len(content), 0o644
                archive.addfile(entry, io.BytesIO(content))
        return sink.getvalue()


def make_wheel() -> tuple[str, bytes]:
    """Return the name and the content of a wheel of the package that is running. Equal code makes equal bytes."""
    installed = _installed()
    stem = f"unlinkabledfl-{installed.version}"
    files = dict(_files())
    files[f"{stem}.dist-info/METADATA"] = (installed.read_text("METADATA") or "").encode()
    files[f"{stem}.dist-info/WHEEL"] = _WHEEL.encode()
    files[f"{stem}.dist-info/entry_points.txt"] = (installed.read_text("entry_points.txt") or "").encode()
    record = f"{stem}.dist-info/RECORD"
    files[record] = "".join([*(_recorded(*file) for file in files.items()), f"{record},,\n"]).encode()
    with io.BytesIO() as sink:
        with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, content in files.items():
                entry = zipfile.ZipInfo(path, _DATE)
                entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                archive.writestr(entry, content)
        return f"{stem}-py3-none-any.whl", sink.getvalue()


def code_digest() -> str:
    """Return what tells the code of one package from another's."""
    digest = hashlib.sha256()
    for path, content in _files():
        digest.update(f"{path}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _files() -> Iterator[tuple[str, bytes]]:
    for path in sorted(_PACKAGE.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            yield str(path.relative_to(_PACKAGE.parent)), path.read_bytes()


def _recorded(path: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    return f"{path},sha256={digest},{len(content)}\n"


def _torch() -> str:
    """Return the requirement by which the package pins PyTorch."""
    wanted = (line.partition(";")[0].strip() for line in _installed().requires or ())
    return next((line for line in wanted if line.startswith("torch==")), "")


def _installed() -> Distribution:
    try:
        return distribution("unlinkabledfl")
    except PackageNotFoundError as error:
        raise RunError("the package is not installed, so no image can be made of it: pip install . first") from error
