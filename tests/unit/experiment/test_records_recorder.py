"""What is told to a recorder is on disk at once, and adds up."""

import builtins
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.experiment.synthetic_run import create_run, play, write_run
from tests.unit.experiment.test_records_files import files_of_at_most
from unlinkabledfl.errors import RunError
from unlinkabledfl.experiment.records import EventKind, Fanout, Recorder, RunRecorder, Status, UntilFailure
from unlinkabledfl.experiment.records.totals import Totals
from unlinkabledfl.experiment.report import load_run


def test_a_figure_is_on_disk_when_record_returns(tmp_path: Path) -> None:
    directory = create_run(tmp_path / "run")
    recorder = RunRecorder(directory)

    recorder.record(time_s=2.5, round_number=1, node=3, metrics={"accuracy": 0.25, "loss": 2.0})
    recorder.record(time_s=3.0, round_number=None, node=3, metrics={"queue_own": 4})
    recorder.record(time_s=3.0, round_number=2, node=None, metrics={"links": 16})
    recorder.event(time_s=4.0, node=3, kind=EventKind.DEATH, text="killed,\nsadly")

    assert directory.metrics_path.read_text() == (
        "time,round,node,metric,value\n2.500000,1,3,accuracy,0.25\n2.500000,1,3,loss,2.0\n"
        "3.000000,,3,queue_own,4.0\n3.000000,2,,links,16.0\n"
    )
    assert directory.events_path.read_text() == 'time,node,kind,text\n4.000000,3,death,"killed, sadly"\n'
    directory.release()


def test_an_error_message_that_is_no_text_does_not_stop_a_run(tmp_path: Path) -> None:
    recorder = RunRecorder(create_run(tmp_path / "run"))

    recorder.event(time_s=1.0, node=0, kind=EventKind.DEATH, text="bad byte \udcff")
    recorder.finish(Status.FAILED, reason="bad byte \udcff")

    data = load_run(tmp_path / "run")
    assert ([event.text for event in data.events], data.summary["reason"]) == (["bad byte ?"], "bad byte ?")


def test_the_summary_adds_up_what_was_told(tmp_path: Path) -> None:
    directory = create_run(tmp_path / "run")
    recorder = RunRecorder(directory)
    for node, accuracy in ((0, 0.5), (1, 0.7), (2, 0.9)):
        metrics = {
            "accuracy": accuracy, "completeness": 1.0, "round_s": 10.0 + node, "rtt_s_p50": float(node),
            "bytes_sent": 100.0, "packets_sent": 10.0, "packets_relayed": 4.0, "cover_sent": 6.0,
            "fragments_sent": 3.0, "fragments_resent": 1.0, "fragments_acknowledged": 2.0, "fragments_given_up": 1.0,
            "fragments_received": 4.0, "fragments_aggregated": 2.0, "fragments_late": 1.0, "fragments_refused": 1.0,
        }  # fmt: skip
        recorder.record(time_s=12.0, round_number=1, node=node, metrics=metrics)
        recorder.record(time_s=12.0, round_number=1, node=node, metrics={"cpu_s": 2.0})
    recorder.event(time_s=13.0, node=2, kind=EventKind.DEATH, text="killed")
    recorder.finish(Status.FINISHED)

    document = directory.summary()
    for key in ("machine", "versions", "seconds", "notes"):
        del document[key]
    assert document == {
        "run": "synthetic",
        "backend": "simulation",
        "nodes": 8,
        "planned_rounds": 5,
        "seed": 7,
        "status": "finished",
        "rounds": [
            {
                "round": 1,
                "accuracy_mean": pytest.approx(0.7),
                "accuracy_min": 0.5,
                "completeness": 1.0,
                "seconds": 11.0,
                "rtt_s_p50": 1.0,
                "bytes_sent_per_node": 100.0,
                "cpu_s_per_node": 2.0,
            }
        ],
        "fragments": {
            "sent": 9, "acknowledged": 6, "given_up": 3, "withdrawn": 0, "received": 12, "aggregated": 6, "late": 3,
            "refused": 3,
        },
        "network": {
            "packets_sent": 30, "packets_relayed": 12, "cover_sent": 18, "bytes_sent": 300, "fragments_resent": 3,
            "cover_share": 0.6,
        },
        "deaths": 1,
        "run_clock_s": 13.0,
    }  # fmt: skip


