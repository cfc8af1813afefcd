"""What whoever drives a run tells whoever records or shows it: one interface, for both back ends and any listener.

A driver calls `record` for every node and round, and with no round for a sample of its gauges; `event` for what does
not happen in every round; `phase` when a node turns to something else; and `finish` once. Listeners raise nothing
but `RunError`, and only when going on would lose records.

Times are seconds since the run began, on the run's own clock: virtual in one back end, monotonic in the other. Nodes
are the indices of the topology. No node means the whole network.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from unlinkabledfl.errors import RunError

__all__ = ["EventKind", "Fanout", "Recorder", "Status", "UntilFailure"]


class Status(StrEnum):
    """How a run stands."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    """Somebody stopped it, or it died without a word. `--resume` goes on with it."""
    FAILED = "failed"
    """It could not go on; the summary says why."""


class EventKind(StrEnum):
    """What happened to a node, or to the run."""

    JOIN = "join"
    EXIT = "exit"
    ATTACK = "attack"
    """The node poisons, as the scenario asks."""
    DEATH = "death"
    """The node ended when it should not have; the text holds its last error."""
    LINK = "link"
    """A link broke, came back, or could not be made."""
    NOTE = "note"
    """Anything else that explains a figure: a resume, a deadline that passed, a worker that was started again."""


class Recorder(Protocol):
    """Whoever wants to know of a run."""

    def record(
        self, *, time_s: float, round_number: int | None, node: int | None, metrics: Mapping[str, float]
    ) -> None:
        """Take figures of one node: of a round, by the names in docs/metrics.md, or of this moment (no round).

        The figures of one node and round may come in several calls. One that comes twice replaces the first.
        """
        ...

    def event(self, *, time_s: float, node: int | None, kind: EventKind, text: str) -> None:
        """Take something that happened once."""
        ...

    def phase(self, *, time_s: float, round_number: int, node: int, phase: str) -> None:
        """Take what a node does from now on."""
        ...

    def finish(self, status: Status, *, reason: str = "") -> None:
        """Take how the run ended. Nothing comes afterwards; calling it again has no effect."""
        ...


class Fanout:
    """A recorder that passes everything on to others, in their order."""

    def __init__(self, recorders: Sequence[Recorder]) -> None:
        self._recorders = tuple(recorders)

    def record(
        self, *, time_s: float, round_number: int | None, node: int | None, metrics: Mapping[str, float]
    ) -> None:
        """Pass it on."""
        for recorder in self._recorders:
            recorder.record(time_s=time_s, round_number=round_number, node=node, metrics=metrics)

    def event(self, *, time_s: float, node: int | None, kind: EventKind, text: str) -> None:
        """Pass it on."""
        for recorder in self._recorders:
            recorder.event(time_s=time_s, node=node, kind=kind, text=text)

    def phase(self, *, time_s: float, round_number: int, node: int, phase: str) -> None:
        """Pass it on."""
        for recorder in self._recorders:
            recorder.phase(time_s=time_s, round_number=round_number, node=node, phase=phase)

    def finish(self, status: Status, *, reason: str = "") -> None:
        """Pass it on, to all of them even if one fails."""
        failure: Exception | None = None
        for recorder in self._recorders:
            try:
                recorder.finish(status, reason=reason)
            except Exception as error:  # noqa: BLE001 - raised again below, once everybody has been told
                failure = failure or error
        if failure is not None:
            raise failure


class UntilFailure:
    """A recorder for whoever is told things in callbacks, where nobody catches what is raised.

    The first RunError is told to `failed`, once, and from then on nothing is passed on: what came later would be a
    record with a hole in it.
    """

    def __init__(self, recorder: Recorder, *, failed: Callable[[RunError], None]) -> None:
        self._recorder = recorder
        self._failed = failed
        self._is_over = False

    def record(
        self, *, time_s: float, round_number: int | None, node: int | None, metrics: Mapping[str, float]
    ) -> None:
        """Pass it on."""
        self._try(lambda: self._recorder.record(time_s=time_s, round_number=round_number, node=node, metrics=metrics))

    def event(self, *, time_s: float, node: int | None, kind: EventKind, text: str) -> None:
        """Pass it on."""
        self._try(lambda: self._recorder.event(time_s=time_s, node=node, kind=kind, text=text))

    def phase(self, *, time_s: float, round_number: int, node: int, phase: str) -> None:
        """Pass it on."""
        self._try(lambda: self._recorder.phase(time_s=time_s, round_number=round_number, node=node, phase=phase))

    def finish(self, status: Status, *, reason: str = "") -> None:
        """Pass it on: how a run ended is always worth an attempt."""
        self._recorder.finish(status, reason=reason)

    def _try(self, tell: Callable[[], None]) -> None:
        if self._is_over:
            return
        try:
            tell()
        except RunError as error:
            self._is_over = True
            self._failed(error)
