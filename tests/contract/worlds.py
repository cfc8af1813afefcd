"""One scenario run in one world, and what it left, for the suite that holds for all worlds."""

import math
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from unlinkabledfl.experiment.backends.container.backend import ContainerBackend
from unlinkabledfl.experiment.backends.process.backend import ProcessBackend
from unlinkabledfl.experiment.backends.protocol import Backend
from unlinkabledfl.experiment.backends.simulation import SimulationBackend
from unlinkabledfl.experiment.conduct import conduct, create_run, resume_run
from unlinkabledfl.experiment.records import Event, EventKind, MetricTable, Problems, RunDirectory, Status
from unlinkabledfl.experiment.scenario import Scenario, preset

WORLDS: Mapping[str, Callable[[], Backend]] = {
    "simulation": lambda: SimulationBackend(inline=True),
    "process": ProcessBackend,
    "container": ContainerBackend,
}

# One engine serves all tests with containers, so they run one after another in the same process.
CONTAINERS = pytest.mark.xdist_group("containers")


def enter(world: str, request: pytest.FixtureRequest) -> str:
    """Have what a world needs; skip where it cannot be had."""
    if world == "container":
        request.getfixturevalue("engine")
    return world


NODES = 4
ROUNDS = 3


def scenario_of(world: str, *overrides: str) -> Scenario:
    """Four nodes that learn enough in three rounds to be compared, over a mixnet that is quick and complete."""
    return preset(
        "demo",
        [
            f"run.backend={world}",
            f"run.rounds={ROUNDS}",
            f"topology.nodes={NODES}",
            "topology.degree=2",
            "learning.train_samples=1200",
            "learning.test_samples=500",
            "learning.training_time_s=0.3",
            "mixnet.delay_mean_s=0.05",
            "mixnet.emission_rate_per_s=20",
            "mixnet.path_length=2",
            "monitoring.gauges_interval_s=0.5",
            "container.root=host",
            "process.start_timeout_s=600",
            *overrides,
        ],
    )


@dataclass(frozen=True, slots=True)
class Run:
    """What a run left in its directory."""

    directory: RunDirectory
    document: Mapping[str, Any]
    metrics: MetricTable
    events: list[Event]

    @classmethod
    def of(cls, directory: RunDirectory) -> "Run":
        """Read it."""
        problems = Problems()
        run = cls(directory, directory.summary(), directory.metrics(problems), directory.events(problems))
        assert problems.sentences() == []
        return run

    def total(self, metric: str) -> int:
        """Add up what all nodes reported of all rounds."""
        nodes = self.metrics.by_round(metric).values()
        return round(math.fsum(value for by_node in nodes for value in by_node.values()))

    def reporters(self, metric: str = "round_s") -> dict[int, list[int]]:
        """Return who reported which round."""
        return {number: sorted(nodes) for number, nodes in self.metrics.by_round(metric).items()}

    def names(self) -> set[str]:
        """Return the metrics of rounds."""
        return {name for name in self.metrics.names if self.metrics.by_round(name)}

    def gauges(self) -> set[str]:
        """Return the metrics of moments."""
        return {name for name in self.metrics.names if self.metrics.samples(name)}

    def told(self, kind: EventKind) -> list[int | None]:
        """Return to which nodes something happened, in order."""
        return [event.node for event in self.events if event.kind is kind]


def run_in(world: str, path: Path, *overrides: str) -> Run:
    """Run the scenario from beginning to end."""
    scenario = scenario_of(world, *overrides)
    conduct(scenario, directory=create_run(scenario, path), backend=WORLDS[world]())
    return Run.of(RunDirectory.open(path))


def take_up_in(world: str, path: Path) -> Run:
    """Go on with a run."""
    scenario, directory = resume_run(path)
    conduct(scenario, directory=directory, backend=WORLDS[world]())
    return Run.of(RunDirectory.open(path))


class Impatient:
    """A watcher that presses Ctrl-C when the first node reports a round."""

    def __init__(self, round_number: int) -> None:
        self._round = round_number
        self._pressed = False

    def record(
        self, *, time_s: float, round_number: int | None, node: int | None, metrics: Mapping[str, float]
    ) -> None:
        if round_number == self._round and not self._pressed:
            self._pressed = True
            os.kill(os.getpid(), signal.SIGINT)

    def event(self, *, time_s: float, node: int | None, kind: EventKind, text: str) -> None:
        pass

    def phase(self, *, time_s: float, round_number: int, node: int, phase: str) -> None:
        pass

    def finish(self, status: Status, *, reason: str = "") -> None:
        pass
