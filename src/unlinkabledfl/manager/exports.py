"""The figures of a run in Parquet: the file that it left, or one made of what there is by now."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from unlinkabledfl.experiment.records import Problems
from unlinkabledfl.experiment.records.tables import write_parquet
from unlinkabledfl.manager.documents import RunStatus
from unlinkabledfl.manager.store import ConflictError, StoredRun

__all__ = ["parquet_of"]

_CHUNK_BYTES: Final = 1 << 18


def parquet_of(run: StoredRun) -> Iterator[bytes]:
    """Return the file piece by piece; what speaks against it is raised before the first."""
    kept = run.directory.parquet_path
    if run.status is RunStatus.FINISHED and kept.is_file():
        return _pieces(kept.open("rb"))
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "metrics.parquet"
        if not write_parquet(run.directory.metrics(Problems()), made):
            raise ConflictError("pyarrow is not installed here: pip install 'unlinkabledfl[experiment]'")
        # Open, it outlives its name.
        return _pieces(made.open("rb"))


def _pieces(source: IO[bytes]) -> Iterator[bytes]:
    with source:
        while chunk := source.read(_CHUNK_BYTES):
            yield chunk
