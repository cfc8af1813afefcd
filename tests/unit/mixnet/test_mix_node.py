from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.mixnet.nodes import (
    CODEC,
    GEOMETRY,
    LIFE_S,
    LOOP,
    PACKETS,
    Network,
    bad_packets,
    describe,
    drain,
    flipped,
    identity,
    make_node,
    message,
    packet_for,
)
from unlinkabledfl.errors import LocalProtocolError, QueueFullError
from unlinkabledfl.mixnet.config import MixSettings
from unlinkabledfl.mixnet.events import (
    MessageAcknowledged,
    MessageGivenUp,
    MessageReceived,
    SendControl,
    SendPacket,
)
from unlinkabledfl.mixnet.keys import KeyRotated
from unlinkabledfl.mixnet.mix_node import MixNode, NeighbourLimits
from unlinkabledfl.mixnet.mixers import MixerSettings, OffSettings, OutboxSettings, PoissonSettings
from unlinkabledfl.mixnet.packets import Envelope
from unlinkabledfl.mixnet.sphinx_packets import SphinxPackets
from unlinkabledfl.sphinx import Entropy, Hop, NodeId

OFF = OffSettings()
HELD = PoissonSettings(transit_capacity=1, cover=False)  # nothing leaves by itself
NEIGHBOUR = identity(2)


def counted(node: MixNode, act: Callable[[], object]) -> dict[str, int]:
    """What the node counts while this happens."""
    before = node.counters.as_dict()
    act()
    return {name: count - before.get(name, 0) for name, count in node.counters.items() if count != before.get(name, 0)}


def receive(node: MixNode, *packets: bytes, now_s: float = 1.0, by: NodeId = NEIGHBOUR) -> dict[str, int]:
    def act() -> None:
        for packet in packets:
            node.receive_packet(packet, from_peer=by, now_s=now_s)

    return counted(node, act)


def test_a_message_arrives_once_and_is_acknowledged() -> None:
    network = Network()
    message_id = network[1].send_message(identity(3), b"hello", now_s=1.0)

    assert network.carry(now_s=1.0) == [
        (identity(3), MessageReceived(message_id=message_id, data=b"hello")),
        (identity(1), MessageAcknowledged(message_id=message_id, attempts=1, round_trip_s=0.0)),
    ]
    assert [len(packet) for _, _, packet in network.wire] == [GEOMETRY.packet_bytes] * 4
    assert network[1].waiting == 0


def test_a_message_whose_acknowledgement_is_lost_comes_again_and_is_handed_over_once() -> None:
    network = Network()
    network.lost = {identity(1)}
    message_id = network[1].send_message(identity(3), b"hello", now_s=1.0)
    first = network.carry(now_s=1.0)
    network.lost = set()
    due_s = network[1].next_timer_s() or 0.0
    network[1].handle_timer(now_s=due_s)

    assert first == [(identity(3), MessageReceived(message_id=message_id, data=b"hello"))]
    assert network.carry(now_s=due_s) == [
        (identity(1), MessageAcknowledged(message_id=message_id, attempts=2, round_trip_s=0.0))
    ]
    assert network[3].counters["received_again"] == 1


def test_a_message_is_given_up_when_no_attempt_returns() -> None:
    network = Network(settings=MixSettings(mixer=OFF, max_attempts=2))
    network.lost = set(network.nodes)
    message_id = network[1].send_message(identity(3), b"hello", now_s=1.0)
    heard = []
    while network[1].waiting:
        now_s = network[1].next_timer_s() or 0.0
        network[1].handle_timer(now_s=now_s)
        heard += network.carry(now_s=now_s)

    assert heard == [(identity(1), MessageGivenUp(message_id=message_id, attempts=2))]
    assert network[1].counters["given_up"] == 1


def test_a_message_waits_for_a_destination_that_is_not_known_yet() -> None:
    node = make_node(1)
    node.start(now_s=0.0)
    message_id = node.send_message(identity(3), b"hello", now_s=1.0)
    events = []
    now_s = 1.0
    while node.waiting:
        now_s = node.next_timer_s() or 0.0
        node.handle_timer(now_s=now_s)
        events += drain(node)

    assert events == [MessageGivenUp(message_id=message_id, attempts=0)]
    assert 100.0 < now_s <= 121.0


