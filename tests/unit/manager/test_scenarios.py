"""Making a scenario: presets, the form, what is wrong, what it promises."""

import pytest
from fastapi.testclient import TestClient

from tests.unit.manager.conftest import Manager
from unlinkabledfl.experiment.indicators import indicators
from unlinkabledfl.experiment.scenario import PRESETS, Scenario, keys, preset


def test_presets_come_with_their_sentence_their_text_and_all_their_settings(client: TestClient) -> None:
    found = client.get("/api/presets").json()["presets"]

    assert [each["name"] for each in found] == list(PRESETS)
    assert found[0]["says"].startswith("Eight real nodes on this machine")
    assert Scenario.model_validate(found[1]["scenario"]) == preset("paper")
    imported = client.post("/api/scenario/from-toml", json={"toml": found[1]["toml"]}).json()
    assert Scenario.model_validate(imported["scenario"]) == preset("paper")


def test_the_form_has_every_key_with_its_sentence_unit_and_symbol(client: TestClient) -> None:
    described = client.get("/api/schema").json()
    found = {key["key"]: key for section in described["sections"] for key in section["keys"]}

    assert list(found) == list(keys())
    assert all(each["says"] and each["takes"] for each in found.values())
    size = found["mixnet.outbox_size"]
    assert (size["symbol"], size["unit"], size["default"], size["json_schema"]["type"]) == (
        "O",
        "packets",
        100,
        "integer",
    )
    assert set(described["json_schema"]["properties"]) == {section["name"] for section in described["sections"]}


def test_each_key_that_does_not_fit_is_named_with_what_it_takes(client: TestClient) -> None:
    draft = {"run": {"seeed": 1, "rounds": 0}, "mixnet": {"path_length": "three", "route": "wlak"}, "nothing": {}}

    answer = client.post("/api/scenario/validate", json={"scenario": draft}).json()

    assert answer["scenario"] is None
    assert {mistake["key"]: mistake["hint"] for mistake in answer["mistakes"]} == {
        "run.seeed": "did you mean run.seed?",
        "nothing": None,
        "run.rounds": None,
        "mixnet.path_length": None,
        "mixnet.route": "did you mean walk?",
    }
    takes = {mistake["key"]: mistake["takes"] for mistake in answer["mistakes"]}
    assert takes["mixnet.path_length"] == "a whole number from 1 to 10"


def test_keys_that_do_not_go_together_are_a_mistake_too(client: TestClient) -> None:
    draft = {"attack": {"kind": "sign_flip", "nodes": 99}}

    (mistake,) = client.post("/api/scenario/validate", json={"scenario": draft}).json()["mistakes"]

    assert (mistake["key"], mistake["got"], mistake["takes"]) == ("attack.nodes", "99", "1 to 15 of 16 nodes")


def test_what_is_valid_comes_back_with_all_its_defaults(client: TestClient) -> None:
    answer = client.post("/api/scenario/validate", json={"scenario": {"topology": {"nodes": 8}}}).json()

    assert answer["mistakes"] == []
    assert answer["scenario"]["topology"]["nodes"] == 8
    assert answer["scenario"]["mixnet"]["route"] == "overlay"


def test_a_scenario_goes_through_toml_and_back(client: TestClient) -> None:
    scenario = preset("strong").model_dump(mode="json")

    toml = client.post("/api/scenario/to-toml", json={"scenario": scenario}).json()["toml"]
    back = client.post("/api/scenario/from-toml", json={"toml": toml}).json()

    assert back == {"scenario": scenario, "mistakes": []}


@pytest.mark.parametrize("toml", ["run = ", "[run]\nrounds = 0", 'preset = "papre"', "a" * 10_000])
def test_text_that_is_no_scenario_is_explained(client: TestClient, toml: str) -> None:
    answer = client.post("/api/scenario/from-toml", json={"toml": toml})

    assert answer.status_code == 200
    assert answer.json()["scenario"] is None
    assert len(answer.json()["mistakes"]) == 1


