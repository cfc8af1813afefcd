"""Tuning: from a frontier to settings, and from settings to a run that confirms them."""

import json
import re
from pathlib import Path

import pytest

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.linking.bandwidth import parse_bandwidth
from unlinkabledfl.experiment.linking.frontier import COMMAND, HOLDS, PATH_LENGTHS, Point, read_points
from unlinkabledfl.experiment.linking.tuning import proposals, tune
from unlinkabledfl.experiment.scenario import preset

POINTS = [
    Point(path_length=length, hold=hold, advantage=0.4 / length**2 / hold)
    for length in (2, 3)
    for hold in (1.0, 4.0, 16.0)
]
SMALL = ["topology.nodes=8", "learning.dataset=fashion-mnist-mini"]


def silent(_line: str) -> None:
    pass


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [("2MB/s", 2e6), ("500 kB/s", 5e5), ("10Mbit/s", 1.25e6), ("800bitps", 100.0), ("1.5GB/s", 1.5e9)],
)
def test_bandwidths_are_read_as_people_write_them(text: str, bytes_per_s: float) -> None:
    assert parse_bandwidth(text) == bytes_per_s


@pytest.mark.parametrize("text", ["", "2", "2MB", "-1MB/s", "0MB/s", "fast", "2MiB/s"])
def test_what_is_no_bandwidth_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--bandwidth: got .* takes what a node may send, such as 2MB/s"):
        parse_bandwidth(text)


def test_a_proposal_keeps_to_target_and_bandwidth_and_a_run_confirms_it() -> None:
    document = tune(
        preset("strong", SMALL),
        target_advantage=0.2,
        bandwidth_bytes_per_s=2e5,
        points=POINTS,
        tell=silent,
        targets=200,
    )

    assert document["expected"]["advantage"] <= 0.2
    assert document["confirmed"]["advantage_holds"] is (document["confirmed"]["advantage"] <= 0.2)
    assert document["confirmed"]["advantage_holds"]
    assert document["confirmed"]["bandwidth_holds"]
    assert document["confirmed"]["time_holds"]
    assert [each["path_length"] for each in document["considered"]] == [2, 3]
    assert document["expected"]["exchange_s"] == min(each["exchange_s"] for each in document["considered"])
    # What it prints can be run.
    again = preset("strong", [*SMALL, *document["overrides"]])
    assert {key: getattr(again.mixnet, key) for key in document["proposal"]} == document["proposal"]


def test_a_lower_target_holds_packets_longer_and_more_bandwidth_shorter() -> None:
    def delays(target: float, bandwidth: float) -> list[float]:
        found = proposals(preset("strong", SMALL), POINTS, target=target, bandwidth_bytes_per_s=bandwidth, factor=1.0)
        return [proposal.scenario.mixnet.delay_mean_s for proposal in found]

    loose, strict, fast = delays(0.04, 2e5), delays(0.01, 2e5), delays(0.01, 4e5)
    assert all(one < other for one, other in zip(loose, strict, strict=True))
    assert all(one == pytest.approx(2 * other, rel=0.2) for one, other in zip(strict, fast, strict=True))


@pytest.mark.parametrize(
    ("overrides", "target", "bandwidth", "complaint"),
    [
        ([], 0.0, 1e6, r"--target-advantage: got 0.0, takes a probability between 0 and 1"),
        ([], 1e-6, 1e6, r"--target-advantage: got 1e-06, takes at least 0.0028, the least on the measured frontier"),
        ([], 0.02, 10.0, r"--bandwidth: got '10 bytes/s', takes about [0-9]+ bytes/s or more for this target"),
        (["mixnet.exchange=within"], 0.02, 1e6, r"mixnet.exchange: got 'within', takes reach"),
        (["topology.nodes=3", "topology.family=full"], 0.02, 1e6, r"topology.nodes: got 3, takes at least 4"),
        (["learning.factory=my.module:make"], 0.02, 1e6, r"learning.factory: got 'my.module:make', takes a built-in"),
    ],
)
def test_what_nothing_can_reach_is_said(overrides: list[str], target: float, bandwidth: float, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        tune(
            preset("strong", overrides),
            target_advantage=target,
            bandwidth_bytes_per_s=bandwidth,
            points=POINTS,
            tell=silent,
        )


def test_the_frontier_in_the_package_is_one_that_the_command_makes() -> None:
    points, document = read_points()

    assert document["command"] == COMMAND
    assert [(point.path_length, point.hold) for point in points] == [
        (length, hold) for length in PATH_LENGTHS for hold in HOLDS
    ]
    assert all(0.0 < point.advantage < 1.0 for point in points)


def test_a_file_that_is_no_frontier_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "frontier.json"
    for text in ("{", json.dumps({"points": [{"hold": 1}]})):
        path.write_text(text)
        with pytest.raises(ConfigError, match=r"--frontier: .* takes a document of `reproduce frontier`"):
            read_points(path)
    with pytest.raises(ConfigError, match=re.escape("reproduce frontier --out DIR")):
        read_points(tmp_path / "missing.json")
