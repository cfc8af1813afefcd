"""The manager as a process, with runs that train, and what becomes of them when something is killed."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.manager_watched import ServedManager, Viewer, write_samples, written_run
from tests.e2e.test_real_nodes import children_of
from unlinkabledfl.experiment.records import RunDirectory, Status

SMALL: dict[str, dict[str, Any]] = {
    "run": {"name": "small", "backend": "simulation", "rounds": 4},
    "topology": {"nodes": 4, "degree": 2},
    "learning": {"train_samples": 200, "test_samples": 100, "training_time_s": 1},
    "mixnet": {"max_hops": 3, "delay_mean_s": 0.1, "emission_rate_per_s": 20},
}


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[ServedManager]:
    served = ServedManager(tmp_path / "runs")
    served.start()
    try:
        yield served
    finally:
        for run in served.ask("/api/runs")["runs"]:
            if run["status"] == "running":
                served.ask(f"/api/runs/{run['id']}/stop", method="POST", body={"force": True})
        served.stop()


def figures(viewer: Viewer) -> int:
    return sum(len(json.loads(data)["values"]) for kind, _, data in viewer.messages if kind == "metrics")


def test_a_run_outlives_a_manager_that_is_killed_and_its_viewer_misses_nothing(manager: ServedManager) -> None:
    run = manager.ask("/api/runs", method="POST", body={"scenario": SMALL})["id"]
    viewer, late = Viewer(manager, run), Viewer(manager, run)
    viewer.start()
    while not manager.ask(f"/api/runs/{run}/records?most=1")["records"]:
        pass

    manager.stop(signal.SIGKILL)
    manager.start()
    late.start()
    viewer.join(timeout=300)
    late.join(timeout=300)

    directory = RunDirectory.open(manager.runs / run)
    assert directory.status() is Status.FINISHED
    assert figures(viewer) == len(directory.metrics_path.read_text().splitlines()) - 1
    assert late.messages == viewer.messages
    found = manager.ask(f"/api/runs/{run}")
    assert (found["status"], found["rounds"], found["share_done"]) == ("finished", 4, 1.0)
    assert found["accuracy_mean"] == found["by_round"][-1]["accuracy_mean"] > 0


def test_ten_viewers_see_the_same_through_a_restart(manager: ServedManager) -> None:
    viewers = [Viewer(manager, "written") for _ in range(10)]
    with written_run(manager.runs / "written", nodes=8) as recorder:
        for viewer in viewers:
            viewer.start()
        write_samples(recorder, nodes=8, seconds=1)
        manager.stop(signal.SIGKILL)
        write_samples(recorder, nodes=8, seconds=1, from_s=1)
        manager.start()
        write_samples(recorder, nodes=8, seconds=1, from_s=2)
    for viewer in viewers:
        viewer.join(timeout=300)

    assert [kind for kind, _, _ in viewers[0].messages] == ["metrics"] * 24 + ["end"]
    assert all(viewer.messages == viewers[0].messages for viewer in viewers)


@pytest.mark.slow
def test_a_node_that_is_killed_is_seen_with_its_last_error_and_the_run_is_stopped(manager: ServedManager) -> None:
    real = SMALL | {
        "run": {"name": "real", "backend": "process", "rounds": 200},
        "mixnet": {"delay_mean_s": 0.02, "emission_rate_per_s": 40, "path_length": 2},
        "aggregation": {"deadline_s": 20},
    }
    run = manager.ask("/api/runs", method="POST", body={"scenario": real})["id"]
    viewer = Viewer(manager, run)
    viewer.start()
    while min(node["round"] for node in manager.ask(f"/api/runs/{run}/nodes")["nodes"]) < 2:
        assert manager.ask(f"/api/runs/{run}")["status"] in {"starting", "running"}
    writer = RunDirectory.open(manager.runs / run).writer()
    assert writer is not None
    os.kill(mix_of(writer), signal.SIGKILL)

    while not (dead := [node for node in manager.ask(f"/api/runs/{run}/nodes")["nodes"] if node["state"] == "dead"]):
        pass
    manager.ask(f"/api/runs/{run}/stop", method="POST", body={})
    viewer.join(timeout=300)

    assert [node["last_error"] for node in dead] == ["was killed by SIGKILL"]
    assert json.loads(viewer.messages[-1][2]) == {
        "kind": "end",
        "status": "interrupted",
        "reason": "interrupted by its operator",
    }
    assert manager.ask(f"/api/runs/{run}")["deaths"] == 1


def mix_of(launcher: int) -> int:
    """Return the mix process of some node: below the launcher, with nothing below it, and without PyTorch."""
    for process in children_of(launcher):
        if not children_of(process) and "libtorch" not in Path(f"/proc/{process}/maps").read_text():
            return process
    raise AssertionError("no node runs")
