"""Conduct a run: its directory, its records, the backend that lets it happen, and how it ended.

    new --create---------------------------------> running
    interrupted --resume-------------------------> running
    failed --resume------------------------------> running
    running --the backend returns----------------> finished
    running --Ctrl-C-----------------------------> KeyboardInterrupt, interrupted
    running --the backend fails------------------> UnlinkableError, failed

Invariant: whatever happens, the directory says in the end how the run stands, and holds all figures until then.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unlinkabledfl.errors import UnlinkableError
from unlinkabledfl.experiment.backends.process.lifeline import check_cores
from unlinkabledfl.experiment.backends.protocol import Backend, Job
from unlinkabledfl.experiment.planning import plan_experiment
from unlinkabledfl.experiment.records import (
    EventKind,
    Fanout,
    Recorder,
    RunDescription,
    RunDirectory,
    RunRecorder,
    Status,
)
from unlinkabledfl.experiment.scenario import Scenario, parse_scenario, to_toml
from unlinkabledfl.experiment.scenario.learning import BUILT_IN_LEARNER
from unlinkabledfl.experiment.tracing.logs import TraceFolder
from unlinkabledfl.experiment.tracing.recording import begin_trace, check_trace, keep_trace
from unlinkabledfl.learning import datasets

__all__ = ["conduct", "create_run", "resume_run"]


def create_run(scenario: Scenario, out: Path) -> RunDirectory:
    """Make the directory of a new run, unless it is plain already that there can be none."""
    topology = plan_experiment(scenario).topology
    check_trace(scenario)
    if scenario.run.backend == "process":
        check_cores(scenario.process.cores, key="process.cores")
    if scenario.learning.factory == BUILT_IN_LEARNER:
        # A dataset that is missing or damaged is found here, and not by every process that wants to train.
        datasets.load(scenario.learning.dataset)
    edges = ((one, other) for one in range(topology.nodes) for other in topology.neighbours(one) if one < other)
    description = RunDescription(
        run=scenario.run.name,
        backend=scenario.run.backend,
        nodes=scenario.topology.nodes,
        planned_rounds=scenario.run.rounds,
        seed=scenario.run.seed,
    )
    return RunDirectory.create(out, scenario_toml=to_toml(scenario), description=description, edges=edges)


def resume_run(path: Path) -> tuple[Scenario, RunDirectory]:
    """Take up a run that was interrupted or failed: the scenario is the one that it began with."""
    directory = RunDirectory.resume(path)
    try:
        return parse_scenario(directory.scenario_toml(), origin=str(directory.scenario_path)), directory
    except BaseException:
        directory.release()
        raise


def conduct(
    scenario: Scenario, *, directory: RunDirectory, backend: Backend, watchers: Sequence[Recorder] = ()
) -> dict[str, Any]:
    """Run it from where it stands to its end, and return the document that sums it up."""
    checkpoints = {node: directory.checkpoint(node) for node in directory.checkpointed_nodes()}
    records = RunRecorder(directory)
    recorder = Fanout([records, *watchers])
    trace = begin_trace(scenario, directory.path)
    job = Job(scenario=scenario, directory=directory, recorder=recorder, checkpoints=checkpoints, trace=trace)
    try:
        try:
            backend.run(job)
        finally:
            if trace is not None:
                _keep(trace, job)
    except KeyboardInterrupt:
        recorder.finish(Status.INTERRUPTED, reason="interrupted by its operator")
        raise
    except UnlinkableError as error:
        recorder.finish(Status.FAILED, reason=str(error))
        raise
    except BaseException as error:
        recorder.finish(Status.FAILED, reason=f"{type(error).__name__}: {error}")
        raise
    recorder.finish(Status.FINISHED)
    return records.document()


def _keep(trace: TraceFolder, job: Job) -> None:
    """Make files of the trace; a run is no failure because its trace cannot be written."""
    try:
        text = keep_trace(job.scenario, trace, job.directory.path).sentence()
    except (OSError, UnlinkableError) as error:
        text = f"the trace was not written: {error}; its logs are in {trace.path.name}/"
    job.recorder.event(time_s=0.0, node=None, kind=EventKind.NOTE, text=text)