def test_indicators_are_those_of_the_command_line(client: TestClient) -> None:
    scenario = preset("paper")

    answer = client.post("/api/scenario/indicators", json={"scenario": scenario.model_dump(mode="json")}).json()

    assert answer == {"indicators": indicators(scenario).model_dump(mode="json"), "mistakes": []}
    assert {row["route"]: row["last_hop"] for row in answer["indicators"]["linkability"]["by_route"]} == pytest.approx(
        {"overlay": 1 / 30, "walk": 0.5, "walk_up_to": 1 / 3, "valiant": 1 / 30}
    )


def test_a_scenario_that_its_graph_does_not_allow_says_so_instead(client: TestClient) -> None:
    draft = {"topology": {"nodes": 4, "degree": 2}, "mixnet": {"path_length": 9}}

    answer = client.post("/api/scenario/indicators", json={"scenario": draft}).json()

    assert answer["indicators"] is None
    assert answer["mistakes"][0]["key"] == "mixnet.path_length"


def test_a_graph_that_takes_minutes_to_search_is_not_searched_while_somebody_types(client: TestClient) -> None:
    draft = {"topology": {"nodes": 10_000, "family": "full"}}

    answer = client.post("/api/scenario/indicators", json={"scenario": draft}).json()

    assert answer["mistakes"][0]["hint"] == "`unlinkabledfl check` takes its time"


@pytest.mark.parametrize(
    ("draft", "key"),
    [
        ({"learning": {"factory": "os:system"}}, "learning.factory"),
        ({"topology": {"family": "file", "file": "/etc/passwd"}}, "topology.file"),
        ({"run": {"backend": "container"}, "container": {"plugins": ["/root/.ssh"]}}, "container.plugins"),
        ({"run": {"backend": "container"}, "container": {"engine": "tcp://elsewhere:2375"}}, "container.engine"),
        ({"run": {"backend": "container"}, "container": {"image": "theirs"}}, "container.image"),
    ],
)
def test_a_request_can_name_neither_code_nor_files_nor_what_containers_are_made_of(
    client: TestClient, manager: Manager, draft: dict[str, object], key: str
) -> None:
    asked = client.post("/api/scenario/indicators", json={"scenario": draft}).json()
    begun = client.post("/api/runs", json={"scenario": draft})

    assert asked["mistakes"][0]["key"] == key
    assert (begun.status_code, begun.json()["mistakes"][0]["key"]) == (409, key)
    assert "root:" not in begun.text + str(asked)


@pytest.mark.parametrize(
    "path", ["/api/scenario/validate", "/api/scenario/indicators", "/api/scenario/to-toml", "/api/runs"]
)
@pytest.mark.parametrize(
    "scenario", ['{"run": {"name": "\\ud800"}}', '{"\\ud800": {}}', '{"process": {"host": "\\ud800"}}']
)
def test_half_a_character_is_refused_in_words(client: TestClient, path: str, scenario: str) -> None:
    answer = client.post(path, content=f'{{"scenario": {scenario}}}', headers={"content-type": "application/json"})

    assert answer.status_code == (200 if path.endswith(("validate", "indicators")) else 422)
    assert len(answer.json()["mistakes"]) == 1


@pytest.mark.parametrize("text", ["a=" + "[" * 10_000, "a=" + "9" * 5_000, "[run]\nseed=0x" + "f" * 5_000])
def test_toml_that_only_breaks_its_reader_is_a_mistake(client: TestClient, text: str) -> None:
    answer = client.post("/api/scenario/from-toml", json={"toml": text})

    assert answer.status_code == 200
    assert len(answer.json()["mistakes"]) == 1


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/scenario/validate", {"scenario": {}, "more": 1}),
        ("/api/scenario/validate", {"scenario": []}),
        ("/api/scenario/from-toml", {"toml": 3}),
        ("/api/session", {"token": "x", "user": "y"}),
        ("/api/runs", {"scenario": {"run": {"seeed": 3}}}),
    ],
)
def test_unknown_fields_and_wrong_types_are_refused_in_words(client: TestClient, path: str, body: object) -> None:
    answer = client.post(path, json=body)

    assert answer.status_code == 422
    assert answer.json()["problem"]
    assert answer.json()["mistakes"]


def test_a_misspelt_parameter_is_refused(client: TestClient) -> None:
    answer = client.get("/api/runs?stauts=running")

    assert answer.status_code == 422
    assert answer.json()["problem"] == "stauts: no such parameter; it takes first, most, status"
