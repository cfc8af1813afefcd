"""A hundred mix nodes, an hour, and everything that goes wrong: what is sent arrives once, and nothing grows.

The short versions run in the fast suite: with real packets over dialled links, and with the published parameters.
"""

import gc
import io
import sys
from dataclasses import dataclass

import pytest

from unlinkabledfl.mixnet.config import MixSettings
from unlinkabledfl.mixnet.mixers import MixerSettings, PoissonSettings
from unlinkabledfl.mixnet.packets import PacketFormat
from unlinkabledfl.mixnet.sphinx_packets import SphinxPackets
from unlinkabledfl.mixnet.topology import circulant
from unlinkabledfl.simulation import (
    EventLog,
    LinkPlan,
    LinkSettings,
    Partition,
    Result,
    SealedPackets,
    Watch,
    World,
    collector_paused,
    draw_churn,
)
from unlinkabledfl.simulation.entropy import chances
from unlinkabledfl.simulation.mixnet import (
    Mixnet,
    MixnetPlan,
    RouteName,
    build_mixnet_world,
    mix_queues,
    send_at_random,
)
from unlinkabledfl.sphinx import Geometry, Sphinx

BAD_LINKS = LinkPlan(default=LinkSettings(latency_s=0.04, jitter_s=0.01, loss=0.01, duplication=0.01, reordering=0.01))
GEOMETRY = Geometry(max_hops=3, body_bytes=2048)


@dataclass(frozen=True, slots=True, kw_only=True)
class Soak:
    """A world with churn, and the traffic in it."""

    nodes: int
    packets: PacketFormat
    mixer: MixerSettings
    route: RouteName
    hours: float
    messages: int
    crashes: int
    epoch_length_s: float
    introduced: bool = True

    def build(self, *, seed: int = 1, watch: Watch | None = None) -> tuple[World, Mixnet]:
        length_s = self.hours * 3600.0
        plan = MixnetPlan(
            topology=circulant(self.nodes, 4),
            packets=self.packets,
            mix=MixSettings(
                mixer=self.mixer, epoch_length_s=self.epoch_length_s, key_overlap_s=0.5 * self.epoch_length_s
            ),
            route=self.route,
            introduced=self.introduced,
        )
        faults = draw_churn(
            chances(seed, "churn"),
            nodes=self.nodes,
            crashes=self.crashes,
            from_s=0.1 * length_s,
            until_s=0.7 * length_s,
            down_s=0.02 * length_s,
        )
        watch = watch or Watch(probe=mix_queues(self.mixer))
        world, mixnet = build_mixnet_world(plan, seed=seed, links=BAD_LINKS, faults=faults, watch=watch)
        start_s = 0.05 * length_s
        send_at_random(
            world, mixnet, seed=seed, messages=self.messages, data=b"m", from_s=start_s, until_s=0.8 * length_s
        )
        return world, mixnet


HOUR = Soak(
    nodes=100,
    packets=SealedPackets(Geometry()),
    mixer=PoissonSettings(),
    route=RouteName.WALK,
    hours=1.0,
    messages=60,
    crashes=10,
    epoch_length_s=400.0,
)
THREE_MINUTES = Soak(
    nodes=16,
    packets=SphinxPackets(Sphinx(GEOMETRY)),
    mixer=PoissonSettings(delay_mean_s=0.5),
    route=RouteName.OVERLAY,
    hours=0.05,
    messages=12,
    crashes=3,
    epoch_length_s=60.0,
    introduced=False,
)


def check_what_must_hold(result: Result, soak: Soak) -> None:
    survivors = result.survivors()
    # Most of the traffic is between nodes that never crash, or the test would show little.
    assert len(survivors) > 0.5 * soak.nodes * soak.messages
    assert {message.deliveries for message in survivors} == {1}
    # Others may be delivered again after a crash, which takes the memory of deliveries along, but once in each life.
    assert all(len(set(message.delivered_to)) == message.deliveries for message in result.messages)
    assert result.misdelivered == 0
    # A restarted node has a chance to join in before all is over.
    assert result.alive == (True,) * soak.nodes
    assert sum(result.serials) == soak.crashes
    assert {name for name, queue in result.queues.items() if queue.longest > queue.bound} == set()
    assert {"own", "transit", "messages"} <= result.queues.keys()
    # The bad links were bad.
    assert result.lost["on_link"] > 0
    assert result.duplicated > 0
    assert result.counters["replayed"] > 0
    assert result.counters["resent"] > 0


