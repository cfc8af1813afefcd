"""What a node's container is made of: files, limits, and the one directory that it may write to.

    /           read-only: the image's files, or links to this host's that are mounted below
    /node       this node's own: `control`, the socket to its launcher, and `model.npz`, its last model
    /data/NAME  the dataset that it learns from, if the launcher has one
    /tmp        in memory, bounded

Invariant: a container sees nothing of another node and nothing of the run's directory, and nothing secret is in what it
is made with: the node's configuration, with its keys, comes over the socket and is on no disk.
"""

import os
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import unlinkabledfl
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.scenario import Scenario
from unlinkabledfl.experiment.scenario.learning import BUILT_IN_LEARNER
from unlinkabledfl.learning.datasets import data_directory

__all__ = [
    "CONTROL", "HOST_LINKS", "MODEL", "NODE", "NODE_LABEL", "Blueprint", "Mount", "Outfit", "default_image",
    "host_mounts",
]  # fmt: skip

NODE: Final = "/node"
CONTROL: Final = "control"
MODEL: Final = "model.npz"
NODE_LABEL: Final = "unlinkabledfl.node"
"""By which a container says whose it is."""
_DATA: Final = "/data"
_PLUGINS: Final = "/plugins"
_IMAGE_PYTHON: Final = "python"
_ROOTS_USER: Final = 10_001
"""Whom nodes run under when root launches them: nobody's number on common systems."""
HOST_LINKS: Final = ("bin", "lib", "lib32", "lib64", "libx32", "sbin")
"""What lies beside /usr, as a link into it on a merged system."""
_LOADER_CACHE: Final = Path("/etc/ld.so.cache")
_ENVIRONMENT: Final = {
    "HOME": "/tmp",  # noqa: S108 - of the container
    "USER": "node",
    "LANG": "C.UTF-8",
    "MALLOC_ARENA_MAX": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A file or directory of this host, and where a container sees it."""

    source: Path
    target: str
    read_only: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """What one container is made with."""

    name: str
    hostname: str
    image: str
    network: str
    command: Sequence[str]
    user_id: int
    group_id: int
    memory_mib: int
    cpus: float
    pids: int
    tmp_mib: int
    mounts: Sequence[Mount]
    environment: Mapping[str, str]
    labels: Mapping[str, str]
    cores: Sequence[int] = ()


class Outfit:
    """What the containers of one run have in common, and how they differ. `run` tells one run from another."""

    def __init__(self, scenario: Scenario, *, run: str, labels: Mapping[str, str]) -> None:
        container = scenario.container
        self._container = container
        self.run = run
        self.labels = dict(labels)
        self.network = f"unlinkabledfl-{run}"
        self.user_id, self.group_id = _user(container.user_id)
        self._is_host = container.root == "host"
        self._mounts = [
            *(host_mounts() if self._is_host else ()),
            *_data_mounts(scenario),
            *_plugin_mounts(container.plugins),
        ]

    @property
    def memory_mib(self) -> int:
        """How much memory a node may use."""
        return self._container.memory_mib

    @property
    def image(self) -> str:
        """What the containers are made from."""
        return self._container.image or default_image(self._container.root)

    def blueprint(self, index: int, *, place: Path, core: int | None) -> Blueprint:
        """Return what one node's container is made with; `place` is the directory that is its own."""
        container = self._container
        python = sys.executable if self._is_host else _IMAGE_PYTHON
        plugins = ":".join(f"{_PLUGINS}/{number}" for number in range(len(container.plugins)))
        return Blueprint(
            name=f"{self.network}-{index:04d}",
            hostname=f"node-{index:04d}",
            image=self.image,
            network=self.network,
            command=(python, "-m", "unlinkabledfl.experiment.node_container", f"{NODE}/{CONTROL}"),
            user_id=self.user_id,
            group_id=self.group_id,
            memory_mib=container.memory_mib,
            cpus=container.cpus,
            pids=container.pids,
            tmp_mib=container.tmp_mib,
            mounts=(*self._mounts, Mount(source=place, target=NODE, read_only=False)),
            environment={**_ENVIRONMENT, "UNLINKABLEDFL_DATA": _DATA, **({"PYTHONPATH": plugins} if plugins else {})},
            labels={**self.labels, NODE_LABEL: str(index)},
            cores=() if core is None else (core,),
        )


def default_image(root: str) -> str:
    """Return the name of the image that `unlinkabledfl containers build` makes for this root."""
    name = "unlinkabledfl" if root == "image" else "unlinkabledfl-host"
    return f"{name}:{unlinkabledfl.__version__.replace('+', '-')}"


def host_mounts() -> list[Mount]:
    """Return what of this host an interpreter with this package needs: no home, no configuration, no key."""
    wanted = [
        Path("/usr"),
        *(link for name in HOST_LINKS if (link := Path("/", name)).is_dir() and not link.is_symlink()),
        _LOADER_CACHE,
        *(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        Path(sys.base_prefix),
        Path(sys.prefix),
        Path(unlinkabledfl.__file__).parent.parent,
    ]
    found: list[Path] = []
    for path in sorted({path for path in wanted if path.exists()}, key=lambda path: len(path.parts)):
        if not any(path.is_relative_to(other) for other in found):
            found.append(path)
    return [Mount(source=path, target=str(path)) for path in found]


def _data_mounts(scenario: Scenario) -> list[Mount]:
    """The dataset of the built-in learner. One that comes with the package needs no place of its own."""
    name = scenario.learning.dataset
    path = data_directory() / name
    if scenario.learning.factory != BUILT_IN_LEARNER or not path.is_dir():
        return []
    return [Mount(source=path.resolve(), target=f"{_DATA}/{name}")]


def _plugin_mounts(plugins: Sequence[str]) -> list[Mount]:
    mounts = []
    for number, plugin in enumerate(plugins):
        path = Path(plugin).expanduser().resolve()
        if not path.is_dir():
            raise ConfigError(key="container.plugins", got=plugin, takes="directories that exist on this host")
        mounts.append(Mount(source=path, target=f"{_PLUGINS}/{number}"))
    return mounts


def _user(wanted: int) -> tuple[int, int]:
    """Return whom nodes run under, never root: by default whoever launches them, whose files they then write."""
    if wanted:
        return wanted, wanted
    return (os.getuid(), os.getgid()) if os.getuid() else (_ROOTS_USER, _ROOTS_USER)
