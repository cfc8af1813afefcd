"""`attack` on the command line: the document, the table, the page, and what it refuses."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.analysis.recordings import OVERLAY, recorded
from tests.unit.experiment.html_pages import sound_page
from tests.unit.experiment.synthetic_run import write_run
from unlinkabledfl.analysis.adversaries import RouteAdversary
from unlinkabledfl.analysis.attack import ADVERSARIES, Refusal, attack
from unlinkabledfl.analysis.files import read_groups, read_oracle, read_trace, write_recording
from unlinkabledfl.cli import main
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.attack import attack_run

pytest.importorskip("pyarrow", reason="the extra `experiment` is not installed")

ROW_KEYS = {
    "configuration", "adversary", "accuracy", "ci_low", "ci_high", "baseline", "p_link_mean", "targets", "rtt_s_mean",
    "bytes_per_node_round", "published_baseline", "advantage", "shannon_bits", "min_bits", "calibration", "posterior",
}  # fmt: skip


def traced_run(path: Path) -> Path:
    """A run with figures that never were, and the trace of a deployment that was."""
    write_run(path, nodes=OVERLAY.nodes)
    found = recorded(OVERLAY)
    write_recording(path, replace(found.recording, groups=found.groups), compromised=[4, 1, 7])
    return path


@cache
def document_of(path: Path) -> dict[str, Any]:
    return attack_run(path, shares=(0.0, 0.2))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return traced_run(tmp_path_factory.mktemp("traced") / "run")


def test_every_adversary_has_a_row_for_every_share(run: Path) -> None:
    board = document_of(run)["board"]

    assert [(row["compromised"], row["adversary"]) for row in board] == [
        (share, name) for share in (0.0, 0.2) for name in ADVERSARIES
    ]
    for row in board:
        assert set(row) >= ROW_KEYS
        assert 0.0 <= row["ci_low"] <= row["accuracy"] <= row["ci_high"] <= 1.0
        assert row["advantage"] == pytest.approx(row["p_link_mean"] - row["baseline"])
        assert sum(row["posterior"]["best"]) == sum(row["posterior"]["true_sender"]) == row["targets"]


def test_what_compromised_nodes_sent_is_not_scored(run: Path) -> None:
    board = document_of(run)["board"]
    origins = recorded(OVERLAY).recording.oracle.origin

    assert {row["targets"] for row in board if row["compromised"] == 0.2} == {
        sum(origin not in {4, 1} for origin in origins)
    }


def test_fewer_targets_are_whole_models(run: Path) -> None:
    groups = read_groups(run, read_trace(run))
    assert groups is not None

    few, all_of_them = (attack_run(run, names=["route"], targets=wanted)["board"][0]["targets"] for wanted in (40, 0))

    assert 40 <= few <= 40 + int(np.bincount(groups).max())
    assert all_of_them == len(groups)


def test_costs_are_those_of_the_run(run: Path) -> None:
    row = document_of(run)["board"][0]

    assert row["rtt_s_mean"] > 0.0
    assert row["bytes_per_node_round"] > 0.0


def test_the_document_is_printed_and_the_page_lies_beside_the_run(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["attack", str(run), "--json", "--adversary", "route", "--adversary", "paper"]) == 0

    document = json.loads(capsys.readouterr().out)
    assert [row["adversary"] for row in document["board"]] == ["paper", "route"]
    assert set(document) >= {"machine", "versions", "seconds", "run"}
    assert document["report"] == str(run / "attack.html")
    page = sound_page((run / "attack.html").read_text())
    assert "Who could be linked in run" in page.text
    # The board, and for the one configuration its posteriors and its calibration.
    assert len(page.drawings()) == 3


def test_people_get_a_table_and_are_told_where_the_page_is(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["attack", str(run), "--adversary", "route", "--out", str(tmp_path / "page.html")]) == 0

    said = capsys.readouterr()
    assert not said.out
    assert "Who sent it?" in said.err
    assert "page.html" in said.err.replace("\n", "")
    assert (tmp_path / "page.html").is_file()


def test_a_run_without_a_trace_is_told_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "run")

    assert main(["attack", str(tmp_path / "run")]) == 2

    assert "monitoring.trace=true" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--adversary", "nobody"], "takes paper, route, flow, grouping, disclosure"),
        (["--compromised", "0.5"], "monitoring.trace_compromised=0.5"),
        (["--compromised", "-1"], "a share from 0 to 1"),
        (["--compromised", "nan"], "a share from 0 to 1"),
        (["--targets", "-1"], "or 0 for all"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_what_can(
    run: Path, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["attack", str(run), *arguments]) == 2

    assert says in capsys.readouterr().err


def test_an_adversary_that_does_not_know_the_routes_says_so_and_the_others_go_on(run: Path) -> None:
    trace = read_trace(run, share=0.0)
    strange = replace(trace, settings=replace(trace.settings, route="by ferry"))
    oracle = read_oracle(run, trace)

    found = list(attack(strange, oracle, groups=read_groups(run, trace)))

    refused = [each.adversary for each in found if isinstance(each, Refusal)]
    assert refused == ["route", "flow", "grouping", "disclosure"]
    with pytest.raises(ConfigError, match=r"attack\.route"):
        list(attack(strange, oracle, groups=None, names=["flow"]))


def test_beliefs_that_are_no_numbers_are_refused(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = read_trace(run)
    monkeypatch.setattr(RouteAdversary, "posteriors", lambda _self, trace: np.full((len(trace.targets), 10), np.nan))

    found = list(attack(trace, read_oracle(run, trace), groups=None))

    assert [each.adversary for each in found if isinstance(each, Refusal)] == ["route"]


def test_settings_of_another_run_are_told_from_a_bug(run: Path) -> None:
    trace = read_trace(run)
    other = replace(trace, settings=replace(trace.settings, route="walk", path_length=1))

    with pytest.raises(ConfigError, match="not those of its run"):
        list(attack(other, read_oracle(run, trace), groups=None, names=["route"]))


def test_grouping_is_refused_where_nobody_knows_which_fragments_belong_together(run: Path) -> None:
    trace = read_trace(run)

    with pytest.raises(ConfigError, match="for this run"):
        list(attack(trace, read_oracle(run, trace), groups=None, names=["grouping"]))


def test_a_trace_in_which_nothing_arrived_has_nothing_to_attack(run: Path) -> None:
    trace = read_trace(run)

    with pytest.raises(ConfigError, match="in which fragments arrived"):
        list(attack(replace(trace, targets=trace.targets[:0]), read_oracle(run, trace), groups=None))
