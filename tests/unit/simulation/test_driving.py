"""How a world drives machines, with machines small enough to write down everything they hear."""

import io
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.unit.simulation.machines import IDS, Station, parcel, stations
from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.mixnet.events import SendControl, SendPacket
from unlinkabledfl.mixnet.topology import Topology, full, ring
from unlinkabledfl.simulation import (
    Crash,
    EventLog,
    Fault,
    LinkPlan,
    LinkSettings,
    Partition,
    Restart,
    Watch,
    World,
    draw_churn,
)
from unlinkabledfl.simulation.entropy import chances

SETTINGS = LinkSettings(latency_s=0.05, handshake_s=0.1, dial_timeout_s=2.0, detection_s=1.0, queue_packets=2)
NOBODY = Watch()


def world_of(
    *told: tuple[int, float, SendPacket | SendControl],
    topology: Topology | None = None,
    settings: LinkSettings = SETTINGS,
    dialled_max: int = 64,
    faults: Sequence[Fault] = (),
    watch: Watch = NOBODY,
    seed: int = 1,
) -> World:
    """A ring of six stations, unless another is asked for, in which some have been told what to send when."""

    def instruct(station: Station) -> None:
        if station.serial == 0:
            station.outbox = [(at_s, event) for index, at_s, event in told if index == station.index]

    topology = ring(6) if topology is None else topology
    return World(
        node_ids=IDS[: topology.nodes],
        factory=stations(instruct),
        topology=topology,
        packet_bytes=1000,
        seed=seed,
        links=LinkPlan(default=settings, dialled_max=dialled_max),
        faults=faults,
        watch=watch,
    )


def send(to: int, name: str, *route: int) -> SendPacket:
    return SendPacket(to=IDS[to], packet=parcel(name, *route))


def heard(world: World, index: int, *, after_s: float = 0.0) -> list[tuple[float, str, int]]:
    node: Station = world.node(index)
    return [entry for entry in node.kinds() if entry[0] > after_s]


def test_every_node_starts_and_is_linked_with_its_neighbours() -> None:
    world = world_of()
    world.run_until(10.0)

    assert heard(world, 0, after_s=-1.0) == [(0.0, "start", 0), (0.0, "up", 1), (0.0, "up", 5)]


def test_a_packet_is_relayed_along_its_route() -> None:
    world = world_of((0, 1.0, send(1, "p", 2, 3)))
    result = world.run_until(10.0)

    assert heard(world, 1) == [(1.05, "packet", 0)]
    assert heard(world, 2) == [(1.1, "packet", 1)]
    assert heard(world, 3) == [(1.15, "packet", 2)]
    assert result.packet_hops == 3
    assert result.counters == {"packets": 3}


def test_a_control_message_reaches_a_linked_peer_only() -> None:
    world = world_of(
        (0, 1.0, SendControl(to=IDS[1], data=b"hello")),
        (0, 1.0, SendControl(to=IDS[3], data=b"lost")),
    )
    result = world.run_until(10.0)

    assert heard(world, 1) == [(1.05, "control", 0)]
    assert heard(world, 3) == []
    assert result.lost == {"control_unlinked": 1}


def test_the_first_packet_to_a_stranger_dials_and_both_sides_learn_of_the_link() -> None:
    world = world_of((0, 1.0, send(3, "a")), (0, 2.0, send(3, "b")))
    world.run_until(10.0)

    assert heard(world, 0) == [(1.1, "up", 3)]
    assert heard(world, 3) == [(1.1, "up", 0), (1.15, "packet", 0), (2.05, "packet", 0)]


def test_two_nodes_that_dial_each_other_at_once_get_one_link() -> None:
    world = world_of((0, 1.0, send(3, "a")), (3, 1.05, send(0, "b")))
    world.run_until(10.0)

    assert heard(world, 0) == [(1.1, "up", 3), (1.15, "packet", 3)]
    assert heard(world, 3) == [(1.1, "up", 0), (1.15, "packet", 0)]


def test_packets_beyond_the_queue_of_a_dialled_link_are_handed_back() -> None:
    world = world_of(*((0, 1.0, send(3, name)) for name in "abc"))
    world.run_until(10.0)

    assert world.node(0).unsent == [send(3, "c")]
    assert [kind for _, kind, _ in heard(world, 3)] == ["up", "packet", "packet"]


