"""Parquet files from anywhere: the columns asked for, within bounds, or refused in a sentence.

A column of equal values takes no room in a file, whatever its length, and a text may be written once and repeated in
every row. So what counts is how many values a column says it has, and text is not read at all.

Invariant: sizes are known before memory is taken for them, and whatever bytes a file holds, `read_table` returns a
table or raises ConfigError.
"""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

from unlinkabledfl.errors import ConfigError

__all__ = ["arrow", "read_table"]

ROWS_MAX: Final = 200_000_000
BYTES_MAX: Final = 16 << 30
_PROBLEM_MAX: Final = 200
_VALUE_BYTES: Final = 8
_NUMBERS: Final = frozenset({"BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE"})


def read_table(path: Path, columns: Collection[str], *, bytes_max: int = BYTES_MAX) -> tuple[Any, dict[bytes, bytes]]:
    """Return those of these columns that the file has, and the metadata that was stored with them."""
    pyarrow, parquet = arrow()
    if not path.is_file():
        hint = "run the scenario again with --set monitoring.trace=true"
        raise ConfigError(key=str(path), got="no such file", takes="a run that was traced", hint=hint)
    try:
        with parquet.ParquetFile(path) as source:
            rows = source.metadata.num_rows
            chunks = [chunk for chunk in _chunks(source.metadata) if chunk.path_in_schema.split(".")[0] in columns]
            for chunk in chunks:
                if chunk.physical_type not in _NUMBERS:
                    key = f"{path}: {chunk.path_in_schema}"
                    raise ConfigError(key=key, got=chunk.physical_type, takes="a column of numbers")
            size_bytes = sum(max(chunk.total_uncompressed_size, chunk.num_values * _VALUE_BYTES) for chunk in chunks)
            if not (0 <= rows <= ROWS_MAX and 0 <= size_bytes <= bytes_max):
                got = f"{rows:,} rows of {size_bytes:,} bytes in all"
                raise ConfigError(key=str(path), got=got, takes=f"at most {ROWS_MAX:,} rows of {bytes_max:,} bytes")
            table = source.read(columns=list(columns))
    except (pyarrow.ArrowException, OSError, ValueError, MemoryError) as error:
        problem = (str(error).splitlines() or [type(error).__name__])[0][:_PROBLEM_MAX]
        raise ConfigError(
            key=str(path),
            got=f"a damaged file: {problem}",
            takes="a whole Parquet file",
            hint="copy it again, or record the run again",
        ) from None
    return table, dict(table.schema.metadata or {})


def _chunks(metadata: Any) -> Iterator[Any]:  # noqa: ANN401 -- pyarrow has no types
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        yield from (group.column(index) for index in range(group.num_columns))


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
