"""The journal: whoever follows a run gets what it told, in order, once, wherever he begins."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.experiment.synthetic_run import create_run, play, write_run
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.records import EventKind, RunDirectory, RunRecorder, Status
from unlinkabledfl.experiment.records.journal import (
    Journal,
    Record,
    TableName,
    read_journal,
    read_records,
)
from unlinkabledfl.experiment.records.tables import Event, MetricRecord, Phase


def everything(directory: Path, *, steps: int = 1_000) -> list[tuple[int, Record]]:
    found: list[tuple[int, Record]] = []
    after = 0
    while True:
        records, position = read_records(directory, after=after, most=steps)
        if position == after:
            return found
        found += records
        after = position


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return write_run(tmp_path_factory.mktemp("runs") / "run", nodes=8, rounds=2)


def test_what_a_recorder_is_told_is_read_back_in_its_order(tmp_path: Path) -> None:
    recorder = RunRecorder(create_run(tmp_path / "run"))
    recorder.phase(time_s=0.0, round_number=1, node=3, phase="train")
    recorder.record(time_s=1.5, round_number=None, node=3, metrics={"queue_own": 4.0, "cover_share": 0.5})
    recorder.event(time_s=2.0, node=3, kind=EventKind.DEATH, text="killed by SIGKILL, it said: \n'no, \"please\"'")
    recorder.record(time_s=3.0, round_number=1, node=None, metrics={"accuracy": float("nan")})

    (_, phase), (_, gauges), (_, death), (_, figures) = everything(tmp_path / "run")

    assert phase == Phase(time_s=0.0, round_number=1, node=3, phase="train")
    assert gauges == MetricRecord(time_s=1.5, round_number=None, node=3, values={"queue_own": 4.0, "cover_share": 0.5})
    text = "killed by SIGKILL, it said: 'no, \"please\"'"
    assert death == Event(time_s=2.0, node=3, kind=EventKind.DEATH, text=text)
    assert isinstance(figures, MetricRecord)
    assert (figures.time_s, figures.round_number, figures.node, list(figures.values)) == (3.0, 1, None, ["accuracy"])


def test_the_journal_holds_every_figure_of_the_table(run: RunDirectory) -> None:
    told = [
        (record.time_s, record.round_number, record.node, name, value)
        for _, record in everything(run.path)
        if isinstance(record, MetricRecord)
        for name, value in record.values.items()
    ]
    lines = run.metrics_path.read_text().splitlines()[1:]

    assert [
        f"{time_s:.6f},{'' if at is None else at},{'' if node is None else node},{name},{value!r}"
        for time_s, at, node, name, value in told
    ] == lines


@given(data=st.data())
def test_whoever_stops_anywhere_and_goes_on_misses_nothing_and_gets_nothing_twice(
    run: RunDirectory, data: st.DataObject
) -> None:
    whole = everything(run.path)
    steps = data.draw(st.integers(1, 50))
    stop = data.draw(st.integers(0, len(whole) - 1))

    assert everything(run.path, steps=steps) == whole
    records, _ = read_records(run.path, after=whole[stop][0])
    assert records == whole[stop + 1 : stop + 1 + len(records)]


def test_a_position_means_the_same_after_the_run_went_on(tmp_path: Path) -> None:
    directory = create_run(tmp_path / "run")
    first = RunRecorder(directory)
    play(first, nodes=8, rounds=1)
    before = everything(directory.path)
    first.finish(Status.INTERRUPTED)

    second = RunRecorder(RunDirectory.resume(directory.path))
    play(second, nodes=8, rounds=1, first_round=2)
    second.finish(Status.FINISHED)

    whole = everything(directory.path)
    assert whole[: len(before)] == before
    resumed = whole[len(before)][1]
    assert isinstance(resumed, Event)
    assert (resumed.kind, resumed.text) == (EventKind.NOTE, "resumed")


def test_lines_of_which_a_killed_writer_could_not_tell_are_told_by_the_next(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append(TableName.METRICS, "1.000000,,0,queue_own,1.0\n")
    journal.close()
    with (tmp_path / "metrics.csv").open("a") as table:
        table.write("2.000000,,0,queue_own,2.0\n2.000000,,1,queue_own,3.0\n3.000000,,1,que")

    Journal(tmp_path).close()

    told = [record for _, record in everything(tmp_path)]
    assert [(record.time_s, record.node) for record in told if isinstance(record, MetricRecord)] == [
        (1.0, 0),
        (2.0, 0),
        (2.0, 1),
    ]


def test_damage_is_left_out_and_what_follows_is_read(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append(TableName.PHASES, "0.000000,1,0,train\n")
    journal.append(TableName.PHASES, "no phase at all\n")
    journal.close()
    with (tmp_path / "journal.csv").open("a") as file:
        file.write("secrets,0,99\nmetrics,0\nphases,999999,10\n")
    journal = Journal(tmp_path)
    journal.append(TableName.EVENTS, "4.000000,,note,on we go\n")
    journal.close()

    assert [record.time_s for _, record in everything(tmp_path)] == [0.0, 4.0]


def test_a_last_line_without_its_end_is_not_there_yet(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append(TableName.PHASES, "0.000000,1,0,train\n")
    journal.close()
    with (tmp_path / "journal.csv").open("a") as file:
        file.write("phases,23,1")

    assert len(read_journal(tmp_path)) == 1


@pytest.mark.parametrize("position", [1, 20, 10**9])
def test_a_position_that_nobody_was_told_is_refused(run: RunDirectory, position: int) -> None:
    with pytest.raises(ConfigError, match="a position that a reader of this run was told"):
        read_records(run.path, after=position)


def test_a_run_that_has_told_nothing_yet_has_no_records(tmp_path: Path) -> None:
    assert read_records(tmp_path) == ([], 0)
