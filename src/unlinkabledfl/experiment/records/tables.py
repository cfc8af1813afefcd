"""The metrics and events of a run as files of lines, and back into memory as columns.

`metrics.csv` is long form: `time,round,node,metric,value`. No round: a sample of that moment. No node: the network.
`events.csv` is `time,node,kind,text`, `phases.csv` is `time,round,node,phase`.

Invariant: reading never fails because of what a line holds. A line that is not right is left out and named by its
number; sizes are bounded before anything is kept.
"""

import csv
import io
import math
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from unlinkabledfl.errors import RunError
from unlinkabledfl.experiment.records.files import reading, replaced_file
from unlinkabledfl.experiment.records.recorder import EventKind

__all__ = [
    "EVENTS_HEADER", "METRICS_HEADER", "PHASES_HEADER", "Columns", "Event", "MetricRecord", "MetricTable", "Phase",
    "Problems", "event_line", "metric_lines", "parse_event", "parse_metric_record", "parse_phase", "phase_line",
]  # fmt: skip

METRICS_HEADER: Final = "time,round,node,metric,value"
EVENTS_HEADER: Final = "time,node,kind,text"
PHASES_HEADER: Final = "time,round,node,phase"
NONE: Final = -1
"""Stands in the columns `rounds` and `nodes` for an empty cell."""

VALUE_MAX: Final = 1e70
FILE_MAX_BYTES: Final = 4 << 30
ROWS_MAX: Final = 30_000_000
EVENTS_MAX: Final = 100_000
_LINE_MAX_BYTES: Final = 16_384
_METRICS_MAX: Final = 1_000
_INDEX_MAX: Final = 10_000_000
_TEXT_MAX: Final = 2_000
_PROBLEMS_LISTED: Final = 20
_METRIC_FIELDS: Final = 5
_UNUSUAL: Final = re.compile(r"[^A-Za-z0-9_.:/@+-]")


@dataclass(slots=True)
class Problems:
    """What was wrong with files that were read: the first sentences, and how many there were."""

    listed: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, problem: str) -> None:
        """Count a problem, and keep its sentence unless there are many already."""
        self.count += 1
        if len(self.listed) < _PROBLEMS_LISTED:
            self.listed.append(problem)

    def sentences(self) -> list[str]:
        """Return what to show to people."""
        more = self.count - len(self.listed)
        return self.listed + ([f"and {more:,} more"] if more else [])


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of `events.csv`."""

    time_s: float
    node: int | None
    kind: EventKind
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One line of `phases.csv`: what a node does from now on."""

    time_s: float
    round_number: int
    node: int
    phase: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRecord:
    """Lines of `metrics.csv` that were written together: figures of one node, of a round or of a moment."""

    time_s: float
    round_number: int | None
    node: int | None
    values: Mapping[str, float]


def metric_name(name: str) -> str:
    """Return a metric's name as it can stand in a line: learners of users may call theirs what they like."""
    return _UNUSUAL.sub("_", name)[:64] or "_"


def bounded(value: float) -> float:
    """Return a value as figures of it are made: what no float32 can be counts as infinite, so that sums stay finite."""
    return value if not math.isfinite(value) or abs(value) < VALUE_MAX else math.copysign(math.inf, value)


def metric_lines(*, time_s: float, round_number: int | None, node: int | None, metrics: Mapping[str, float]) -> str:
    """Write figures of one node as lines."""
    start = f"{time_s:.6f},{'' if round_number is None else round_number},{'' if node is None else node}"
    # float() first: a numpy scalar shows its type.
    return "".join(f"{start},{metric_name(name)},{float(value)!r}\n" for name, value in metrics.items())


def event_line(event: Event) -> str:
    """Write an event as one line: line breaks of an error message become blanks."""
    text = " ".join(event.text.split())[:_TEXT_MAX]
    sink = io.StringIO()
    csv.writer(sink, lineterminator="\n").writerow(
        [f"{event.time_s:.6f}", "" if event.node is None else event.node, event.kind.value, text]
    )
    return sink.getvalue()


def phase_line(phase: Phase) -> str:
    """Write a phase as one line."""
    return f"{phase.time_s:.6f},{phase.round_number},{phase.node},{metric_name(phase.phase)}\n"