def test_own_capacity_is_back_pressure_with_its_bound() -> None:
    network = Network(settings=MixSettings(mixer=PoissonSettings(own_capacity=2)))
    for _ in range(2):
        network[1].send_message(identity(3), b"hello", now_s=1.0)

    with pytest.raises(QueueFullError) as caught:
        network[1].send_message(identity(3), b"hello", now_s=1.0)
    assert caught.value.bound == 2


@pytest.mark.parametrize(("to", "data"), [(1, b""), (3, bytes(PACKETS.data_bytes + 1))], ids=["to itself", "too long"])
def test_a_message_that_no_packet_can_be_is_a_bug(to: int, data: bytes) -> None:
    with pytest.raises(LocalProtocolError):
        Network()[1].send_message(identity(to), data, now_s=1.0)


class Wrapping(SphinxPackets):
    """Counts the packets that are made."""

    def __init__(self) -> None:
        super().__init__(CODEC)
        self.made = 0

    def wrap(self, path: Sequence[Hop], envelope: Envelope, *, entropy: Entropy) -> bytes:
        self.made += 1
        return super().wrap(path, envelope, entropy=entropy)


@pytest.mark.parametrize("mixer", [OutboxSettings(), PoissonSettings(loop_rate_per_s=0.0)])
def test_what_leaves_now_leaves_before_the_next_packet_is_made(mixer: MixerSettings) -> None:
    """Or else who watches the wire could tell by a packet's delay whether the next one is the node's own."""
    packets = Wrapping()
    node = Network(settings=MixSettings(mixer=mixer), packets=packets)[1]
    for _ in range(20):
        due_s = node.next_timer_s() or 0.0
        made = packets.made
        node.handle_timer(now_s=due_s)
        sent = [event for event in drain(node) if isinstance(event, SendPacket)]

        if sent:
            assert (packets.made, node.next_timer_s()) == (made, due_s)
        else:  # time for what was put off
            assert packets.made == made + 1
            assert (node.next_timer_s() or 0.0) > due_s


# What neighbours send


@pytest.mark.parametrize("name", list(bad_packets(Network())))
def test_a_packet_that_is_not_good_is_counted_by_cause(name: str) -> None:
    network = Network()
    packets, causes = bad_packets(network)[name]

    assert receive(network[1], *packets) == causes


def test_a_packet_from_somebody_who_is_not_linked_is_not_looked_at() -> None:
    network = Network()
    good = packet_for(network[1], envelope=LOOP)

    assert receive(network[1], good, by=identity(9)) == {"unlinked": 1}
    network[1].link_down(NEIGHBOUR, now_s=1.0)
    assert receive(network[1], good) == {"unlinked": 1}


def test_a_flood_ends_at_the_bucket_of_its_neighbour_only() -> None:
    limits = NeighbourLimits(packets_per_s=1.0, packets_burst=3.0)
    network = Network(settings=MixSettings(mixer=OFF, limits=limits))

    assert receive(network[1], *[b""] * 5) == {"bad_length": 3, "flooded": 2}
    assert receive(network[1], b"", by=identity(3)) == {"bad_length": 1}
    assert receive(network[1], *[b""] * 2, now_s=2.0) == {"bad_length": 1, "flooded": 1}


def test_a_full_transit_queue_refuses_and_keeps_its_bound() -> None:
    network = Network(settings=MixSettings(mixer=HELD))
    packets = [packet_for(network[1], network[3], envelope=LOOP, seed=seed) for seed in range(2)]

    assert receive(network[1], packets[0]) == {"relayed": 1}
    assert receive(network[1], packets[1], by=identity(3)) == {"transit_full": 1}
    assert network[1].mixer.transit_waiting == 1


def test_one_neighbour_cannot_fill_the_mixer_with_what_it_hands_us() -> None:
    network = Network(settings=MixSettings(mixer=PoissonSettings(transit_capacity=8, cover=False)))
    packets = [packet_for(network[1], network[3], envelope=LOOP, seed=seed) for seed in range(4)]

    assert receive(network[1], *packets[:3]) == {"relayed": 2, "transit_share_used_up": 1}
    assert receive(network[1], packets[3], by=identity(3)) == {"relayed": 1}

    network[1].handle_timer(now_s=1_000.0)
    again = [packet_for(network[1], network[3], envelope=LOOP, seed=seed) for seed in range(5, 8)]
    assert receive(network[1], *again, now_s=1_000.0) == {"relayed": 2, "transit_share_used_up": 1}


