"""Watching a run: its nodes, its curves, and the stream, which is the same for everybody."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.experiment.synthetic_run import play, write_run
from tests.unit.manager.conftest import Manager
from tests.unit.manager.launchers import died, running
from unlinkabledfl.experiment.records import EventKind, RunDirectory

Message = tuple[str, str | None, dict[str, Any]]


def messages(text: str) -> list[Message]:
    found: list[Message] = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
        if "data" in fields:
            found.append((fields["event"], fields.get("id"), json.loads(fields["data"])))
    return found


def streamed(client: TestClient, run: str, after: int | None = None, last: str | None = None) -> list[Message]:
    headers = {} if last is None else {"Last-Event-ID": last}
    path = f"/api/runs/{run}/stream" + ("" if after is None else f"?after={after}")
    answer = client.get(path, headers=headers)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    return messages(answer.text)


@pytest.fixture
def there(folder: Path) -> RunDirectory:
    return write_run(folder / "there", nodes=8, rounds=3)


def test_a_stream_tells_every_figure_and_event_and_then_how_it_ended(client: TestClient, there: RunDirectory) -> None:
    *told, end = streamed(client, "there")

    figures = sum(len(data["values"]) for kind, _, data in told if kind == "metrics")
    assert figures == len(there.metrics_path.read_text().splitlines()) - 1
    events = [(data["what"], data["node"]) for kind, _, data in told if kind == "event"]
    assert events == [("attack", 5), ("link", 3), ("death", 7)]
    assert sum(kind == "phase" for kind, _, _ in told) == 3 * 8 * 2
    assert end == ("end", None, {"kind": "end", "status": "finished", "reason": ""})
    assert [int(position or 0) for _, position, _ in told] == sorted({data["position"] for _, _, data in told})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(share=st.floats(0, 1))
def test_a_viewer_that_comes_back_goes_on_exactly_where_he_stopped(
    client: TestClient, there: RunDirectory, share: float
) -> None:
    whole = streamed(client, there.path.name)
    stop = int(share * (len(whole) - 2))

    assert streamed(client, "there", last=whole[stop][1]) == whole[stop + 1 :]
    assert streamed(client, "there", after=int(whole[stop][1] or 0)) == whole[stop + 1 :]


def test_ten_viewers_of_two_managers_see_the_same(manager: Manager, there: RunDirectory) -> None:
    viewers = [streamed(manager(), there.path.name) for _ in range(2) for _ in range(5)]

    assert all(viewer == viewers[0] for viewer in viewers)


def test_pages_of_records_say_what_the_stream_says(client: TestClient, there: RunDirectory) -> None:
    told = [data for _, _, data in streamed(client, there.path.name)][:-1]
    position, pages, page = 0, [], {"is_live": True}
    while page["is_live"]:
        page = client.get(f"/api/runs/there/records?after={position}&most=100").json()
        pages += page["records"]
        position = page["position"]

    assert pages == told


@pytest.mark.parametrize("after", [1, 10**12])
def test_a_position_that_nobody_was_told_is_refused_before_the_stream_begins(
    client: TestClient, there: RunDirectory, after: int
) -> None:
    answer = client.get(f"/api/runs/{there.path.name}/stream?after={after}")

    assert answer.status_code == 409
    assert "a position that a reader of this run was told" in answer.json()["problem"]


def test_the_nodes_of_a_run_that_goes_on(client: TestClient, folder: Path) -> None:
    with running(folder / "now") as recorder:
        recorder.phase(time_s=1.0, round_number=1, node=0, phase="train")
        recorder.record(time_s=2.0, round_number=None, node=0, metrics={"queue_own": 3.0, "odd": math.inf})
        recorder.event(time_s=2.5, node=1, kind=EventKind.ATTACK, text="node 1 flips labels")
        recorder.phase(time_s=2.6, round_number=1, node=2, phase="exchange")
        recorder.event(time_s=3.0, node=2, kind=EventKind.DEATH, text="out of memory (killed by SIGKILL)")
        recorder.event(time_s=3.0, node=3, kind=EventKind.EXIT, text="left after round 1")
        recorder.record(time_s=4.0, round_number=5, node=4, metrics={"round_s": 1.0, "accuracy": 0.5})

        found = client.get("/api/runs/now/nodes").json()
        rest = client.get(f"/api/runs/now/records?after={found['position']}").json()

    nodes = found["nodes"]
    states = [node["state"] for node in nodes]
    assert states == ["running", "waiting", "dead", "left", "finished", "waiting", "waiting", "waiting"]
    assert (nodes[0]["phase"], nodes[0]["round"], nodes[0]["heard_at_s"]) == ("train", 1, 2.0)
    assert nodes[0]["gauges"] == {"queue_own": 3.0, "odd": None}
    assert nodes[1]["poisons"] is True
    assert nodes[2]["last_error"] == "out of memory (killed by SIGKILL)"
    assert nodes[4]["figures"] == {"round_s": 1.0, "accuracy": 0.5}
    assert found["clock_s"] == 4.0
    assert (rest["records"], rest["is_live"]) == ([], True)


def test_what_is_told_later_is_added_to_what_was_read_before(client: TestClient, folder: Path) -> None:
    with running(folder / "now") as recorder:
        play(recorder, nodes=8, rounds=1)
        before = client.get("/api/runs/now/series?metric=accuracy").json()
        play(recorder, nodes=8, rounds=1, first_round=2)
        after = client.get("/api/runs/now/series?metric=accuracy").json()

    assert [point["x"] for point in before["series"][0]["points"]] == [1.0]
    assert [point["x"] for point in after["series"][0]["points"]] == [1.0, 2.0]
    assert after["series"][0]["points"][:1] == before["series"][0]["points"]


def test_a_curve_over_rounds_is_that_of_the_summary(client: TestClient, there: RunDirectory) -> None:
    (curve,) = client.get(f"/api/runs/{there.path.name}/series?metric=accuracy").json()["series"]

    rounds = there.summary()["rounds"]
    assert curve["of"] == "round"
    assert [point["mean"] for point in curve["points"]] == pytest.approx([each["accuracy_mean"] for each in rounds])
    assert [point["low"] for point in curve["points"]] == pytest.approx([each["accuracy_min"] for each in rounds])
    assert [point["nodes"] for point in curve["points"]] == [8, 8, 8]


def test_a_gauge_keeps_its_peaks_however_few_points_are_shown(client: TestClient, there: RunDirectory) -> None:
    (fine,) = client.get(f"/api/runs/{there.path.name}/series?metric=queue_own&points=2000").json()["series"]
    (coarse,) = client.get("/api/runs/there/series?metric=queue_own&points=2").json()["series"]

    assert len(coarse["points"]) == 2
    assert max(point["high"] for point in coarse["points"]) == max(point["high"] for point in fine["points"])
    assert min(point["low"] for point in coarse["points"]) == min(point["low"] for point in fine["points"])


def test_a_name_that_is_both_has_two_curves_and_one_that_is_neither_none(
    client: TestClient, there: RunDirectory
) -> None:
    found = client.get(f"/api/runs/{there.path.name}/series?metric=packets_sent&metric=none&node=3").json()

    assert [curve["of"] for curve in found["series"]] == ["round", "moment"]
    assert all(point["nodes"] == 1 for curve in found["series"] for point in curve["points"])
    assert "cpu_s" in found["metrics"]


def test_the_graph_is_as_the_run_began(client: TestClient, there: RunDirectory) -> None:
    found = client.get(f"/api/runs/{there.path.name}/topology").json()

    assert (found["nodes"], len(found["edges"]), found["notes"]) == (8, 16, [])


def test_events_come_with_their_node_and_text(client: TestClient, there: RunDirectory) -> None:
    events = client.get(f"/api/runs/{there.path.name}/events").json()["events"]

    assert [event["what"] for event in events] == ["attack", "link", "death"]
    assert events[2]["text"] == "killed by SIGKILL; last line of its log: <training & more>"


def test_the_end_of_a_log_is_cut_at_a_line(client: TestClient, there: RunDirectory) -> None:
    log = there.log_path(3)
    log.write_text("".join(f"line {number}\n" for number in range(20_000)))

    found = client.get(f"/api/runs/{there.path.name}/log?node=3").json()

    assert found["is_cut"] is True
    assert found["text"].startswith("line ")
    assert found["text"].endswith("line 19999\n")
    assert client.get("/api/runs/there/log?node=4").status_code == 404


def test_what_a_run_said_as_it_began_is_its_log_until_there_is_another(client: TestClient, folder: Path) -> None:
    died(folder / "early", said="unlinkabledfl: no room\n")

    assert client.get("/api/runs/early/log").json()["text"] == "unlinkabledfl: no room\n"