def test_a_dial_to_a_crashed_node_fails_and_takes_its_packets_along() -> None:
    world = world_of((0, 1.0, send(3, "a")), faults=[Crash(node=3, at_s=0.5)])
    result = world.run_until(10.0)

    assert heard(world, 0) == [(3.0, "failed", 3)]
    assert result.lost == {"dial_failed": 1}


def test_a_dial_to_nobody_fails() -> None:
    world = world_of((0, 1.0, send(40, "a")))

    assert world.run_until(10.0).lost == {"dial_failed": 1}
    assert heard(world, 0) == [(3.0, "failed", 40)]


def test_neighbours_notice_a_crash_and_packets_until_then_are_lost() -> None:
    world = world_of((0, 1.5, send(1, "void")), faults=[Crash(node=1, at_s=1.0)])
    result = world.run_until(10.0)

    assert heard(world, 0) == [(2.0, "down", 1)]
    assert heard(world, 2) == [(2.0, "down", 1)]
    assert result.lost == {"peer_down": 1}
    assert result.alive == (True, False, True, True, True, True)


def test_what_a_node_had_sent_before_its_crash_still_arrives() -> None:
    world = world_of((1, 1.0, send(0, "last words")), faults=[Crash(node=1, at_s=1.01)])
    world.run_until(1.5)

    assert heard(world, 0) == [(1.05, "packet", 1)]


def test_a_restarted_node_is_a_new_one_and_is_linked_again() -> None:
    world = world_of(faults=[Crash(node=1, at_s=1.0), Restart(node=1, at_s=5.0)])
    old = world.node(1)
    result = world.run_until(10.0)

    assert world.node(1) is not old
    assert heard(world, 1) == [(5.0, "start", 1), (5.1, "up", 0), (5.1, "up", 2)]
    assert heard(world, 0) == [(2.0, "down", 1), (5.1, "up", 1)]
    assert result.serials == (0, 1, 0, 0, 0, 0)


def test_a_restart_before_anybody_noticed_the_crash_still_ends_the_old_links() -> None:
    world = world_of(faults=[Crash(node=1, at_s=1.0), Restart(node=1, at_s=1.2)])
    world.run_until(10.0)

    assert heard(world, 0) == [(1.3, "down", 1), (1.3, "up", 1)]


def test_nothing_meant_for_an_earlier_life_reaches_a_later_one() -> None:
    slow = LinkSettings(latency_s=2.0, handshake_s=0.1)
    world = world_of(
        (0, 1.0, send(1, "late")), settings=slow, faults=[Crash(node=1, at_s=1.5), Restart(node=1, at_s=2.0)]
    )
    result = world.run_until(10.0)

    assert "packet" not in [kind for _, kind, _ in heard(world, 1)]
    assert result.lost == {"peer_down": 1}


def test_the_two_sides_of_a_partition_lose_each_other_until_it_ends() -> None:
    world = world_of(
        (0, 1.5, send(1, "void")),
        (0, 4.0, send(1, "void too")),
        (1, 4.0, send(2, "inside")),
        faults=[Partition(groups=((1, 2),), at_s=1.0, until_s=8.0)],
    )
    result = world.run_until(20.0)

    assert heard(world, 0) == [(2.0, "down", 1), (6.0, "failed", 1), (8.1, "up", 1)]
    assert heard(world, 1) == [(2.0, "down", 0), (8.1, "up", 0)]
    assert heard(world, 2) == [(2.0, "down", 3), (4.05, "packet", 1), (8.1, "up", 3)]
    assert result.lost == {"dial_failed": 1, "partitioned": 1}


def test_a_partition_that_ends_before_it_is_noticed_costs_packets_only() -> None:
    world = world_of((0, 1.1, send(1, "void")), faults=[Partition(groups=((1,),), at_s=1.0, until_s=1.5)])
    result = world.run_until(10.0)

    assert heard(world, 0) == []
    assert result.lost == {"partitioned": 1}


def test_a_node_that_dials_too_many_closes_its_oldest_dialled_link() -> None:
    world = world_of(*((0, float(to), send(to, "p")) for to in (2, 3, 4)), (0, 5.0, send(2, "again")), dialled_max=2)
    world.run_until(10.0)

    assert heard(world, 0) == [
        (2.1, "up", 2),
        (3.1, "up", 3),
        (4.0, "down", 2),
        (4.1, "up", 4),
        (5.0, "down", 3),
        (5.1, "up", 2),
    ]
    assert [kind for _, kind, _ in heard(world, 2)] == ["up", "packet", "down", "up", "packet"]


