"""From configurations to participants: what they are told, and that they understand each other."""

import subprocess
import sys
from dataclasses import dataclass, field

import numpy as np
import pytest

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.assembly import (
    NodeParts,
    VirtualNodes,
    build_participant,
    describe_with,
    masking_of,
    participant_settings,
)
from unlinkabledfl.experiment.node_config import named
from unlinkabledfl.experiment.planning import ExperimentPlan, local_hosting, plan_experiment
from unlinkabledfl.experiment.scenario import Mixnet, preset
from unlinkabledfl.experiment.translation import geometry_of, mix_settings, mixer_settings
from unlinkabledfl.mixnet.mixers import OffSettings, OutboxSettings, PoissonSettings
from unlinkabledfl.node.events import Finished, PhaseChanged, RoundFinished
from unlinkabledfl.node.learner import State
from unlinkabledfl.node.participant import Participant
from unlinkabledfl.simulation import LinkPlan, LinkSettings, Outcome, Training, World
from unlinkabledfl.simulation.entropy import SeededEntropy
from unlinkabledfl.simulation.sealed import SealedPackets
from unlinkabledfl.sphinx import Entropy

MODEL = {"weight": np.linspace(-1.0, 1.0, 3_000, dtype=np.float32)}


@dataclass(frozen=True, slots=True)
class Answer:
    result: Outcome
    duration_s: float = 0.5
    least_s: float = 0.0

    def outcome(self) -> Outcome:
        return self.result

    def abandon(self) -> None:
        pass


class Shifting:
    """A learning in which node i adds i to its model: what comes of it is known in advance."""

    def __init__(self, nodes: int) -> None:
        self.models: dict[int, State] = dict.fromkeys(range(nodes), MODEL)

    def train(self, *, node: int, round_number: int) -> Answer:
        state = {"weight": self.models[node]["weight"] + np.float32(node)}
        return Answer(Outcome(metrics={"loss": 1.0}, state=state))

    def adopt(self, *, node: int, round_number: int, state: State, evaluate: bool) -> Answer | None:
        self.models[node] = state
        return Answer(Outcome(metrics={"accuracy": 0.5})) if evaluate else None


@dataclass(slots=True)
class Ran:
    reports: dict[tuple[int, int], RoundFinished] = field(default_factory=dict)
    finished: set[int] = field(default_factory=set)
    learning: Shifting | None = None

    def hear(self, _at_s: float, node: int, event: PhaseChanged | RoundFinished | Finished) -> None:
        if isinstance(event, RoundFinished):
            self.reports[node, event.round_number] = event
        elif isinstance(event, Finished):
            self.finished.add(node)


def run(plan: ExperimentPlan, *, until_s: float = 120.0, enter: dict[int, float] | None = None) -> Ran:
    ran = Ran(learning=Shifting(plan.nodes))
    learning = ran.learning
    assert learning is not None
    nodes = VirtualNodes(plan)

    def make(*, index: int, serial: int, entropy: Entropy) -> Participant:
        return nodes.make(index, state=learning.models[index], entropy=entropy, serial=serial)

    world = World(
        node_ids=plan.node_ids,
        factory=make,
        topology=plan.topology,
        packet_bytes=nodes.packets.packet_bytes,
        seed=plan.scenario.run.seed,
        links=LinkPlan(default=LinkSettings(latency_s=0.01)),
        training=Training(learning=learning, listener=ran.hear, absent=plan.absent),
    )
    for node, at_s in (enter or {}).items():
        world.run_until(at_s)
        world.enter(node)
    while len(ran.finished) < plan.nodes and world.now_s < until_s:
        world.run_until(world.now_s + 0.5)
    return ran


FAST = [
    "run.backend=simulation", "run.rounds=2", "simulation.packets=sealed", "mixnet.delay_mean_s=0.02",
    "mixnet.emission_rate_per_s=20", "mixnet.loop_rate_per_s=0.5",
]  # fmt: skip


