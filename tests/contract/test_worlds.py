"""What holds of a run in whichever world it takes place: the same figures under the same names, the same accounts.

One scenario is run once in each world; the tests look at what the runs left.
"""

from pathlib import Path

import numpy as np
import pytest

from tests.contract.worlds import (
    CONTAINERS,
    NODES,
    ROUNDS,
    WORLDS,
    Impatient,
    Run,
    enter,
    run_in,
    scenario_of,
    take_up_in,
)
from unlinkabledfl.experiment.conduct import conduct, create_run
from unlinkabledfl.experiment.records import EventKind, RunDirectory, Status

ALL = list(range(NODES))
DRIVERS_OWN = {"pss_mib", "pss_mix_mib", "pss_learner_mib"}
"""What only processes have."""
OF_REAL_LINKS = "links_"

SLOW = pytest.mark.slow

_kept: dict[str, Run] = {}


@pytest.fixture(
    params=["simulation", pytest.param("process", marks=SLOW), pytest.param("container", marks=[SLOW, CONTAINERS])]
)
def world(request: pytest.FixtureRequest) -> str:
    return enter(request.param, request)


@pytest.fixture(params=["simulation", pytest.param("process", marks=SLOW), pytest.param("container", marks=CONTAINERS)])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_of(enter(request.param, request), tmp_path_factory)


def run_of(world: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    if world not in _kept:
        _kept[world] = run_in(world, tmp_path_factory.mktemp(world) / "run")
    return _kept[world]


def test_every_node_reports_every_round_and_the_run_is_finished(run: Run) -> None:
    assert run.document["status"] == "finished"
    assert run.reporters() == dict.fromkeys(range(1, ROUNDS + 1), ALL)
    assert run.reporters("accuracy") == run.reporters()
    assert run.document["deaths"] == 0


def test_without_losses_all_that_was_expected_is_there(run: Run) -> None:
    completeness = run.metrics.by_round("completeness")

    assert {value for nodes in completeness.values() for value in nodes.values()} == {1.0}
    assert run.total("fragments_expected") == run.total("fragments_collected") > 0


def test_a_fragment_ends_exactly_once_at_its_sender_and_at_its_receiver(run: Run) -> None:
    ends = ("fragments_acknowledged", "fragments_given_up", "fragments_withdrawn")
    assert run.total("fragments_sent") == sum(map(run.total, ends)) > 0

    ends = ("fragments_aggregated", "fragments_late", "fragments_refused")
    assert run.total("fragments_received") == sum(map(run.total, ends))
    assert run.total("fragments_received") == run.total("fragments_sent")


def test_the_phases_of_a_round_make_up_its_time(run: Run) -> None:
    parts = [run.metrics.by_round(name) for name in ("train_s", "exchange_s", "aggregate_s", "evaluate_s")]

    for number, nodes in run.metrics.by_round("round_s").items():
        for node, seconds in nodes.items():
            assert sum(part[number][node] for part in parts) == pytest.approx(seconds, abs=1e-3)


def test_the_nodes_learn_and_agree(run: Run) -> None:
    accuracy = run.metrics.by_round("accuracy")
    last = list(accuracy[ROUNDS].values())

    assert np.mean(last) > np.mean(list(accuracy[1].values()))
    assert np.mean(last) > 0.5
    assert max(last) - min(last) < 0.1


def test_the_drivers_figures_are_there(run: Run) -> None:
    for nodes in run.metrics.by_round("cpu_s").values():
        assert sorted(nodes) == ALL
        assert all(value > 0.0 for value in nodes.values())


def test_every_node_leaves_its_model(run: Run) -> None:
    assert list(run.directory.checkpointed_nodes()) == ALL
    for node in ALL:
        checkpoint = run.directory.checkpoint(node)
        assert checkpoint.round_number == ROUNDS
        assert all(np.isfinite(array).all() for array in checkpoint.state.values())


@pytest.mark.parametrize("world", [pytest.param("process", marks=SLOW), pytest.param("container", marks=CONTAINERS)])
def test_the_worlds_report_the_same_figures_and_learn_the_same(
    world: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    virtual, real = (run_of(name, tmp_path_factory) for name in ("simulation", enter(world, request)))

    assert real.names() - DRIVERS_OWN == virtual.names()
    assert {name for name in real.gauges() - DRIVERS_OWN if not name.startswith(OF_REAL_LINKS)} == virtual.gauges()
    for name in ("fragments_sent", "fragments_received", "fragments_aggregated", "fragments_expected"):
        assert real.total(name) == virtual.total(name)
    # The same models on the same data; what differs is the noise of quantization: a tenth of a point a weight.
    for number in range(1, ROUNDS + 1):
        means = [np.mean(list(run.metrics.by_round("accuracy")[number].values())) for run in (virtual, real)]
        assert abs(means[0] - means[1]) < 0.04


def test_nodes_join_and_exit_as_scheduled(world: str, tmp_path: Path) -> None:
    run = run_in(world, tmp_path / "run", "topology.join=[{node=3,round=2}]", "topology.exit=[{node=0,round=2}]")

    assert run.reporters() == {1: [0, 1, 2], 2: [0, 1, 2, 3], 3: [1, 2, 3]}
    assert run.told(EventKind.JOIN) == [3]
    assert run.told(EventKind.EXIT) == [0]
    # Nobody waits to the end for who is not there any more.
    for number in (1, 2, 3):
        exchange_s = run.metrics.by_round("exchange_s")[number]
        assert max(exchange_s.values()) < 60.0


def test_attackers_are_named(world: str, tmp_path: Path) -> None:
    run = run_in(world, tmp_path / "run", "run.rounds=1", "attack.kind=sign_flip", "attack.chosen=[2]")

    assert run.told(EventKind.ATTACK) == [2]
    assert run.reporters() == {1: ALL}


def test_masks_cancel_in_what_the_nodes_learn(world: str, tmp_path: Path) -> None:
    run = run_in(world, tmp_path / "run", "run.rounds=2", "payload.obfuscation=masks", "payload.obfuscation_scale=20")

    completeness = run.metrics.by_round("completeness")
    assert {value for nodes in completeness.values() for value in nodes.values()} == {1.0}
    # A fragment is noise of twenty times its values; three of them that do not cancel leave a model at chance.
    assert np.mean(list(run.metrics.by_round("accuracy")[2].values())) > 0.4


def test_an_interrupted_run_is_whole_and_can_be_gone_on_with(world: str, tmp_path: Path) -> None:
    path = tmp_path / "run"
    scenario = scenario_of(world)

    with pytest.raises(KeyboardInterrupt):
        conduct(
            scenario,
            directory=create_run(scenario, path),
            backend=WORLDS[world](),
            watchers=[Impatient(round_number=1)],
        )

    left = RunDirectory.open(path)
    assert left.status() is Status.INTERRUPTED
    assert 1 in Run.of(left).reporters()

    run = take_up_in(world, path)

    assert run.document["status"] == "finished"
    # Of the round in which it was interrupted a node's figures may be missing, if its model was saved before they were.
    assert {number: run.reporters()[number] for number in range(2, ROUNDS + 1)} == dict.fromkeys((2, 3), ALL)
    assert {run.directory.checkpoint(node).round_number for node in ALL} == {ROUNDS}
