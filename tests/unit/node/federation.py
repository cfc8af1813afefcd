"""Participants with real learners in a virtual world, and everything they said."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tests.unit.node.learners import SoftmaxLearner, blank_model
from unlinkabledfl.mixnet.config import MixSettings
from unlinkabledfl.mixnet.mixers import MixerSettings, OffSettings, PoissonSettings
from unlinkabledfl.mixnet.peers import PeerSettings
from unlinkabledfl.mixnet.topology import Topology, circulant
from unlinkabledfl.node.events import Finished, PhaseChanged, RoundFinished
from unlinkabledfl.node.learner import State
from unlinkabledfl.node.participant import Participant
from unlinkabledfl.node.settings import Exchange, ParticipantSettings, PayloadSettings, RoundSettings
from unlinkabledfl.simulation import Fault, LinkPlan, LinkSettings, Outcome, SealedPackets, Training, World
from unlinkabledfl.simulation.mixnet import Mixnet, MixnetPlan, RouteName
from unlinkabledfl.sphinx import Entropy, Geometry

if TYPE_CHECKING:
    from unlinkabledfl.node.ledger import Totals

FAST = PoissonSettings(delay_mean_s=0.05, emission_rate_per_s=20.0, loop_rate_per_s=1.0)
OFF = OffSettings()
SMALL = Geometry(max_hops=3, body_bytes=1200)


@dataclass(frozen=True, slots=True)
class Task:
    result: Outcome
    duration_s: float
    least_s: float = 0.0

    def outcome(self) -> Outcome:
        return self.result

    def abandon(self) -> None:
        pass


@dataclass(slots=True)
class Class:
    """Trains the models of all nodes, at once, in the stated virtual time."""

    learners: Sequence[SoftmaxLearner]
    train_s: Callable[[int, int], float]
    failing: Callable[[int, int], bool] = lambda _node, _round: False

    def train(self, *, node: int, round_number: int) -> Task:
        takes_s = self.train_s(node, round_number)
        if self.failing(node, round_number):
            return Task(Outcome(metrics={}, failure="out of memory"), takes_s)
        metrics = self.learners[node].train(round_number)
        return Task(Outcome(metrics=metrics, state=self.learners[node].state()), takes_s)

    def adopt(self, *, node: int, round_number: int, state: State, evaluate: bool) -> Task | None:
        self.learners[node].load(state)
        return Task(Outcome(metrics=self.learners[node].evaluate()), 0.2) if evaluate else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a federation of these tests consists of; everybody has these settings but the `unlike`."""

    nodes: int = 8
    degree: int = 4
    settings: ParticipantSettings = field(default_factory=lambda: rounds_of(3))
    unlike: Mapping[int, ParticipantSettings] = field(default_factory=dict)
    mixer: MixerSettings = FAST
    route: RouteName = RouteName.OVERLAY
    path_length: int = 2
    max_attempts: int = 8
    links: LinkSettings = field(default_factory=lambda: LinkSettings(latency_s=0.02))
    faults: Sequence[Fault] = ()
    absent: Collection[int] = ()
    foreseen: bool = False
    """Whether everybody knows from the start who is absent."""
    train_s: Callable[[int, int], float] = lambda node, _round: 1.0 + 0.1 * node
    failing: Callable[[int, int], bool] = lambda _node, _round: False
    peers: PeerSettings = field(default_factory=PeerSettings)
    states: Mapping[int, State] = field(default_factory=dict)
    """What nodes begin with, where it is not the blank model."""


