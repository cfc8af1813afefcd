"""In which order a run's tables grew: `journal.csv`, one line for each write, so that a run can be followed.

A line `metrics,1200,254` says: the 254 bytes of `metrics.csv` from byte 1200 on came next. Whoever follows a run reads
the journal from where he stopped, and with it the pieces of the tables that it names.

Invariant: a position, the byte after a line of the journal, means the same for ever: what lies before it was told, what
follows was not. So everybody who reads from a position gets the same records in the same order, whenever he reads. A
line of the journal is written after what it names; where a writer died in between, the next one makes up for it.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeAlias

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.records.files import AppendedLines, reading
from unlinkabledfl.experiment.records.tables import (
    EVENTS_HEADER,
    METRICS_HEADER,
    PHASES_HEADER,
    Event,
    MetricRecord,
    Phase,
    parse_event,
    parse_metric_record,
    parse_phase,
)

__all__ = ["JOURNAL_HEADER", "Entry", "Journal", "Record", "TableName", "read_journal", "read_records"]

JOURNAL_HEADER: Final = "table,start,bytes"
ENTRIES_MAX: Final = 4_096
_ENTRY: Final = re.compile(rb"(metrics|events|phases),([0-9]{1,15}),([0-9]{1,9})")
_ENTRY_MAX_BYTES: Final = 64
_PIECE_MAX_BYTES: Final = 1 << 20


class TableName(StrEnum):
    """The tables that grow while a run goes on."""

    METRICS = "metrics"
    EVENTS = "events"
    PHASES = "phases"

    @property
    def header(self) -> str:
        """Its first line."""
        return _HEADERS[self]

    def path(self, directory: Path) -> Path:
        """Where it lies."""
        return directory / f"{self.value}.csv"


_HEADERS: Final = {
    TableName.METRICS: METRICS_HEADER,
    TableName.EVENTS: EVENTS_HEADER,
    TableName.PHASES: PHASES_HEADER,
}

Record: TypeAlias = MetricRecord | Event | Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the journal. `position`: the byte after it, from which a reader goes on."""

    table: TableName
    start: int
    size_bytes: int
    position: int


class Journal:
    """The tables of a run, to be appended to."""

    def __init__(self, directory: Path) -> None:
        self._tables = {table: AppendedLines(table.path(directory), header=table.header) for table in TableName}
        path = directory / "journal.csv"
        told = _told(path) if path.is_file() else {}
        self._journal = AppendedLines(path, header=JOURNAL_HEADER)
        for table, lines in self._tables.items():
            self._make_up(table, lines, told.get(table, len(table.header) + 1))

    def append(self, table: TableName, lines: str) -> None:
        """Write these lines, each with its end, and that they came now."""
        appended = self._tables[table]
        start = appended.end_bytes
        appended.append(lines)
        self._journal.append(_line(table, start, appended.end_bytes - start))

    def close(self) -> None:
        """Let go of the files."""
        for lines in (*self._tables.values(), self._journal):
            lines.close()

    def _make_up(self, table: TableName, lines: AppendedLines, told_bytes: int) -> None:
        """Tell of lines that nobody told of, one by one."""
        if lines.end_bytes <= told_bytes:
            return
        with reading(lines.path), lines.path.open("rb") as source:
            source.seek(told_bytes)
            while raw := source.readline():
                self._journal.append(_line(table, told_bytes, len(raw)))
                told_bytes += len(raw)


def read_journal(directory: Path, *, after: int = 0, most: int = ENTRIES_MAX) -> list[Entry]:
    """Return the next entries after a position; 0 stands for the beginning. A damaged line is left out."""
    path = directory / "journal.csv"
    if not path.is_file() and not after:
        return []
    with reading(path), path.open("rb") as source:
        position = _begin(source.fileno(), after)
        raw = os.pread(source.fileno(), min(most, ENTRIES_MAX) * _ENTRY_MAX_BYTES, position)
    entries = []
    for line in raw[: raw.rfind(b"\n") + 1].split(b"\n")[:-1]:
        position += len(line) + 1
        if (found := _ENTRY.fullmatch(line)) is None:
            continue
        entries.append(
            Entry(table=TableName(found[1].decode()), start=int(found[2]), size_bytes=int(found[3]), position=position)
        )
        if len(entries) >= most:
            break
    return entries


def read_records(directory: Path, *, after: int = 0, most: int = ENTRIES_MAX) -> tuple[list[tuple[int, Record]], int]:
    """Return the next records after a position, each with the position behind it, and where to go on.

    What is damaged is left out. When the position to go on from is the one that was given, there is nothing new.
    """
    entries = read_journal(directory, after=after, most=most)
    return list(_records(directory, entries)), entries[-1].position if entries else after


def _records(directory: Path, entries: list[Entry]) -> Iterator[tuple[int, Record]]:
    opened: dict[TableName, int] = {}
    try:
        for entry in entries:
            if entry.table not in opened:
                path = entry.table.path(directory)
                with reading(path):
                    opened[entry.table] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            raw = os.pread(opened[entry.table], min(entry.size_bytes, _PIECE_MAX_BYTES), entry.start)
            record = _parse(entry.table, raw.decode("utf-8", "replace").splitlines())
            if record is not None:
                yield entry.position, record
    finally:
        for descriptor in opened.values():
            os.close(descriptor)


def _parse(table: TableName, lines: list[str]) -> Record | None:
    try:
        match table:
            case TableName.METRICS:
                return parse_metric_record(lines)
            case TableName.EVENTS:
                return parse_event(lines[0])
            case TableName.PHASES:
                return parse_phase(lines[0])
    except (ValueError, IndexError):
        return None


def _begin(descriptor: int, after: int) -> int:
    """Return where to read: after the header, or at a position that is the beginning of a line."""
    if after <= 0:
        return len(JOURNAL_HEADER) + 1
    if os.pread(descriptor, 1, after - 1) != b"\n":
        raise ConfigError(key="after", got=after, takes="0, or a position that a reader of this run was told")
    return after


def _told(path: Path) -> dict[TableName, int]:
    """Return up to which byte of each table the journal has told: the ends of the last lines that name them."""
    told: dict[TableName, int] = {}
    with reading(path), path.open("rb") as source:
        for raw in source:
            if found := _ENTRY.fullmatch(raw.rstrip(b"\n")):
                told[TableName(found[1].decode())] = int(found[2]) + int(found[3])
    return told


def _line(table: TableName, start: int, size_bytes: int) -> str:
    return f"{table.value},{start},{size_bytes}\n"
