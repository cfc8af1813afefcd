import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlinkabledfl.errors import LocalProtocolError, PacketError
from unlinkabledfl.mixnet.envelope import EnvelopeCodec
from unlinkabledfl.mixnet.items import MessageId
from unlinkabledfl.mixnet.packets import Delivered, Drop, Loop, Message, PacketFormat, Relayed, Returned
from unlinkabledfl.mixnet.replay import ReplayWindow
from unlinkabledfl.simulation.entropy import SeededEntropy
from unlinkabledfl.simulation.log import hash_of
from unlinkabledfl.simulation.sealed import SealedKey, SealedPackets
from unlinkabledfl.sphinx import Geometry, Hop, NodeId

LOOP = Loop(MessageId(bytes(16)))


class Peers:
    """Peers with their keys and what they have seen."""

    def __init__(self, count: int, seed: int = 1) -> None:
        self.entropy = SeededEntropy(seed, "peers")
        self.packets = SealedPackets(Geometry())
        self.keys: list[SealedKey] = [self.packets.generate_key(self.entropy) for _ in range(count)]
        self.seen = [ReplayWindow(capacity=1000) for _ in range(count)]

    def path(self, *route: int, delay_us: int = 0) -> list[Hop]:
        return [Hop(NodeId(index.to_bytes(32)), self.keys[index].public_bytes, delay_us) for index in route]

    def unwrap(self, index: int, packet: object) -> Relayed | Delivered | Returned:
        return self.packets.unwrap(packet, key=self.keys[index], replays=self.seen[index])


def test_sizes_are_those_of_real_packets() -> None:
    geometry = Geometry(max_hops=3, body_bytes=4096)
    packets: PacketFormat = SealedPackets(geometry)

    assert (packets.packet_bytes, packets.max_hops) == (geometry.packet_bytes, 3)
    assert packets.data_bytes == EnvelopeCodec(geometry).data_bytes


def test_a_packet_passes_its_hops_with_their_delays_and_is_delivered() -> None:
    peers = Peers(3)
    surb, _, _ = peers.packets.make_surb(peers.path(1, 0), entropy=peers.entropy)
    message = Message(MessageId(bytes(16)), b"data", surb)
    packet = peers.packets.wrap(peers.path(1, 2, delay_us=250_000), message, entropy=peers.entropy)

    relayed = peers.unwrap(1, packet)

    assert isinstance(relayed, Relayed)
    assert (relayed.next_hop, relayed.delay_s) == (peers.path(2)[0].node_id, 0.25)
    assert peers.unwrap(2, relayed.packet) == Delivered(0.25, message)


def test_a_reply_block_comes_back_under_its_id_and_opens_once_per_relay() -> None:
    peers = Peers(3)
    surb, surb_id, secret = peers.packets.make_surb(peers.path(1, 0), entropy=peers.entropy)
    first_hop, packet = peers.packets.acknowledge(surb)
    relayed = peers.unwrap(1, packet)
    assert isinstance(relayed, Relayed)
    returned = peers.unwrap(0, relayed.packet)

    assert first_hop == peers.path(1)[0].node_id
    assert isinstance(returned, Returned)
    assert returned.surb_id == surb_id
    peers.packets.open_acknowledgement(secret, returned.body)
    with pytest.raises(PacketError, match="replayed"):
        peers.unwrap(1, peers.packets.acknowledge(surb)[1])


def test_a_reply_to_another_block_is_refused() -> None:
    peers = Peers(2)
    _, _, secret = peers.packets.make_surb(peers.path(1, 0), entropy=peers.entropy)
    _, _, other = peers.packets.make_surb(peers.path(1, 0), entropy=peers.entropy)

    with pytest.raises(PacketError, match="bad_reply"):
        peers.packets.open_acknowledgement(secret, other)


def test_a_packet_opens_for_nobody_else_and_leaves_no_trace_there() -> None:
    peers = Peers(3)
    packet = peers.packets.wrap(peers.path(1, 2), LOOP, entropy=peers.entropy)

    with pytest.raises(PacketError, match="bad_mac"):
        peers.unwrap(2, packet)

    assert len(peers.seen[2]) == 0
    assert isinstance(peers.unwrap(1, packet), Relayed)


@pytest.mark.parametrize("nonsense", [b"", b"x" * 10_553, None, 7])
def test_what_is_no_sealed_packet_is_refused(nonsense: object) -> None:
    with pytest.raises(PacketError, match="bad_length"):
        Peers(1).unwrap(0, nonsense)


@pytest.mark.parametrize("hops", [0, 6])
def test_a_path_that_no_packet_can_carry_is_our_own_fault(hops: int) -> None:
    peers = Peers(6)
    with pytest.raises(LocalProtocolError, match=f"a path of {hops} hops"):
        peers.packets.wrap(peers.path(*range(hops)), LOOP, entropy=peers.entropy)


@given(route=st.lists(st.integers(0, 5), min_size=1, max_size=5, unique=True), seed=st.integers(0, 99))
def test_every_layer_opens_once_for_its_hop_and_looks_new_on_each_link(route: list[int], seed: int) -> None:
    peers = Peers(6, seed)
    surb, _, _ = peers.packets.make_surb(peers.path(*reversed(route)), entropy=peers.entropy)
    packet: object = peers.packets.wrap(peers.path(*route), Drop(surb), entropy=peers.entropy)
    hashes = []
    for index in route[:-1]:
        hashes.append(hash_of(packet))
        relayed = peers.unwrap(index, packet)
        with pytest.raises(PacketError, match="replayed"):
            peers.unwrap(index, packet)
        assert isinstance(relayed, Relayed)
        packet = relayed.packet
    hashes.append(hash_of(packet))

    assert peers.unwrap(route[-1], packet) == Delivered(0.0, Drop(surb))
    assert len(set(hashes)) == len(route)
