"""What holds of a trace in whichever world it was taken down."""

from pathlib import Path

import numpy as np
import pytest

from tests.contract.worlds import CONTAINERS, NODES, Run, enter, run_in
from unlinkabledfl.analysis.adversaries import DisclosureAdversary, FlowAdversary, PaperAdversary, RouteAdversary
from unlinkabledfl.analysis.files import OBSERVED, ORACLE, read_groups, read_oracle, read_trace
from unlinkabledfl.analysis.trace import UNKNOWN
from unlinkabledfl.experiment.records import EventKind

pytest.importorskip("pyarrow", reason="the extra `experiment` is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="the extra `experiment` is not installed")

PATH_LENGTH = 2
ADVERSARIES = (PaperAdversary(), RouteAdversary(), FlowAdversary(), DisclosureAdversary())
PACKETS_ASIDE = 0.1
"""Which share of the packets may leave before the first figures, or after the last."""

_kept: dict[str, Run] = {}


@pytest.fixture(
    params=[
        "simulation",
        pytest.param("process", marks=pytest.mark.slow),
        pytest.param("container", marks=[pytest.mark.slow, CONTAINERS]),
    ]
)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    world = enter(request.param, request)
    if world not in _kept:
        _kept[world] = run_in(
            world, tmp_path_factory.mktemp(world) / "run", "run.rounds=2", "monitoring.trace=true",
            "monitoring.trace_compromised=0.5",
        )  # fmt: skip
    return _kept[world]


def test_it_leaves_two_files_and_no_logs(run: Run) -> None:
    names = {path.name for path in run.directory.path.iterdir()}

    assert {OBSERVED, ORACLE} < names
    assert "trace" not in names
    assert [event.text.split(" ")[0] for event in run.events if event.kind is EventKind.NOTE] == ["traced"]


def test_every_fragment_that_came_is_a_target(run: Run) -> None:
    trace = read_trace(run.directory.path)

    assert len(trace.targets) == run.total("fragments_received") > 0


def test_every_packet_that_was_sent_crossed_a_link(run: Run) -> None:
    crossings = read_trace(run.directory.path).crossings

    assert len(crossings) >= run.total("packets_sent")
    assert len(set(crossings.size_bytes.tolist())) == 1
    assert np.isnan(crossings.arrived_at_s).mean() < PACKETS_ASIDE
    arrived = crossings.arrived_at_s[~np.isnan(crossings.arrived_at_s)]
    assert (arrived >= crossings.left_at_s[~np.isnan(crossings.arrived_at_s)]).all()


def test_targets_lead_back_to_their_senders(run: Run) -> None:
    trace = read_trace(run.directory.path)
    oracle = read_oracle(run.directory.path, trace)
    crossings = trace.crossings

    for target, origin, path in zip(trace.targets, oracle.origin, oracle.path, strict=True):
        assert len(path) == PATH_LENGTH
        assert path[-1] == crossings.target[target] != origin
        assert path[-2] == crossings.source[target]


def test_each_sender_and_destination_have_a_group_a_round(run: Run) -> None:
    trace = read_trace(run.directory.path)
    groups, origins = read_groups(run.directory.path, trace), read_oracle(run.directory.path, trace).origin
    destinations = trace.crossings.target[trace.targets]

    assert groups is not None
    assert groups.max() + 1 == NODES * (NODES - 1) * 2
    for group in range(groups.max() + 1):
        members = groups == group
        assert len(set(origins[members])) == len(set(destinations[members])) == 1


def test_compromised_relays_tell_what_they_pass_on_and_no_others(run: Run) -> None:
    trace = read_trace(run.directory.path, share=0.25)
    linked = np.flatnonzero(trace.before != UNKNOWN)
    crossings = trace.crossings

    assert len(trace.compromised) == 1
    assert set(crossings.source[linked]) == set(trace.compromised)
    assert (crossings.target[trace.before[linked]] == crossings.source[linked]).all()
    assert (crossings.arrived_at_s[trace.before[linked]] <= crossings.left_at_s[linked]).all()


def test_what_an_adversary_reads_holds_nothing_of_the_truth(run: Run) -> None:
    names = parquet.read_schema(run.directory.path / OBSERVED).names

    assert names == [
        "source", "target", "left_at_s", "arrived_at_s", "size_bytes", "wire_hash", "is_target", "group", "before",
    ]  # fmt: skip


def test_adversaries_guess_the_same_when_the_truth_is_gone(run: Run, tmp_path: Path) -> None:
    (tmp_path / OBSERVED).write_bytes((run.directory.path / OBSERVED).read_bytes())

    for adversary in ADVERSARIES:
        with_truth = adversary.posteriors(read_trace(run.directory.path))
        assert np.array_equal(adversary.posteriors(read_trace(tmp_path)), with_truth)
