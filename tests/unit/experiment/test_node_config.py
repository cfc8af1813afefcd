"""One node's configuration: it travels whole, keeps its secrets, and names what is wrong with it."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.node_config import MAX_BYTES, FullNodeConfig
from unlinkabledfl.experiment.planning import local_hosting, plan_experiment
from unlinkabledfl.experiment.scenario import preset


def config(name: str = "paper", index: int = 3) -> FullNodeConfig:
    scenario = preset(name, ["process.base_port=7000"])
    return plan_experiment(scenario, hosting=local_hosting(scenario)).node(index)


CONFIG = config()
SECRETS = [
    CONFIG.identity_seed.get_secret_value(),
    CONFIG.link.private_key.get_secret_value() if CONFIG.link else "",
]


def changed(**values: object) -> bytes:
    """The configuration as JSON with some values replaced; a name may be `part__key`."""
    document = json.loads(CONFIG.to_json())
    for name, value in values.items():
        *parts, last = name.split("__")
        inner: Any = document
        for part in parts:
            inner = inner[part]
        inner[last] = value
    return json.dumps(document).encode()


@pytest.mark.parametrize("name", ["demo", "paper", "strong", "direct"])
def test_it_comes_back_from_its_json_as_it_was(name: str) -> None:
    original = config(name)

    assert FullNodeConfig.from_json(original.to_json()) == original


def test_with_masks_it_knows_the_graph_even_if_routes_do_not_follow_it() -> None:
    plans = [plan_experiment(preset("demo", [f"payload.obfuscation={name}"])) for name in ("none", "masks")]

    assert [plan.node(0).graph is None for plan in plans] == [True, False]
    with pytest.raises(ConfigError, match="masks need the graph"):
        FullNodeConfig.from_json(plans[1].node(0).model_copy(update={"graph": None}).to_json())


def test_its_link_identity_comes_back_too() -> None:
    assert CONFIG.link is not None
    again = FullNodeConfig.from_json(CONFIG.to_json()).link
    assert again is not None

    assert again.identity() == CONFIG.link.identity()
    assert again.identity().sign(b"words") == CONFIG.link.identity().sign(b"words")


def test_secrets_are_in_the_json_and_nowhere_else() -> None:
    shown = [repr(CONFIG), str(CONFIG), CONFIG.model_dump_json(), str(CONFIG.model_dump()), repr(CONFIG.link)]

    assert all(secret in CONFIG.to_json().decode() for secret in SECRETS)
    assert not any(secret in text for secret in SECRETS for text in shown)


def test_it_holds_no_key_of_another_node() -> None:
    scenario = preset("paper", ["process.base_port=7000"])
    plan = plan_experiment(scenario, hosting=local_hosting(scenario))
    others = [node for node in plan if node.index != CONFIG.index]
    text = plan.node(CONFIG.index).to_json().decode()

    assert not any(other.identity_seed.get_secret_value() in text for other in others)
    assert not any(other.link and other.link.private_key.get_secret_value() in text for other in others)


# -- files ------------------------------------------------------------------------------------------------------------


def test_a_file_is_its_owners_alone_and_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "node.json"
    old_mask = os.umask(0)
    try:
        CONFIG.write(path)
    finally:
        os.umask(old_mask)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert FullNodeConfig.read(path) == CONFIG
    assert [each.name for each in tmp_path.iterdir()] == ["node.json"]


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "node.json"
    CONFIG.write(path)
    path.chmod(0o640)

    with pytest.raises(ConfigError, match=r"chmod 600"):
        FullNodeConfig.read(path)


def test_a_file_that_is_missing_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        FullNodeConfig.read(tmp_path / "node.json")


def test_a_link_in_the_place_of_a_file_is_replaced_and_not_followed(tmp_path: Path) -> None:
    target, path = tmp_path / "theirs", tmp_path / "node.json"
    target.write_text("untouched", encoding="utf-8")
    path.symlink_to(target)

    CONFIG.write(path)

    assert target.read_text(encoding="utf-8") == "untouched"
    assert not path.is_symlink()


# -- what is wrong with it --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "key"),
    [
        (b"", "node"),
        (b"{", "node"),
        (b"[]", "node"),
        (b"{}", "node.run_id"),
        (b" " * (MAX_BYTES + 1), "node"),
        (changed(mixnet__path_length=11), "node.mixnet.path_length"),
        (changed(mixnet__path_length="2"), "node.mixnet.path_length"),
        (changed(mixnet__colour="red"), "node.mixnet.colour"),
        (changed(colour="red"), "node.colour"),
        (changed(version=2), "node.version"),
        (changed(index=4), "node"),
        (changed(index=32), "node"),
        (changed(node_id="zz"), "node.node_id"),
        (changed(identity_seed="00" * 32), "node"),
        (changed(identity_seed="zz" * 32), "node"),
        (changed(identity_seed="00"), "node.identity_seed"),
        (changed(link__private_key="not base64"), "node.link"),
        (changed(link__datagram_bytes=100), "node.link.datagram_bytes"),
        (changed(graph=None), "node"),
        (changed(graph__neighbours=[[0]]), "node.graph"),
        (changed(contacts=[{"node_id": "00" * 32}]), "node.contacts.0.addresses"),
        (changed(schedule__deadline_s=0), "node.schedule.deadline_s"),
        (changed(learner__factory="os.system"), "node.learner.factory"),
    ],
)
def test_a_mistake_is_named_without_telling_a_secret(data: bytes, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        FullNodeConfig.from_json(data)

    assert caught.value.key == key
    assert not any(secret in str(caught.value) for secret in SECRETS)


@pytest.mark.parametrize("secret", ["identity_seed", "link__private_key"])
def test_a_secret_of_the_wrong_form_is_not_repeated(secret: str) -> None:
    with pytest.raises(ConfigError) as caught:
        FullNodeConfig.from_json(changed(**{secret: "hunter2!" * 9_000}))

    assert "hunter2" not in str(caught.value)


def test_a_secret_under_a_name_that_does_not_exist_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        FullNodeConfig.from_json(changed(identityseed="hunter2"))

    assert caught.value.key == "node.identityseed"
    assert "hunter2" not in str(caught.value)


@settings(max_examples=50)
@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(lambda value: json.dumps(value).encode())
)
def test_whatever_the_bytes_they_are_read_or_refused(data: bytes) -> None:
    with pytest.raises(ConfigError):
        FullNodeConfig.from_json(data)
