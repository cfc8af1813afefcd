"""Scenarios: what they accept, what they refuse and in which words, and that they come back from TOML as they were."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.scenario import (
    Scenario,
    keys,
    load_scenario,
    override,
    parse_scenario,
    preset,
    sections,
    to_toml,
    validate_scenario,
)


def refused(*overrides: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        preset("demo", overrides)
    return caught.value


# -- writing and reading -


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that one key accepts by itself, from its JSON schema."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case "boolean":
            return st.booleans()
        case "integer":
            most = schema.get("maximum", schema.get("exclusiveMaximum", 10_000) - 1)
            return st.integers(schema.get("minimum", 0), min(most, 2**63 - 1))
        case "number":
            least, most = schema.get("minimum", schema.get("exclusiveMinimum", 0)), schema.get("maximum", 1.0)
            return st.floats(least, min(most, schema.get("exclusiveMaximum", most)), exclude_min=True, exclude_max=True)
        case "string" if "pattern" not in schema:
            return st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
        case _:
            return st.nothing()


# Keys that others depend on are left as they are, so that any combination of the rest is consistent.
DEPENDENT = {
    "attack.nodes", "attack.kind", "topology.family", "topology.file", "topology.nodes", "learning.steps",
    "learning.seconds", "learning.nesterov", "learning.steady_rounds", "learning.dp_noise", "mixnet.refill_at",
    "mixnet.max_hops", "aggregation.staleness", "aggregation.completion", "aggregation.trigger_change",
    "process.base_port", "process.datagram_bytes", "process.host", "payload.obfuscation",
}  # fmt: skip
FREE = [key for key in keys().values() if key.dotted not in DEPENDENT and not values(dict(key.schema)).is_empty]


@given(st.data())
def test_whatever_is_written_loads_to_an_equal_scenario(data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(FREE), max_size=12, unique_by=lambda key: key.dotted))
    tables: dict[str, dict[str, Any]] = {}
    for key in chosen:
        tables.setdefault(key.section, {})[key.name] = data.draw(values(dict(key.schema)), label=key.dotted)
    tables.setdefault("learning", {})["options"] = data.draw(
        st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
            st.booleans()
            | st.integers(-(2**63), 2**63 - 1)
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
            max_size=3,
        )
    )
    scenario = validate_scenario(tables)

    assert parse_scenario(to_toml(scenario, comments=["any\nwords"])) == scenario


def test_lists_of_tables_are_written_so_that_they_load() -> None:
    scenario = preset("demo", ["topology.join=[{node=3,round=2},{node=4,round=5}]", "topology.exit=[{node=0,round=1}]"])

    assert parse_scenario(to_toml(scenario)) == scenario
    assert [(event.node, event.round) for event in scenario.topology.join] == [(3, 2), (4, 5)]


def test_every_key_is_written() -> None:
    text = to_toml(Scenario())

    assert all(f"\n{key.name} = " in text for key in keys().values())


# -- layers -----------------------------------------------------------------------------------------------------------


def test_a_file_stands_over_its_preset_and_overrides_over_both(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('preset = "paper"\n[mixnet]\noutbox_size = 50\npath_length = 3\n', encoding="utf-8")

    scenario = load_scenario(str(path), ["mixnet.path_length=4"])

    assert (scenario.mixnet.outbox_size, scenario.mixnet.path_length) == (50, 4)
    assert (scenario.mixnet.route, scenario.topology.nodes) == ("walk", 32)


def test_a_graph_file_lies_beside_the_scenario_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[topology]\nfamily = "file"\nfile = "edges.txt"\n', encoding="utf-8")

    assert load_scenario(str(path)).topology.file == str(tmp_path / "edges.txt")


def test_a_graph_file_of_an_override_lies_where_the_command_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    scenario = load_scenario("demo", ["topology.family=file", "topology.file=edges.txt"])

    assert scenario.topology.file == str(tmp_path / "edges.txt")
    assert parse_scenario(to_toml(scenario)) == scenario


@pytest.mark.parametrize(
    ("text", "section", "key", "value"),
    [
        ("mixnet.path_length=4", "mixnet", "path_length", 4),
        ("mixnet.delay_mean_s=2", "mixnet", "delay_mean_s", 2),
        ("mixnet.delay_mean_s=1e-3", "mixnet", "delay_mean_s", 1e-3),
        ("mixnet.delay_mean_s=.5", "mixnet", "delay_mean_s", 0.5),
        ("mixnet.cover=false", "mixnet", "cover", False),
        ("mixnet.route=walk", "mixnet", "route", "walk"),
        ("mixnet.route = 'walk'", "mixnet", "route", "walk"),
        ("run.name=2024", "run", "name", "2024"),
        ("attack.chosen=[1, 2]", "attack", "chosen", (1, 2)),
    ],
)
def test_an_override_has_the_type_of_its_key(text: str, section: str, key: str, value: object) -> None:
    assert getattr(getattr(preset("demo", [text, *also(text)]), section), key) == value


def also(text: str) -> list[str]:
    return ["attack.kind=gaussian"] if text.startswith("attack") else ["mixnet.exchange=reach"]


def test_the_last_of_two_overrides_counts() -> None:
    assert preset("demo", ["run.rounds=3", "run.rounds=4"]).run.rounds == 4


def test_an_override_leaves_the_tables_it_was_given_alone() -> None:
    tables = {"run": {"rounds": 3}}

    override(tables, "run.rounds=4")

    assert tables == {"run": {"rounds": 3}}


# -- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mixnet.outbox_siz=50", "did you mean mixnet.outbox_size?"),
        ("mixnet.dataset=mnist", "did you mean learning.dataset?"),
        ("mixnt.path_length=3", "did you mean mixnet.path_length?"),
        ("rounds=3", "did you mean run.rounds?"),
        (
            "mixnet.route=wlk",
            "mixnet.route: got 'wlk', takes overlay, walk, walk_up_to or valiant (did you mean walk?)",
        ),
        ("mixnet.path_length=11", "mixnet.path_length: got 11, takes a whole number from 1 to 10"),
        ("mixnet.path_length=2.0", "mixnet.path_length: got 2.0, takes a whole number from 1 to 10"),
        ("mixnet.path_length=two", "mixnet.path_length: got 'two', takes a whole number from 1 to 10"),
        ("mixnet.cover=yes", "mixnet.cover: got 'yes', takes true or false"),
        ("mixnet.cover=1", "mixnet.cover: got 1, takes true or false"),
        ("learning.alpha=0", "learning.alpha: got 0, takes a number above 0 and up to 1,000,000"),
        ("learning.learning_rate=nan", "learning.learning_rate: got nan, takes a number above 0 and up to 100"),
        ("mixnet.delay_mean_s=-1", "mixnet.delay_mean_s: got -1, takes a number from 0 to 100 (s)"),
        ("learning.options={a=[1]}", "learning.options.a: got [1], takes a table of texts, numbers, true and false"),
        ("topology.join=3", "topology.join: got 3, takes a list of { node, round }"),
        ("topology.join=[{node=3}]", "topology.join.0.round: got {'node': 3}, takes a list of { node, round }"),
        ("topology.join=[{node=3,rund=2}]", "topology.join.0.rund: got 2, takes no such key: there are node and round"),
        ("no equals sign", "--set: got 'no equals sign', takes section.key=value, such as mixnet.path_length=3"),
    ],
)
def test_a_mistake_is_one_sentence_that_says_what_would_work(text: str, message: str) -> None:
    assert message in str(refused(text))


def test_an_unknown_key_is_told_what_its_section_has() -> None:
    message = str(refused("run.rouns=3"))

    assert message == (
        "run.rouns: got '3', takes no such key: [run] has name, seed, rounds, backend (did you mean run.rounds?)"
    )


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("preset = 'papr'", "preset"),
        ("preset = 3", "preset"),
        ("[run]\nnam = 'x'", "run.nam"),
        ("run = 3", "run"),
        ("[mixnet", "scenario"),
        ("[colour]\nred = 1", "colour"),
        ("speed = 1", "speed"),
        ("[run]\nseed = 9223372036854775808", "run.seed"),
    ],
)
def test_a_bad_file_names_the_key(text: str, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_scenario(text)

    assert caught.value.key == key


@pytest.mark.parametrize("source", ["dmo", "/no/such/file.toml", "\0", "."])
def test_what_is_neither_a_preset_nor_a_file_is_said_to_be_neither(source: str) -> None:
    with pytest.raises(ConfigError, match=r"takes a preset \(demo, paper, strong, direct\) or the path of a TOML file"):
        load_scenario(source)


def test_a_misspelt_preset_is_recognised() -> None:
    with pytest.raises(ConfigError, match="did you mean demo"):
        load_scenario("dmo")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(ConfigError, match="UTF-8"):
        load_scenario(str(path))


# -- keys that depend on each other -


@pytest.mark.parametrize(
    ("overrides", "key"),
    [
        (["learning.steps=3", "learning.seconds=2"], "learning.seconds"),
        (["learning.nesterov=true", "learning.momentum=0"], "learning.nesterov"),
        (["learning.steady_rounds=4", "run.rounds=4"], "learning.steady_rounds"),
        (["learning.dp_noise=1", "learning.seconds=2"], "learning.seconds"),
        (["learning.dp_noise=1", "learning.flip=true"], "learning.flip"),
        (["learning.dp_noise=1", "learning.shift_pixels=2"], "learning.shift_pixels"),
        (["learning.dp_noise=1", "learning.centralize=true"], "learning.centralize"),
        (["topology.family=file"], "topology.file"),
        (["topology.file=x"], "topology.file"),
        (["topology.join=[{node=8,round=2}]"], "topology.join.node"),
        (["topology.join=[{node=3,round=6}]"], "topology.join.round"),
        (["topology.join=[{node=3,round=2},{node=3,round=3}]"], "topology.join"),
        (["topology.join=[{node=3,round=4}]", "topology.exit=[{node=3,round=2}]"], "topology.exit"),
        (["topology.nodes=2", "topology.degree=1", "topology.join=[{node=0,round=2}]"], "topology.join"),
        (["mixnet.mixer=outbox", "mixnet.refill_at=100"], "mixnet.refill_at"),
        (["mixnet.mixer=outbox", "mixnet.delay_mean_s=0"], "mixnet.delay_mean_s"),
        (["mixnet.max_hops=2"], "mixnet.max_hops"),
        (["aggregation.rule=fragkrum", "aggregation.staleness=weight"], "aggregation.staleness"),
        (["aggregation.completion=deadline"], "aggregation.deadline_s"),
        (["aggregation.trigger_change=0.1"], "aggregation.trigger_change"),
        (["payload.obfuscation=masks", "payload.ratio=0.5"], "payload.ratio"),
        (["payload.obfuscation=masks", "payload.error_feedback=true"], "payload.error_feedback"),
        (["payload.obfuscation=masks", "aggregation.rule=fragkrum"], "aggregation.rule"),
        (["payload.obfuscation=masks", "aggregation.rule=median"], "aggregation.rule"),
        (["payload.obfuscation=masks", "aggregation.staleness=keep"], "aggregation.staleness"),
        (["payload.obfuscation=masks", "aggregation.completion=immediate"], "aggregation.completion"),
        (["payload.obfuscation=masks", "aggregation.completion=cadence"], "aggregation.completion"),
        (
            [
                "payload.obfuscation=masks",
                "aggregation.completion=deadline",
                "aggregation.deadline_s=9",
                "aggregation.trigger_change=0.1",
            ],
            "aggregation.trigger_change",
        ),
        (["payload.obfuscation=masks", "learning.model=mobilenet_v2"], "learning.model"),
        (["attack.nodes=1"], "attack.kind"),
        (["attack.kind=gaussian"], "attack.nodes"),
        (["attack.kind=gaussian", "attack.nodes=8"], "attack.nodes"),
        (["attack.kind=gaussian", "attack.chosen=[8]"], "attack.chosen"),
        (["attack.kind=gaussian", "attack.chosen=[1,1]"], "attack.chosen"),
        (["attack.kind=gaussian", "attack.chosen=[1,2]", "attack.nodes=1"], "attack.nodes"),
        (["attack.kind=label_flip", "attack.nodes=1", "attack.magnitude=2"], "attack.magnitude"),
        (["process.base_port=65530"], "process.base_port"),
        (["process.datagram_bytes=800"], "process.datagram_bytes"),
        (["process.cores=[0,0]"], "process.cores"),
        (["process.cores=[-1]"], "process.cores"),
    ],
)
def test_keys_that_do_not_go_together_are_refused_by_name(overrides: list[str], key: str) -> None:
    assert refused(*overrides).key == key


def test_a_join_in_the_first_round_is_no_join_and_an_exit_after_the_join_is_fine() -> None:
    scenario = preset("demo", ["topology.join=[{node=3,round=2}]", "topology.exit=[{node=3,round=2}]"])

    assert scenario.topology.exit[0].round == 2


# -- the models -------------------------------------------------------------------------------------------------------


def test_a_scenario_does_not_change() -> None:
    scenario = Scenario()

    with pytest.raises(ValidationError):
        scenario.run.rounds = 3


def test_every_key_and_section_says_what_it_is() -> None:
    assert all(key.says and key.takes for key in keys().values())
    assert all(model.__doc__ for model in sections().values())


def test_every_duration_says_that_it_counts_seconds() -> None:
    timed = [key for key in keys().values() if key.name.endswith("_s") and not key.name.endswith("_per_s")]

    assert timed
    assert all(key.unit == "s" for key in timed)


def test_the_json_schema_has_bounds_units_and_symbols_for_a_form() -> None:
    schema = Scenario.model_json_schema()
    path_length = schema["$defs"]["Mixnet"]["properties"]["path_length"]

    assert (path_length["minimum"], path_length["maximum"], path_length["symbol"]) == (1, 10, "K")
    assert schema["$defs"]["Mixnet"]["properties"]["delay_mean_s"]["unit"] == "s"
    assert schema["additionalProperties"] is False
