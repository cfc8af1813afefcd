"""The ends of logs."""

import os
from typing import Final

from starlette.exceptions import HTTPException

from unlinkabledfl.experiment.records import RunDirectory
from unlinkabledfl.manager.documents import LogText
from unlinkabledfl.manager.launching import LAUNCH_LOG

__all__ = ["read_tail"]

_BYTES_MAX: Final = 65_536


def read_tail(directory: RunDirectory, node: int | None) -> LogText:
    """Return the end of a node's log, or of the run's own: what it logged, or else what it said as it began."""
    candidates = [directory.log_path(node)]
    if node is None:
        candidates.append(directory.path / "logs" / LAUNCH_LOG)
    for path in candidates:
        try:
            with path.open("rb") as source:
                size_bytes = source.seek(0, os.SEEK_END)
                source.seek(max(0, size_bytes - _BYTES_MAX))
                raw = source.read(_BYTES_MAX)
        except OSError:
            continue
        is_cut = size_bytes > _BYTES_MAX
        if is_cut:
            raw = raw.partition(b"\n")[2]
        if raw:
            return LogText(text=raw.decode("utf-8", "replace"), is_cut=is_cut)
    raise HTTPException(404, "there is no such log" if node is None else f"node {node} has no log")
