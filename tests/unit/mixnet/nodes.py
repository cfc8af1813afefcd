"""What the tests of the composed node share: real nodes with real packets, linked to each other, without delays."""

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from nacl.bindings import crypto_sign_seed_keypair

from unlinkabledfl.mixnet.config import MixSettings, build_mix_node
from unlinkabledfl.mixnet.delay_law import OffLaw
from unlinkabledfl.mixnet.descriptor import Descriptor, sign
from unlinkabledfl.mixnet.destinations import ReachDestinations
from unlinkabledfl.mixnet.draw import Draw
from unlinkabledfl.mixnet.envelope import EnvelopeCodec
from unlinkabledfl.mixnet.events import MixEvent, SendControl, SendPacket
from unlinkabledfl.mixnet.items import MessageId
from unlinkabledfl.mixnet.itinerary import Planner
from unlinkabledfl.mixnet.keys import KeyRing, KeyRotated
from unlinkabledfl.mixnet.mix_node import MixNode
from unlinkabledfl.mixnet.mixers import OffSettings
from unlinkabledfl.mixnet.packets import Envelope, Loop, Message, Opaque, PacketFormat
from unlinkabledfl.mixnet.peers import PeerSettings, PeerView
from unlinkabledfl.mixnet.routes import OverlayRoutes
from unlinkabledfl.mixnet.sphinx_packets import SphinxPackets
from unlinkabledfl.sphinx import Entropy, Geometry, Hop, NodeId, Sphinx, Surb

GEOMETRY = Geometry(max_hops=3, body_bytes=2048)
CODEC = Sphinx(GEOMETRY, backend="pynacl")
PACKETS = SphinxPackets(CODEC)
ENVELOPES = EnvelopeCodec(GEOMETRY)
LIFE_S = 1000
LOOP = Loop(MessageId(b"l" * 16))


def entropy(seed: int) -> Entropy:
    return random.Random(seed).randbytes


def identity(number: int) -> NodeId:
    return NodeId(crypto_sign_seed_keypair(number.to_bytes(32))[0])


def describe(number: int, key: KeyRotated, now_s: float) -> Descriptor:
    return sign(
        number.to_bytes(32),
        serial=key.serial,
        epoch=key.epoch,
        public_key=key.public_key,
        fingerprint=bytes(32),
        valid_until_s=int(now_s) + LIFE_S,
        addresses=[f"10.0.0.{number}:4433"],
    )


def make_node(
    number: int,
    *,
    settings: MixSettings | None = None,
    packets: PacketFormat = PACKETS,
    life: int = 0,
    **peers: Any,
) -> MixNode:
    view = PeerView(own_id=identity(number), settings=PeerSettings(**peers))
    routes = OverlayRoutes(peers=view, path_length=2)
    return build_mix_node(
        settings or MixSettings(mixer=OffSettings()),
        node_id=identity(number),
        packets=packets,
        peers=view,
        routes=routes,
        destinations=ReachDestinations(source=identity(number), routes=routes),
        entropy=entropy(100 * number + life),
        first_serial=1000 * life,
        describe=lambda key, now_s: describe(number, key, now_s),
    )


def no_delay(_: Draw) -> float:
    return 0.0


def make_planner(
    node_id: NodeId,
    view: PeerView,
    *,
    generate: Callable[[Entropy], Any],
    path_length: int = 2,
    hop_delay_s: Callable[[Draw], float] = no_delay,
) -> Planner:
    routes = OverlayRoutes(peers=view, path_length=path_length)
    keys: KeyRing[Any] = KeyRing(
        generate=generate, entropy=entropy(1), epoch_length_s=None, overlap_s=0.0, replay_capacity=10
    )
    keys.start(now_s=0.0)
    return Planner(
        node_id=node_id,
        peers=view,
        routes=routes,
        destinations=ReachDestinations(source=node_id, routes=routes),
        keys=keys,
        hop_delay_s=hop_delay_s,
        law=OffLaw(),
        draw=Draw(entropy(2)),
    )


def drain(node: MixNode) -> list[MixEvent]:
    return list(iter(node.next_event, None))


