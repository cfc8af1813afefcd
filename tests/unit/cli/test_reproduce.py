"""`reproduce` on the command line: its document, its table, and what it refuses."""

import json
from pathlib import Path

import pytest

from tests.unit.experiment.html_pages import sound_page
from unlinkabledfl.cli import main

SMALL = ["reproduce", "linking", "--targets", "40", "--only", "direct,no cover"]
ROW_KEYS = {
    "configuration", "adversary", "accuracy", "ci_low", "ci_high", "baseline", "p_link_mean", "targets", "rtt_s_mean",
    "bytes_per_node_round",
}  # fmt: skip


def test_the_document_carries_the_promised_keys_and_names_every_deployment_it_speaks_of(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main([*SMALL, "--json", "--out", str(tmp_path / "board")]) == 0

    document = json.loads(capsys.readouterr().out)
    assert set(document) >= {"board", "machine", "versions", "seconds"}
    assert all(set(row) >= ROW_KEYS for row in document["board"])
    assert {row["configuration"] for row in document["board"]} == {"direct", "no cover"}
    assert [each["name"] for each in document["configurations"]] == ["direct", "no cover"]
    assert {row["configuration"]: row["accuracy"] for row in document["published"]["rows"]} == {
        "direct": 0.99,
        "no cover": 0.10,
    }
    assert json.loads((tmp_path / "board" / "linking.json").read_text()) == document
    sound_page((tmp_path / "board" / "linking.html").read_text())


def test_people_get_the_published_figure_beside_each_adversary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(SMALL) == 0

    said = capsys.readouterr()
    assert not said.out
    assert "How often each adversary names the sender" in said.err
    assert "What has to hold" in said.err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["reproduce", "everything"], "reproduce: got 'everything', takes linking"),
        (["reproduce", "content", "--seeds", "0"], "--seeds: got 0, takes a whole number from 1"),
        (["reproduce", "content", "--targets", "3"], "--targets: got 3, takes no value for the experiment 'content'"),
        (["reproduce", "linking", "--quick"], "--quick: got True, takes no value for the experiment 'linking'"),
        (["reproduce", "linking", "--targets", "3"], "--targets: got 3, takes a whole number from 10"),
        (["reproduce", "linking", "--only", "stronger"], "--only: got 'stronger', takes direct, K=1, no cover"),
    ],
)
def test_what_cannot_be_reproduced_is_said(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2

    assert complaint in capsys.readouterr().err
