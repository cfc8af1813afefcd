import asyncio
import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.experiment.test_process_forkserver import gone
from unlinkabledfl.errors import RunError
from unlinkabledfl.experiment.backends.process import launcher
from unlinkabledfl.experiment.backends.process.forks import Forks, Program
from unlinkabledfl.experiment.backends.process.hosts import NodeLaunch, Processes
from unlinkabledfl.experiment.backends.process.launcher import Launcher
from unlinkabledfl.experiment.backends.process.messages import Configure
from unlinkabledfl.experiment.backends.process.supervisor import SupervisorSettings
from unlinkabledfl.experiment.records import EventKind, Status

NODES = "tests.unit.experiment.process_nodes"
PROGRAM = Program(
    mix=f"{NODES}:main",
    mix_preload=(NODES,),
    learner_preload=("unlinkabledfl.experiment.backends.process.learner_main", NODES),
)


class Records:
    """A recorder that remembers."""

    def __init__(self) -> None:
        self.rounds: dict[tuple[int, int], Mapping[str, float]] = {}
        self.events: list[tuple[int | None, EventKind, str]] = []
        self.on_round: Callable[[int, int, Mapping[str, float]], None] = lambda *_: None

    def record(
        self, *, time_s: float, round_number: int | None, node: int | None, metrics: Mapping[str, float]
    ) -> None:
        assert time_s >= 0.0
        if round_number is not None and node is not None:
            self.rounds[round_number, node] = metrics
            self.on_round(round_number, node, metrics)

    def event(self, *, time_s: float, node: int | None, kind: EventKind, text: str) -> None:
        assert time_s >= 0.0
        self.events.append((node, kind, text))

    def phase(self, *, time_s: float, round_number: int, node: int, phase: str) -> None:
        pass

    def finish(self, status: Status, *, reason: str = "") -> None:
        pass

    def deaths(self) -> dict[int | None, str]:
        return {node: text for node, kind, text in self.events if kind is EventKind.DEATH}


class Run:
    """A run of nodes with these orders, and the processes that it had."""

    def __init__(
        self,
        path: Path,
        orders: list[dict[str, Any]],
        *,
        rounds: int = 2,
        program: Program = PROGRAM,
        **settings: float,
    ) -> None:
        self.records = Records()
        self.processes: dict[int, Processes] = {}
        launches = [
            NodeLaunch(
                node_id=f"{index:064x}",
                configure=Configure(config=json.dumps({"index": index, "rounds": rounds, **order})),
                log=path / f"node-{index}.log",
            )
            for index, order in enumerate(orders)
        ]
        self.launcher = Launcher(
            launches,
            hosts=Forks(launches, program=program),
            recorder=self.records,
            settings=SupervisorSettings(**settings),
            turns=2,
        )
        self.records.on_round = lambda *_: self.processes.update(self.launcher.processes)

    def go(self) -> None:
        asyncio.run(self._go())

    async def _go(self) -> None:
        try:
            await self.launcher.run()
        finally:
            for process_id in self.known():
                assert await gone(process_id)

    def known(self) -> list[int]:
        every = (process_id for node in self.processes.values() for process_id in (node.mix, *node.learner))
        return [process_id for process_id in every if process_id is not None]


def test_nodes_do_their_rounds_each_with_a_learner_of_its_own(tmp_path: Path) -> None:
    run = Run(tmp_path, [{}, {}, {}])

    run.go()

    assert sorted(run.records.rounds) == [(number, node) for number in (1, 2) for node in range(3)]
    assert run.records.events == []
    assert len(set(run.known())) == 6
    for (number, _), metrics in run.records.rounds.items():
        assert (metrics["trained"], metrics["accuracy"], metrics["torch"]) == (number, 0.5, 0.0)
        assert metrics["niceness"] == min(os.nice(0) + 10, 19)
        assert 0.0 < metrics["pss_mix_mib"] < metrics["pss_mib"]
        assert metrics["cpu_s"] == pytest.approx(metrics["cpu_mix_s"] + metrics["cpu_learner_s"])


def test_who_waits_hears_that_somebody_has_trained_only_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "_TELL_TRAINED_S", 0.0)
    run = Run(tmp_path, [{"node_1": "hear"}, {"node_1": "hear"}], rounds=1)

    run.go()

    assert run.records.deaths() == {}
    assert sorted(run.records.rounds) == [(1, 0), (1, 1)]


def test_a_node_that_is_killed_is_recorded_and_the_others_finish(tmp_path: Path) -> None:
    run = Run(tmp_path, [{}, {"node_2": "die"}, {}])

    run.go()

    assert run.records.deaths() == {1: "was killed by SIGKILL"}
    assert sorted(run.records.rounds) == [(1, 0), (1, 1), (1, 2), (2, 0), (2, 2)]


