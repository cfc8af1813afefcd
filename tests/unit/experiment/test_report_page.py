"""The report: one page that says what the records say, whatever state they are in."""

import argparse
import json
import math
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.experiment.html_pages import sound_page
from tests.unit.experiment.synthetic_run import create_run, play, write_run
from tests.unit.experiment.test_records_files import files_of_at_most
from unlinkabledfl.cli import report as command
from unlinkabledfl.errors import ConfigError, RunError
from unlinkabledfl.experiment.compare import compare_runs, comparison_html
from unlinkabledfl.experiment.records import EventKind, RunDirectory, RunRecorder, Status
from unlinkabledfl.experiment.report import load_run, report_html, write_report

EVERY_FIGURE = [
    "Accuracy", "Accuracy among nodes", "Loss", "Completeness", "Fragments that were not aggregated",
    "Round-trip times", "Bytes sent", "Cover share", "Queues", "Round time", "Accuracy over time", "Processor time",
    "Memory", "Rounds and events", "Topology",
]  # fmt: skip


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "whole", nodes=16, rounds=6, seed=3).path


@pytest.fixture(scope="module")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "small", nodes=5, rounds=2).path


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true")
    command.add_to(parser.add_subparsers(), common)
    return parser.parse_args(["report", *words])


def headings(html: str) -> list[str]:
    return [part.partition("</h3>")[0] for part in html.split("<h3>")[1:]]


def test_the_page_is_sound_and_has_every_figure_with_its_numbers(whole_run: Path) -> None:
    html = report_html(load_run(whole_run))

    page = sound_page(html)
    assert headings(html) == [*EVERY_FIGURE, "Events"]
    assert page.tags.count("svg") == len(EVERY_FIGURE)
    assert html.count("<summary>Numbers</summary>") == len(EVERY_FIGURE) - 1  # a topology has no numbers
    assert "Not measured" not in page.text


def test_the_numbers_on_the_page_are_those_of_the_records(whole_run: Path) -> None:
    data = load_run(whole_run)
    last = data.table.by_round("accuracy")[6]

    text = sound_page(report_html(data)).text

    mean = math.fsum(last.values()) / len(last)
    assert f"Accuracy {100 * mean:.2f}".rstrip("0") in text
    assert all(f"{100 * value:.2f}".rstrip("0").rstrip(".") in text for value in last.values())
    assert "killed by SIGKILL; last line of its log: <training & more>" in text
    assert "Poisoning" not in text
    assert "node 5, poisoning" in text
    assert "path_length = 2" in text
    assert "unlinkabledfl run" in text


def test_a_hundred_nodes_and_ten_rounds_make_a_page_below_two_megabytes(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "large", nodes=100, rounds=10)

    page = write_report(load_run(directory.path))

    assert page == directory.report_path
    assert page.stat().st_size < 2_000_000
    sound_page(page.read_text(encoding="utf-8"))


def test_beyond_two_hundred_nodes_bands_take_the_place_of_lines(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "larger", nodes=240, rounds=2)

    html = report_html(load_run(directory.path))

    assert len(html) < 1_000_000
    assert "80% of them" in html
    assert "each of the 240 nodes is in metrics.csv" in html
    assert html.count('class="line thin"') == 0
    sound_page(html)


def test_a_run_that_has_only_begun_has_a_page_too(tmp_path: Path) -> None:
    directory = create_run(tmp_path / "run")
    RunRecorder(directory)

    page = sound_page(report_html(load_run(directory.path)))

    assert "running" in page.text
    assert "0 of 5" in page.text
    assert "Not measured in this run: accuracy, accuracy among nodes, loss, completeness" in page.text


def test_one_round_of_two_nodes_is_enough(tmp_path: Path) -> None:
    recorder = RunRecorder(create_run(tmp_path / "run", nodes=5, rounds=1))
    for node in (0, 1):
        recorder.record(time_s=3.0, round_number=1, node=node, metrics={"accuracy": 0.5, "round_s": 2.0, "loss": 0.0})
    recorder.finish(Status.FINISHED)

    sound_page(report_html(load_run(tmp_path / "run")))


def test_a_model_that_diverged_is_drawn_without_its_infinite_values(tmp_path: Path) -> None:
    recorder = RunRecorder(create_run(tmp_path / "run"))
    play(recorder, nodes=8, rounds=3)
    for node in range(8):
        metrics = {"loss": math.nan, "accuracy": math.inf, "rtt_s_p50": -math.inf, "pss_mib": math.nan}
        recorder.record(time_s=999.0, round_number=4, node=node, metrics=metrics)
    recorder.finish(Status.FINISHED)
    data = load_run(tmp_path / "run")

    sound_page(report_html(data))
    json.dumps(data.document(), allow_nan=False)