def test_hanging_up_and_dialling_again_renews_no_budget() -> None:
    limits = NeighbourLimits(packets_per_s=1.0, packets_burst=3.0)
    network = Network(settings=MixSettings(mixer=OFF, limits=limits))
    assert receive(network[1], *[b""] * 3) == {"bad_length": 3}

    network[1].link_down(NEIGHBOUR, now_s=0.0)
    network[1].link_up(NEIGHBOUR, now_s=0.0)

    assert receive(network[1], b"") == {"flooded": 1}


def test_a_delay_that_no_honest_sender_asks_for_is_refused() -> None:
    network = Network(settings=MixSettings(mixer=PoissonSettings(delay_mean_s=0.5, cover=False)))
    patient = packet_for(network[1], network[3], envelope=LOOP, seed=1, delay_us=9_999_000)
    too_patient = packet_for(network[1], network[3], envelope=LOOP, seed=2, delay_us=10_001_000)

    assert receive(network[1], patient, too_patient) == {"relayed": 1, "delay_too_long": 1}


def test_a_message_is_handed_over_even_if_its_acknowledgement_finds_no_room() -> None:
    network = Network(settings=MixSettings(mixer=HELD))
    me, other, third = network[1], network[2], network[3]
    first, second = (packet_for(me, envelope=message(other, third, number=n), seed=n) for n in (1, 2))

    assert receive(me, first) == {"received_message": 1, "acknowledged": 1}
    assert receive(me, second, by=identity(3)) == {"received_message": 1, "transit_full": 1}
    assert len([event for event in drain(me) if isinstance(event, MessageReceived)]) == 2


def test_a_full_window_of_delivered_messages_refuses_without_acknowledging() -> None:
    network = Network(settings=MixSettings(mixer=OFF, delivered_capacity=1))
    me, other, third = network[1], network[2], network[3]
    first, second = (packet_for(me, envelope=message(other, third, number=n), seed=n) for n in (1, 2))

    assert receive(me, first, second) == {"received_message": 1, "acknowledged": 1, "delivered_window_full": 1}
    assert len(drain(me)) == 2


def test_a_full_replay_window_refuses() -> None:
    network = Network(settings=MixSettings(mixer=OFF, replay_capacity=1))
    packets = [packet_for(network[1], envelope=LOOP, seed=seed) for seed in (1, 2)]

    assert receive(network[1], packets[0]) == {"loop_unknown": 1}
    assert receive(network[1], packets[1], by=identity(3)) == {"replay_window_full": 1}


def test_a_tampered_reply_is_counted_and_its_message_stays_alive() -> None:
    network = Network()
    network.lost = {identity(1)}
    network[1].send_message(identity(3), b"hello", now_s=1.0)
    network.carry(now_s=1.0)
    bearer, _, reply = network.wire[-1]

    assert receive(network[1], flipped(reply, -1), by=bearer) == {"bad_reply": 1}
    assert network[1].waiting == 1


def test_an_unwritable_link_gives_its_packet_back_until_the_bound() -> None:
    node = Network(settings=MixSettings(mixer=HELD, limits=NeighbourLimits(unsent_max=1)))[1]
    unsent = SendPacket(to=NEIGHBOUR, packet=b"p")

    node.packet_unsent(unsent, now_s=1.0)

    assert counted(node, lambda: node.packet_unsent(unsent, now_s=1.0)) == {"unsent_dropped": 1}
    assert node.mixer.transit_waiting == 1


def test_a_neighbour_that_reads_nothing_does_not_fill_the_mixer() -> None:
    network = Network(settings=MixSettings(mixer=PoissonSettings(transit_capacity=8, cover=False)))
    node = network[1]
    stuck = [packet_for(node, network[3], envelope=LOOP, seed=seed) for seed in range(6)]
    for packet in stuck:  # all of it for a neighbour whose link is never writable
        node.receive_packet(packet, from_peer=NEIGHBOUR, now_s=1.0)
        node.handle_timer(now_s=1_000.0)
        for event in drain(node):
            if isinstance(event, SendPacket) and event.to == identity(3):
                node.packet_unsent(event, now_s=1_000.0)

    assert node.mixer.transit_waiting == 2
    assert node.counters["unsent_dropped"] > 0
    assert receive(node, packet_for(node, network[4], envelope=LOOP, seed=9), now_s=1_000.0) == {"relayed": 1}


