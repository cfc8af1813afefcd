"""However a run ends, its directory says so and can be read."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from unlinkabledfl.errors import ConfigError, RunError
from unlinkabledfl.experiment.backends.protocol import Job
from unlinkabledfl.experiment.conduct import conduct, create_run, resume_run
from unlinkabledfl.experiment.records import Checkpoint, EventKind, Problems, RunDirectory, RunRecorder, Status
from unlinkabledfl.experiment.scenario import Scenario, preset

SCENARIO = preset("demo", ["topology.nodes=4", "topology.degree=2", "run.backend=simulation", "run.name=toy"])


class Toy:
    """A backend that reports one round of every node, and then does as it is told."""

    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        self._then = then
        self.jobs: list[Job] = []

    def run(self, job: Job) -> None:
        self.jobs.append(job)
        for node in range(4):
            metrics = {"accuracy": 0.25 * node, "fragments_sent": 8.0, "fragments_aggregated": 8.0}
            job.recorder.record(time_s=2.0, round_number=job.first_round, node=node, metrics=metrics)
            model = {"w": np.full(3, node, dtype=np.float32)}
            job.directory.save_checkpoint(node, round_number=job.first_round, state=model)
        self._then()


def interrupt() -> None:
    raise KeyboardInterrupt


def fail() -> None:
    raise RunError("the disk is full")


def break_down() -> None:
    raise ZeroDivisionError("by nothing")


def run(then: Callable[[], None], path: Path, *, scenario: Scenario = SCENARIO) -> None:
    directory = create_run(scenario, path)
    try:
        conduct(scenario, directory=directory, backend=Toy(then))
    finally:
        directory.release()


def test_a_run_that_ends_returns_its_document(tmp_path: Path) -> None:
    directory = create_run(SCENARIO, tmp_path / "run")

    document = conduct(SCENARIO, directory=directory, backend=Toy())

    assert (document["run"], document["backend"], document["status"]) == ("toy", "simulation", "finished")
    assert [(each["round"], each["accuracy_mean"], each["accuracy_min"]) for each in document["rounds"]] == [
        (1, 0.375, 0.0)
    ]
    assert document["fragments"]["sent"] == document["fragments"]["aggregated"] == 32
    assert RunDirectory.open(tmp_path / "run").summary() == document


@pytest.mark.parametrize(
    ("then", "raises", "status", "reason"),
    [
        (interrupt, KeyboardInterrupt, Status.INTERRUPTED, "interrupted by its operator"),
        (fail, RunError, Status.FAILED, "the disk is full"),
        (break_down, ZeroDivisionError, Status.FAILED, "ZeroDivisionError: by nothing"),
    ],
)
def test_a_run_that_ends_early_leaves_its_figures_and_the_reason(
    then: Callable[[], None], raises: type[BaseException], status: Status, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(raises):
        run(then, tmp_path / "run")

    left = RunDirectory.open(tmp_path / "run")
    assert left.status() is status
    assert left.summary()["reason"] == reason
    assert len(left.summary()["rounds"]) == 1


def test_a_run_is_taken_up_with_its_scenario_and_its_models_in_the_round_that_somebody_has_not_done(
    tmp_path: Path,
) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(interrupt, tmp_path / "run")
    backend = Toy()

    scenario, directory = resume_run(tmp_path / "run")
    document = conduct(scenario, directory=directory, backend=backend)

    (job,) = backend.jobs
    assert scenario == SCENARIO
    assert job.first_round == 2
    assert {node: float(checkpoint.state["w"][0]) for node, checkpoint in job.checkpoints.items()} == {
        node: float(node) for node in range(4)
    }
    assert (document["status"], [each["round"] for each in document["rounds"]]) == ("finished", [1, 2])


def test_a_finished_run_is_not_taken_up_again(tmp_path: Path) -> None:
    run(lambda: None, tmp_path / "run")

    with pytest.raises(ConfigError):
        resume_run(tmp_path / "run")


def test_the_directory_holds_the_complete_scenario_and_the_links(tmp_path: Path) -> None:
    run(lambda: None, tmp_path / "run")

    assert "circulant" in (tmp_path / "run" / "scenario.toml").read_text()
    links = (tmp_path / "run" / "topology.csv").read_text().split()
    assert links == ["node,neighbour", "0,1", "0,3", "1,2", "2,3"]


def test_a_core_that_does_not_exist_is_said_before_there_is_a_directory(tmp_path: Path) -> None:
    scenario = preset("demo", ["process.cores=[4095]"])

    with pytest.raises(ConfigError, match=r"process\.cores: got 4095"):
        create_run(scenario, tmp_path / "run")

    assert not (tmp_path / "run").exists()


def job_of(tmp_path: Path, done: dict[int, int], *overrides: str) -> Job:
    scenario = preset("demo", ["topology.nodes=4", "topology.degree=2", "mixnet.path_length=2", *overrides])
    directory = create_run(scenario, tmp_path / "run")
    directory.release()
    model = {"w": np.zeros(1, dtype=np.float32)}
    checkpoints = {node: Checkpoint(round_number=number, state=model) for node, number in done.items()}
    return Job(scenario=scenario, directory=directory, recorder=RunRecorder(directory), checkpoints=checkpoints)


@pytest.mark.parametrize(
    ("done", "overrides", "first_round"),
    [
        ({}, [], 1),
        ({0: 3, 1: 3, 2: 4, 3: 3}, [], 4),
        # A node that has saved nothing has done nothing.
        ({0: 1, 2: 1}, [], 1),
        # But for one that was not to be there yet.
        ({0: 2, 1: 2, 2: 2}, ["topology.join=[{node=3,round=4}]"], 3),
        ({0: 4, 1: 4, 2: 4}, ["topology.join=[{node=3,round=4}]"], 4),
        # One that has left does not come again.
        ({0: 2, 1: 4, 2: 4, 3: 4}, ["topology.exit=[{node=0,round=2}]"], 5),
        ({0: 1, 1: 4, 2: 4, 3: 4}, ["topology.exit=[{node=0,round=2}]"], 2),
    ],
)
def test_all_go_on_in_the_first_round_that_a_node_has_not_done(
    done: dict[int, int], overrides: list[str], first_round: int, tmp_path: Path
) -> None:
    assert job_of(tmp_path, done, *overrides).first_round == first_round


def test_what_became_of_a_trace_is_said(tmp_path: Path) -> None:
    scenario = preset("demo", ["topology.nodes=4", "topology.degree=2", "monitoring.trace=true"])

    conduct(scenario, directory=create_run(scenario, tmp_path / "run"), backend=Toy())

    (event,) = RunDirectory.open(tmp_path / "run").events(Problems())
    assert (event.kind, event.node) == (EventKind.NOTE, None)
    assert event.text == "traced 0 packets on links, 0 of which delivered a fragment"


def test_a_trace_that_cannot_be_written_fails_no_run_and_keeps_its_logs(tmp_path: Path) -> None:
    scenario = preset("demo", ["topology.nodes=4", "topology.degree=2", "monitoring.trace=true"])
    directory = create_run(scenario, tmp_path / "run")

    def spoil() -> None:
        (directory.path / "trace" / "world.links").symlink_to(directory.path)

    document = conduct(scenario, directory=directory, backend=Toy(spoil))

    (event,) = RunDirectory.open(tmp_path / "run").events(Problems())
    assert document["status"] == "finished"
    assert event.text.startswith("the trace was not written: ")
    assert (directory.path / "trace").is_dir()
