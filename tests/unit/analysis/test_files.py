"""A recording survives its files, and damaged files are told apart from a run without traces."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.unit.analysis.recordings import OVERLAY, recorded
from unlinkabledfl.analysis.adversaries import FlowAdversary
from unlinkabledfl.analysis.files import OBSERVED, ORACLE, read_oracle, read_trace, write_recording
from unlinkabledfl.errors import ConfigError

pyarrow = pytest.importorskip("pyarrow", reason="the extra `experiment` is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="the extra `experiment` is not installed")


def test_what_is_written_is_read(tmp_path: Path) -> None:
    recording = recorded(OVERLAY).recording
    expected, answers = recording.observed(compromised=[3])
    write_recording(tmp_path, recording, compromised=[3])

    trace = read_trace(tmp_path)
    oracle = read_oracle(tmp_path, trace)

    assert trace.settings.mixer == expected.settings.mixer
    assert trace.settings.destinations == expected.settings.destinations
    assert trace.compromised == (3,)
    for name in ("left_at_s", "arrived_at_s", "source", "target", "size_bytes", "wire_hash"):
        assert np.array_equal(
            getattr(trace.crossings, name), getattr(expected.crossings, name), equal_nan=name == "arrived_at_s"
        )
    assert np.array_equal(trace.before, expected.before)
    assert np.array_equal(oracle.origin, answers.origin)
    assert oracle.path == answers.path


def test_an_adversary_guesses_the_same_without_the_truth(tmp_path: Path) -> None:
    recording = recorded(OVERLAY).recording
    write_recording(tmp_path, recording, compromised=[3])
    (tmp_path / ORACLE).unlink()

    guesses = FlowAdversary().posteriors(read_trace(tmp_path))

    assert np.array_equal(guesses, FlowAdversary().posteriors(recording.observed(compromised=[3])[0]))


def test_what_the_adversary_reads_links_no_honest_relay(tmp_path: Path) -> None:
    write_recording(tmp_path, recorded(OVERLAY).recording)

    assert (read_trace(tmp_path).before == -1).all()


def test_a_run_without_traces_is_told_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no such file.*monitoring\.trace = true"):
        read_trace(tmp_path)


def test_a_file_cut_off_is_called_damaged(tmp_path: Path) -> None:
    write_recording(tmp_path, recorded(OVERLAY).recording)
    path = tmp_path / OBSERVED
    path.write_bytes(path.read_bytes()[:2_000])

    with pytest.raises(ConfigError, match="damaged"):
        read_trace(tmp_path)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"not a table at all"])
def test_rubbish_is_called_damaged(tmp_path: Path, data: bytes) -> None:
    (tmp_path / OBSERVED).write_bytes(data)

    with pytest.raises(ConfigError, match="damaged"):
        read_trace(tmp_path)


def test_another_version_is_named(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table({"source": [0]}), tmp_path / OBSERVED)

    with pytest.raises(ConfigError, match="takes version 1"):
        read_trace(tmp_path)


def test_answers_to_another_trace_are_refused(tmp_path: Path) -> None:
    recording = recorded(OVERLAY).recording
    write_recording(tmp_path, recording)
    trace = read_trace(tmp_path)

    with pytest.raises(ConfigError, match="answers to other targets"):
        read_oracle(tmp_path, replace(trace, targets=trace.targets[1:]))


def test_times_that_go_back_are_refused() -> None:
    crossings = recorded(OVERLAY).recording.crossings

    with pytest.raises(ConfigError, match=r"trace\.left_at_s"):
        replace(crossings, left_at_s=crossings.left_at_s[::-1].copy())