class MetricTable:
    """The rows of a run, a column an array, in the order in which they were written."""

    def __init__(
        self,
        *,
        times_s: NDArray[np.float64],
        rounds: NDArray[np.int32],
        nodes: NDArray[np.int32],
        codes: NDArray[np.int16],
        values: NDArray[np.float64],
        names: tuple[str, ...],
    ) -> None:
        self.times_s = times_s
        self.rounds = rounds
        self.nodes = nodes
        self.codes = codes
        self.values = values
        self.names = names

    def __len__(self) -> int:
        return len(self.values)

    @property
    def end_s(self) -> float:
        """The last moment of which anything is known."""
        return float(self.times_s.max()) if len(self) else 0.0

    def rows(self) -> Iterator[tuple[float, int, int, str, float]]:
        """Iterate over time, round, node, metric and value."""
        columns = (self.times_s.tolist(), self.rounds.tolist(), self.nodes.tolist(), self.codes.tolist())
        for time_s, round_number, node, code, value in zip(*columns, self.values.tolist(), strict=True):
            yield time_s, round_number, node, self.names[code], value

    def by_round(self, metric: str) -> dict[int, dict[int, float]]:
        """Return a metric's value by round and node; of two for the same, the later."""
        chosen = self._of(metric) & (self.rounds != NONE) & (self.nodes != NONE)
        found: dict[int, dict[int, float]] = {}
        rows = zip(self.rounds[chosen].tolist(), self.nodes[chosen].tolist(), self.values[chosen].tolist(), strict=True)
        for round_number, node, value in rows:
            found.setdefault(round_number, {})[node] = value
        return dict(sorted(found.items()))

    def round_times(self, metric: str) -> dict[int, dict[int, float]]:
        """Return when a metric of a round was reported, by round and node."""
        chosen = self._of(metric) & (self.rounds != NONE) & (self.nodes != NONE)
        found: dict[int, dict[int, float]] = {}
        columns = (self.rounds[chosen].tolist(), self.nodes[chosen].tolist(), self.times_s[chosen].tolist())
        for round_number, node, time_s in zip(*columns, strict=True):
            found.setdefault(round_number, {})[node] = time_s
        return dict(sorted(found.items()))

    def samples(self, metric: str) -> dict[int, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Return the samples of a gauge by node: times and values."""
        chosen = self._of(metric) & (self.rounds == NONE) & (self.nodes != NONE)
        times_s, nodes, values = self.times_s[chosen], self.nodes[chosen], self.values[chosen]
        order = np.lexsort((times_s, nodes))
        times_s, nodes, values = times_s[order], nodes[order], values[order]
        found, starts = np.unique(nodes, return_index=True)
        ends = [*starts.tolist(), len(nodes)][1:]
        return {
            int(node): (times_s[start:end], values[start:end])
            for node, start, end in zip(found, starts.tolist(), ends, strict=True)
        }

    def _of(self, metric: str) -> NDArray[np.bool_]:
        if metric not in self.names:
            return np.zeros(len(self), dtype=bool)
        return np.equal(self.codes, self.names.index(metric))


def read_metrics(path: Path, problems: Problems, *, rows_max: int = ROWS_MAX) -> MetricTable:
    """Read `metrics.csv`. A run may still be writing it: a last line without its end is left out."""
    columns = Columns()
    for number, line in _lines(path, METRICS_HEADER, problems):
        if len(columns.values) >= rows_max:
            problems.add(f"{path.name}: more than {rows_max:,} rows; those from line {number:,} on are left out")
            break
        problem = columns.add(line)
        if problem is not None:
            problems.add(f"{path.name}, line {number:,}: {problem}; the line is left out")
    return columns.table()


def read_events(path: Path, problems: Problems, *, events_max: int = EVENTS_MAX) -> list[Event]:
    """Read `events.csv`."""
    events: list[Event] = []
    for number, line in _lines(path, EVENTS_HEADER, problems):
        if len(events) >= events_max:
            problems.add(f"{path.name}: more than {events_max:,} events; those from line {number:,} on are left out")
            break
        try:
            events.append(parse_event(line))
        except ValueError as error:
            problems.add(f"{path.name}, line {number:,}: {_said(error)}; the line is left out")
    return events


def parse_event(line: str) -> Event:
    """Read one line of `events.csv`, or raise ValueError."""
    try:
        time, node, kind, text = next(csv.reader([line], strict=True))
    except (csv.Error, StopIteration) as error:
        raise ValueError(str(error)) from error
    return Event(time_s=_time(time), node=_index(node, "node"), kind=EventKind(kind), text=text[:_TEXT_MAX])


def parse_phase(line: str) -> Phase:
    """Read one line of `phases.csv`, or raise ValueError."""
    time, round_number, node, phase = line.split(",")
    at_round, at_node = _index(round_number, "round"), _index(node, "node")
    if at_round is None or at_node is None or phase != metric_name(phase):
        raise ValueError(f"{line[:64]!r} is no phase")
    return Phase(time_s=_time(time), round_number=at_round, node=at_node, phase=phase)


def parse_metric_record(lines: Sequence[str]) -> MetricRecord:
    """Read lines of `metrics.csv` that differ in nothing but metric and value, or raise ValueError."""
    time, round_number, node, *_ = lines[0].split(",")
    values: dict[str, float] = {}
    for line in lines:
        *_, metric, value = line.split(",")
        values[metric] = bounded(float(value))
    return MetricRecord(
        time_s=_time(time),
        round_number=_index(round_number, "round"),
        node=_index(node, "node"),
        values=values,
    )


def _lines(path: Path, header: str, problems: Problems) -> Iterator[tuple[int, str]]:
    with reading(path), path.open("rb") as source:
        size_bytes = path.stat().st_size
        if size_bytes > FILE_MAX_BYTES:
            raise RunError(f"{path} has {size_bytes:,} bytes; more than {FILE_MAX_BYTES:,} are not read")
        number = 0
        while raw := source.readline(_LINE_MAX_BYTES):
            number += 1
            if not raw.endswith(b"\n"):
                rest = b"" if len(raw) < _LINE_MAX_BYTES else _skip_line(source)
                cut = not rest.endswith(b"\n")
                problems.add(f"{path.name}, line {number:,}: {'cut off' if cut else 'too long'}; the line is left out")
                continue
            line = raw.decode("utf-8", "replace").rstrip("\r\n")
            if number > 1:
                yield number, line
            elif line != header:
                raise RunError(f"{path}: line 1 is not `{header}`: this is no such table")


def _skip_line(source: io.BufferedReader) -> bytes:
    last = b""
    while (raw := source.readline(_LINE_MAX_BYTES)) and not raw.endswith(b"\n"):
        last = raw
    return raw or last


class Columns:
    """A table that grows line by line: 26 bytes a row."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._times_s = array("d")
        self._rounds = array("i")
        self._nodes = array("i")
        self._metrics = array("h")
        self.values = array("d")

    def add(self, line: str) -> str | None:
        """Take a line, or return what is wrong with it."""
        cells = line.split(",")
        if len(cells) != _METRIC_FIELDS:
            return f"{len(cells)} fields instead of {_METRIC_FIELDS}"
        time, round_number, node, metric, value = cells
        try:
            time_s, at_round, at_node = _time(time), _index(round_number, "round"), _index(node, "node")
            number = bounded(float(value))
        except ValueError as error:
            return _said(error)
        return self._append(time_s, at_round, at_node, metric, number)

    def add_record(self, record: MetricRecord) -> None:
        """Take figures that came together; those with names that cannot be are left out."""
        for metric, value in record.values.items():
            self._append(record.time_s, record.round_number, record.node, metric, value)

    def _append(
        self, time_s: float, round_number: int | None, node: int | None, metric: str, value: float
    ) -> str | None:
        code = self._codes.get(metric)
        if code is None:
            if not metric or metric != metric_name(metric):
                return f"{metric[:64]!r} is no name of a metric"
            if len(self._codes) >= _METRICS_MAX:
                return f"more than {_METRICS_MAX} different metrics"
            code = self._codes[metric] = len(self._codes)
        self._times_s.append(time_s)
        self._rounds.append(NONE if round_number is None else round_number)
        self._nodes.append(NONE if node is None else node)
        self._metrics.append(code)
        self.values.append(value)
        return None

    def table(self) -> MetricTable:
        """Return what was taken as arrays."""
        return MetricTable(
            times_s=np.array(self._times_s, dtype=np.float64),
            rounds=np.array(self._rounds, dtype=np.int32),
            nodes=np.array(self._nodes, dtype=np.int32),
            codes=np.array(self._metrics, dtype=np.int16),
            values=np.array(self.values, dtype=np.float64),
            names=tuple(self._codes),
        )


def _time(cell: str) -> float:
    time_s = float(cell)
    if not math.isfinite(time_s) or time_s < 0:
        raise ValueError(f"{cell!r} is no time")
    return time_s


def _index(cell: str, what: str) -> int | None:
    if not cell:
        return None
    if not (cell.isascii() and cell.isdigit() and len(cell) < 10) or int(cell) > _INDEX_MAX:  # noqa: PLR2004 - digits
        raise ValueError(f"{cell[:32]!r} is no {what}")
    return int(cell)


def _said(error: Exception) -> str:
    return str(error)[:200] or "not a line of this table"


def write_parquet(table: MetricTable, path: Path) -> bool:
    """Write the rows as Parquet, with nulls where a cell is empty; return False where pyarrow is not installed."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - an optional extra, and slow to import
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        return False
    names = pa.DictionaryArray.from_arrays(pa.array(table.codes), pa.array(list(table.names), type=pa.string()))
    rows = pa.table(
        {
            "time": pa.array(table.times_s),
            "round": pa.array(table.rounds, mask=table.rounds == NONE),
            "node": pa.array(table.nodes, mask=table.nodes == NONE),
            "metric": names,
            "value": pa.array(table.values),
        }
    )
    with replaced_file(path) as sink:
        parquet.write_table(rows, sink, compression="zstd")
    return True