def test_one_neighbour_cannot_use_up_the_replay_window() -> None:
    limits = NeighbourLimits(transit_share=0.5)
    network = Network(settings=MixSettings(mixer=OFF, replay_capacity=4, limits=limits))
    packets = [packet_for(network[1], envelope=LOOP, seed=seed) for seed in range(4)]

    assert receive(network[1], *packets[:3]) == {"loop_unknown": 2, "replay_share_used_up": 1}
    assert receive(network[1], packets[3], by=identity(3)) == {"loop_unknown": 1}


def test_a_new_key_opens_new_shares_of_its_window_and_a_renewed_descriptor_none() -> None:
    limits = NeighbourLimits(transit_share=0.5)
    rotating = MixSettings(mixer=OFF, replay_capacity=4, limits=limits, epoch_length_s=1_000.0, key_overlap_s=500.0)
    network = Network(settings=rotating)
    me = network[1]
    used_up = {"loop_unknown": 2, "replay_share_used_up": 1}
    packets = [packet_for(me, envelope=LOOP, seed=seed) for seed in range(4)]
    assert receive(me, *packets[:3]) == used_up

    me.handle_timer(now_s=600.0)  # renewed at half of its life
    assert receive(me, packets[3], now_s=600.0) == {"replay_share_used_up": 1}
    me.handle_timer(now_s=1_000.0)
    packets = [packet_for(me, envelope=LOOP, seed=seed) for seed in range(4)]

    assert receive(me, *packets[:3], now_s=1_000.0) == used_up


def test_more_links_than_allowed_are_refused() -> None:
    node = make_node(1, settings=MixSettings(mixer=OFF, limits=NeighbourLimits(links_max=1)))
    node.start(now_s=0.0)

    assert [node.link_up(identity(number), now_s=1.0) for number in (2, 2, 3)] == [True, True, False]
    assert node.counters["too_many_links"] == 1


@settings(max_examples=150)
@given(data=st.data())
def test_whatever_neighbours_send_never_raises_and_is_counted_once(data: st.DataObject) -> None:
    """Each input adds to exactly one final counter: it is refused by cause, passed on, or for the application."""
    network = Network(3)
    me = network[1]
    good = [packet for packets, _ in bad_packets(network).values() for packet in packets]
    for _ in range(data.draw(st.integers(1, 6))):
        packet = data.draw(st.one_of(st.binary(max_size=100), st.sampled_from(good)))
        if packet and data.draw(st.booleans()):
            packet = flipped(packet, data.draw(st.integers(0, len(packet) - 1)))
        counts = receive(me, packet, by=data.draw(st.sampled_from([identity(2), identity(3), identity(9)])))
        counts.pop("received_message", None)
        assert sum(counts.values()) == 1
        me.receive_control(data.draw(st.one_of(st.binary(max_size=300), st.just(packet))), from_peer=NEIGHBOUR, now_s=1)
        drain(me)


# Descriptors


def descriptor(number: int = 7, *, serial: int = 5) -> bytes:
    return describe(number, KeyRotated(epoch=0, serial=serial, public_key=b"k" * 32), 0.0).data


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (flipped(descriptor(), -1), "bad_signature"),
        (descriptor().replace(b"10.0.0.7:4433", b"127.0.0.1:443"), "bad_address"),
        (b"", "truncated"),
        (bytes(100_000), "too_long"),
    ],
)
def test_a_bad_descriptor_is_counted_by_cause(data: bytes, cause: str) -> None:
    node = Network()[1]

    counts = counted(node, lambda: node.receive_control(data, from_peer=NEIGHBOUR, now_s=1.0))

    assert (counts, drain(node)) == ({cause: 1}, [])


def test_a_stale_descriptor_is_counted_and_an_expired_one_too() -> None:
    node = Network()[1]
    node.receive_control(descriptor(), from_peer=NEIGHBOUR, now_s=1.0)

    older = counted(node, lambda: node.receive_control(descriptor(serial=4), from_peer=NEIGHBOUR, now_s=1.0))
    expired = counted(node, lambda: node.receive_control(descriptor(8), from_peer=NEIGHBOUR, now_s=LIFE_S))

    assert (older, expired) == ({"stale_epoch": 1}, {"stale": 1})


