"""Runs of real nodes, each from a launcher of its own, and what becomes of them when something is killed."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.run_and_tell import SMALL
from tests.unit.experiment.test_process_forkserver import gone
from unlinkabledfl.experiment.planning import plan_experiment
from unlinkabledfl.experiment.records import RunDirectory, Status
from unlinkabledfl.experiment.scenario import preset

Line = dict[str, Any]


class Launched:
    """A launcher's process and what it tells."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[Line] = []

    def read_until(self, wanted: Callable[[Line], bool]) -> Line:
        assert self.process.stdout is not None
        for text in self.process.stdout:
            self.lines.append(json.loads(text))
            if wanted(self.lines[-1]):
                return self.lines[-1]
        raise AssertionError(f"the run ended first: {self.lines[-3:]}")

    def finish(self) -> int:
        assert self.process.stdout is not None
        self.lines += [json.loads(text) for text in self.process.stdout]
        return self.process.wait()

    def rounds(self) -> set[tuple[int, int]]:
        return {(line["round"], line["node"]) for line in self.lines if line["what"] == "round"}

    def events(self, kind: str) -> dict[int, str]:
        return {line["node"]: line["text"] for line in self.lines if line["what"] == "event" and line["kind"] == kind}


@contextmanager
def launched(out: Path, *overrides: str) -> Iterator[Launched]:
    command = [sys.executable, "-m", "tests.e2e.run_and_tell", str(out), *overrides]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Launched(process)
        finally:
            process.kill()


def all_gone(process_ids: list[int]) -> bool:
    async def wait() -> bool:
        return all([await gone(process_id) for process_id in process_ids])

    return asyncio.run(wait())


def children_of(process_id: int) -> list[int]:
    """Every process below this one."""
    found: list[int] = []
    pending = [process_id]
    while pending:
        parent = pending.pop()
        below = [int(word) for word in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
        found += below
        pending += below
    return found


def in_round(number: int) -> Callable[[Line], bool]:
    """All nodes have begun this round."""
    nodes: set[int] = set()

    def wanted(line: Line) -> bool:
        if line["what"] == "phase" and line["round"] == number:
            nodes.add(line["node"])
        return len(nodes) == 4

    return wanted


def secrets_of(*overrides: str) -> list[str]:
    scenario = preset("demo", (*SMALL, *overrides))
    return [config.signing_seed.hex() for config in plan_experiment(scenario)]


def test_nodes_learn_together_and_keep_their_secrets_and_pytorch_out_of_sight(tmp_path: Path) -> None:
    with launched(tmp_path / "run", "run.rounds=2") as run:
        line = run.read_until(in_round(2))
        mixes = [mix for mix, _ in line["processes"].values()]
        maps = [Path(f"/proc/{mix}/maps").read_text() for mix in mixes]
        seen = [Path(f"/proc/{child}/{what}").read_bytes() for child in children_of(run.process.pid)
                for what in ("cmdline", "environ")]  # fmt: skip
        assert run.finish() == 0

    assert run.rounds() == {(number, node) for number in (1, 2) for node in range(4)}
    assert [line for line in run.lines if line["what"] == "event"] == []
    assert all(line["metrics"]["completeness"] == 1.0 for line in run.lines if line["what"] == "round")
    assert not any("libtorch" in text for text in maps)
    logs = [path.read_bytes() for path in (tmp_path / "run" / "logs").glob("node-*.log")]
    assert len(logs) == 4
    hidden = [secret.encode() for secret in secrets_of("run.rounds=2")] + [b"identity_seed", b"private_key"]
    assert not any(secret in text for text in (*seen, *logs) for secret in hidden)
    assert RunDirectory.open(tmp_path / "run").status() is Status.FINISHED


@pytest.mark.slow
def test_nothing_outlives_a_launcher_that_is_killed(tmp_path: Path) -> None:
    with launched(tmp_path / "run", "run.rounds=1000") as run:
        run.read_until(in_round(2))
        processes = children_of(run.process.pid)
        assert len(processes) == 2 + 2 * 4

        run.process.kill()
        run.process.wait()

        assert all_gone(processes)
    # Whoever looks at the directory sees how it stands, and can go on with it.
    assert RunDirectory.open(tmp_path / "run").status() is Status.INTERRUPTED


@pytest.mark.slow
def test_a_node_that_is_killed_is_recorded_and_the_others_finish(tmp_path: Path) -> None:
    with launched(tmp_path / "run", "run.rounds=4", "aggregation.deadline_s=20") as run:
        line = run.read_until(in_round(2))
        mix, learner = line["processes"]["1"]
        os.kill(mix, signal.SIGKILL)
        assert run.finish() == 0
        assert all_gone([mix, learner])

    assert run.events("death") == {1: "was killed by SIGKILL"}
    assert {(4, node) for node in (0, 2, 3)} <= run.rounds()
    assert (4, 1) not in run.rounds()


@pytest.mark.slow
def test_a_learner_that_is_killed_is_replaced_and_all_nodes_finish(tmp_path: Path) -> None:
    with launched(tmp_path / "run", "run.rounds=3", "learning.options={ node_1_hangs_in = 2 }") as run:
        run.read_until(lambda line: line["what"] == "phase" and (line["round"], line["node"]) == (2, 1))
        line = run.read_until(lambda line: line["what"] == "gauges" and line["node"] == 1)
        learner = line["processes"]["1"][1]
        os.kill(learner, signal.SIGKILL)
        assert run.finish() == 0

    (note,) = [text for node, text in run.events("note").items() if node == 1]
    assert "was killed by SIGKILL" in note
    assert note.endswith("a new one has taken over with its last state")
    assert {(3, node) for node in range(4)} <= run.rounds()


@pytest.mark.slow
def test_a_node_whose_port_is_taken_says_so_and_the_others_begin_without_it(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with launched(tmp_path / "run", "run.rounds=1", f"process.base_port={port - 2}") as run:
            assert run.finish() == 0

    (text,) = run.events("death").values()
    assert text.startswith(f"process.base_port: got '127.0.0.1:{port}', takes a free UDP port")
    assert set(run.events("death")) == {2}
    assert run.rounds() == {(1, node) for node in (0, 1, 3)}


@pytest.mark.slow
def test_sigterm_ends_a_run_in_order_and_soon(tmp_path: Path) -> None:
    with launched(tmp_path / "run", "run.rounds=1000") as run:
        run.read_until(in_round(2))
        processes = children_of(run.process.pid)

        began_s = time.monotonic()
        run.process.terminate()
        code = run.finish()
        lasted_s = time.monotonic() - began_s

        assert all_gone(processes)
    assert code == 130
    assert run.events("death") == {}
    assert RunDirectory.open(tmp_path / "run").status() is Status.INTERRUPTED
    # Nodes close within two seconds; a busy machine, which starts and ends Python processes slowly, gets some more.
    assert lasted_s < 10.0
    for log in (tmp_path / "run" / "logs").glob("node-*.log"):
        assert "links closed" in log.read_text()


@pytest.mark.slow
def test_sigterm_ends_a_single_node_in_order(tmp_path: Path) -> None:
    with launched(tmp_path / "run", "run.rounds=3", "aggregation.deadline_s=20") as run:
        line = run.read_until(in_round(2))
        os.kill(line["processes"]["3"][0], signal.SIGTERM)
        run.read_until(lambda line: line["what"] == "event" and line["kind"] == "death")
        log = (tmp_path / "run" / "logs" / "node-0003.log").read_text()
        assert run.finish() == 0

    assert run.events("death") == {3: "ended with exit code 0"}
    assert "links closed" in log
    assert "Traceback" not in log
