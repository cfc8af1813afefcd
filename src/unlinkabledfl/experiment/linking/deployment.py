"""A deployment under attack, and its recording.

The traffic is that of training without the training: in every round each node has so many fragments for each of its
partners, as soon as they are trained, which is about when the others are; its mixer takes them at its pace. Packets are
sealed by convention instead of cryptography: an adversary sees their times, edges and hashes either way.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean

import numpy as np

from unlinkabledfl.analysis.recorder import TraceRecorder
from unlinkabledfl.analysis.trace import Indices, PublicSettings, Recording
from unlinkabledfl.experiment.translation import outbox_share
from unlinkabledfl.mixnet.config import MixSettings
from unlinkabledfl.mixnet.mixers import MixerSettings, OffSettings, OutboxSettings, PoissonSettings
from unlinkabledfl.mixnet.topology import Topology, circulant
from unlinkabledfl.simulation import (
    Fault,
    LinkPlan,
    LinkSettings,
    MessageRecord,
    SealedPackets,
    Watch,
    chances,
    collector_paused,
    draw_churn,
)
from unlinkabledfl.simulation.log import hash_of
from unlinkabledfl.simulation.mixnet import MixnetPlan, RouteName, build_mixnet_world, node_names
from unlinkabledfl.sphinx import Geometry

_ROUTES = {
    "direct": RouteName.OVERLAY,
    "overlay": RouteName.OVERLAY,
    "walk": RouteName.WALK,
    "walk_up_to": RouteName.WALK_UP_TO,
}
_DRAIN_ROUNDS = 1.0
_LEAST_HOPS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What is attacked."""

    name: str
    route: str
    path_length: int
    mixer: MixerSettings
    fragments: int
    """How many a partner and round."""
    rounds: int
    round_s: float
    warm_up_s: float = 30.0
    spread_s: float = 2.0
    """Within which all nodes finish training."""
    nodes: int = 32
    degree: int = 4
    crashes: int = 0
    """How many nodes go away at a random moment of the rounds, and come back half a round later."""
    exchange_hops: int = 2
    """Whom direct delivery writes to."""
    links: LinkSettings = field(default_factory=lambda: LinkSettings(latency_s=0.02, jitter_s=0.005))

    @property
    def end_s(self) -> float:
        """When the recording ends: the last round, and the time that its packets need."""
        return self.warm_up_s + (self.rounds + _DRAIN_ROUNDS) * self.round_s

    @property
    def packets_per_s(self) -> float:
        """About how many packets a node sends, cover included: what a recording costs."""
        match self.mixer:
            case PoissonSettings(emission_rate_per_s=emission, loop_rate_per_s=loop):
                return (2.0 * emission + loop) * self.path_length
            case OutboxSettings(delay_mean_s=gap_s, cover=True):
                return 1.0 / gap_s
            case _:
                return self.path_length * self.fragments

    def handed_over_s(self, place: int) -> float:
        """Return how long after training the fragment at this place goes to the mixer: an outbox takes so many a cycle.

        `experiment.translation.outbox_share` says why.
        """
        if not isinstance(self.mixer, OutboxSettings):
            return 0.0
        cycles = place // outbox_share(self.mixer.outbox_size, hops=self.path_length)
        return cycles * self.mixer.outbox_size * self.mixer.delay_mean_s

    def topology(self) -> Topology:
        """Return its graph."""
        return circulant(self.nodes, self.degree)

    def destinations(self) -> tuple[tuple[int, ...], ...]:
        """Return to whom every node writes: all whom its routes lead to."""
        graph = self.topology()
        match self.route:
            case "overlay":
                return tuple(tuple(other for other in range(self.nodes) if other != node) for node in range(self.nodes))
            case "walk":
                return tuple(graph.reach_exactly(node, self.path_length) for node in range(self.nodes))
            case "walk_up_to":
                return tuple(graph.reach_within(node, self.path_length) for node in range(self.nodes))
            case _:
                return tuple(graph.reach_within(node, self.exchange_hops) for node in range(self.nodes))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recorded:
    """A deployment's recording, and what it cost."""

    recording: Recording
    groups: Indices
    """For every target, which others belong to the same model: same sender, destination and round."""
    delivery_s_mean: float
    """From the moment a fragment is ready to its arrival, waiting for a slot included."""
    rtt_s_mean: float | None
    """From its leaving to its acknowledgement."""
    bytes_per_node_round: float
    exchange_s_mean: float | None
    """From the end of a node's training until the last of its fragments is acknowledged and the last for it is here."""


