"""Parquet files from anywhere: read whole, within bounds, or refused in a sentence.

Invariant: sizes are known before memory is taken for them, and whatever bytes a file holds, `read_table` returns a
table or raises ConfigError.
"""

from pathlib import Path
from typing import Any, Final

from unlinkabledfl.errors import ConfigError

__all__ = ["arrow", "read_table"]

ROWS_MAX: Final = 200_000_000
BYTES_MAX: Final = 16 << 30
_PROBLEM_MAX: Final = 200


def read_table(path: Path) -> tuple[Any, dict[bytes, bytes]]:
    """Return the table in a file, and the metadata that was stored with it."""
    pyarrow, parquet = arrow()
    if not path.is_file():
        hint = "run the scenario again with --set monitoring.trace=true"
        raise ConfigError(key=str(path), got="no such file", takes="a run that was traced", hint=hint)
    try:
        with parquet.ParquetFile(path) as source:
            about = source.metadata
            size_bytes = sum(about.row_group(group).total_byte_size for group in range(about.num_row_groups))
            if not (0 <= about.num_rows <= ROWS_MAX and 0 <= size_bytes <= BYTES_MAX):
                got = f"{about.num_rows:,} rows of {size_bytes:,} bytes"
                raise ConfigError(key=str(path), got=got, takes=f"at most {ROWS_MAX:,} rows of {BYTES_MAX:,} bytes")
            table = source.read()
    except (pyarrow.ArrowException, OSError, ValueError, MemoryError) as error:
        problem = (str(error).splitlines() or [type(error).__name__])[0][:_PROBLEM_MAX]
        raise ConfigError(
            key=str(path),
            got=f"a damaged file: {problem}",
            takes="a whole Parquet file",
            hint="copy it again, or record the run again",
        ) from None
    return table, dict(table.schema.metadata or {})


def arrow() -> tuple[Any, Any]:
    """Return pyarrow and its Parquet module; ConfigError where they are not installed."""
    try:
        import pyarrow  # noqa: PLC0415 -- an extra: only who keeps traces needs it
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise ConfigError(
            key="monitoring.trace",
            got="no pyarrow",
            takes="the extra `experiment`: pip install 'unlinkabledfl[experiment]'",
        ) from None
    return pyarrow, parquet