def test_hostile_words_in_the_records_stay_words(tmp_path: Path) -> None:
    evil = "</title></style><script>alert(1)</script>\"'&"
    directory = create_run(tmp_path / "run", run=evil)
    recorder = RunRecorder(directory)
    recorder.event(time_s=1.0, node=0, kind=EventKind.DEATH, text=evil)
    recorder.finish(Status.FAILED, reason=evil)
    with directory.scenario_path.open("a") as scenario:
        scenario.write(f"# {evil}\n")

    page = sound_page(report_html(load_run(directory.path)))

    assert page.text.count("<script>alert(1)</script>") >= 4


def test_damaged_records_are_shown_as_far_as_they_go_and_named(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", rounds=2)
    with directory.metrics_path.open("a") as table:
        table.write("what is this\n1.0,1,7000,accuracy,0.5\n12.0,2,")
    directory.summary_path.write_text("{")
    directory.scenario_path.unlink()

    data = load_run(directory.path)
    page = sound_page(report_html(data))

    lines = directory.metrics_path.read_text().count("\n") - 1
    assert f"metrics.csv, line {lines:,}: 1 fields instead of 5; the line is left out" in page.text
    assert f"metrics.csv, line {lines + 2:,}: cut off; the line is left out" in page.text
    assert "summary.json cannot be read" in page.text
    assert "scenario.toml cannot be read: No such file or directory" in page.text
    assert data.document()["rounds"][0]["round"] == 1


HOSTILE = st.one_of(
    st.binary(max_size=60),
    st.sampled_from([
        b"9e999,1,0,accuracy,0.5\n", b"1e300,1,0,round_s,1e308\n", b"5,9999999,9999999,accuracy,-1e308\n",
        b"1,1,0,round_s,-5\n", b"1,2,1,rtt_s_p50,1e-320\n", b"1,,0,queue_own,1e69\n", b"1,1,0,bytes_sent,-3\n",
        b"2,3,death,\xff\xfe\n", b"0,0\n7,7\n1,9999999\n", b"[[[[", b'{"seconds": NaN}', b'"versions": 5,', b"\x00",
    ]),
)  # fmt: skip


@given(
    name=st.sampled_from(["metrics.csv", "events.csv", "topology.csv", "summary.json", "scenario.toml"]),
    change=st.tuples(st.floats(0.0, 1.0), st.integers(0, 400), HOSTILE),
)
@settings(max_examples=settings().max_examples // 4)
def test_whatever_happens_to_a_file_the_page_is_sound_or_the_error_one_sentence(
    small_run: Path, tmp_path_factory: pytest.TempPathFactory, name: str, change: tuple[float, int, bytes]
) -> None:
    where, removed, inserted = change
    copy = tmp_path_factory.mktemp("damaged") / "run"
    shutil.copytree(small_run, copy)
    content = (copy / name).read_bytes()
    place = round(where * len(content))
    (copy / name).write_bytes(content[:place] + inserted + content[place + removed :])

    with suppress(RunError):
        data = load_run(copy)
        sound_page(report_html(data))
        json.dumps(data.document(), allow_nan=False)
        comparison = compare_runs(data, load_run(small_run))
        sound_page(comparison_html(comparison))
        json.dumps(comparison.document(), allow_nan=False)


def test_the_command_prints_the_document_and_writes_nothing_unless_told(
    whole_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command.handle(arguments(str(whole_run), "--json"))

    document = json.loads(capsys.readouterr().out)
    assert not (whole_run / "report.html").exists()
    assert document["report"] is None
    assert [row["round"] for row in document["rounds"]] == [1, 2, 3, 4, 5, 6]
    assert set(document["rounds"][0]) == {
        "round", "accuracy_mean", "accuracy_min", "completeness", "seconds", "rtt_s_p50", "bytes_sent_per_node",
        "cpu_s_per_node",
    }  # fmt: skip
    assert {"sent", "aggregated", "late", "refused", "given_up"} <= set(document["fragments"])
    assert {"machine", "versions", "seconds"} <= set(document)


def test_the_command_tells_people_where_the_page_lies(
    whole_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command.handle(arguments(str(whole_run), "--out", str(tmp_path / "p.html")))

    captured = capsys.readouterr()
    assert captured.out == ""
    assert "packets that the network saw" in captured.err
    assert str(tmp_path / "p.html") in captured.err.replace("\n", "")
    sound_page((tmp_path / "p.html").read_text(encoding="utf-8"))


def test_what_is_no_run_and_what_cannot_be_written_are_sentences(whole_run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="takes the directory of a run"):
        command.handle(arguments(str(tmp_path)))
    with pytest.raises(RunError, match="cannot be written: No such file or directory"):
        command.handle(arguments(str(whole_run), "--out", str(tmp_path / "absent" / "p.html")))
    with files_of_at_most(1000), pytest.raises(RunError, match=r"p\.html cannot be written"):
        command.handle(arguments(str(whole_run), "--out", str(tmp_path / "p.html")))
    assert RunDirectory.open(whole_run).status() is Status.FINISHED