def test_a_bug_in_a_node_is_in_its_log_and_the_others_finish(tmp_path: Path) -> None:
    run = Run(tmp_path, [{}, {"node_2": "crash"}, {}])

    run.go()

    assert run.records.deaths() == {1: "ended with exit code 1"}
    assert "RuntimeError: a bug in a node\n" in (tmp_path / "node-1.log").read_text()
    assert (tmp_path / "node-0.log").read_text() == ""


def test_what_a_node_says_before_it_ends_is_why_it_was_lost(tmp_path: Path) -> None:
    run = Run(tmp_path, [{}, {}, {"fail": "process.base_port: got 80, takes a free port"}])

    run.go()

    assert run.records.deaths() == {2: "process.base_port: got 80, takes a free port (ended with exit code 2)"}


def test_a_run_of_which_one_node_is_left_fails_and_says_the_last_words(tmp_path: Path) -> None:
    run = Run(tmp_path, [{"node_2": "wait"}, {"fail": "no data"}, {"node_2": "die"}])

    with pytest.raises(RunError, match=r"2 of 3 nodes have ended.* node 2: was killed by SIGKILL"):
        run.go()

    assert set(run.records.deaths()) == {1, 2}


def test_a_learner_that_is_killed_is_replaced_and_goes_on_with_the_last_state(tmp_path: Path) -> None:
    run = Run(tmp_path, [{}, {"round_2": "hang"}], rounds=3)

    def kill_learner(number: int, node: int, metrics: Mapping[str, float]) -> None:
        if (number, node) == (2, 0):  # by then node 1 hangs in its second round, or soon will
            (process_id,) = run.launcher.processes[1].learner
            os.kill(process_id, signal.SIGKILL)

    run.records.on_round = kill_learner

    run.go()

    ((node, kind, text),) = run.records.events
    assert (node, kind) == (1, EventKind.NOTE)
    assert text.startswith("the learner worker was killed by SIGKILL while ")
    assert text.endswith("a new one has taken over with its last state")
    rounds = run.records.rounds
    assert rounds[1, 1]["learner"] != rounds[3, 1]["learner"]
    assert rounds[3, 0]["trained"] == 3
    assert rounds[3, 1]["trained"] == 2


def test_a_node_that_hangs_is_ended_and_the_others_finish(tmp_path: Path) -> None:
    run = Run(tmp_path, [{}, {"node_2": "hang"}, {}], silence_timeout_s=3.0)

    run.go()

    assert run.records.deaths() == {1: "said nothing for 3 s (was killed by SIGKILL)"}


def test_cancelling_a_run_stops_every_node_in_order(tmp_path: Path) -> None:
    run = Run(tmp_path, [{"node_2": "wait"}, {"round_2": "hang"}, {}])

    async def interrupted() -> None:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(run._go())  # noqa: SLF001
            done: list[tuple[int, int]] = []

            def count(number: int, node: int, _: Mapping[str, float]) -> None:
                run.processes.update(run.launcher.processes)
                done.append((number, node))
                if len(done) == 4:  # three first rounds, and the second one of the node that neither waits nor hangs
                    task.cancel()

            run.records.on_round = count

    asyncio.run(interrupted())

    assert len(run.known()) == 6
    assert run.records.deaths() == {}


def test_cancelling_while_nodes_are_started_ends_those_too_that_were_not(tmp_path: Path) -> None:
    run = Run(tmp_path, [{}, {}, {}], stop_timeout_s=60.0)

    async def interrupted() -> None:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(run._go())  # noqa: SLF001
            while run.launcher.processes[0].mix is None:  # noqa: ASYNC110 - a launcher does not tell that
                await asyncio.sleep(0)
            task.cancel()

    began_s = time.monotonic()
    asyncio.run(interrupted())

    assert time.monotonic() - began_s < 30.0
    assert run.records.rounds == {}


def test_a_run_whose_figures_cannot_be_written_down_any_more_fails_and_leaves_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path, [{}, {}, {}], rounds=10_000)

    def full(*_: object) -> None:
        run.processes.update(run.launcher.processes)
        raise RunError("metrics.csv cannot be written: No space left on device")

    run.records.on_round = full

    with pytest.raises(RunError, match=r"metrics\.csv cannot be written: No space left on device"):
        run.go()
    assert len(run.known()) == 6


def test_a_log_that_cannot_be_written_fails_the_run_and_leaves_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path / "nowhere", [{}, {}])

    with pytest.raises(RunError, match=r"node-0\.log cannot be written: No such file or directory"):
        run.go()


def test_a_forkserver_that_cannot_start_fails_the_run(tmp_path: Path) -> None:
    run = Run(tmp_path, [{}, {}], program=replace(PROGRAM, learner_preload=("no_such_module",)))

    with pytest.raises(RunError, match="cannot be started: ModuleNotFoundError: No module named 'no_such_module'"):
        run.go()