def test_three_minutes_of_real_packets_over_bad_links_and_churn() -> None:
    world, _ = THREE_MINUTES.build()

    # Two quiet minutes follow: so long may a message wait for a destination that its sender holds in quarantine.
    check_what_must_hold(world.run_until(180.0 + 120.0), THREE_MINUTES)


def test_the_same_seed_gives_the_same_log_of_real_packets_and_another_seed_another() -> None:
    def log(seed: int) -> bytes:
        sink = io.BytesIO()
        world, _ = THREE_MINUTES.build(seed=seed, watch=Watch(log=EventLog(sink.write)))
        world.run_until(20.0)
        return sink.getvalue()

    first = log(1)
    assert first.count(b"packet_arrived") > 500
    assert log(1) == first
    assert log(2) != first


def test_a_message_takes_its_hops_delays_and_links() -> None:
    direct = PoissonSettings(delay_mean_s=0.0, emission_rate_per_s=1000.0, loop_rate_per_s=0.0, cover=False)
    plan = MixnetPlan(
        topology=circulant(16, 4),
        packets=SealedPackets(GEOMETRY),
        mix=MixSettings(mixer=direct, link_allowance_s=1.5),
        path_length=3,
    )
    world, mixnet = build_mixnet_world(
        plan, seed=1, links=LinkPlan(default=LinkSettings(latency_s=1.0, handshake_s=0.0))
    )
    send_at_random(world, mixnet, seed=1, messages=10, data=b"m", from_s=1.0, until_s=20.0)
    result = world.run_until(60.0)

    # Three links of one second each; a slot comes every millisecond or so.
    assert len(result.delays_s()) == 160
    assert all(3.0 <= delay_s < 3.1 for delay_s in result.delays_s())
    assert all(message.attempts == 1 for message in result.messages)


def test_descriptors_reach_everybody_over_links_that_cannot_take_them_all_at_once() -> None:
    plan = MixnetPlan(
        topology=circulant(24, 4),
        packets=SealedPackets(GEOMETRY),
        mix=MixSettings(mixer=PoissonSettings(cover=False)),
        introduced=False,
    )
    narrow = LinkSettings(bandwidth_bytes_per_s=40_000.0, queue_packets=2)
    world, mixnet = build_mixnet_world(plan, seed=1, links=LinkPlan(default=narrow))
    world.run_until(60.0)

    known = [sum(world.node(index).peers.knows(node_id) for node_id in mixnet.node_ids) for index in range(24)]
    assert known == [23] * 24


def test_a_partition_is_survived() -> None:
    plan = MixnetPlan(
        topology=circulant(16, 4),
        packets=SealedPackets(GEOMETRY),
        mix=MixSettings(mixer=PoissonSettings(delay_mean_s=0.3)),
        route=RouteName.WALK,
    )
    cut = Partition(groups=(tuple(range(8)),), at_s=20.0, until_s=30.0)
    world, mixnet = build_mixnet_world(plan, seed=1, faults=[cut])
    send_at_random(world, mixnet, seed=1, messages=20, data=b"m", from_s=1.0, until_s=60.0)
    result = world.run_until(180.0)

    assert result.lost["partitioned"] > 0
    assert [message.deliveries for message in result.messages] == [1] * 320


def test_a_world_of_mix_nodes_leaves_no_work_to_the_cyclic_collector() -> None:
    world, _ = THREE_MINUTES.build()
    with collector_paused():
        world.run_until(15.0)
        gc.collect()
        world.run_until(60.0)

        assert gc.collect() < 100  # a crashed node may go with its cycles; packets and messages make none


@pytest.mark.slow
def test_an_hour_of_a_hundred_nodes() -> None:
    world, _ = HOUR.build()
    with collector_paused():
        world.run_until(1500.0)
        blocks, records = sys.getallocatedblocks(), len(world.result().messages)
        # Three epochs later, at the same point of an epoch.
        result = world.run_until(2700.0)
        grown = sys.getallocatedblocks() - blocks
        new_records = len(result.messages) - records
        result = world.run_until(3600.0)

    check_what_must_hold(result, HOUR)
    # The oracle keeps a record of each message: at most twelve blocks. All else is as it was, but for chance.
    assert grown - 12 * new_records < 0.03 * blocks
