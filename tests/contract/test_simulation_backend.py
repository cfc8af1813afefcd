"""The virtual world as a backend: reproducible, whoever trains; and going on when nodes crash."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from tests.contract.worlds import Impatient, Run, scenario_of, take_up_in
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.backends.simulation import SimulationBackend
from unlinkabledfl.experiment.conduct import conduct, create_run
from unlinkabledfl.experiment.records import EventKind, RunDirectory
from unlinkabledfl.simulation import Crash, Fault, Partition, Restart

MEASURED_HERE = {"cpu_s", "cpu_mix_s", "cpu_learner_s"}
"""What depends on the machine, not on the seed."""

Row = tuple[float, int, int, str, float]


def run(path: Path, *overrides: str, processes: int = 0, faults: Sequence[Fault] = ()) -> Run:
    """Run four nodes; no processes: their learners in this one."""
    scenario = scenario_of("simulation", "run.rounds=2", "learning.train_samples=200", *overrides)
    backend = SimulationBackend(processes=processes, inline=not processes, faults=faults)
    conduct(scenario, directory=create_run(scenario, path), backend=backend)
    return Run.of(RunDirectory.open(path))


def rows(run: Run) -> list[Row]:
    """Return all figures but those of this machine. When evaluations are recorded depends on when there was time."""
    return sorted(row for row in run.metrics.rows() if row[3] not in MEASURED_HERE)


def test_equal_seeds_give_equal_figures_however_many_processes_train(tmp_path: Path) -> None:
    here, one, three = (run(tmp_path / f"{count}", processes=count) for count in (0, 1, 3))

    assert rows(here) == rows(one) == rows(three)
    assert len(rows(here)) > 300


def test_another_seed_gives_other_figures(tmp_path: Path) -> None:
    assert rows(run(tmp_path / "1")) != rows(run(tmp_path / "2", "run.seed=2"))


def test_without_a_stated_time_training_takes_what_it_was_measured_to_take(tmp_path: Path) -> None:
    result = run(tmp_path / "run", "learning.training_time_s=0")

    train_s = result.metrics.by_round("train_s")
    cpu_s = result.metrics.by_round("cpu_learner_s")
    for number, nodes in train_s.items():
        for node, seconds in nodes.items():
            # The evaluation is the rest of the learner's time.
            assert 0.0 < seconds <= cpu_s[number][node] + 0.05
    assert result.reporters("accuracy") == {1: [0, 1, 2, 3], 2: [0, 1, 2, 3]}


def test_a_node_that_crashes_for_good_is_told_of_and_the_others_finish(tmp_path: Path) -> None:
    result = run(tmp_path / "run", faults=[Crash(node=2, at_s=1.0)])

    assert result.document["status"] == "finished"
    assert result.told(EventKind.DEATH) == [2]
    assert result.reporters()[2] == [0, 1, 3]


def test_a_node_that_starts_again_goes_on_in_the_round_of_the_others(tmp_path: Path) -> None:
    faults: list[Fault] = [Crash(node=2, at_s=1.0), Restart(node=2, at_s=1.5)]

    result = run(tmp_path / "run", "run.rounds=4", faults=faults)

    assert (result.told(EventKind.DEATH), result.told(EventKind.JOIN)) == ([2], [2])
    assert result.reporters()[4] == [0, 1, 2, 3]
    last = result.metrics.by_round("accuracy")[4]
    assert max(last.values()) - min(last.values()) < 0.15


def test_a_cut_network_is_told_of_and_heals(tmp_path: Path) -> None:
    result = run(tmp_path / "run", faults=[Partition(groups=((0, 1),), at_s=0.5, until_s=1.0)])

    assert result.told(EventKind.LINK) == [None]
    assert result.reporters() == {1: [0, 1, 2, 3], 2: [0, 1, 2, 3]}


def test_a_training_that_diverges_is_noted_and_the_round_goes_on(tmp_path: Path) -> None:
    result = run(tmp_path / "run", "learning.learning_rate=90", "run.rounds=1")

    notes = [event.text for event in result.events if event.kind is EventKind.NOTE]
    assert notes
    assert all(note.startswith("training failed: ") for note in notes)
    assert result.reporters() == {1: [0, 1, 2, 3]}


@pytest.mark.parametrize("kind", ["label_flip", "gaussian"])
def test_attackers_train_otherwise_and_nobody_else_does(kind: str, tmp_path: Path) -> None:
    honest = run(tmp_path / "honest", "run.rounds=1")

    attacked = run(tmp_path / "attacked", "run.rounds=1", f"attack.kind={kind}", "attack.chosen=[1]")

    before, after = (result.metrics.by_round("train_loss")[1] for result in (honest, attacked))
    assert attacked.told(EventKind.ATTACK) == [1]
    assert {node for node in range(4) if node != 1 and before[node] != after[node]} == set()
    # Flipped labels are trained on; noise is added to what was trained.
    assert (before[1] != after[1]) is (kind == "label_flip")


def test_a_run_is_taken_up_without_those_who_have_left_and_with_those_who_are_still_to_come(tmp_path: Path) -> None:
    path = tmp_path / "run"
    churn = ["topology.exit=[{node=0,round=1}]", "topology.join=[{node=3,round=3}]"]
    scenario = scenario_of("simulation", "run.rounds=3", "topology.nodes=5", *churn)
    with pytest.raises(KeyboardInterrupt):
        conduct(
            scenario,
            directory=create_run(scenario, path),
            backend=SimulationBackend(inline=True),
            watchers=[Impatient(round_number=2)],
        )

    run = take_up_in("simulation", path)

    assert run.reporters() == {1: [0, 1, 2, 4], 2: [1, 2, 4], 3: [1, 2, 3, 4]}
    assert run.told(EventKind.JOIN) == [3]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here, and it would be used")
def test_a_gpu_that_is_not_there_is_said_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="PyTorch sees no GPU"):
        run(tmp_path / "run", "learning.device=cuda", processes=2)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_auto_is_the_cpu(tmp_path: Path) -> None:
    here, chosen = (run(tmp_path / device, "run.rounds=1", f"learning.device={device}") for device in ("cpu", "auto"))

    assert rows(here) == rows(chosen)
