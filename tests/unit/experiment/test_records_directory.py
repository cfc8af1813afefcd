"""A run directory from its creation to its resumption, and whoever else wants to write it."""

import json
import os
import signal
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from tests.unit.experiment.synthetic_run import create_run, description, play, write_run
from unlinkabledfl.errors import ConfigError, RunError
from unlinkabledfl.experiment.records import EventKind, Problems, RunDirectory, RunRecorder, Status

CRASHING = """
import os, sys
from pathlib import Path
from tests.unit.experiment.synthetic_run import create_run
from unlinkabledfl.experiment.records import RunRecorder

recorder = RunRecorder(create_run(Path(sys.argv[1])))
recorder.record(time_s=1.0, round_number=1, node=0, metrics={"accuracy": 0.5, "round_s": 1.0})
print("written", flush=True)
sys.stdin.read()
"""


def test_a_new_directory_says_what_will_be_run_and_on_what(tmp_path: Path) -> None:
    directory = create_run(tmp_path / "deep" / "run")
    scenario = directory.scenario_toml()

    assert scenario.startswith("# The complete scenario of this run, made with unlinkabledfl ")
    assert tomllib.loads(scenario)["run"]["seed"] == 7
    assert directory.summary()["status"] == "running"
    assert directory.summary()["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert (directory.description(), len(directory.edges(Problems()))) == (description(), 16)
    assert sorted(os.listdir(directory.path)) == [
        ".lock", "checkpoints", "logs", "scenario.toml", "summary.json", "topology.csv"
    ]  # fmt: skip


@pytest.mark.parametrize("content", ["file", "folder with a file"])
def test_whatever_is_there_already_is_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "run"
    if content == "file":
        path.write_text("mine")
    else:
        path.mkdir()
        (path / "mine").touch()

    with pytest.raises(ConfigError, match=r"takes a directory that is new or empty .*--resume"):
        create_run(path)

    assert path.read_text() == "mine" if content == "file" else os.listdir(path) == ["mine"]


def test_an_empty_directory_will_do(tmp_path: Path) -> None:
    assert create_run(tmp_path).path == tmp_path


def test_a_place_that_cannot_be_written_is_one_sentence() -> None:
    with pytest.raises(RunError, match=r"^/proc/runs.* cannot be written: "):
        create_run(Path("/proc/runs/demo"))


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(ConfigError, match="takes the directory of a run"):
            RunDirectory.open(path)


def test_two_cannot_write_one_run(tmp_path: Path) -> None:
    writer = create_run(tmp_path / "run")

    with pytest.raises(ConfigError, match="it is still running; stop it first"):
        RunDirectory.resume(tmp_path / "run")

    writer.release()
    RunDirectory.resume(tmp_path / "run").release()


def test_a_finished_run_is_not_resumed(tmp_path: Path) -> None:
    write_run(tmp_path / "run", rounds=1)

    with pytest.raises(ConfigError, match="this one is finished"):
        RunDirectory.resume(tmp_path / "run")


def test_a_killed_run_is_readable_and_counts_as_interrupted(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with subprocess.Popen(
        [sys.executable, "-c", CRASHING, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path.cwd()
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        while_running = RunDirectory.open(path).status()
        process.send_signal(signal.SIGKILL)
        process.wait()

    directory = RunDirectory.open(path)
    assert (while_running, directory.status()) == (Status.RUNNING, Status.INTERRUPTED)
    assert directory.metrics(Problems()).by_round("accuracy") == {1: {0: 0.5}}
    RunDirectory.resume(path).release()


def test_a_resumed_run_goes_on_in_the_same_files_on_the_same_clock(tmp_path: Path) -> None:
    path = tmp_path / "run"
    first = RunRecorder(create_run(path, rounds=4))
    ended_s = play(first, nodes=8, rounds=2)
    first.finish(Status.INTERRUPTED, reason="Ctrl-C")
    with (path / "metrics.csv").open("a") as table:
        table.write("99.0,3,0,accur")

    again = RunDirectory.resume(path)
    second = RunRecorder(again)
    play(second, nodes=8, rounds=2, first_round=3, seed=8)
    second.finish(Status.FINISHED)

    problems = Problems()
    rows = again.metrics(problems)
    ends = rows.round_times("round_s")
    assert problems.count == 0
    assert list(ends) == [1, 2, 3, 4]
    assert min(ends[3].values()) > max(ends[2].values())
    assert rows.end_s > 1.8 * ended_s
    assert [event.text for event in again.events(Problems()) if event.kind is EventKind.NOTE] == ["resumed"]
    document = again.summary()
    assert (document["status"], [row["round"] for row in document["rounds"]]) == ("finished", [1, 2, 3, 4])
    assert document["fragments"]["sent"] == 8 * 4 * 56
    assert document["run"] == "synthetic"


def test_secrets_are_for_their_owner_only_and_stay_inside(tmp_path: Path) -> None:
    directory = create_run(tmp_path / "run")

    key = directory.write_secret("node-0003.key", b"secret")

    assert (key.read_bytes(), stat.S_IMODE(key.stat().st_mode), stat.S_IMODE(key.parent.stat().st_mode)) == (
        b"secret", 0o600, 0o700,
    )  # fmt: skip
    for name in ("../escape", "a/b", ".hidden", ""):
        with pytest.raises(ConfigError):
            directory.write_secret(name, b"")


def test_checkpoints_are_kept_by_node(tmp_path: Path) -> None:
    directory = create_run(tmp_path / "run")
    for round_number in (1, 2):
        directory.save_checkpoint(3, round_number=round_number, state={"w": np.full(2, round_number)})

    assert list(directory.checkpointed_nodes()) == [3]
    assert (directory.checkpoint(3).round_number, directory.checkpoint(3).state["w"].tolist()) == (2, [2, 2])


@pytest.mark.parametrize("damage", ["{", "[1]", "null", '{"nodes": "many", "seed": -1, "run": null}', "[" * 100_000])
def test_a_damaged_summary_leaves_the_scenario_to_say_what_the_run_is(tmp_path: Path, damage: str) -> None:
    directory = write_run(tmp_path / "run", rounds=1)
    directory.summary_path.write_text(damage)

    found = directory.description()

    assert directory.status() is Status.INTERRUPTED
    if not damage.startswith("{") or damage == "{":
        assert found == description(rounds=1)
    else:
        assert (found.run, found.nodes, found.seed) == ("run", 0, 0)


def test_damaged_edges_are_named(tmp_path: Path) -> None:
    directory = create_run(tmp_path / "run")
    directory.topology_path.write_text("node,neighbour\n0,1\n0\n1,x\n1,2\n")
    problems = Problems()

    assert directory.edges(problems) == [(0, 1), (1, 2)]
    assert problems.listed == [f"topology.csv, line {line}: no pair of nodes; the line is left out" for line in (3, 4)]


def test_the_summary_is_plain_json(tmp_path: Path) -> None:
    directory = create_run(tmp_path / "run")
    recorder = RunRecorder(directory)
    recorder.record(time_s=1.0, round_number=1, node=0, metrics={"accuracy": float("nan"), "loss": float("inf")})
    recorder.finish(Status.FAILED, reason="no route")

    document = json.loads(directory.summary_path.read_text(), parse_constant=pytest.fail)
    assert (document["status"], document["reason"], document["rounds"]) == ("failed", "no route", [])
