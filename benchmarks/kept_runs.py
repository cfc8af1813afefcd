"""Runs that are done, in a file: a benchmark of an hour goes on where it was stopped, and its figures can be traced.

One JSON object a line: what was run (all that decides its result, versions included) and what was found. A line counts
only for a run of exactly these values, so a changed recipe or library never meets old results.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unlinkabledfl.errors import ConfigError

__all__ = ["KeptRuns"]


class KeptRuns:
    """Results by what was run. Without a path nothing is read or written."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._found: dict[str, float] = {}
        if path is not None and path.exists():
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                try:
                    document = json.loads(line)
                    self._found[_key(document["run"])] = float(document["found"])
                except (ValueError, KeyError, TypeError) as error:
                    takes = "one JSON object a line, as an earlier call with --keep wrote it"
                    raise ConfigError(key="--keep", got=f"{path}, line {number}: {error}", takes=takes) from error

    def find(self, run: Mapping[str, Any]) -> float | None:
        """Return what this run found, if it is done."""
        return self._found.get(_key(run))

    def keep(self, run: Mapping[str, Any], found: float, *, seconds: float) -> None:
        """Remember it, at once."""
        self._found[_key(run)] = found
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"run": run, "found": found, "seconds": round(seconds, 1)}) + "\n")


def _key(run: Mapping[str, Any]) -> str:
    return json.dumps(run, sort_keys=True)
