"""What a run leaves, over HTTP."""

import io
import json
import zipfile
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.unit.experiment.synthetic_run import play, write_run
from tests.unit.manager.conftest import Manager
from tests.unit.manager.launchers import running
from unlinkabledfl.experiment.records import RunDirectory

parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def there(folder: Path) -> RunDirectory:
    return write_run(folder / "there", nodes=8, rounds=2)


def test_figures_come_as_csv_and_as_parquet_with_the_same_rows(client: TestClient, there: RunDirectory) -> None:
    text = client.get(f"/api/runs/{there.path.name}/metrics.csv")
    columns = client.get("/api/runs/there/metrics.parquet")

    assert text.content == there.metrics_path.read_bytes()
    assert text.headers["content-disposition"] == 'attachment; filename="there-metrics.csv"'
    assert columns.content == there.parquet_path.read_bytes()
    assert parquet.read_table(io.BytesIO(columns.content)).num_rows == text.text.count("\n") - 1


def test_a_run_that_goes_on_is_exported_as_it_stands(client: TestClient, folder: Path) -> None:
    with running(folder / "now") as recorder:
        play(recorder, nodes=8, rounds=1)

        columns = client.get("/api/runs/now/metrics.parquet").content
        text = client.get("/api/runs/now/metrics.csv").text

    assert parquet.read_table(io.BytesIO(columns)).num_rows == text.count("\n") - 1 > 0


def test_events_come_as_csv(client: TestClient, there: RunDirectory) -> None:
    assert client.get(f"/api/runs/{there.path.name}/events.csv").content == there.events_path.read_bytes()


def test_the_archive_holds_the_run_without_its_keys(client: TestClient, there: RunDirectory, tmp_path: Path) -> None:
    RunDirectory(there.path).write_secret("node-0000.key", b"secret")
    (there.path / "trace").mkdir()
    (there.path / "trace" / "node-0000.log").write_text("who sent what")
    outside = tmp_path / "outside"
    outside.write_text("not of this run")
    (there.path / "link.txt").symlink_to(outside)

    answer = client.get("/api/runs/there/archive")

    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        names = set(archive.namelist())
        assert archive.read("there/metrics.csv") == there.metrics_path.read_bytes()
    assert {"there/scenario.toml", "there/summary.json", "there/metrics.parquet", "there/journal.csv"} <= names
    assert not [name for name in names if "secret" in name or "trace" in name or "link" in name or "lock" in name]


def test_the_report_runs_no_script_and_asks_nobody(client: TestClient, there: RunDirectory) -> None:
    answer = client.get(f"/api/runs/{there.path.name}/report")

    assert answer.text.startswith("<!doctype html>")
    assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")


def test_a_run_that_was_attacked_has_a_board(client: TestClient, there: RunDirectory) -> None:
    assert client.get(f"/api/runs/{there.path.name}/board").status_code == 404
    document = {"experiment": "attack", "board": [{"adversary": "flow", "accuracy": 0.25}], "nodes": 8}
    there.board_path.write_text(json.dumps(document))

    assert client.get("/api/runs/there").json()["has_board"] is True
    assert client.get("/api/runs/there/board").json() == {"board": document["board"], "document": document}


@pytest.mark.parametrize("content", ["", "[]", '{"board": 3}', '{"board": [3]}', "\0"])
def test_a_board_that_is_damaged_is_said_to_be(client: TestClient, there: RunDirectory, content: str) -> None:
    there.board_path.write_text(content)

    answer = client.get("/api/runs/there/board")

    assert answer.status_code == 409
    assert answer.json()["problem"].startswith("attack.json cannot be read")


def test_a_page_that_was_built_is_served_and_one_that_was_not_says_how(manager: Manager, tmp_path: Path) -> None:
    built = tmp_path / "page"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_text("<!doctype html>the page")
    (built / "assets" / "main.js").write_text("0")
    (tmp_path / "secret").write_text("secret")

    client = manager(token=None, page=built)
    assert client.get("/").text == "<!doctype html>the page"
    assert client.get("/assets/main.js").headers["content-type"].startswith("text/javascript")
    for path in ("/../secret", "/%2e%2e/secret", "/assets/..%2f..%2fsecret", "//etc/passwd"):
        assert client.get(path).status_code == 404
    assert client.get("/api/session").status_code == 405  # a wrong method, and no file that is missing
    assert "make dashboard" in manager(token=None, page=tmp_path / "none").get("/").text
