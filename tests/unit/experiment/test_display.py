"""What people see of a run: how far it is, on a terminal and elsewhere, at a price that is bounded."""

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tests.unit.experiment.synthetic_run import description, play, write_run
from unlinkabledfl.experiment.display import LiveDisplay, closing_summary
from unlinkabledfl.experiment.display.live import Screen
from unlinkabledfl.experiment.display.progress import Progress
from unlinkabledfl.experiment.display.words import duration
from unlinkabledfl.experiment.records import EventKind, Status


class Clock:
    """A clock that the test moves, or that moves with every look at it."""

    def __init__(self, step_s: float = 0.0) -> None:
        self.now_s = 100.0
        self.step_s = step_s

    def __call__(self) -> float:
        self.now_s += self.step_s
        return self.now_s


class Paper(io.StringIO):
    """A terminal's screen: counts how often it was written to."""

    def __init__(self, *, broken_after: int | None = None) -> None:
        super().__init__()
        self.broken_after = broken_after
        self.writes = 0

    def write(self, text: str) -> int:
        self.writes += 1
        if self.broken_after is not None and self.writes > self.broken_after:
            raise BrokenPipeError
        return super().write(text)


class SlowPaper(Paper):
    """A screen that takes 50 ms for whatever is written."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def write(self, text: str) -> int:
        self._clock.now_s += 0.05
        return super().write(text)


def terminal(paper: Paper) -> Screen:
    return Screen(file=paper, force_terminal=True, width=110, color_system=None, legacy_windows=False)


def plain(paper: io.StringIO) -> Screen:
    return Screen(file=paper, force_terminal=False, width=80)


def report_round(display: LiveDisplay | Progress, number: int, *, nodes: int, accuracy: float = 0.5) -> None:
    for node in range(nodes):
        figures = {"accuracy": accuracy, "completeness": 1.0, "round_s": 30.0, "rtt_s_p50": 20.0}
        display.record(time_s=30.0 * number, round_number=number, node=node, metrics=figures)


def test_without_a_terminal_there_is_a_line_a_round_and_a_line_an_event() -> None:
    paper, clock = io.StringIO(), Clock()
    with LiveDisplay(description(nodes=2, rounds=3), console=plain(paper), clock=clock) as display:
        clock.now_s += 10.0
        report_round(display, 1, nodes=2, accuracy=0.25)
        display.event(time_s=31.0, node=1, kind=EventKind.DEATH, text="killed\nby SIGKILL")
        clock.now_s += 10.0
        report_round(display, 2, nodes=1, accuracy=0.5)
        display.finish(Status.INTERRUPTED)

    assert paper.getvalue().splitlines() == [
        "synthetic: 2 nodes, 3 rounds, back end simulation, seed 7",
        "round 1 of 3, accuracy 25.0% (least 25.0%), completeness 100.0%, took 30 s, 0:10 so far, about 0:20 left",
        "death node 1: killed by SIGKILL",
        "round 2 of 3, accuracy 50.0% (least 50.0%), completeness 100.0%, took 30 s, 0:20 so far, about 0:04 left",
    ]


def test_a_round_that_was_not_finished_is_said_at_the_end() -> None:
    paper = io.StringIO()
    with LiveDisplay(description(nodes=4), console=plain(paper), clock=Clock()) as display:
        report_round(display, 1, nodes=3)
        before = len(paper.getvalue().splitlines())
        display.finish(Status.INTERRUPTED)

    assert (before, len(paper.getvalue().splitlines())) == (1, 2)


def test_a_flood_of_events_ends_in_a_pointer_to_the_file() -> None:
    paper = io.StringIO()
    with LiveDisplay(description(), console=plain(paper), clock=Clock()) as display:
        for node in range(500):
            display.event(time_s=1.0, node=node, kind=EventKind.LINK, text="lost")

    lines = paper.getvalue().splitlines()
    assert (len(lines), lines[-1]) == (62, "further events are in events.csv")


def test_on_a_terminal_a_panel_shows_rounds_phases_rates_and_events() -> None:
    paper, clock = Paper(), Clock()
    with LiveDisplay(description(nodes=8, rounds=5), console=terminal(paper), clock=clock) as display:
        play(display, nodes=8, rounds=2)
        display.event(time_s=70.0, node=3, kind=EventKind.DEATH, text="killed by <SIGKILL> [bold]")
        clock.now_s += 60.0
        display.tick()
        shown = paper.getvalue().rpartition("synthetic")[2]
        last_rows = shown.splitlines()

    assert "round 2 of 5" in shown
    assert "1:00 so far" in shown
    assert "left" in shown
    assert "exchange 7" in shown
    assert "packets/s" in shown
    assert "killed by <SIGKILL> [bold]" in shown
    assert [row.split()[1:3] for row in last_rows if "%" in row and "│" in row][1:3] == [["1", "8"], ["2", "8"]]


def test_the_terminal_is_given_back_when_the_run_is_interrupted() -> None:
    paper = Paper()

    with pytest.raises(KeyboardInterrupt), LiveDisplay(description(), console=terminal(paper), clock=Clock()):
        raise KeyboardInterrupt

    assert paper.getvalue().count("\x1b[?25l") == paper.getvalue().count("\x1b[?25h") == 1


def test_it_is_drawn_at_most_four_times_a_second() -> None:
    paper, clock = Paper(), Clock()
    with LiveDisplay(description(), console=terminal(paper), clock=clock) as display:
        drawn = 0
        for _ in range(1000):
            clock.now_s += 0.01
            before = paper.writes
            display.phase(time_s=1.0, round_number=1, node=0, phase="train")
            drawn += paper.writes > before

    assert 35 <= drawn <= 40


def test_where_drawing_is_slow_it_is_done_less_often() -> None:
    clock = Clock()
    paper = SlowPaper(clock)
    with LiveDisplay(description(), console=terminal(paper), clock=clock) as display:
        started_s, before = clock.now_s, paper.writes
        while clock.now_s - started_s < 200.0:
            clock.now_s += 0.01
            display.tick()

    share = (paper.writes - before) * 0.05 / 200.0
    assert 0.017 <= share <= 0.0205


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_screen_that_goes_away_does_not_take_the_run_with_it(is_terminal: bool) -> None:
    paper, clock = Paper(broken_after=12), Clock(step_s=1.0)
    console = terminal(paper) if is_terminal else plain(paper)
    with LiveDisplay(description(nodes=8, rounds=40), console=console, clock=clock) as display:
        play(display, nodes=8, rounds=40)
        display.finish(Status.FINISHED)

    assert paper.writes > 12
    assert display.progress.rounds_complete == 40


def test_a_run_that_was_taken_up_again_is_judged_by_what_is_left() -> None:
    progress = Progress(description(nodes=2, rounds=10))
    progress.phase(time_s=0.0, round_number=7, node=0, phase="train")

    report_round(progress, 7, nodes=2)

    assert progress.share_done == pytest.approx(1 / 4)


def test_packets_a_second_come_from_the_samples_of_all_nodes() -> None:
    progress = Progress(description(nodes=2))
    for time_s, sent in ((10.0, 100.0), (12.0, 150.0)):
        for node in (0, 1):
            progress.record(time_s=time_s, round_number=None, node=node, metrics={"packets_sent": sent})

    assert progress.packets_per_s == pytest.approx(50.0)


@given(
    told=st.lists(
        st.one_of(
            st.tuples(st.just("round"), st.integers(1, 5), st.integers(0, 3)),
            st.tuples(st.just("phase"), st.integers(1, 5), st.integers(0, 3)),
            st.tuples(st.sampled_from(["death", "exit", "link"]), st.just(1), st.integers(0, 3)),
        ),
        max_size=60,
    )
)
def test_progress_never_falls_and_counts_each_round_of_a_node_once(told: list[tuple[str, int, int]]) -> None:
    progress = Progress(description(nodes=4, rounds=5))
    progress.phase(time_s=0.0, round_number=1, node=0, phase="train")
    done: set[tuple[int, int]] = set()
    share = 0.0
    for what, number, node in told:
        if what == "round":
            progress.record(time_s=1.0, round_number=number, node=node, metrics={"round_s": 1.0})
            done.add((number, node))
        elif what == "phase":
            progress.phase(time_s=1.0, round_number=number, node=node, phase="train")
        else:
            progress.event(time_s=1.0, node=node, kind=EventKind(what), text="")
        assert share <= progress.share_done <= 1.0
        share = progress.share_done
    assert sum(progress.done_in(number) for number in range(1, 6)) == len(done)


@pytest.mark.parametrize(("seconds", "text"), [(7.4, "0:07"), (750.0, "12:30"), (3723.0, "1:02:03")])
def test_durations_are_written_as_clocks_do(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_the_closing_summary_says_accuracy_what_the_network_saw_and_where_the_report_lies(tmp_path: Path) -> None:
    document = write_run(tmp_path / "run", nodes=8, rounds=5).summary()
    paper = io.StringIO()

    Console(file=paper, width=120).print(closing_summary(document, report=Path("runs/x/report.html")))

    printed = " ".join(paper.getvalue().split())
    accuracy = document["rounds"][-1]["accuracy_mean"]
    assert f"accuracy after round 5, mean of the nodes │ {100 * accuracy:.1f}%" in printed
    assert f"packets that the network saw, all of one size │ {document['network']['packets_sent']:,}" in printed
    assert f"cover among the packets that nodes originate │ {100 * document['network']['cover_share']:.1f}%" in printed
    assert "nodes that died │ 1" in printed
    assert printed.endswith("report: runs/x/report.html")


def test_the_closing_summary_of_a_run_that_failed_at_once_says_why(tmp_path: Path) -> None:
    document = {
        "run": "x", "status": "failed", "nodes": 3, "backend": "process", "planned_rounds": 4, "rounds": [],
        "reason": "port 4000 is taken", "notes": ["metrics.parquet was not written"],
        "fragments": {"sent": 0, "aggregated": 0, "late": 0, "refused": 0, "given_up": 0},
    }  # fmt: skip
    paper = io.StringIO()

    Console(file=paper, width=120).print(closing_summary(document))

    assert "failed: port 4000 is taken" in paper.getvalue()
    assert "note: metrics.parquet was not written" in paper.getvalue()
