"""The real world as a backend: a plan of the scenario, and a launcher that runs it on this host."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from unlinkabledfl.experiment.backends.process.forks import Forks, Program
from unlinkabledfl.experiment.backends.process.hosts import Hosts, NodeLaunch, Processes
from unlinkabledfl.experiment.backends.process.launcher import Launcher
from unlinkabledfl.experiment.backends.process.lifeline import available_cores, check_cores
from unlinkabledfl.experiment.backends.process.messages import Configure
from unlinkabledfl.experiment.backends.process.supervisor import SupervisorSettings
from unlinkabledfl.experiment.backends.protocol import Job
from unlinkabledfl.experiment.planning import ExperimentPlan, local_hosting, plan_experiment
from unlinkabledfl.experiment.records import EventKind
from unlinkabledfl.experiment.records.checkpoints import checkpoint_path
from unlinkabledfl.experiment.scenario.learning import BUILT_IN_LEARNER
from unlinkabledfl.experiment.tasks import PREPARE

__all__ = ["ProcessBackend", "launcher_of", "lead", "node_launches"]

_STOP_S: Final = 5.0
_STOP_S_PER_NODE: Final = 0.05


class ProcessBackend:
    """Real nodes, a mix process and a learner process each, over loopback or the address that the scenario names."""

    def __init__(self) -> None:
        self._launcher: Launcher | None = None

    @property
    def processes(self) -> Mapping[int, Processes]:
        """The processes of each node, while they live."""
        return {} if self._launcher is None else self._launcher.processes

    def run(self, job: Job) -> None:
        """Run all rounds, and return when the last process has ended."""
        scenario = job.scenario
        plan = plan_experiment(scenario, hosting=local_hosting(scenario))
        launches = node_launches(plan, job)
        hosts = Forks(launches, program=Program(prepare_learners=_shared_by_learners(plan)))
        self._launcher = launcher_of(plan, job, launches=launches, hosts=hosts)
        lead(self._launcher, job)


def _shared_by_learners(plan: ExperimentPlan) -> dict[str, object]:
    """What the forkserver of learners does first: for the built-in one, read the data and divide it."""
    learner = plan.node(0).learner
    return {PREPARE: learner.settings} if learner.factory == BUILT_IN_LEARNER else {}


def launcher_of(plan: ExperimentPlan, job: Job, *, launches: Sequence[NodeLaunch], hosts: Hosts) -> Launcher:
    """Return what leads these nodes, after noting who of them attacks."""
    scenario = plan.scenario
    for node in plan.attackers:
        job.recorder.event(time_s=0.0, node=node, kind=EventKind.ATTACK, text=scenario.attack.kind)
    return Launcher(
        launches,
        hosts=hosts,
        recorder=job.recorder,
        settings=SupervisorSettings(
            start_timeout_s=scenario.process.start_timeout_s,
            # A hundred nodes on two cores cannot all close within the time that one takes.
            stop_timeout_s=_STOP_S + _STOP_S_PER_NODE * plan.nodes,
        ),
        turns=scenario.process.workers or len(scenario.process.cores or available_cores()),
    )


def lead(launcher: Launcher, job: Job) -> None:
    """Run to the end, and say when it began to whoever merges the logs of nodes."""
    try:
        asyncio.run(launcher.run())
    finally:
        if job.trace is not None:
            job.trace.begun(launcher.begun_at_s or 0.0)


def node_launches(plan: ExperimentPlan, job: Job) -> list[NodeLaunch]:
    """Return what each node is started with."""
    asked = plan.scenario.process.cores
    check_cores(asked, key="process.cores")
    cores = asked or sorted(available_cores())
    pins = plan.scenario.process.pin or bool(asked)
    launches = []
    for index, config in enumerate(plan):
        checkpoint = checkpoint_path(job.directory.path / "checkpoints", index).absolute()
        launches.append(
            NodeLaunch(
                node_id=config.node_id,
                configure=Configure(
                    config=config.to_json().decode(),
                    checkpoint=str(checkpoint),
                    resumes=index in job.checkpoints,
                    first_round=job.first_round,
                    trace="" if job.trace is None else str(job.trace.path.absolute()),
                    trace_crossings=0 if job.trace is None else job.trace.most,
                ),
                log=job.directory.log_path(index),
                first_round=config.schedule.first_round if config.schedule.first_round > job.first_round else 1,
                core=cores[index % len(cores)] if pins else None,
            )
        )
    return launches