def test_a_link_that_one_side_does_not_want_is_closed_on_both() -> None:
    world = World(
        node_ids=IDS[:6],
        factory=stations(lambda station: station.unwelcome.update({0} if station.index == 3 else ())),
        topology=ring(6),
        packet_bytes=1000,
        seed=1,
        links=LinkPlan(default=SETTINGS),
    )
    world.send(0, 3, b"", at_s=0.5)
    world.run_until(10.0)

    assert heard(world, 0)[:2] == [(0.6, "up", 3), (0.6, "down", 3)]
    assert heard(world, 3)[:2] == [(0.6, "up", 0), (0.6, "down", 0)]


def test_a_full_link_hands_packets_back() -> None:
    narrow = LinkSettings(latency_s=0.05, bandwidth_bytes_per_s=1000.0, queue_packets=2)
    world = world_of(*((0, 1.0, send(1, name)) for name in "abc"), settings=narrow)
    world.run_until(10.0)

    assert heard(world, 1) == [(2.05, "packet", 0), (3.05, "packet", 0)]
    assert world.node(0).unsent == [send(1, "c")]


def test_losses_and_duplicates_are_counted() -> None:
    def count(settings: LinkSettings) -> tuple[int, dict[str, int], int]:
        world = world_of(*((0, 0.1 * number, send(1, str(number))) for number in range(1000)), settings=settings)
        result = world.run_until(200.0)
        return result.packet_hops, result.lost, result.duplicated

    hops, lost, _ = count(LinkSettings(loss=0.1))
    assert hops == 1000 - lost["on_link"]
    assert 60 < lost["on_link"] < 140  # binomial: four deviations are 38
    hops, lost, copies = count(LinkSettings(duplication=0.1))
    assert (hops, lost) == (1000 + copies, {})
    assert 60 < copies < 140


def test_one_direction_of_one_link_can_be_different() -> None:
    plan = LinkPlan(default=SETTINGS, between={(0, 1): LinkSettings(latency_s=3.0)})
    world = World(
        node_ids=IDS[:3],
        factory=stations(lambda s: s.outbox.append((1.0, send((s.index + 1) % 3, "p", s.index)))),
        topology=full(3),
        packet_bytes=1000,
        seed=1,
        links=plan,
    )
    world.run_until(10.0)

    assert heard(world, 1) == [(1.1, "packet", 2), (4.0, "packet", 0)]


def test_messages_are_followed_from_sending_to_delivery() -> None:
    world = world_of(faults=[Crash(node=4, at_s=0.5)])
    world.send(0, 1, b"", at_s=1.0)
    world.send(1, 3, b"", at_s=2.0)
    world.send(3, 4, b"", at_s=3.0)
    world.send(4, 3, b"", at_s=3.0)
    result = world.run_until(20.0)

    assert [(m.source, m.destination, m.deliveries) for m in result.messages] == [(0, 1, 1), (1, 3, 1), (3, 4, 0)]
    assert [round(delay_s, 6) for delay_s in result.delays_s()] == [0.05, 0.15]
    assert [(m.source, m.destination) for m in result.survivors()] == [(0, 1), (1, 3)]
    assert result.unsent == 1


def test_queues_are_probed_after_everything_that_happens() -> None:
    watch = Watch(probe=lambda station: [("outbox", len(station.outbox), 5)])
    world = world_of(*((0, float(at), send(1, "p")) for at in (1, 2, 3)), watch=watch)
    result = world.run_until(10.0)

    assert {name: (queue.longest, queue.bound) for name, queue in result.queues.items()} == {"outbox": (3, 5)}


