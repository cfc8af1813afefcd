"""Run a scenario with real nodes and tell on stdout, a JSON object a line, what its recorder hears.

python -m tests.e2e.run_and_tell OUT [KEY=VALUE ...]
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unlinkabledfl.cli.exit_codes import ExitCode
from unlinkabledfl.cli.run import _terminated_like_interrupted
from unlinkabledfl.errors import UnlinkableError
from unlinkabledfl.experiment.backends.process.backend import ProcessBackend
from unlinkabledfl.experiment.conduct import conduct, create_run
from unlinkabledfl.experiment.records import EventKind, Status
from unlinkabledfl.experiment.scenario import preset

SMALL = (
    "run.backend=process",
    "topology.nodes=4",
    "topology.degree=2",
    "mixnet.delay_mean_s=0.02",
    "mixnet.emission_rate_per_s=40",
    "mixnet.path_length=2",
    "learning.factory=tests.e2e.vector_learner:VectorLearner",
    "monitoring.gauges_interval_s=0.5",
)


class Teller:
    """A recorder that prints."""

    def __init__(self, backend: ProcessBackend) -> None:
        self._backend = backend

    def record(
        self, *, time_s: float, round_number: int | None, node: int | None, metrics: Mapping[str, float]
    ) -> None:
        what = "round" if round_number is not None else "gauges"
        self._tell(what=what, round=round_number, node=node, metrics=dict(metrics), processes=self._processes())

    def event(self, *, time_s: float, node: int | None, kind: EventKind, text: str) -> None:
        self._tell(what="event", node=node, kind=kind.value, text=text)

    def phase(self, *, time_s: float, round_number: int, node: int, phase: str) -> None:
        self._tell(what="phase", round=round_number, node=node, phase=phase, processes=self._processes())

    def finish(self, status: Status, *, reason: str = "") -> None:
        self._tell(what="finish", status=status.value, reason=reason)

    def _processes(self) -> dict[int, tuple[int | None, int | None]]:
        nodes = self._backend.processes
        return {index: (node.mix, node.learner[0] if node.learner else None) for index, node in nodes.items()}

    @staticmethod
    def _tell(**line: Any) -> None:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


def main() -> int:
    scenario = preset("demo", (*SMALL, *sys.argv[2:]))
    directory = create_run(scenario, Path(sys.argv[1]))
    backend = ProcessBackend()
    try:
        with _terminated_like_interrupted():
            conduct(scenario, directory=directory, backend=backend, watchers=[Teller(backend)])
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except UnlinkableError:
        return ExitCode.FAILED
    finally:
        directory.release()
    return ExitCode.OK


if __name__ == "__main__":
    sys.exit(main())