# -- they understand each other ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "overrides",
    [
        ["mixnet.route=overlay", "mixnet.path_length=3"],
        ["mixnet.route=overlay", "mixnet.path_length=1", "mixnet.mixer=off", "mixnet.cover=false"],
        ["mixnet.route=walk", "mixnet.path_length=2", "mixnet.exchange=reach"],
        ["mixnet.route=walk_up_to", "mixnet.path_length=2", "mixnet.exchange=within"],
        ["mixnet.route=valiant", "mixnet.exchange=neighbours"],
        ["mixnet.mixer=outbox", "mixnet.outbox_size=10"],
        ["mixnet.route=overlay", "mixnet.key_layer=pq", "simulation.packets=sphinx", "run.rounds=1"],
        ["mixnet.route=overlay", "mixnet.epoch_length_s=60"],
    ],
)
def test_all_nodes_do_all_rounds_with_everything_received(overrides: list[str]) -> None:
    plan = plan_experiment(preset("demo", [*FAST, *overrides]))

    ran = run(plan)

    rounds = plan.scenario.run.rounds
    assert ran.finished == set(range(8))
    assert {key: report.metrics["completeness"] for key, report in ran.reports.items()} == dict.fromkeys(
        [(node, number) for node in range(8) for number in range(1, rounds + 1)], 1.0
    )


def test_an_aggregate_is_the_mean_over_the_node_and_its_partners() -> None:
    plan = plan_experiment(preset("demo", [*FAST, "run.rounds=1", "payload.codec=f32"]))

    ran = run(plan)

    assert ran.learning is not None
    for node in range(8):
        mean = np.mean([node, *plan.partners(node)])
        np.testing.assert_allclose(ran.learning.models[node]["weight"], MODEL["weight"] + mean, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "overrides", [["mixnet.exchange=reach"], ["mixnet.exchange=within"], ["mixnet.route=walk", "mixnet.exchange=reach"]]
)
def test_masks_do_not_change_the_mean(overrides: list[str]) -> None:
    plan = plan_experiment(
        preset("demo", [*FAST, *overrides, "mixnet.path_length=2", "run.rounds=1", "payload.codec=f32",
                        "payload.obfuscation=masks", "payload.obfuscation_scale=100"])
    )  # fmt: skip

    ran = run(plan)

    assert ran.learning is not None
    for node in range(8):
        mean = np.mean([node, *plan.partners(node)])
        np.testing.assert_allclose(ran.learning.models[node]["weight"], MODEL["weight"] + mean, rtol=0, atol=1e-4)


def test_masks_of_another_run_are_others() -> None:
    masks = preset("demo", [*FAST, "payload.obfuscation=masks"])
    configs = [plan_experiment(masks, run_id=name).node(0) for name in ("a", "b")]

    first, second = [masking_of(config, NodeParts.of(config)) for config in configs]

    peer = named(configs[0].destinations)[0]
    assert sorted(first.senders_to(peer)) == sorted(second.senders_to(peer))
    assert first.pair_secret(peer) != second.pair_secret(peer)


def test_a_node_that_joins_later_is_not_waited_for_and_then_takes_part() -> None:
    plan = plan_experiment(
        preset("demo", [*FAST, "run.rounds=4", "topology.join=[{node=3,round=3}]", "aggregation.deadline_s=60"])
    )

    ran = run(plan, until_s=300.0, enter={3: 4.0})

    alone = [ran.reports[node, 1].metrics for node in range(8) if node != 3]
    assert all(metrics["exchange_s"] < 15.0 for metrics in alone)
    assert (3, 1) not in ran.reports
    assert ran.reports[3, 4].metrics["fragments_aggregated"] > 0


def test_equal_seeds_give_equal_worlds_and_real_packets_change_no_figure_of_a_round() -> None:
    def completeness(*overrides: str) -> list[float]:
        ran = run(plan_experiment(preset("demo", [*FAST, "run.rounds=1", *overrides])))
        return [ran.reports[node, 1].metrics["exchange_s"] for node in range(8)]

    assert completeness() == completeness()
    assert completeness() != completeness("run.seed=2")


def test_nothing_that_plans_or_mixes_loads_pytorch() -> None:
    modules = ", ".join(f"unlinkabledfl.experiment.{name}" for name in ("assembly", "indicators", "planning", "tasks"))
    program = f"import sys, {modules}; sys.exit('torch' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# -- what they are told -----------------------------------------------------------------------------------------------


def test_a_node_on_its_own_host_is_put_together_from_its_configuration_alone() -> None:
    scenario = preset("paper", ["process.base_port=7000"])
    config = plan_experiment(scenario, hosting=local_hosting(scenario)).node(5)
    assert config.link is not None
    describe = describe_with(
        config.signing_seed,
        fingerprint=config.link.identity().fingerprint,
        addresses=lambda: config.link.addresses if config.link else (),
        allow_loopback=True,
    )

    participant = build_participant(config, state=MODEL, entropy=SeededEntropy(1, "node"), describe=describe)
    participant.start(now_s=0.0)

    assert participant.node_id == config.own_id
    assert participant.mix.public_key


