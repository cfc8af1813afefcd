"""The document of `bench packet` holds what it promises, whatever else is installed on the machine."""

import json

import pytest

from benchmarks import packet
from unlinkabledfl.cli import main

MEASURED = {"hop_us", "hop_batch_us", "create_us", "surb_us", "floor_us", "sphinxmix"}
COMPARED = {"ratio_hop", "ratio_batch", "ratio_create", "ratio_floor"}
ABOUT = {"machine", "versions", "seconds"}


def test_the_document_carries_the_promised_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "packet", "--rounds", "1", "--json"]) == 0

    document = json.loads(capsys.readouterr().out)
    assert set(document) >= MEASURED | COMPARED | ABOUT
    assert list(document["create_us"]) == ["1", "2", "3", "5"]
    assert document["node"]["refused_us"].keys() == document["node"]["refused_batch_us"].keys()
    assert document["dearest_refusal"] == document["node"]["dearest_refusal"] > 0
    assert all(us > 0 for us in (document["hop_us"], document["surb_us"], *document["create_us"].values()))


def test_without_sphinxmix_there_is_no_ratio_and_the_table_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(packet, "sphinxmix", lambda body_bytes: None)

    document = packet.measure(rounds=1)

    assert [document[key] for key in ("sphinxmix", "ratio_hop", "ratio_batch", "ratio_create")] == [None] * 4
    monkeypatch.setattr(packet, "measure", lambda: document)
    assert main(["bench", "packet"]) == 0
    assert "sphinxmix is not installed (extra `bench`)" in " ".join(capsys.readouterr().err.split())


def test_the_less_favourable_length_counts_for_creating() -> None:
    document = {
        "hop_us": 75.0,
        "hop_batch_us": 30.0,
        "create_us": {"3": 200.0, "5": 400.0},
        "floor_us": 60.0,
        "sphinxmix": {"hop_us": 150.0, "create_us": {"3": 480.0, "5": 800.0}},
    }

    assert packet.ratios(document) == {"ratio_hop": 2.0, "ratio_batch": 5.0, "ratio_create": 2.0, "ratio_floor": 1.25}
