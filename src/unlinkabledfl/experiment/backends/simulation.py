"""The virtual world as a backend: all participants in this process, their learners in a pool, and no waiting.

    new --run----------------------> running
    running --all nodes are done---> over
    running --Ctrl-C, or an error--> over

The world runs in steps, between which gauges are read, newcomers enter and models are saved. With a stated
`learning.training_time_s` the same scenario gives the same figures, whatever the machine and however many processes
train; what a step is changes nothing.

Invariant: whichever way a run ends, the pool is gone and the last models are in the directory.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, assert_never

from unlinkabledfl.errors import LocalProtocolError
from unlinkabledfl.experiment.assembly import VirtualNodes
from unlinkabledfl.experiment.backends.learner_pool import InlinePool, LearnerPool, ProcessPool
from unlinkabledfl.experiment.backends.protocol import Job
from unlinkabledfl.experiment.backends.virtual_learning import VirtualLearning
from unlinkabledfl.experiment.planning import ExperimentPlan, plan_experiment
from unlinkabledfl.experiment.records import EventKind
from unlinkabledfl.experiment.scenario import Links
from unlinkabledfl.experiment.tasks import EVERY_NODE
from unlinkabledfl.experiment.tracing.logs import Logs, WorldLog
from unlinkabledfl.node.events import Ending, Finished, PhaseChanged, RoundFinished
from unlinkabledfl.node.learner import Metrics, State
from unlinkabledfl.node.participant import Participant
from unlinkabledfl.simulation import Fault, LinkPlan, LinkSettings, Training, Watch, World, collector_paused
from unlinkabledfl.simulation.faults import Crash, Partition, Restart
from unlinkabledfl.sphinx import Entropy

__all__ = ["SimulationBackend"]

_STEP_S: Final = 1.0
_GPUS: Final = (Path("/dev/nvidiactl"), Path("/dev/kfd"))
"""What drivers of GPUs put there: NVIDIA's and AMD's."""
_SAVE_EVERY_S: Final = 60.0


class SimulationBackend:
    """Runs scenarios in virtual time. `processes` train, by default one for each core; `inline` trains in this one.

    `faults` crash and restart nodes, or cut the network; `watch` looks on, as an adversary may.
    """

    def __init__(
        self,
        *,
        processes: int = 0,
        inline: bool = False,
        faults: Sequence[Fault] = (),
        watch: Watch | None = None,
    ) -> None:
        self._processes = processes
        self._inline = inline
        self._faults = tuple(faults)
        self._watch = watch or Watch()

    def run(self, job: Job) -> None:
        """Let all nodes do their rounds."""
        plan = plan_experiment(job.scenario, begins=job.first_round)
        pool = self._pool(plan, job)
        run: _Run | None = None
        try:
            initial = pool.start()
            run = _Run(job, plan, pool, initial=initial, faults=self._faults, watch=self._watch)
            with collector_paused():
                run.to_the_end()
        finally:
            pool.close()
            if run is not None:
                run.close()
                run.save_models()

    def _pool(self, plan: ExperimentPlan, job: Job) -> LearnerPool:
        settings = plan.every_node_learners
        device = job.scenario.learning.device
        # A GPU is used best by one process. Asking PyTorch for one would load it here, where nothing else needs it.
        if self._inline or device == "cuda" or (device == "auto" and any(path.exists() for path in _GPUS)):
            return InlinePool(EVERY_NODE, settings)

        def restarted(text: str) -> None:
            job.recorder.event(time_s=0.0, node=None, kind=EventKind.NOTE, text=text)

        return ProcessPool(EVERY_NODE, settings, processes=self._processes, restarted=restarted)


class _Run:
    """One run: the world, and who listens to it."""

    def __init__(
        self,
        job: Job,
        plan: ExperimentPlan,
        pool: LearnerPool,
        *,
        initial: State,
        faults: Sequence[Fault],
        watch: Watch,
    ) -> None:
        scenario = job.scenario
        first = job.first_round
        self._recorder = job.recorder
        self._directory = job.directory
        self._plan = plan
        self._done: dict[int, tuple[int, State]] = {}  # the last round of each node, and its model then
        self._saved: dict[int, int] = {}
        self._ended_at_s: dict[tuple[int, int], float] = {}  # when the rounds of nodes ended
        self._evaluated: dict[tuple[int, int], Metrics] = {}
        self._furthest = first
        self._over: set[int] = set()
        self._waiting = {node for node in plan.absent if plan.first_round(node) > first}
        self._cpu_mark_s = time.process_time()
        self._cpu_world_s = 0.0
        self._cpu_taken_s: dict[int, float] = {}
        self._faults = sorted(faults, key=lambda fault: fault.at_s)
        models = {node: initial for node in range(plan.nodes)}
        models |= {node: checkpoint.state for node, checkpoint in job.checkpoints.items()}
        self._learning = VirtualLearning(
            pool, models=models, training_time_s=scenario.learning.training_time_s, note=self._note
        )
        self._logs: Logs | None = None
        traced: WorldLog | None = None
        if job.trace is not None:
            if watch.observer is not None:
                raise LocalProtocolError("a world that is traced has its observer")
            self._logs = job.trace.open()
            traced = WorldLog(plan.node_ids, self._logs)
            watch = replace(watch, observer=traced)
        nodes = VirtualNodes(plan, first_round=first, journal=None if traced is None else traced.journal)
        self._nodes = nodes
        self.world = World(
            node_ids=plan.node_ids,
            factory=self._make,
            topology=plan.topology,
            packet_bytes=nodes.packets.packet_bytes,
            seed=scenario.run.seed,
            links=_links(scenario.links),
            faults=faults,
            watch=watch,
            training=Training(learning=self._learning, listener=self._heard, absent=plan.absent),
        )

    def to_the_end(self) -> None:
        """Let time pass until every node that is there is done, and nobody is to come."""
        interval_s = self._plan.scenario.monitoring.gauges_interval_s
        step_s = interval_s or _STEP_S
        saved_at_s = time.perf_counter()
        self._introduce()
        steps = 0
        while not self._is_over():
            steps += 1
            self.world.advance(steps * step_s)
            self._tell_faults()
            self._record_evaluations()
            if interval_s:
                self._read_gauges()
            if time.perf_counter() - saved_at_s > _SAVE_EVERY_S:
                self.save_models()
                saved_at_s = time.perf_counter()
        self._record_evaluations(wait=True)

    def close(self) -> None:
        """Write down what is left of the trace."""
        if self._logs is not None:
            self._logs.close()
            if self._logs.problem is not None:
                text = f"the trace ends early: {self._logs.problem}"
                self._recorder.event(time_s=self.world.now_s, node=None, kind=EventKind.NOTE, text=text)

    def save_models(self) -> None:
        """Write the models of the last rounds that were finished since the last time."""
        for node, (round_number, state) in list(self._done.items()):
            if self._saved.get(node) != round_number:
                self._directory.save_checkpoint(node, round_number=round_number, state=state)
                self._saved[node] = round_number

    def _make(self, *, index: int, serial: int, entropy: Entropy) -> Participant:
        """Put a participant together; one that was restarted goes on in the round that the others are in."""
        return self._nodes.make(
            index,
            state=self._learning.models[index],
            entropy=entropy,
            first_round=self._furthest if serial else None,
            serial=serial,
        )

    # -------------------------------------------------------------------------------------------- what nodes tell

    def _heard(self, at_s: float, node: int, event: PhaseChanged | RoundFinished | Finished) -> None:
        match event:
            case PhaseChanged():
                if event.round_number > self._furthest:
                    self._furthest = event.round_number
                    self._bring_in(at_s)
                self._recorder.phase(time_s=at_s, round_number=event.round_number, node=node, phase=event.phase)
            case RoundFinished():
                self._ended_at_s[node, event.round_number] = at_s
                self._done[node] = (event.round_number, self._learning.models[node])
                self._recorder.record(
                    time_s=at_s,
                    round_number=event.round_number,
                    node=node,
                    metrics={**event.metrics, **self._cpu_of(node)},
                )
            case Finished():
                self._over.add(node)
                if event.ending is Ending.EXIT:
                    self._recorder.event(time_s=at_s, node=node, kind=EventKind.EXIT, text="left as scheduled")
            case _:
                assert_never(event)

    def _record_evaluations(self, *, wait: bool = False) -> None:
        """Record what has been evaluated meanwhile, at the virtual instant to which it belongs."""
        for found in self._learning.take_evaluations(wait=wait):
            self._evaluated[found.node, found.round_number] = found.metrics
        for key in [key for key in self._evaluated if key in self._ended_at_s]:
            node, round_number = key
            metrics, at_s = self._evaluated.pop(key), self._ended_at_s.pop(key)
            self._recorder.record(time_s=at_s, round_number=round_number, node=node, metrics=metrics)

    def _note(self, node: int, text: str) -> None:
        self._recorder.event(time_s=self.world.now_s, node=node, kind=EventKind.NOTE, text=text)

    def _cpu_of(self, node: int) -> dict[str, float]:
        """The CPU time of the node's round: its learner's as measured, and an equal share of the world's."""
        now_s = time.process_time()
        running = max(1, self._plan.nodes - len(self._waiting))
        self._cpu_world_s += (now_s - self._cpu_mark_s) / running
        self._cpu_mark_s = now_s
        mix_s = self._cpu_world_s - self._cpu_taken_s.get(node, 0.0)
        self._cpu_taken_s[node] = self._cpu_world_s
        learner_s = self._learning.take_cpu_s(node)
        return {"cpu_s": mix_s + learner_s, "cpu_mix_s": mix_s, "cpu_learner_s": learner_s}

    # ----------------------------------------------------------------------------------------------- what happens

    def _introduce(self) -> None:
        attack = self._plan.scenario.attack.kind
        for node in self._plan.attackers:
            self._recorder.event(time_s=0.0, node=node, kind=EventKind.ATTACK, text=attack)

    def _bring_in(self, at_s: float) -> None:
        """Let those enter whose first round has begun somewhere."""
        for node in sorted(node for node in self._waiting if self._plan.first_round(node) <= self._furthest):
            self._waiting.discard(node)
            self._recorder.event(time_s=at_s, node=node, kind=EventKind.JOIN, text=f"for round {self._furthest}")
            self.world.enter(node)

    def _is_over(self) -> bool:
        living = (node for node in range(self._plan.nodes) if self.world.is_running(node))
        return not self._waiting and all(node in self._over for node in living)

    def _tell_faults(self) -> None:
        while self._faults and self._faults[0].at_s <= self.world.now_s:
            fault = self._faults.pop(0)
            node: int | None
            match fault:
                case Crash():
                    what, node, kind = "crashed", fault.node, EventKind.DEATH
                case Restart():
                    what, node, kind = "started again", fault.node, EventKind.JOIN
                    self._over.discard(fault.node)
                case Partition():
                    what, node, kind = f"the network is cut until {fault.until_s:g} s", None, EventKind.LINK
                case _:
                    assert_never(fault)
            self._recorder.event(time_s=fault.at_s, node=node, kind=kind, text=what)

    def _read_gauges(self) -> None:
        for index in range(self._plan.nodes):
            if self.world.is_running(index):
                gauges = self.world.node(index).gauges()
                self._recorder.record(time_s=self.world.now_s, round_number=None, node=index, metrics=gauges)


def _links(links: Links) -> LinkPlan:
    return LinkPlan(
        default=LinkSettings(
            latency_s=links.latency_s,
            jitter_s=links.jitter_s,
            bandwidth_bytes_per_s=links.bandwidth_bytes_per_s or None,
            loss=links.loss,
        )
    )