class Network:
    """Nodes 1 to n, all linked to all; what they send arrives at once, unless `lost` names its receiver."""

    def __init__(self, nodes: int = 4, *, settings: MixSettings | None = None, packets: PacketFormat = PACKETS) -> None:
        numbers = range(1, nodes + 1)
        self.nodes = {identity(number): make_node(number, settings=settings, packets=packets) for number in numbers}
        self.lost: set[NodeId] = set()
        self.events: list[tuple[NodeId, MixEvent]] = []
        self.wire: list[tuple[NodeId, NodeId, Opaque]] = []
        for node in self.nodes.values():
            node.start(now_s=0.0)
        for one in self.nodes:
            self.link(one, now_s=0.0)
        self.carry(now_s=0.0)
        self.events.clear()

    def __getitem__(self, number: int) -> MixNode:
        return self.nodes[identity(number)]

    def link(self, node_id: NodeId, *, now_s: float) -> None:
        for other in self.nodes:
            if other != node_id:
                self.nodes[node_id].link_up(other, now_s=now_s)

    def carry(self, *, now_s: float) -> list[tuple[NodeId, MixEvent]]:
        """Hand over what is sent until all are quiet; return what the applications hear."""
        busy = True
        while busy:
            busy = False
            for node_id, node in self.nodes.items():
                for event in drain(node):
                    busy = True
                    match event:
                        case SendPacket(to=to, packet=packet):
                            self.wire.append((node_id, to, packet))
                            if to not in self.lost:
                                self.nodes[to].receive_packet(packet, from_peer=node_id, now_s=now_s)
                        case SendControl(to=to, data=data):
                            self.nodes[to].receive_control(data, from_peer=node_id, now_s=now_s)
                        case _:
                            self.events.append((node_id, event))
        heard, self.events = self.events, []
        return heard


def hops(nodes: Iterable[MixNode]) -> list[Hop]:
    return [Hop(node.node_id, node.public_key) for node in nodes]


def packet_for(*path: MixNode, envelope: Envelope, seed: int = 7, delay_us: int = 0) -> bytes:
    held = [replace(hop, delay_us=delay_us) for hop in hops(path)]
    return PACKETS.wrap(held, envelope, entropy=entropy(seed))


def payload_for(*path: MixNode, payload: bytes, seed: int = 7) -> bytes:
    """What only a malicious sender makes: any payload at all."""
    return CODEC.wrap(hops(path), payload.ljust(GEOMETRY.payload_bytes, b"\0"), entropy=entropy(seed))


def flipped(data: bytes, position: int) -> bytes:
    changed = bytearray(data)
    changed[position] ^= 1
    return bytes(changed)


def surb_to(*path: MixNode, seed: int = 9) -> Surb:
    return PACKETS.make_surb(hops(path), entropy=entropy(seed))[0]


def message(*back: MixNode, number: int = 1, data: bytes = b"d") -> Message:
    return Message(MessageId(number.to_bytes(16)), data, surb_to(*back, seed=number))


def bad_packets(network: Network) -> dict[str, tuple[list[bytes], dict[str, int]]]:
    """Packets for node 1, and what it counts."""
    me, other, third = network[1], network[2], network[3]
    good = packet_for(me, third, envelope=LOOP)
    mine = packet_for(me, envelope=message(other, third))
    stranger = make_node(9)
    stranger.start(now_s=0.0)
    spent = PACKETS.make_surb(hops([me]), entropy=entropy(3))[0]
    return {
        "truncated": ([good[:-1], b""], {"bad_length": 2}),
        "oversized": ([good + b"\0"], {"bad_length": 1}),
        "random": ([entropy(1)(len(good))], {"bad_mac": 1}),
        "zeros": ([bytes(len(good))], {"bad_element": 1}),
        "replayed": ([good, good], {"relayed": 1, "replayed": 1}),
        "replayed message": ([mine, mine], {"received_message": 1, "acknowledged": 1, "replayed": 1}),
        "tampered header": ([flipped(good, 40)], {"bad_mac": 1}),
        "tampered body": ([flipped(mine, -1)], {"bad_payload": 1}),
        "mis-addressed": ([packet_for(other, envelope=LOOP)], {"bad_mac": 1}),
        "unknown next hop": ([packet_for(me, stranger, envelope=LOOP)], {"unknown_next_hop": 1}),
        "next hop is itself": ([packet_for(me, me, envelope=LOOP)], {"unknown_next_hop": 1}),
        "unknown kind": ([payload_for(me, payload=b"\x09")], {"bad_envelope": 1}),
        "acknowledgement as a message": ([payload_for(me, payload=b"\x04")], {"bad_envelope": 1}),
        "absurd length": ([payload_for(me, payload=b"\x01" + b"\xff" * 1900)], {"bad_envelope": 1}),
        "reply block to nowhere": (
            [payload_for(me, payload=b"\x01" + b"\xff" * (16 + GEOMETRY.surb_bytes))],
            {"received_message": 1, "unknown_next_hop": 1},
        ),
        "forged loop": ([packet_for(me, envelope=LOOP)], {"loop_unknown": 1}),
        "forged reply": ([CODEC.reply(spent, bytes(GEOMETRY.payload_bytes))[1]], {"ack_unknown": 1}),
        "spent reply block": ([PACKETS.acknowledge(spent)[1]] * 2, {"ack_unknown": 1, "replayed": 1}),
    }