def test_the_parts_of_one_node_know_the_graph_where_routes_follow_it() -> None:
    plan = plan_experiment(preset("paper"))
    parts, overlay = NodeParts.of(plan.node(0)), NodeParts.of(plan_experiment(preset("strong")).node(0))

    assert parts.graph is not None
    assert parts.graph.node_ids == plan.node_ids
    assert overlay.graph is None


def test_sealed_packets_weigh_what_real_ones_do() -> None:
    real, sealed = (
        VirtualNodes(plan_experiment(preset("paper", [f"simulation.packets={name}"]))).packets
        for name in ("sphinx", "sealed")
    )

    assert isinstance(sealed, SealedPackets)
    assert (real.packet_bytes, real.data_bytes) == (sealed.packet_bytes, sealed.data_bytes)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        (
            "paper",
            OutboxSettings(
                outbox_size=100, delay_mean_s=0.1, delay_deviation_s=0.001, transit_capacity=4_000, own_capacity=4_000
            ),
        ),
        (
            "strong",
            PoissonSettings(
                delay_mean_s=1.5,
                emission_rate_per_s=8.0,
                loop_rate_per_s=1.0,
                transit_capacity=4_000,
                own_capacity=4_000,
            ),
        ),
        ("direct", OffSettings(transit_capacity=4_000, own_capacity=4_000)),
    ],
)
def test_presets_mix_as_they_say(name: str, settings: object) -> None:
    assert mixer_settings(preset(name).mixnet) == settings


def test_limits_and_epochs_are_those_of_the_scenario() -> None:
    mixnet = preset(
        "demo", ["mixnet.neighbour_packets_per_s=50", "mixnet.neighbour_share=0.5", "mixnet.epoch_length_s=0"]
    ).mixnet
    settings = mix_settings(mixnet)

    assert (settings.limits.packets_per_s, settings.limits.packets_burst, settings.limits.transit_share) == (
        50,
        100,
        0.5,
    )
    assert settings.epoch_length_s is None


@pytest.mark.parametrize(
    ("overrides", "ahead"),
    [
        (["mixnet.mixer=outbox"], 20),
        (["mixnet.mixer=outbox", "mixnet.outbox_size=3", "mixnet.path_length=4"], 1),
        (["mixnet.mixer=outbox", "mixnet.own_capacity=5"], 5),
        (["mixnet.mixer=poisson"], 256),
        (["mixnet.mixer=off"], 256),
    ],
)
def test_an_outbox_takes_own_fragments_by_their_share_of_its_slots(overrides: list[str], ahead: int) -> None:
    config = plan_experiment(preset("demo", ["mixnet.path_length=2", *overrides])).node(0)

    assert participant_settings(config, hops=config.mixnet.path_length).queue_ahead == ahead


def test_without_more_ahead_than_that_a_large_payload_brings_no_storm_of_resends() -> None:
    plan = plan_experiment(
        preset(
            "paper",
            ["topology.nodes=16", "run.rounds=1", "simulation.packets=sealed", "mixnet.outbox_size=20",
             "payload.codec=f32", "mixnet.body_bytes=1280"],
        )
    )  # fmt: skip

    ran = run(plan, until_s=1_000.0)

    reports = [ran.reports[node, 1].metrics for node in range(16)]
    sent, resent = (sum(report[name] for report in reports) for name in ("fragments_sent", "fragments_resent"))
    assert sent > 16 * 100
    assert resent < 0.05 * sent


@pytest.mark.parametrize(("path_length", "max_hops", "room"), [(2, 0, 5), (7, 0, 7), (3, 4, 4), (1, 2, 2)])
def test_headers_have_room_for_the_routes(path_length: int, max_hops: int, room: int) -> None:
    mixnet = preset("demo", [f"mixnet.path_length={path_length}", f"mixnet.max_hops={max_hops}"]).mixnet

    assert geometry_of(mixnet, None).max_hops == room


def test_headers_without_room_for_a_loop_are_refused() -> None:
    mixnet = Mixnet(path_length=1, max_hops=1)

    with pytest.raises(ConfigError, match="at least 2 for these routes"):
        geometry_of(mixnet, None)
