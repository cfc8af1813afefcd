"""A recording survives its files, and damaged files are told apart from a run without traces."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.analysis.recordings import OVERLAY, recorded
from unlinkabledfl.analysis.adversaries import DisclosureAdversary, FlowAdversary, PaperAdversary, RouteAdversary
from unlinkabledfl.analysis.files import (
    OBSERVED,
    ORACLE,
    owned_nodes,
    read_groups,
    read_oracle,
    read_trace,
    write_recording,
)
from unlinkabledfl.analysis.parquet import read_table
from unlinkabledfl.errors import ConfigError

pyarrow = pytest.importorskip("pyarrow", reason="the extra `experiment` is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="the extra `experiment` is not installed")

OWNED = (3, 7)


def written(directory: Path) -> Path:
    found = recorded(OVERLAY)
    write_recording(directory, replace(found.recording, groups=found.groups), compromised=OWNED)
    return directory


def test_what_is_written_is_read(tmp_path: Path) -> None:
    recording = recorded(OVERLAY).recording
    written(tmp_path)

    trace = read_trace(tmp_path)
    oracle = read_oracle(tmp_path, trace)

    assert trace.settings.mixer == recording.settings.mixer
    assert trace.settings.destinations == recording.settings.destinations
    assert trace.compromised == owned_nodes(tmp_path) == OWNED
    for name in ("left_at_s", "arrived_at_s", "source", "target", "size_bytes", "wire_hash"):
        assert np.array_equal(
            getattr(trace.crossings, name), getattr(recording.crossings, name), equal_nan=name == "arrived_at_s"
        )
    assert np.array_equal(trace.before, recording.observed(compromised=OWNED)[0].before)
    assert np.array_equal(trace.targets, recording.targets)
    assert np.array_equal(oracle.origin, recording.oracle.origin)
    assert oracle.path == recording.oracle.path


def test_a_share_of_the_nodes_are_the_first_that_fall(tmp_path: Path) -> None:
    written(tmp_path)

    whole, half, none = (read_trace(tmp_path, share=share) for share in (0.2, 0.1, 0.0))

    assert (whole.compromised, half.compromised, none.compromised) == ((3, 7), (3,), ())
    assert set(half.crossings.source[half.before >= 0]) == {3}
    assert (none.before == -1).all()


@pytest.mark.parametrize(("share", "says"), [(0.3, r"trace_compromised=0\.3"), (1.5, "from 0 to 1"), (-1.0, "from 0")])
def test_a_larger_share_than_was_recorded_is_told_what_to_do(tmp_path: Path, share: float, says: str) -> None:
    written(tmp_path)

    with pytest.raises(ConfigError, match=says):
        read_trace(tmp_path, share=share)


def test_groups_are_those_of_the_recording_whatever_their_numbers(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path))

    groups = read_groups(tmp_path, trace)

    expected = recorded(OVERLAY).groups
    assert groups is not None
    assert len(np.unique(groups)) == len(np.unique(expected)) == len(np.unique(np.stack([groups, expected]), axis=1).T)


def test_without_groups_none_are_read(tmp_path: Path) -> None:
    write_recording(tmp_path, recorded(OVERLAY).recording)

    assert read_groups(tmp_path, read_trace(tmp_path)) is None


@pytest.mark.parametrize("adversary", [PaperAdversary, RouteAdversary, FlowAdversary, DisclosureAdversary])
def test_an_adversary_guesses_the_same_without_the_truth(tmp_path: Path, adversary: Callable[[], Any]) -> None:
    with_truth = adversary().posteriors(read_trace(written(tmp_path)))
    (tmp_path / ORACLE).unlink()

    assert np.array_equal(adversary().posteriors(read_trace(tmp_path)), with_truth)


def test_what_the_adversary_reads_links_no_honest_relay(tmp_path: Path) -> None:
    write_recording(tmp_path, recorded(OVERLAY).recording)

    assert (read_trace(tmp_path).before == -1).all()


def test_a_run_without_traces_is_told_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no such file.*monitoring\.trace=true"):
        read_trace(tmp_path)


def test_a_file_cut_off_is_called_damaged(tmp_path: Path) -> None:
    path = written(tmp_path) / OBSERVED
    path.write_bytes(path.read_bytes()[:2_000])

    with pytest.raises(ConfigError, match=r"damaged.*record the run again"):
        read_trace(tmp_path)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"not a table at all", b"PAR1" + bytes(100) + b"PAR1"])
def test_rubbish_is_called_damaged(tmp_path: Path, data: bytes) -> None:
    (tmp_path / OBSERVED).write_bytes(data)

    with pytest.raises(ConfigError, match="damaged"):
        read_trace(tmp_path)


def test_flipped_bytes_are_refused_or_make_no_difference_to_what_is_checked(tmp_path: Path) -> None:
    path = written(tmp_path) / OBSERVED
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    for _ in range(200):
        broken = bytearray(whole)
        for place in rng.integers(0, len(broken), size=3):
            broken[place] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(broken))
        try:
            trace = read_trace(tmp_path)
        except ConfigError:
            continue
        assert trace.crossings.source.max() < trace.nodes


def test_another_version_is_named(tmp_path: Path) -> None:
    about = {b"unlinkabledfl.trace": b'{"version": 1}'}
    parquet.write_table(pyarrow.table({"source": [0]}).replace_schema_metadata(about), tmp_path / OBSERVED)

    with pytest.raises(ConfigError, match=r"got 'version 1', takes version 2.*record the run again"):
        read_trace(tmp_path)


def rewritten(directory: Path, **columns: Any) -> Path:
    """Write a trace whose columns have been tampered with."""
    table = parquet.read_table(written(directory) / OBSERVED)
    for name, change in columns.items():
        values = change(table.column(name).to_numpy().copy())
        table = table.set_column(table.column_names.index(name), name, pyarrow.array(values))
    parquet.write_table(table, directory / OBSERVED)
    return directory


def set_at(place: int, value: Any) -> Callable[[Any], Any]:
    def change(values: Any) -> Any:
        values[place] = value
        return values

    return change


@pytest.mark.parametrize(
    ("column", "change", "says"),
    [
        ("source", set_at(5, -1), "nodes from 0 to 9"),
        ("target", set_at(5, 10), "nodes from 0 to 9"),
        ("source", lambda values: values.astype(np.int64), "int32 without gaps"),
        ("source", lambda values: [None, *values[1:].tolist()], "int32 without gaps"),
        ("source", lambda values: values.astype(str), "a column of numbers"),
        ("left_at_s", set_at(5, np.nan), "seconds"),
        ("left_at_s", set_at(-1, np.inf), "seconds"),
        ("left_at_s", set_at(-1, 1e300), "at most"),
        ("left_at_s", lambda values: values[::-1].copy(), "the order of leaving"),
        ("arrived_at_s", set_at(-1, -5.0), "times that pass"),
        ("arrived_at_s", set_at(5, -np.inf), "seconds"),
        ("size_bytes", set_at(5, -1), "sizes from 0"),
        ("before", set_at(-1, 10**12), "crossings of this trace"),
        ("before", set_at(5, 6), "crossings of this trace"),
        ("before", set_at(5, -2), "crossings of this trace"),
    ],
)
def test_hostile_numbers_are_refused_by_the_name_of_their_column(
    tmp_path: Path, column: str, change: Callable[[Any], Any], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        read_trace(rewritten(tmp_path, **{column: change}))


def test_an_empty_trace_is_no_trace(tmp_path: Path) -> None:
    table = parquet.read_table(written(tmp_path) / OBSERVED)
    parquet.write_table(table.slice(0, 0), tmp_path / OBSERVED)

    with pytest.raises(ConfigError, match="no crossings"):
        read_trace(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"adjacency": [[1], [0], [5]]},
        {"adjacency": "nothing"},
        {"destinations": []},
        {"mixer": {"kind": "poisson", "delay_mean_s": -1.0}},
        {"mixer": {"kind": "unheard of"}},
        {"path_length": 10**9},
        {"path_length": 0},
        {"path_length": 10},
        {"own_rate_per_s": float("nan")},
        {"compromised": [1, 1]},
        {"compromised": [99]},
        {"compromised": {"1": 2}},
    ],
)
def test_settings_that_cannot_be_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    table = parquet.read_table(written(tmp_path) / OBSERVED)
    about = {**json.loads(table.schema.metadata[b"unlinkabledfl.trace"]), **change}
    table = table.replace_schema_metadata({b"unlinkabledfl.trace": json.dumps(about).encode()})
    parquet.write_table(table, tmp_path / OBSERVED)

    with pytest.raises(ConfigError):
        read_trace(tmp_path)


def test_answers_to_another_trace_are_refused(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path))

    with pytest.raises(ConfigError, match="answers to other targets"):
        read_oracle(tmp_path, replace(trace, targets=trace.targets[1:]))


def test_times_that_go_back_are_refused() -> None:
    crossings = recorded(OVERLAY).recording.crossings

    with pytest.raises(ConfigError, match=r"trace\.left_at_s"):
        replace(crossings, left_at_s=crossings.left_at_s[::-1].copy())


def test_a_small_file_of_many_equal_values_is_refused_before_memory_is_taken_for_them(tmp_path: Path) -> None:
    path = tmp_path / "equal.parquet"
    parquet.write_table(pyarrow.table({"source": np.zeros(1_000_000, dtype=np.int32)}), path)
    assert path.stat().st_size < 100_000

    with pytest.raises(ConfigError, match="8,000,000 bytes in all"):
        read_table(path, ("source",), bytes_max=1_000_000)
    assert read_table(path, ("source",), bytes_max=8_000_000)[0].num_rows == 1_000_000


def test_columns_that_nobody_asks_for_are_not_read_and_text_never_is(tmp_path: Path) -> None:
    path = tmp_path / "text.parquet"
    parquet.write_table(pyarrow.table({"source": [1, 2], "more": ["x" * 1000] * 2}), path)

    assert read_table(path, ("source", "target"))[0].column_names == ["source"]
    with pytest.raises(ConfigError, match="more: got 'BYTE_ARRAY', takes a column of numbers"):
        read_table(path, ("more",))


def test_nobody_else_may_read_who_sent_what(tmp_path: Path) -> None:
    written(tmp_path)

    assert [(tmp_path / name).stat().st_mode & 0o777 for name in (OBSERVED, ORACLE)] == [0o600, 0o600]
