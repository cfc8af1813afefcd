"""Lines of metrics and events: what is written is what is read, and what is damaged is named."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlinkabledfl.errors import RunError
from unlinkabledfl.experiment.records import Event, EventKind, Problems, tables
from unlinkabledfl.experiment.records.tables import (
    EVENTS_HEADER,
    METRICS_HEADER,
    NONE,
    event_line,
    metric_lines,
    read_events,
    read_metrics,
    write_parquet,
)

Row = tuple[float, int, int, str, float]

NUMBERS = st.floats(-1e69, 1e69) | st.sampled_from([math.inf, -math.inf])
INDICES = st.none() | st.integers(0, 1_000_000)
TIMES = st.integers(0, 10**12).map(lambda micro: micro / 1e6)
ROWS = st.tuples(TIMES, INDICES, INDICES, st.from_regex(r"[A-Za-z0-9_.:/@+-]{1,64}", fullmatch=True), NUMBERS)


def written(path: Path, lines: str, header: str = METRICS_HEADER) -> Path:
    path.write_text(f"{header}\n{lines}", encoding="utf-8")
    return path


@given(rows=st.lists(ROWS, max_size=30))
def test_every_figure_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[float, int | None, int | None, str, float]]
) -> None:
    lines = "".join(
        metric_lines(time_s=time_s, round_number=round_number, node=node, metrics={name: value})
        for time_s, round_number, node, name, value in rows
    )
    path = written(tmp_path_factory.mktemp("t") / "metrics.csv", lines)
    problems = Problems()

    found = list(read_metrics(path, problems).rows())

    assert problems.count == 0
    assert found == [
        (time_s, NONE if at is None else at, NONE if node is None else node, name, value)
        for time_s, at, node, name, value in rows
    ]


@given(cut=st.integers(0, 400))
def test_a_file_cut_anywhere_gives_its_whole_lines_and_names_the_last(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    lines = "".join(
        metric_lines(time_s=n, round_number=n, node=n % 3, metrics={"accuracy": n / 7, "loss": 1.0}) for n in range(8)
    )
    content = f"{METRICS_HEADER}\n{lines}".encode()[:cut]
    path = tmp_path_factory.mktemp("t") / "metrics.csv"
    path.write_bytes(content)
    problems = Problems()

    table = read_metrics(path, problems)

    whole = content.count(b"\n")
    assert len(table) == max(0, whole - 1)
    is_cut = bool(content) and not content.endswith(b"\n")
    assert problems.listed == ([f"metrics.csv, line {whole + 1}: cut off; the line is left out"] if is_cut else [])


@given(content=st.binary(max_size=400))
def test_no_content_of_a_table_can_do_more_than_be_reported(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.mktemp("t")
    (folder / "metrics.csv").write_bytes(f"{METRICS_HEADER}\n".encode() + content)
    (folder / "events.csv").write_bytes(f"{EVENTS_HEADER}\n".encode() + content)
    lines = content.count(b"\n") + (bool(content) and not content.endswith(b"\n"))

    for read, name in ((read_metrics, "metrics.csv"), (read_events, "events.csv")):
        problems = Problems()
        found = read(folder / name, problems)

        assert len(found) + problems.count == lines


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("1.0,1,0,accuracy", "4 fields instead of 5"),
        ("1.0,1,0,accuracy,0.5,9", "6 fields instead of 5"),
        ("late,1,0,accuracy,0.5", "could not convert string to float: 'late'"),
        ("nan,1,0,accuracy,0.5", "'nan' is no time"),
        ("-1,1,0,accuracy,0.5", "'-1' is no time"),
        ("1.0,one,0,accuracy,0.5", "'one' is no round"),
        ("1.0,1,-3,accuracy,0.5", "'-3' is no node"),
        ("1.0,1,99999999999999,accuracy,0.5", "'99999999999999' is no node"),
        ("1.0,1,²,accuracy,0.5", "'²' is no node"),
        ("1.0,1,0,<b>,0.5", "'<b>' is no name of a metric"),
        ("1.0,1,0,,0.5", "'' is no name of a metric"),
        ("1.0,1,0,accuracy,much", "could not convert string to float: 'much'"),
        ("x" * 20_000, "too long"),
    ],
)
def test_a_line_that_is_not_right_is_left_out_and_named_by_its_number(tmp_path: Path, line: str, said: str) -> None:
    good = "1.0,1,0,accuracy,0.5\n"
    path = written(tmp_path / "metrics.csv", f"{good}{line}\n{good}")
    problems = Problems()

    table = read_metrics(path, problems)

    assert len(table) == 2
    assert problems.listed == [f"metrics.csv, line 3: {said}; the line is left out"]


def test_many_damaged_lines_are_counted_and_the_first_are_listed(tmp_path: Path) -> None:
    problems = Problems()

    read_metrics(written(tmp_path / "metrics.csv", "?\n" * 5000), problems)

    sentences = problems.sentences()
    assert (problems.count, len(sentences), sentences[-1]) == (5000, 21, "and 4,980 more")


def test_rows_beyond_the_bound_are_not_kept(tmp_path: Path) -> None:
    path = written(tmp_path / "metrics.csv", "1.0,1,0,accuracy,0.5\n" * 50)
    problems = Problems()

    table = read_metrics(path, problems, rows_max=10)

    assert len(table) == 10
    assert problems.listed == ["metrics.csv: more than 10 rows; those from line 12 on are left out"]


def test_a_file_that_is_too_large_is_not_begun(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    with path.open("wb") as sink:
        sink.truncate(tables.FILE_MAX_BYTES + 1)

    with pytest.raises(RunError, match="are not read"):
        read_metrics(path, Problems())


def test_some_other_table_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "metrics.csv", "1,2,3\n", header="a,b,c")

    with pytest.raises(RunError, match="line 1 is not `time,round,node,metric,value`"):
        read_metrics(path, Problems())


def test_a_metric_whose_name_cannot_stand_in_a_line_is_renamed(tmp_path: Path) -> None:
    lines = metric_lines(time_s=1, round_number=1, node=0, metrics={'f1, "macro"\n': float(np.float32(0.5)), "": 1})
    problems = Problems()

    rows = list(read_metrics(written(tmp_path / "metrics.csv", lines), problems).rows())

    assert (rows, problems.count) == ([(1.0, 1, 0, "f1___macro__", 0.5), (1.0, 1, 0, "_", 1.0)], 0)


def test_the_later_of_two_figures_for_a_round_counts_and_samples_stay_apart(tmp_path: Path) -> None:
    path = written(
        tmp_path / "metrics.csv",
        "1,2,0,packets_sent,10\n2,2,0,packets_sent,12\n3,,0,packets_sent,99\n2.5,,0,packets_sent,90\n4,1,1,packets_sent,7\n",
    )

    table = read_metrics(path, Problems())

    assert table.by_round("packets_sent") == {1: {1: 7.0}, 2: {0: 12.0}}
    assert table.round_times("packets_sent") == {1: {1: 4.0}, 2: {0: 2.0}}
    times, values = table.samples("packets_sent")[0]
    assert (times.tolist(), values.tolist()) == ([2.5, 3.0], [90.0, 99.0])
    assert (table.by_round("never"), table.samples("never"), table.end_s) == ({}, {}, 4.0)


@given(
    event=st.builds(
        Event,
        time_s=TIMES,
        node=INDICES,
        kind=st.sampled_from(EventKind),
        text=st.text(st.characters(codec="utf-8"), max_size=80),
    )
)
def test_an_event_is_one_line_and_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, event: Event
) -> None:
    line = event_line(event)
    path = tmp_path_factory.mktemp("t") / "events.csv"
    path.write_bytes(f"{EVENTS_HEADER}\n{line}".encode())
    problems = Problems()

    found = read_events(path, problems)

    text = " ".join(event.text.split())
    assert line.count("\n") == 1
    assert problems.count == 0
    assert found == [Event(time_s=event.time_s, node=event.node, kind=event.kind, text=text)]


def test_a_value_that_no_model_has_counts_as_infinite(tmp_path: Path) -> None:
    path = written(tmp_path / "metrics.csv", "1.0,1,0,loss,1e71\n1.0,1,1,loss,-1e308\n1.0,1,2,loss,3.4e38\n")

    assert read_metrics(path, Problems()).values.tolist() == [math.inf, -math.inf, 3.4e38]


def test_an_event_of_no_known_kind_is_named(tmp_path: Path) -> None:
    problems = Problems()

    found = read_events(written(tmp_path / "events.csv", "1.0,3,party,hurray\n", EVENTS_HEADER), problems)

    assert found == []
    assert problems.listed == ["events.csv, line 2: 'party' is not a valid EventKind; the line is left out"]


def test_parquet_holds_the_same_rows_with_nulls(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is an optional extra")
    path = written(tmp_path / "metrics.csv", "1.0,1,0,accuracy,0.5\n2.0,,3,queue_own,nan\n3.0,2,,packets,7\n")

    assert write_parquet(read_metrics(path, Problems()), tmp_path / "metrics.parquet")

    columns = parquet.read_table(tmp_path / "metrics.parquet").to_pydict()
    assert math.isnan(columns["value"].pop(1))
    assert columns == {
        "time": [1.0, 2.0, 3.0],
        "round": [1, None, 2],
        "node": [0, 3, None],
        "metric": ["accuracy", "queue_own", "packets"],
        "value": [0.5, 7.0],
    }