def test_a_flood_of_descriptors_ends_at_the_bucket() -> None:
    limits = NeighbourLimits(descriptors_per_s=1.0, descriptors_burst=5.0)
    network = Network(settings=MixSettings(mixer=OFF, limits=limits))

    def flood() -> None:
        for _ in range(9):
            network[1].receive_control(b"", from_peer=NEIGHBOUR, now_s=100.0)

    assert counted(network[1], flood) == {"truncated": 5, "flooded_descriptors": 4}
    by_stranger = counted(network[1], lambda: network[1].receive_control(b"", from_peer=identity(9), now_s=100.0))
    assert by_stranger == {"unlinked": 1}


def test_a_flood_of_news_ends_at_its_own_bucket() -> None:
    limits = NeighbourLimits(news_per_s=1.0, news_burst=3.0)
    node = Network(settings=MixSettings(mixer=OFF, limits=limits))[1]
    news = [descriptor(number) for number in range(10, 16)]

    def flood() -> None:
        for data in news:
            node.receive_control(data, from_peer=NEIGHBOUR, now_s=100.0)

    assert counted(node, flood) == {"flooded_news": 3}
    assert sum(isinstance(event, SendControl) for event in drain(node)) == 3 * 2  # to both others


def test_a_descriptor_that_a_link_could_not_take_is_sent_again() -> None:
    node = make_node(1)
    node.start(now_s=0.0)
    node.link_up(NEIGHBOUR, now_s=1.0)
    (unsent,) = (event for event in drain(node) if isinstance(event, SendControl))

    node.control_unsent(unsent, now_s=1.0)
    assert drain(node) == []
    node.handle_timer(now_s=2.0)

    assert drain(node) == [unsent]


def test_a_descriptor_is_renewed_before_it_expires_under_a_higher_serial() -> None:
    network = Network()
    key = network[1].public_key
    now_s = 0.0
    while now_s < 3.0 * LIFE_S:
        now_s = min(node.next_timer_s() or 0.0 for node in network.nodes.values())
        for node in network.nodes.values():
            node.handle_timer(now_s=now_s)
        heard = network.carry(now_s=now_s)
        assert {event.reason for _, event in heard} == {"updated"}  # type: ignore[union-attr]

    seen = network[2].peers.descriptor(identity(1))
    assert seen is not None
    assert (seen.public_key, seen.valid_until_s > now_s, seen.serial > 3) == (key, True, True)


# Keys

ROTATING = MixSettings(mixer=OFF, epoch_length_s=100.0, key_overlap_s=50.0)


def test_packets_for_the_previous_key_are_good_during_the_overlap_only() -> None:
    network = Network(settings=ROTATING)
    me = network[1]
    packets = [packet_for(me, envelope=LOOP, seed=seed) for seed in range(3)]
    old_key = me.public_key

    me.handle_timer(now_s=100.0)
    during = receive(me, packets[0], packets[0], packet_for(me, envelope=LOOP, seed=5), now_s=149.0)
    me.handle_timer(now_s=150.0)

    assert me.public_key != old_key
    assert during == {"loop_unknown": 2, "replayed": 1}
    assert receive(me, *packets[:2], now_s=150.0) == {"bad_mac": 2}


def test_a_restarted_node_replaces_its_descriptor_at_its_neighbours() -> None:
    network = Network()
    network.nodes[identity(1)] = reborn = make_node(1, life=1)
    reborn.start(now_s=10.0)
    network.link(identity(1), now_s=10.0)
    network.carry(now_s=10.0)
    assert [network[number].peers.public_key(identity(1)) for number in (2, 3, 4)] == [reborn.public_key] * 3

    message_id = network[2].send_message(identity(1), b"again", now_s=11.0)

    assert (identity(1), MessageReceived(message_id=message_id, data=b"again")) in network.carry(now_s=11.0)


def test_a_new_link_is_told_our_descriptor() -> None:
    node = make_node(1)
    node.start(now_s=0.0)

    node.link_up(NEIGHBOUR, now_s=1.0)

    (event,) = drain(node)
    assert isinstance(event, SendControl)
    assert event.to == NEIGHBOUR
