"""The document of `bench runs` holds what it promises; here of one short run."""

import pytest

from benchmarks import runs
from unlinkabledfl.errors import ConfigError

TINY = (
    "demo", "run.backend=simulation", "topology.nodes=4", "topology.degree=2", "mixnet.path_length=2",
    "learning.train_samples=80", "learning.test_samples=50",
)  # fmt: skip


def test_a_run_is_measured_held_against_its_bars_and_extrapolated(monkeypatch: pytest.MonkeyPatch) -> None:
    bars = {"planned_wall_s": ("<", 1e-3), "completeness": ("≥", 1.0)}
    monkeypatch.setattr(runs, "STUDIES", {"tiny": runs.Study(TINY, bars, rounds=3)})

    document = runs.measure(rounds=1, runs=("tiny",))

    (found,) = document["runs"]
    assert {"machine", "versions", "seconds"} <= set(document)
    assert (found["name"], found["rounds"], found["planned_rounds"]) == ("tiny", 1, 3)
    assert found["planned_wall_s"] > found["wall_s"] > 0
    assert len(found["cpu_s_by_round"]) == 1
    assert [(bar["name"], bar["holds"]) for bar in found["bars"]] == [("planned_wall_s", False), ("completeness", True)]
    assert runs.render(document) is not None


def test_a_run_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match="--runs: got 'marathon', takes some of virtual-32, virtual-1000, real-32"):
        runs.measure(runs=("marathon",))
