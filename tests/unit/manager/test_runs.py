"""The history of runs: listed, begun, stopped, deleted, and what is damaged said in words."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.unit.experiment.synthetic_run import write_run
from tests.unit.manager.conftest import Manager
from tests.unit.manager.launchers import FullDisk, NoLauncher, died, running
from unlinkabledfl.experiment.records import RunDirectory

SMALL = {
    "run": {"name": "small", "backend": "simulation", "rounds": 2},
    "topology": {"nodes": 4, "degree": 2},
    "learning": {"train_samples": 200, "test_samples": 100},
    "mixnet": {"max_hops": 3},
}
STRANGE_IDS = ["..", ".manager", "%2e%2e", "..%2f..%2fetc", "a%00b", "-x", "a b", "x" * 101, "ä", "a%0Ab"]


def test_a_folder_that_is_not_there_is_made_for_its_owner_only(client: TestClient, folder: Path) -> None:
    assert client.get("/api/runs").json() == {"runs": [], "total": 0}
    assert (folder / ".manager").stat().st_mode & 0o777 == 0o700
    assert (folder / ".manager" / "index.sqlite").stat().st_mode & 0o777 == 0o600


def test_a_run_is_begun_from_a_directory_of_its_own(manager: Manager, folder: Path) -> None:
    launcher = NoLauncher(lives=True)

    answer = manager(launcher).post("/api/runs", json={"scenario": SMALL})

    run = answer.json()
    assert answer.status_code == 201
    assert run["id"].startswith("small-")
    assert (run["status"], run["nodes"], run["planned_rounds"], run["share_done"]) == ("starting", 4, 2, 0.0)
    assert launcher.launched == [folder / run["id"]]
    assert launcher.launched[0].stat().st_mode & 0o777 == 0o700


def test_two_runs_of_one_second_have_two_ids(manager: Manager) -> None:
    client = manager(NoLauncher(lives=True))

    ids = {client.post("/api/runs", json={"scenario": SMALL}).json()["id"] for _ in range(3)}

    assert len(ids) == 3


def test_more_runs_than_may_go_on_at_once_are_refused(manager: Manager) -> None:
    client = manager(NoLauncher(lives=True), running_max=1)
    client.post("/api/runs", json={"scenario": SMALL})

    answer = client.post("/api/runs", json={"scenario": SMALL})

    assert answer.status_code == 409
    assert answer.json()["problem"] == "1 runs are running, and there may be 1; stop one first"


def test_data_that_is_not_here_is_said_and_leaves_nothing(
    client: TestClient, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("UNLINKABLEDFL_DATA", str(tmp_path / "none"))

    answer = client.post("/api/runs", json={"scenario": SMALL | {"learning": {"dataset": "cifar10"}}})

    assert answer.status_code == 409
    assert "cifar10" in answer.json()["problem"]
    assert os.listdir(folder) == [".manager"]


def test_a_full_disk_is_said_in_words_and_leaves_nothing(manager: Manager, folder: Path) -> None:
    answer = manager(FullDisk()).post("/api/runs", json={"scenario": SMALL})

    assert answer.status_code == 507
    assert "No space left on device (free some space)" in answer.json()["problem"]
    assert os.listdir(folder) == [".manager"]


def test_the_youngest_run_comes_first_also_when_the_command_line_began_it(client: TestClient, folder: Path) -> None:
    for number, name in enumerate(("old", "new")):
        directory = write_run(folder / name, nodes=8, rounds=2)
        os.utime(directory.scenario_path, (1_700_000_000 + number, 1_700_000_000 + number))

    listed = client.get("/api/runs").json()

    assert [run["id"] for run in listed["runs"]] == ["new", "old"]
    assert listed["total"] == 2
    run = listed["runs"][1]
    assert (run["status"], run["rounds"], run["nodes"], run["deaths"]) == ("finished", 2, 8, 0)
    assert run["started_at"] == "2023-11-14T22:13:20Z"
    assert 0 < run["accuracy_mean"] < 1
    assert client.get("/api/runs?status=failed").json() == {"runs": [], "total": 0}
    assert [run["id"] for run in client.get("/api/runs?first=1&most=1").json()["runs"]] == ["old"]


def test_a_run_has_its_rounds_its_sums_and_what_it_was_asked(client: TestClient, folder: Path) -> None:
    directory = write_run(folder / "there", nodes=8, rounds=3)
    summary = directory.summary()

    run = client.get("/api/runs/there").json()
    asked = client.get("/api/runs/there/scenario").json()

    assert run["by_round"] == summary["rounds"]
    assert run["fragments"] == summary["fragments"]
    assert run["network"] == pytest.approx(summary["network"])
    assert (run["share_done"], run["time_left_s"], run["has_parquet"], run["has_board"]) == (1.0, None, True, False)
    assert asked["toml"] == directory.scenario_toml()
    assert asked["scenario"]["mixnet"]["outbox_size"] == 100


def test_a_run_that_goes_on_says_how_far_it_is(client: TestClient, folder: Path) -> None:
    with running(folder / "now") as recorder:
        for node in range(8):
            recorder.record(time_s=9.0, round_number=1, node=node, metrics={"round_s": 9.0, "accuracy": 0.5})

        run = client.get("/api/runs/now").json()

        assert (run["status"], run["share_done"], run["run_clock_s"]) == ("running", 0.2, 9.0)
        assert run["time_left_s"] > 0
    assert client.get("/api/runs/now").json()["status"] == "interrupted"
    assert client.get("/api/runs/now").json()["reason"] == "interrupted by its operator"


def test_a_run_whose_process_was_killed_says_so_with_its_last_words(client: TestClient, folder: Path) -> None:
    died(folder / "silent")
    died(folder / "loud", said="starting\nunlinkabledfl: node 3: out of memory\n\n")

    silent, loud = (client.get(f"/api/runs/{name}").json() for name in ("silent", "loud"))

    assert (silent["status"], loud["status"]) == ("interrupted", "interrupted")
    assert silent["reason"] == "its process ended without finishing it: killed, or the machine went down"
    assert loud["reason"].endswith("its last words: node 3: out of memory")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"status": "merry"}', b"\xff\xfe", b"[" * 100_000, b'{"a": NaN}']
)
def test_a_damaged_directory_is_listed_as_damaged_and_read_as_far_as_it_can_be(
    client: TestClient, folder: Path, content: bytes
) -> None:
    directory = write_run(folder / "hurt", nodes=8, rounds=2)
    directory.summary_path.write_bytes(content)

    (run,) = client.get("/api/runs").json()["runs"]

    assert run["status"] == "damaged"
    assert "summary.json" in run["reason"]
    assert client.get("/api/runs/hurt").status_code == 200
    assert len(client.get("/api/runs/hurt/nodes").json()["nodes"]) == 8
    assert client.get("/api/runs/hurt/report").status_code == 200


def test_a_summary_with_odd_contents_is_shown_as_far_as_it_makes_sense(client: TestClient, folder: Path) -> None:
    directory = write_run(folder / "odd", nodes=8, rounds=1)
    directory.summary_path.write_text(
        '{"status": "finished", "rounds": [3, {"accuracy_mean": "high"}, {"round": "x"}], "deaths": [], "notes": 5,'
        ' "fragments": [1], "network": {"x": "y"}, "seconds": "long", "machine": 3, "reason": {"a": 1}}'
    )

    assert client.get("/api/runs").status_code == 200
    assert client.get("/api/runs/odd").status_code == 200


@contextmanager
def writing_a_run(program: str, directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of its own that has a run in hand, from when it says so."""
    with subprocess.Popen(
        [sys.executable, "-c", program, str(directory)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": "."},
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield child


def test_a_run_that_is_stopped_gets_the_signal_that_saves_its_records(client: TestClient, folder: Path) -> None:
    program = (
        "import signal, sys, time; from pathlib import Path\n"
        "from tests.unit.manager.launchers import running\n"
        "def stop(*_): raise SystemExit\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        "with running(Path(sys.argv[1])):\n print('on', flush=True); signal.pause()\n"
    )
    with writing_a_run(program, folder / "child") as child:
        assert client.get("/api/runs/child").json()["status"] == "running"
        assert client.delete("/api/runs/child").status_code == 409

        assert client.post("/api/runs/child/stop", json={}).status_code == 200

        assert child.wait(timeout=60) == 0
    assert client.get("/api/runs/child").json()["status"] == "interrupted"


def test_a_run_is_killed_by_force(client: TestClient, folder: Path) -> None:
    program = (
        "import signal, sys; from pathlib import Path\n"
        "from tests.unit.manager.launchers import running\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "with running(Path(sys.argv[1])):\n print('on', flush=True); signal.pause()\n"
    )
    with writing_a_run(program, folder / "child") as child:
        client.post("/api/runs/child/stop", json={"force": True})

        assert child.wait(timeout=60) == -signal.SIGKILL


@pytest.mark.parametrize("action", ["stop", "resume"])
def test_a_finished_run_is_neither_stopped_nor_resumed(client: TestClient, folder: Path, action: str) -> None:
    write_run(folder / "done", nodes=8, rounds=1)

    answer = client.post(f"/api/runs/done/{action}", json={} if action == "stop" else None)

    assert answer.status_code == 409
    assert "finished" in answer.json()["problem"]


def test_an_interrupted_run_is_taken_up(manager: Manager, folder: Path) -> None:
    launcher = NoLauncher(lives=True)
    client = manager(launcher)
    died(folder / "again")

    answer = client.post("/api/runs/again/resume")

    assert (answer.status_code, answer.json()["status"]) == (200, "starting")
    assert launcher.launched == [folder / "again"]


def test_a_run_that_is_deleted_is_gone(client: TestClient, folder: Path) -> None:
    write_run(folder / "gone", nodes=8, rounds=1)

    assert client.delete("/api/runs/gone").status_code == 204

    assert client.get("/api/runs/gone").status_code == 404
    assert os.listdir(folder) == [".manager"]
    assert not list((folder / ".manager").glob("deleted*"))


@pytest.mark.parametrize("run", STRANGE_IDS)
def test_no_id_leads_out_of_the_folder(client: TestClient, folder: Path, tmp_path: Path, run: str) -> None:
    write_run(tmp_path / "outside", nodes=8, rounds=1)

    for path in ("", "/metrics.csv", "/archive", "/nodes"):
        assert client.get(f"/api/runs/{run}{path}").status_code in {404, 405, 422}
    assert client.delete(f"/api/runs/{run}").status_code in {404, 405, 422}
    assert (tmp_path / "outside").is_dir()


def test_a_link_to_elsewhere_is_no_run(client: TestClient, folder: Path, tmp_path: Path) -> None:
    write_run(tmp_path / "outside", nodes=8, rounds=1)
    (folder / "inside").symlink_to(tmp_path / "outside")

    assert client.get("/api/runs").json()["total"] == 0
    assert client.get("/api/runs/inside").status_code == 404
    assert client.delete("/api/runs/inside").status_code == 404


def test_what_is_no_run_is_not_listed(client: TestClient, folder: Path) -> None:
    (folder / "notes").mkdir()
    (folder / "file").touch()

    assert client.get("/api/runs").json()["total"] == 0
    assert client.get("/api/runs/notes").status_code == 404


@pytest.mark.parametrize("damage", [b"", b"no database at all" * 100])
def test_the_index_is_a_cache_that_is_made_anew(manager: Manager, folder: Path, damage: bytes) -> None:
    write_run(folder / "there", nodes=8, rounds=1)
    before = manager().get("/api/runs").json()
    (folder / ".manager" / "index.sqlite").write_bytes(damage)

    assert manager().get("/api/runs").json() == before
    shutil.rmtree(folder / ".manager")
    assert manager().get("/api/runs").json() == before


def test_what_the_index_remembers_is_dropped_when_the_run_goes_on(client: TestClient, folder: Path) -> None:
    directory = write_run(folder / "there", nodes=8, rounds=1)
    assert client.get("/api/runs/there").json()["rounds"] == 1

    RunDirectory(directory.path).write_summary({**directory.summary(), "rounds": [], "seconds": 12_345.0})

    run = client.get("/api/runs/there").json()
    assert (run["rounds"], run["seconds"]) == (0, 12_345.0)


def test_two_runs_are_compared(client: TestClient, folder: Path) -> None:
    write_run(folder / "a", nodes=8, rounds=2)
    write_run(folder / "b", nodes=8, rounds=2, route="overlay", slowness=0.5)

    found = client.get("/api/compare?a=a&b=b").json()

    assert {row["key"] for row in found["scenario"]} == {"mixnet.route"}
    assert found["accuracy"]["paired"] is True
    assert {row["name"] for row in found["costs"]} >= {"round_s", "bytes_sent"}
    assert client.get("/api/compare?a=a&b=none").status_code == 404
