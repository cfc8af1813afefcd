"""A node that gets several packets at once does exactly what it does with one after the other."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.mixnet.nodes import GEOMETRY, LOOP, Network, bad_packets, drain, flipped, identity, packet_for
from unlinkabledfl.errors import PacketError
from unlinkabledfl.mixnet.config import MixSettings
from unlinkabledfl.mixnet.mix_node import MixNode, NeighbourLimits
from unlinkabledfl.mixnet.mixers import MixerSettings, OffSettings, OutboxSettings, PoissonSettings
from unlinkabledfl.mixnet.packets import Unwrapped
from unlinkabledfl.mixnet.sphinx_packets import SphinxPackets
from unlinkabledfl.sphinx import NodeId, PrivateKey, ReplayFilter, Sphinx

MIXERS: dict[str, MixerSettings] = {
    "off": OffSettings(),
    "outbox": OutboxSettings(outbox_size=4, transit_capacity=6),
    "poisson": PoissonSettings(delay_mean_s=0.5, transit_capacity=6),
}
TIGHT = NeighbourLimits(packets_per_s=1.0, packets_burst=6.0, transit_share=0.5)
PEERS = [identity(2), identity(3), identity(9)]  # the last one is not linked
PACKETS = SphinxPackets(Sphinx(GEOMETRY))


def make(mixer: MixerSettings) -> Network:
    """Equal calls give equal networks; eight lanes where this machine has them."""
    mix = MixSettings(mixer=mixer, limits=TIGHT, epoch_length_s=100.0, key_overlap_s=100.0)
    return Network(3, settings=mix, packets=PACKETS)


def state(node: MixNode) -> tuple[object, ...]:
    mixer = node.mixer
    return (
        node.counters.as_dict(), drain(node), node.next_timer_s(), mixer.transit_waiting, mixer.own_waiting,
        node.waiting, node.cover_loss_share,
    )  # fmt: skip


@pytest.mark.parametrize("mixer", MIXERS.values(), ids=MIXERS)
@settings(max_examples=40)
@given(data=st.data())
def test_a_batch_is_taken_like_its_packets_one_after_the_other(mixer: MixerSettings, data: st.DataObject) -> None:
    one, other = make(mixer), make(mixer)
    rotates = data.draw(st.booleans())
    kinds = [packet for packets, _ in bad_packets(one).values() for packet in packets]
    if rotates:  # what was made until now is for the previous key
        one[1].handle_timer(now_s=100.0)
        other[1].handle_timer(now_s=100.0)
        kinds += [packet for packets, _ in bad_packets(one).values() for packet in packets]
    packets = st.one_of(st.sampled_from(kinds), st.builds(flipped, st.sampled_from([kinds[4]]), st.integers(0, 400)))
    batch: list[tuple[NodeId, bytes]] = data.draw(st.lists(st.tuples(st.sampled_from(PEERS), packets), max_size=20))

    for peer, packet in batch:
        one[1].receive_packet(packet, from_peer=peer, now_s=101.0)
    other[1].receive_packets(batch, now_s=101.0)

    assert state(one[1]) == state(other[1])


class Counting(SphinxPackets):
    """Takes down how many packets came together."""

    def __init__(self) -> None:
        super().__init__(Sphinx(GEOMETRY))
        self.batches: list[int] = []

    def unwrap_batch(
        self, packets: Sequence[bytes], *, key: PrivateKey, replays: ReplayFilter
    ) -> list[Unwrapped | PacketError]:
        self.batches.append(len(packets))
        return super().unwrap_batch(packets, key=key, replays=replays)


def test_a_batch_goes_through_the_lanes_together_whoever_handed_over_its_packets() -> None:
    packets = Counting()
    network = Network(3, packets=packets)
    batch = [(PEERS[seed % 2], packet_for(network[1], network[3], envelope=LOOP, seed=seed)) for seed in range(9)]

    network[1].receive_packets(batch, now_s=1.0)

    assert (packets.batches, network[1].counters["relayed"]) == ([9], 9)


def test_who_forges_is_taken_off_the_lanes_until_a_packet_of_its_opens() -> None:
    packets = Counting()
    network = Network(3, packets=packets)
    me = network[1]
    good = [packet_for(me, network[3], envelope=LOOP, seed=seed) for seed in range(9)]
    forged = [(PEERS[0], flipped(packet, 40)) for packet in good]

    me.receive_packets(forged[:4], now_s=1.0)
    me.receive_packets([*forged[4:8], (PEERS[1], good[0]), (PEERS[1], good[1])], now_s=1.0)
    me.receive_packets([(PEERS[0], good[2])], now_s=1.0)
    me.receive_packets([(PEERS[0], packet) for packet in good[3:]], now_s=1.0)

    assert packets.batches == [4, 2, 6]
    assert (me.counters["bad_mac"], me.counters["relayed"]) == (8, 9)


def test_an_empty_batch_changes_nothing() -> None:
    one, other = make(OffSettings()), make(OffSettings())

    one[1].receive_packets([], now_s=1.0)

    assert state(one[1]) == state(other[1])