def record(deployment: Deployment, *, seed: int) -> Recorded:
    """Run the deployment and take down all that crosses its links."""
    topology, destinations = deployment.topology(), deployment.destinations()
    # A loop takes one hop more than an odd path where the graph has no odd cycle: room for it is left in any case.
    packets = SealedPackets(Geometry(max_hops=max(_LEAST_HOPS, deployment.path_length + deployment.path_length % 2)))
    settings = PublicSettings(
        topology=topology,
        route=deployment.route,
        path_length=deployment.path_length,
        mixer=deployment.mixer,
        destinations=destinations,
        own_rate_per_s=own_rate_per_s(deployment.mixer),
    )
    recorder = TraceRecorder(settings, node_names(seed, deployment.nodes), digest=hash_of)
    plan = MixnetPlan(
        topology=topology,
        packets=packets,
        mix=MixSettings(mixer=deployment.mixer, epoch_length_s=None),
        route=_ROUTES[deployment.route],
        path_length=1 if deployment.route == "direct" else deployment.path_length,
        journal=recorder.journal,
    )
    world, _ = build_mixnet_world(
        plan,
        seed=seed,
        links=LinkPlan(default=deployment.links),
        faults=_faults(deployment, seed=seed),
        watch=Watch(observer=recorder),
    )
    luck = chances(seed, "rounds")
    data = bytes(packets.data_bytes)
    for number in range(deployment.rounds):
        for node, partners in enumerate(destinations):
            at_s = deployment.warm_up_s + number * deployment.round_s + luck.uniform(0.0, deployment.spread_s)
            wanted = [partner for partner in partners for _ in range(deployment.fragments)]
            luck.shuffle(wanted)
            for place, partner in enumerate(wanted):
                world.send(node, partner, data, at_s=at_s + deployment.handed_over_s(place))
    with collector_paused():
        result = world.run_until(deployment.end_s)
    recording = recorder.recording(from_s=deployment.warm_up_s)
    trips = [message.round_trip_s for message in result.messages if message.round_trip_s is not None]
    delays = result.delays_s()
    rounds_run = (deployment.end_s - deployment.warm_up_s) / deployment.round_s
    sent = int((recording.crossings.left_at_s >= deployment.warm_up_s).sum()) * packets.packet_bytes
    return Recorded(
        recording=recording,
        groups=_groups(recording, deployment),
        delivery_s_mean=fmean(delays) if delays else 0.0,
        rtt_s_mean=fmean(trips) if trips else None,
        bytes_per_node_round=sent / deployment.nodes / rounds_run,
        exchange_s_mean=_exchange_s(result.messages, deployment),
    )


def _faults(deployment: Deployment, *, seed: int) -> list[Fault]:
    return draw_churn(
        chances(seed, "churn"),
        nodes=deployment.nodes,
        crashes=deployment.crashes,
        from_s=deployment.warm_up_s,
        until_s=deployment.end_s - deployment.round_s,
        down_s=deployment.round_s / 2,
    )


def _exchange_s(messages: Sequence[MessageRecord], deployment: Deployment) -> float | None:
    began: dict[tuple[int, int], float] = {}
    ended: dict[tuple[int, int], float] = {}
    for message in messages:
        number = int((message.sent_at_s - deployment.warm_up_s) // deployment.round_s)
        source, destination = (message.source, number), (message.destination, number)
        began[source] = min(began.get(source, message.sent_at_s), message.sent_at_s)
        for node, at_s in ((source, message.acknowledged_at_s), (destination, message.delivered_at_s)):
            if at_s is not None:
                ended[node] = max(ended.get(node, at_s), at_s)
    lasted = [ended[node] - at_s for node, at_s in began.items() if node in ended]
    return fmean(lasted) if lasted else None


def own_rate_per_s(mixer: MixerSettings) -> float:
    """Return the rate of packets that a node makes itself, where its settings fix one."""
    match mixer:
        case PoissonSettings():
            return mixer.emission_rate_per_s + (mixer.loop_rate_per_s if mixer.cover else 0.0)
        case OutboxSettings() | OffSettings():
            return 0.0


def _groups(recording: Recording, deployment: Deployment) -> Indices:
    """Group targets by sender, destination and round; the round by when the first packet left."""
    crossings, before = recording.crossings, recording.before
    first = recording.targets.copy()
    while (earlier := before[first]).max(initial=-1) >= 0:
        first = np.where(earlier >= 0, earlier, first)
    rounds = (crossings.left_at_s[first] - deployment.warm_up_s) // deployment.round_s
    keys = np.stack([recording.oracle.origin, crossings.target[recording.targets], rounds.astype(np.int64)], axis=1)
    return np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
