"""Show a run while it goes on: a panel on a terminal, a line a round elsewhere.

Invariant: showing takes at most a fiftieth of the time. It is done in between, in the thread that records, no
oftener than four times a second and less often where drawing is slow; nothing is started in the background.
"""

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Final, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from unlinkabledfl.experiment.display.progress import Progress, RoundSoFar
from unlinkabledfl.experiment.display.words import duration, percent, seconds
from unlinkabledfl.experiment.records import EventKind, RunDescription, Status

__all__ = ["LiveDisplay", "Screen"]

_EVERY_S: Final = 0.25
_SHARE_OF_TIME: Final = 0.02
_ROUNDS_SHOWN: Final = 8
_WIDTH: Final = 100
_EVENT_LINES_MAX: Final = 60
_EVENT_STYLES: Final = {EventKind.DEATH: "bold red", EventKind.ATTACK: "red", EventKind.LINK: "yellow"}


class Screen(Console):
    """A console that says so when nobody reads it any more: rich would end the process."""

    def on_broken_pipe(self) -> None:
        """Leave it to whoever prints."""
        raise BrokenPipeError


class LiveDisplay:
    """A recorder for people. Use it as a context: it gives the terminal back whatever happens."""

    def __init__(
        self,
        description: RunDescription,
        *,
        console: Screen | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.progress = Progress(description)
        self._console = Screen(stderr=True) if console is None else console
        self._clock = clock
        self._started_at_s = clock()
        self._next_at_s = self._started_at_s
        self._live: Live | None = None
        self._is_blind = False
        self._lines_round = 0
        self._event_lines = 0

    def __enter__(self) -> Self:
        self._started_at_s = self._clock()
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=True, redirect_stdout=False)
            self._live.start()
            self._refresh()
        else:
            description = self.progress.description
            self._say(
                f"{description.run}: {description.nodes:,} nodes, {description.planned_rounds} rounds, "
                f"back end {description.backend}, seed {description.seed}"
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def record(
        self, *, time_s: float, round_number: int | None, node: int | None, metrics: Mapping[str, float]
    ) -> None:
        """Take figures, and show them when it is time."""
        self.progress.record(time_s=time_s, round_number=round_number, node=node, metrics=metrics)
        if round_number is not None and self._live is None:
            self._say_complete_rounds()
        self.tick()

    def event(self, *, time_s: float, node: int | None, kind: EventKind, text: str) -> None:
        """Take an event, and show it."""
        self.progress.event(time_s=time_s, node=node, kind=kind, text=text)
        if self._live is None and self._event_lines <= _EVENT_LINES_MAX:
            self._event_lines += 1
            where = "" if node is None else f" node {node}"
            enough = self._event_lines > _EVENT_LINES_MAX
            self._say(
                "further events are in events.csv" if enough else f"{kind.value}{where}: {' '.join(text.split())}"
            )
        self.tick()

    def phase(self, *, time_s: float, round_number: int, node: int, phase: str) -> None:
        """Take what a node does now."""
        self.progress.phase(time_s=time_s, round_number=round_number, node=node, phase=phase)
        self.tick()

    def finish(self, status: Status, *, reason: str = "") -> None:
        """Take how it ended."""
        self.progress.finish(status, reason=reason)
        if self._live is None:
            self._say_complete_rounds(all_of_them=True)
        else:
            self._refresh()

    def tick(self) -> None:
        """Show what is known, if it is time to."""
        if self._live is not None and self._clock() >= self._next_at_s:
            self._refresh()

    def elapsed_s(self) -> float:
        """Return how long this has been shown."""
        return self._clock() - self._started_at_s

    def left_s(self) -> float | None:
        """Return about how long the run will still take, once there is a round to judge by."""
        share = self.progress.share_done
        return None if share <= 0.0 else self.elapsed_s() / share * (1.0 - share)

    def _refresh(self) -> None:
        if self._live is None:
            return
        begun_at_s = self._clock()
        try:
            self._live.update(self._panel(), refresh=True)
        except OSError:
            # The terminal is gone. The run is not.
            self._live = None
            self._is_blind = True
            return
        ended_at_s = self._clock()
        self._next_at_s = ended_at_s + max(_EVERY_S, (ended_at_s - begun_at_s) / _SHARE_OF_TIME)

    # ------------------------------------------------------------------------------------------------------- panel

    def _panel(self) -> RenderableType:
        progress = self.progress
        description = progress.description
        bar = Table.grid(padding=(0, 2))
        left_s = self.left_s()
        bar.add_row(
            Text(f"round {progress.current_round} of {description.planned_rounds}", style="bold"),
            ProgressBar(total=1.0, completed=progress.share_done, width=32),
            f"{progress.share_done:.0%}",
            Text(f"{duration(self.elapsed_s())} so far", style="dim"),
            Text("" if left_s is None else f"about {duration(left_s)} left", style="dim"),
        )
        parts: list[RenderableType] = [bar, self._rounds(), self._now()]
        for event in progress.events:
            node = "" if event.node is None else f" node {event.node}"
            said = f"{event.time_s:>8.1f} s {event.kind.value}{node}: {event.text}"
            parts.append(
                Text(
                    " ".join(said.split()),
                    style=_EVENT_STYLES.get(event.kind, "dim"),
                    overflow="ellipsis",
                    no_wrap=True,
                )
            )
        title = f"{description.run} · {description.nodes:,} nodes · {description.backend}"
        return Panel(Group(*parts), title=title, title_align="left", width=min(_WIDTH, self._console.width))

    def _rounds(self) -> Table:
        table = Table(box=None, padding=(0, 1), header_style="dim")
        for heading in ("round", "nodes", "accuracy", "least", "completeness", "round time", "round trip"):
            table.add_column(heading, justify="right")
        progress = self.progress
        for number in progress.reported_rounds()[-_ROUNDS_SHOWN:]:
            row = progress.round(number)
            table.add_row(
                str(number),
                str(row.nodes) if progress.is_complete(number) else f"{row.nodes} of {progress.present}",
                percent(row.accuracy_mean),
                percent(row.accuracy_min),
                percent(row.completeness),
                seconds(row.round_s),
                seconds(row.rtt_s),
                style="" if progress.is_complete(number) else "dim",
            )
        return table

    def _now(self) -> Text:
        progress = self.progress
        words = [f"{phase} {count}" for phase, count in progress.phases]
        if progress.packets_per_s is not None:
            words.append(f"{progress.packets_per_s:,.0f} packets/s")
        if progress.cover_share is not None:
            words.append(f"{percent(progress.cover_share)} cover")
        if progress.deaths:
            words.append(f"{progress.deaths} died")
        words.append(f"run clock {duration(progress.clock_s)}")
        return Text(" · ".join(words))

    # ------------------------------------------------------------------------------------------------------- lines

    def _say_complete_rounds(self, *, all_of_them: bool = False) -> None:
        progress = self.progress
        for number in progress.reported_rounds():
            if number <= self._lines_round:
                continue
            if not all_of_them and not progress.is_complete(number):
                return
            self._lines_round = number
            self._say(self._line(progress.round(number)))

    def _line(self, row: RoundSoFar) -> str:
        words = [f"round {row.number} of {self.progress.description.planned_rounds}"]
        if row.accuracy_mean is not None:
            words.append(f"accuracy {percent(row.accuracy_mean)} (least {percent(row.accuracy_min)})")
        if row.completeness is not None:
            words.append(f"completeness {percent(row.completeness)}")
        if row.round_s is not None:
            words.append(f"took {seconds(row.round_s)}")
        words.append(f"{duration(self.elapsed_s())} so far")
        left_s = self.left_s()
        if left_s:
            words.append(f"about {duration(left_s)} left")
        return ", ".join(words)

    def _say(self, line: str) -> None:
        if self._is_blind:
            return
        try:
            self._console.print(Text(line), soft_wrap=True)
        except OSError:
            self._is_blind = True