def test_the_report_reads_back_what_the_summary_says(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", nodes=16, rounds=4)

    read, written = load_run(directory.path).document(), directory.summary()

    assert read == {key: written[key] for key in read}


@given(
    told=st.lists(
        st.tuples(
            st.integers(1, 4),
            st.integers(0, 3),
            st.dictionaries(
                st.sampled_from(["accuracy", "fragments_sent", "fragments_late", "cover_sent"]),
                st.integers(0, 50).map(float),
            ),
        ),
        max_size=40,
    )
)
def test_sums_are_those_of_the_last_figure_of_each_node_and_round(
    told: list[tuple[int, int, Mapping[str, float]]],
) -> None:
    totals = Totals()
    last: dict[tuple[str, int, int], float] = {}
    for round_number, node, metrics in told:
        totals.add(round_number=round_number, node=node, metrics=metrics)
        last |= {(name, round_number, node): value for name, value in metrics.items()}

    def total(name: str) -> float:
        return sum(value for (of, _, _), value in last.items() if of == name)

    assert totals.fragments()["sent"] == total("fragments_sent")
    assert totals.fragments()["late"] == total("fragments_late")
    assert totals.network()["cover_sent"] == (total("cover_sent") if any(k[0] == "cover_sent" for k in last) else None)
    for row in totals.rounds():
        values = [value for (name, at, _), value in last.items() if name == "accuracy" and at == row["round"]]
        assert row["accuracy_mean"] == (pytest.approx(sum(values) / len(values)) if values else None)
        assert row["accuracy_min"] == min(values, default=None)


def test_a_full_disk_ends_in_a_sentence_and_a_directory_that_can_be_read(tmp_path: Path) -> None:
    directory = create_run(tmp_path / "run", nodes=32)
    recorder = RunRecorder(directory)

    with files_of_at_most(30_000):
        with pytest.raises(RunError, match=r"metrics\.csv cannot be written"):
            play(recorder, nodes=32, rounds=3)
        recorder.finish(Status.FAILED, reason="the disk is full")

    data = load_run(tmp_path / "run")
    assert (data.status, list(data.problems)) == (Status.FAILED, [])
    assert len(data.table) > 500
    assert directory.metrics_path.read_bytes().endswith(b"\n")


def test_nothing_is_taken_after_the_end(tmp_path: Path) -> None:
    directory = create_run(tmp_path / "run")
    recorder = RunRecorder(directory)
    recorder.finish(Status.FINISHED)
    before = directory.metrics_path.read_bytes()

    recorder.record(time_s=1.0, round_number=1, node=0, metrics={"accuracy": 1.0})
    recorder.event(time_s=1.0, node=0, kind=EventKind.NOTE, text="late")
    recorder.finish(Status.FAILED)

    assert directory.metrics_path.read_bytes() == before
    assert directory.status() is Status.FINISHED


def test_without_pyarrow_the_summary_says_what_is_missing_and_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_import = builtins.__import__

    def without_pyarrow(name: str, *arguments: Any) -> Any:
        if name.partition(".")[0] == "pyarrow":
            raise ImportError(name)
        return real_import(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without_pyarrow)
    directory = write_run(tmp_path / "run", rounds=1)

    assert not directory.parquet_path.exists()
    assert directory.summary()["notes"] == [
        "metrics.parquet was not written: pyarrow is not installed (pip install 'unlinkabledfl[experiment]'); "
        "metrics.csv holds the same rows"
    ]


def test_a_run_without_a_single_figure_is_a_run(tmp_path: Path) -> None:
    directory = create_run(tmp_path / "run")
    RunRecorder(directory).finish(Status.INTERRUPTED)

    assert (directory.status(), directory.summary()["rounds"]) == (Status.INTERRUPTED, [])


class _Listener:
    """Writes down what it is told, and fails at the end if it is meant to."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.told: list[tuple[str, object]] = []
        self._failure = failure

    def record(self, **told: object) -> None:
        self.told.append(("record", told["node"]))

    def event(self, **told: object) -> None:
        self.told.append(("event", told["kind"]))

    def phase(self, **told: object) -> None:
        self.told.append(("phase", told["phase"]))

    def finish(self, status: Status, *, reason: str = "") -> None:
        self.told.append(("finish", reason))
        if self._failure is not None:
            raise self._failure


def test_a_fanout_tells_everybody_also_of_an_end_that_one_of_them_cannot_bear() -> None:
    listeners = [_Listener(RunError("disk full")), _Listener()]
    recorder: Recorder = Fanout(listeners)

    recorder.phase(time_s=0, round_number=1, node=0, phase="train")
    recorder.record(time_s=1, round_number=1, node=4, metrics={"accuracy": 1})
    recorder.event(time_s=1, node=None, kind=EventKind.NOTE, text="")
    with pytest.raises(RunError, match="disk full"):
        recorder.finish(Status.FINISHED, reason="over")

    told = [("phase", "train"), ("record", 4), ("event", EventKind.NOTE), ("finish", "over")]
    assert [listener.told for listener in listeners] == [told, told]


def test_after_the_first_failure_nothing_but_the_end_is_passed_on() -> None:
    class Full(_Listener):
        def record(self, **told: object) -> None:
            raise RunError("disk full")

    listener, failures = Full(), list[RunError]()
    recorder: Recorder = UntilFailure(listener, failed=failures.append)

    recorder.phase(time_s=0, round_number=1, node=0, phase="train")
    for _ in range(2):
        recorder.record(time_s=1, round_number=1, node=4, metrics={"accuracy": 1})
    recorder.event(time_s=1, node=None, kind=EventKind.NOTE, text="")
    recorder.finish(Status.FAILED, reason="disk full")

    assert listener.told == [("phase", "train"), ("finish", "disk full")]
    assert [str(failure) for failure in failures] == ["disk full"]


def test_the_recorder_can_be_read_while_it_writes(tmp_path: Path) -> None:
    recorder = RunRecorder(create_run(tmp_path / "run"))
    play(recorder, nodes=8, rounds=2)

    data = load_run(tmp_path / "run")

    assert (data.status, [row["round"] for row in data.document()["rounds"]]) == (Status.RUNNING, [1, 2])
    assert list(data.problems) == []
    recorder.finish(Status.FINISHED)