def test_an_observer_sees_edges_times_sizes_and_hashes() -> None:
    seen: list[tuple[str, float, int, int, int, bytes]] = []

    class Adversary:
        def packet_left(self, at_s: float, source: int, target: int, size_bytes: int, wire_hash: bytes) -> None:
            seen.append(("left", round(at_s, 6), source, target, size_bytes, wire_hash))

        def packet_arrived(self, at_s: float, source: int, target: int, size_bytes: int, wire_hash: bytes) -> None:
            seen.append(("arrived", round(at_s, 6), source, target, size_bytes, wire_hash))

    packet = send(1, "p", 2)
    world = world_of((0, 1.0, packet), (3, 1.0, SendControl(to=IDS[4], data=b"c")), watch=Watch(observer=Adversary()))
    world.run_until(10.0)

    hashes = [parcel("p", 2).wire_hash, parcel("p").wire_hash]
    assert [entry[:5] for entry in seen] == [
        ("left", 1.0, 0, 1, 1000),
        ("left", 1.0, 3, 4, 1000),
        ("arrived", 1.05, 0, 1, 1000),
        ("left", 1.05, 1, 2, 1000),
        ("arrived", 1.05, 3, 4, 1000),
        ("arrived", 1.1, 1, 2, 1000),
    ]
    assert [entry[5] for entry in seen if entry[2] < 3] == [hashes[0], hashes[0], hashes[1], hashes[1]]


def test_a_node_whose_timer_never_moves_on_is_reported_as_a_bug() -> None:
    class Stuck(Station):
        def next_timer_s(self) -> float | None:
            return 1.0

    world = World(
        node_ids=IDS[:2],
        factory=lambda *, index, serial, entropy: Stuck(index, serial, entropy),
        topology=ring(2),
        packet_bytes=1000,
        seed=1,
    )
    with pytest.raises(LocalProtocolError, match="time stands still"):
        world.run_until(2.0)


def test_the_past_cannot_be_changed() -> None:
    world = world_of()
    world.run_until(5.0)

    with pytest.raises(LocalProtocolError, match=r"cannot schedule at 4\.0 s"):
        world.send(0, 1, b"", at_s=4.0)
    with pytest.raises(LocalProtocolError, match=r"cannot schedule at 4\.0 s"):
        world.run_until(4.0)


@pytest.mark.parametrize(("source", "destination"), [(-1, 0), (0, 6)])
def test_a_message_between_nodes_that_are_none_is_refused(source: int, destination: int) -> None:
    with pytest.raises(LocalProtocolError, match="nodes are 0 to 5"):
        world_of().send(source, destination, b"", at_s=0.0)


def test_a_topology_of_another_size_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"topology\.nodes: got 6"):
        World(node_ids=IDS[:5], factory=stations(), topology=ring(6), packet_bytes=1000, seed=1)


def eventful_log(seed: int) -> bytes:
    """The log of a world in which everything happens."""
    sink = io.BytesIO()
    settings = LinkSettings(jitter_s=0.02, loss=0.05, duplication=0.05, reordering=0.05, bandwidth_bytes_per_s=1e5)
    faults = draw_churn(chances(seed, "churn"), nodes=16, crashes=4, from_s=5.0, until_s=30.0, down_s=4.0)
    luck = chances(seed, "traffic")
    told = [
        (
            luck.randrange(16),
            luck.uniform(0.0, 40.0),
            send(luck.randrange(16), str(n), *luck.sample(range(16), 3)),
        )
        for n in range(500)
    ]
    world = world_of(
        *(entry for entry in told if entry[2].to != IDS[entry[0]]),
        topology=ring(16),
        settings=settings,
        faults=[*faults, Partition(groups=((0, 1, 2), (8, 9)), at_s=12.0, until_s=20.0)],
        watch=Watch(log=EventLog(sink.write)),
        seed=seed,
    )
    world.run_until(60.0)
    return sink.getvalue()


def test_the_same_seed_gives_the_same_log_and_another_seed_another() -> None:
    first = eventful_log(1)

    assert first.count(b"\n") > 2000
    assert {line.split()[1] for line in first.splitlines()} >= {
        b"packet_left", b"packet_arrived", b"timer", b"link_up", b"link_down", b"crash", b"restart", b"cut", b"heal",
    }  # fmt: skip
    assert eventful_log(1) == first
    assert eventful_log(2) != first


def test_the_log_does_not_depend_on_how_strings_hash() -> None:
    root = Path(__file__).parents[3]
    script = (
        "from hashlib import sha256; from tests.unit.simulation.test_driving import eventful_log;"
        "print(sha256(eventful_log(1)).hexdigest())"
    )
    digests = set()
    for hash_seed in ("1", "2"):
        path = os.pathsep.join([str(root), str(root / "src")])
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, check=True, text=True
        )
        digests.add(done.stdout)

    assert len(digests) == 1