class Federation:
    """A world of participants. Partners are those within two steps, or those that walks can reach."""

    def __init__(self, plan: Plan, *, seed: int = 1) -> None:
        self.plan = plan
        topology = circulant(plan.nodes, plan.degree)
        packets = SealedPackets(SMALL)
        mix = MixSettings(mixer=plan.mixer, epoch_length_s=None, max_attempts=plan.max_attempts)
        self._mixnet = Mixnet(
            MixnetPlan(
                topology=topology,
                packets=packets,
                mix=mix,
                route=plan.route,
                path_length=plan.path_length,
                peers=plan.peers,
            ),
            seed=seed,
        )
        self._packets = packets
        self.packet_bytes = packets.packet_bytes
        self.ids = self._mixnet.node_ids
        self.partners = [self._partners(topology, index) for index in range(plan.nodes)]
        self.learners = [SoftmaxLearner(index) for index in range(plan.nodes)]
        for index, state in plan.states.items():
            self.learners[index].load(state)
        self.reports: dict[int, dict[int, Mapping[str, float]]] = defaultdict(dict)
        self.ended_s: dict[int, dict[int, float]] = defaultdict(dict)
        self.phases: dict[int, list[tuple[int, str]]] = defaultdict(list)
        self.finished: dict[int, str] = {}
        self.totals: dict[int, Totals] = {}
        learning = Class(self.learners, plan.train_s, plan.failing)
        self.world = World(
            node_ids=self.ids,
            factory=self.make,
            topology=topology,
            packet_bytes=packets.packet_bytes,
            seed=seed,
            links=LinkPlan(default=plan.links),
            faults=plan.faults,
            training=Training(learning=learning, listener=self._hear, absent=plan.absent),
        )

    def participant(self, index: int) -> Participant:
        node: Participant = self.world.node(index)
        return node

    def run_until_finished(self, *, but: Collection[int] = (), limit_s: float = 3_600.0, step_s: float = 5.0) -> None:
        """Run until all others have said that they have finished."""
        missing = set(range(self.plan.nodes)) - set(but)
        while missing := missing - set(self.finished):
            assert self.world.now_s < limit_s, f"{sorted(missing)} have not finished"
            self.world.run_for(step_s)

    def metric(self, name: str, *, of: Collection[int] | None = None) -> dict[tuple[int, int], float]:
        """Return (node, round) -> value."""
        nodes = range(self.plan.nodes) if of is None else of
        return {(node, number): report[name] for node in nodes for number, report in sorted(self.reports[node].items())}

    def _partners(self, topology: Topology, index: int) -> Sequence[int]:
        if self.plan.route is not RouteName.OVERLAY:
            return self._mixnet.destinations_of(index)
        distances = topology.distances_from(index)
        return [other for other, distance in enumerate(distances) if 1 <= distance <= 2]

    def make(self, *, index: int, serial: int, entropy: Entropy) -> Participant:
        partners = tuple(self.ids[other] for other in self.partners[index])
        absent = tuple(self.ids[other] for other in self.partners[index] if other in self.plan.absent)
        return Participant(
            mix=self._mixnet(index=index, serial=serial, entropy=entropy),
            packets=self._packets,
            settings=self.plan.unlike.get(index, self.plan.settings),
            exchange=Exchange(
                destinations=partners, expected_from=partners, absent=absent if self.plan.foreseen else ()
            ),
            state=self.plan.states.get(index, blank_model()),
            entropy=entropy,
        )

    def _hear(self, at_s: float, node: int, event: PhaseChanged | RoundFinished | Finished) -> None:
        match event:
            case PhaseChanged():
                self.phases[node].append((event.round_number, event.phase))
            case RoundFinished():
                assert event.round_number not in self.reports[node]
                self.reports[node][event.round_number] = event.metrics
                self.ended_s[node][event.round_number] = at_s
            case Finished():
                self.finished[node] = event.ending
                self.totals[node] = self.participant(node).totals


def rounds_of(rounds: int, *, payload: PayloadSettings | None = None, **options: object) -> ParticipantSettings:
    """Settings for so many rounds; a payload of several ranges that no compression makes smaller."""
    settings = RoundSettings(rounds=rounds)
    return ParticipantSettings(
        rounds=replace(settings, **options),  # type: ignore[arg-type]
        payload=payload or PayloadSettings(codec="f32"),
    )
