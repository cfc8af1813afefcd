"""`unlinkabledfl run` from the outside: documents, directories, exit codes, and what Ctrl-C leaves."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from unlinkabledfl.cli import main
from unlinkabledfl.cli.exit_codes import ExitCode
from unlinkabledfl.cli.run import fresh_directory
from unlinkabledfl.experiment.records import RunDirectory, Status
from unlinkabledfl.experiment.scenario import preset

SMALL = [
    "demo",
    "--backend=simulation",
    "--set=topology.nodes=4",
    "--set=topology.degree=2",
    "--set=learning.train_samples=200",
    "--set=learning.test_samples=100",
    "--set=learning.training_time_s=1",
    "--set=mixnet.max_hops=3",
]


def run(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "unlinkabledfl.cli", "run", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def document_of(*arguments: str) -> dict[str, Any]:
    process = run(*arguments, "--json")
    printed, complaints = process.communicate(timeout=120)
    assert process.returncode == ExitCode.OK, complaints
    document: dict[str, Any] = json.loads(printed)
    return document


def test_a_run_prints_one_document_and_leaves_a_directory_with_a_report(tmp_path: Path) -> None:
    out = tmp_path / "run"

    document = document_of(*SMALL, "--set=run.rounds=2", f"--out={out}")

    assert (document["run"], document["status"], document["directory"]) == ("demo", "finished", str(out))
    assert [each["round"] for each in document["rounds"]] == [1, 2]
    assert all(each["completeness"] == 1.0 for each in document["rounds"])
    assert document["fragments"]["sent"] == document["fragments"]["aggregated"] > 0
    assert Path(document["report"]).read_text(encoding="utf-8").startswith("<!")
    assert sorted(RunDirectory.open(out).checkpointed_nodes()) == [0, 1, 2, 3]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_can_be_read_and_gone_on_with(number: signal.Signals, tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = run(*SMALL, "--set=run.rounds=400", f"--out={out}")
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("round 2 of 400"):
            break

    os.kill(process.pid, number)
    _, complaints = process.communicate(timeout=60)

    assert process.returncode == ExitCode.INTERRUPTED
    assert "Traceback" not in complaints
    assert f"go on with: unlinkabledfl run --resume {out}" in " ".join(complaints.split())
    left = RunDirectory.open(out)
    assert left.status() is Status.INTERRUPTED
    assert left.report_path.is_file()
    done = len(left.summary()["rounds"])
    assert done >= 2
    rounds = min(left.checkpoint(node).round_number for node in range(4))
    assert done - 1 <= rounds <= done

    # Shortened by hand, so that the test need not wait for all of it.
    scenario = left.scenario_path
    scenario.write_text(scenario.read_text().replace("rounds = 400", f"rounds = {done + 1}"))
    document = document_of(f"--resume={out}")

    assert document["status"] == "finished"
    assert [each["round"] for each in document["rounds"]] == list(range(1, done + 2))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "SCENARIO: got None, takes a preset (demo, paper, strong, direct) or the path of a TOML file"),
        (["dmeo"], "did you mean demo?"),
        (["demo", "--set=mixnet.outboxsize=3"], "mixnet.outbox_size"),
        (["demo", "--set=learning.dataset=cifar10"], "cifar10 is not here yet"),
        (["--resume=nowhere"], "is not a directory"),
        (["demo", "--resume=nowhere"], "takes nothing beside --resume"),
    ],
)
def test_a_run_that_cannot_begin_says_why_in_a_sentence_and_leaves_nothing_running(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNLINKABLEDFL_DATA", str(tmp_path / "data"))
    backend = [] if not arguments or arguments[0].startswith("--resume") else ["--backend=simulation"]
    if "--resume=nowhere" in arguments:
        backend = []

    code = main(["run", *arguments, *backend])

    assert code in (ExitCode.CONFIG, ExitCode.FAILED)
    assert sentence in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []


def test_a_run_gets_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scenario = preset("demo", ["run.name=mine"])

    first = fresh_directory(scenario)
    first.mkdir(parents=True)
    second = fresh_directory(scenario)

    assert first.parent == second.parent == Path("runs")
    assert first.name.startswith("mine-")
    assert first != second
