"""What launchers that were killed have left at an engine: told by labels, and taken away.

A container or network says by its labels which host launched it, and into which run directory. It is left over if that
host is this one and nobody writes that directory any more: the lock of a directory goes with its writer. Whoever writes
a directory is the only one, so whatever else is labelled with it is left over too. What other users launched cannot be
told, for their locks are closed to us: it is left to them.
"""

import platform
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from unlinkabledfl.experiment.backends.container.engine import Engine
from unlinkabledfl.experiment.records import RunDirectory, Status

__all__ = ["RUN_LABEL", "labels_of", "remove_leftovers"]

RUN_LABEL: Final = "unlinkabledfl.run"
_HOST_LABEL: Final = "unlinkabledfl.host"
_DIRECTORY_LABEL: Final = "unlinkabledfl.directory"


def labels_of(run: str, directory: Path) -> Mapping[str, str]:
    """Return what everything of a run is labelled with."""
    return {RUN_LABEL: run, _HOST_LABEL: platform.node(), _DIRECTORY_LABEL: str(directory.resolve())}


def remove_leftovers(
    engine: Engine, *, own: Mapping[str, str] = MappingProxyType({}), everything: bool = False
) -> list[str]:
    """Take away what is left over, or everything that launchers made, even of runs that go on; return the names.

    `own` are the labels of the run that asks.
    """
    removed = []
    for container in engine.containers(label=RUN_LABEL):
        if everything or _is_left_over(container.labels, own):
            engine.remove(container.identity)
            removed.append(container.name)
    for network in engine.networks(label=RUN_LABEL):
        if everything or _is_left_over(network.labels, own):
            engine.remove_network(network.identity)
            removed.append(network.name)
    return removed


def _is_left_over(labels: Mapping[str, str], own: Mapping[str, str]) -> bool:
    if labels.get(_HOST_LABEL) != platform.node():
        return False
    directory = labels.get(_DIRECTORY_LABEL, "")
    if directory == own.get(_DIRECTORY_LABEL):
        return labels[RUN_LABEL] != own[RUN_LABEL]
    found = RunDirectory(Path(directory))
    return found.is_open_to_us and found.status() is not Status.RUNNING
