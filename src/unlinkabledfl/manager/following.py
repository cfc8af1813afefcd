"""A run as it stands, built up record by record, and kept so that nobody reads a record twice.

Invariant: what a follower knows depends on the records before its position alone. Its memory grows by 26 bytes a figure
and is given back when others are followed: a follower that was dropped reads again from the beginning.
"""

import math
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Final

from unlinkabledfl.experiment.records import EventKind
from unlinkabledfl.experiment.records.journal import read_records
from unlinkabledfl.experiment.records.run_recorder import RESUMED
from unlinkabledfl.experiment.records.tables import Columns, Event, MetricRecord, MetricTable, Phase

__all__ = ["FollowedRun", "Followers", "NodeSoFar"]

_FOLLOWED_MAX: Final = 8
_EVENTS_MAX: Final = 100_000


class NodeSoFar:
    """What a node has told."""

    def __init__(self) -> None:
        self.phase: str | None = None
        self.round_number = 0
        self.rounds_done = 0
        self.heard_at_s: float | None = None
        self.ended: EventKind | None = None
        self.poisons = False
        self.last_error: str | None = None
        self.gauges: dict[str, float] = {}
        self.figures: dict[str, float] = {}


class FollowedRun:
    """One run, up to a position."""

    def __init__(self, directory: Path) -> None:
        self.lock = Lock()
        self.position = 0
        self.clock_s = 0.0
        self.nodes: dict[int, NodeSoFar] = {}
        self.events: list[tuple[int, Event]] = []
        self._columns = Columns()
        self._directory = directory

    def catch_up(self) -> None:
        """Take what was told since."""
        while True:
            records, position = read_records(self._directory, after=self.position)
            if position == self.position:
                return
            for at, record in records:
                self._take(at, record)
            self.position = position

    def rounds_done(self) -> int:
        """Return how many rounds all nodes together have done; one that has left does no more, and none is missing."""
        furthest = max((node.rounds_done for node in self.nodes.values()), default=0)
        return sum(
            max(node.rounds_done, furthest) if node.ended is not None else node.rounds_done
            for node in self.nodes.values()
        )

    def table(self) -> MetricTable:
        """Return all figures so far."""
        return self._columns.table()

    def _take(self, position: int, record: MetricRecord | Event | Phase) -> None:
        self.clock_s = max(self.clock_s, record.time_s)
        node = None if record.node is None else self.nodes.setdefault(record.node, NodeSoFar())
        match record:
            case MetricRecord():
                self._columns.add_record(record)
                if node is not None:
                    _take_figures(node, record)
            case Event():
                if len(self.events) < _EVENTS_MAX:
                    self.events.append((position, record))
                if node is not None:
                    _take_event(node, record)
                elif record.text == RESUMED:
                    self._take_up()
            case Phase():
                if node is not None:
                    node.phase, node.round_number, node.heard_at_s = record.phase, record.round_number, record.time_s

    def _take_up(self) -> None:
        """A run that is taken up begins with all nodes again that had died."""
        for node in self.nodes.values():
            if node.ended is EventKind.DEATH:
                node.ended = None


def _take_figures(node: NodeSoFar, record: MetricRecord) -> None:
    node.heard_at_s = record.time_s
    if record.round_number is None:
        node.gauges |= record.values
        node.round_number = max(node.round_number, _whole(record.values.get("round")))
        return
    node.figures |= record.values
    node.round_number = max(node.round_number, record.round_number)
    if "round_s" in record.values:
        node.rounds_done = max(node.rounds_done, record.round_number)


def _take_event(node: NodeSoFar, event: Event) -> None:
    match event.kind:
        case EventKind.DEATH:
            node.ended, node.last_error = event.kind, event.text
        case EventKind.EXIT:
            node.ended = event.kind
        case EventKind.JOIN:
            node.ended = None
        case EventKind.ATTACK:
            node.poisons = True
        case EventKind.LINK | EventKind.NOTE:
            pass


def _whole(value: float | None) -> int:
    return int(value) if value is not None and math.isfinite(value) else 0


class Followers:
    """The runs that were asked for of late."""

    def __init__(self, most: int = _FOLLOWED_MAX) -> None:
        self._most = most
        self._lock = Lock()
        self._followed: OrderedDict[Path, FollowedRun] = OrderedDict()

    @contextmanager
    def up_to_date(self, directory: Path) -> Iterator[FollowedRun]:
        """Give a run as it stands now, to one at a time."""
        with self._lock:
            followed = self._followed.pop(directory, None) or FollowedRun(directory)
            self._followed[directory] = followed
            while len(self._followed) > self._most:
                self._followed.popitem(last=False)
        with followed.lock:
            followed.catch_up()
            yield followed

    def forget(self, directory: Path) -> None:
        """The run is gone."""
        with self._lock:
            self._followed.pop(directory, None)


def finite(values: Mapping[str, float]) -> dict[str, float | None]:
    """Return figures as JSON can say them."""
    return {name: value if math.isfinite(value) else None for name, value in values.items()}
