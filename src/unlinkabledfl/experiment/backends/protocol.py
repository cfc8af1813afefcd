"""What a backend is: whoever lets the nodes of a scenario run, in whatever world.

    running --all nodes have done their rounds---> over
    running --Ctrl-C-----------------------------> KeyboardInterrupt, over
    running --it cannot go on--------------------> RunError, over

Whoever calls `run` has made the run's directory and the recorders, and says in the end how it went; a backend fills
them. The figures of a round are those of `RoundFinished`, with what only a driver knows: the node's CPU and memory.

Invariant: when `run` returns or raises, nothing that it started is left, and the models that the nodes had are in the
directory's checkpoints, so that the run can be taken up again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from unlinkabledfl.experiment.records import Checkpoint, Recorder, RunDirectory
from unlinkabledfl.experiment.scenario import Scenario
from unlinkabledfl.experiment.tracing.logs import TraceFolder

__all__ = ["Backend", "Job"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run, as a backend gets it."""

    scenario: Scenario
    directory: RunDirectory
    recorder: Recorder
    checkpoints: Mapping[int, Checkpoint] = field(default_factory=dict)
    """Where a run that is taken up goes on: the last models, by node."""
    trace: TraceFolder | None = None
    """Where to take down what crosses the links, if the scenario asks for it."""

    @property
    def first_round(self) -> int:
        """The first round that a node which has not left has not done: there all go on.

        Nobody sends old rounds again, so a node that lags behind the others would wait in vain.
        """
        topology = self.scenario.topology
        done = dict.fromkeys(range(topology.nodes), 0)
        done |= {event.node: event.round - 1 for event in topology.join}
        done |= {node: checkpoint.round_number for node, checkpoint in self.checkpoints.items()}
        for event in topology.exit:
            if done[event.node] >= event.round:
                del done[event.node]
        return 1 + min(done.values(), default=0)


class Backend(Protocol):
    """Runs a scenario. The protocol suite in tests/contract holds for each."""

    def run(self, job: Job) -> None:
        """Let all nodes do their rounds."""
        ...
