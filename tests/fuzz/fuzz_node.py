"""Let neighbours do to a node whatever they like: it raises nothing, believes nobody, and keeps within its bounds.

    python tests/fuzz/fuzz_node.py                          for FUZZ_SECONDS, 60 by default
    python tests/fuzz/fuzz_node.py -runs=1000               or with any option of libFuzzer
    python tests/fuzz/fuzz_node.py crash-0123abcd           one input again

An input is a sequence of acts: a byte that says which, a byte that says by whom, two bytes that say how long what
follows is, and that. Two nodes live through all of it, one packet by packet and one batch by batch, and must agree.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from hashlib import shake_256
from typing import Final

from nacl.bindings import crypto_sign_seed_keypair

try:
    import atheris
except ImportError:  # the module stays importable, so that type checks and tests see it
    atheris = None

with atheris.instrument_imports(include=["unlinkabledfl"]) if atheris else nullcontext():
    from unlinkabledfl.mixnet.config import MixSettings, build_mix_node
    from unlinkabledfl.mixnet.descriptor import Descriptor, sign
    from unlinkabledfl.mixnet.destinations import ReachDestinations
    from unlinkabledfl.mixnet.items import MessageId
    from unlinkabledfl.mixnet.keys import KeyRotated
    from unlinkabledfl.mixnet.mix_node import MixNode, NeighbourLimits
    from unlinkabledfl.mixnet.mixers import PoissonSettings
    from unlinkabledfl.mixnet.packets import Drop, Envelope, Loop, Message
    from unlinkabledfl.mixnet.peers import PeerSettings, PeerView
    from unlinkabledfl.mixnet.routes import OverlayRoutes
    from unlinkabledfl.mixnet.sphinx_packets import SphinxPackets
    from unlinkabledfl.sphinx import Entropy, Geometry, Hop, NodeId, Sphinx

GEOMETRY: Final = Geometry(max_hops=2, body_bytes=1_024)
CODEC: Final = Sphinx(GEOMETRY)
PACKETS: Final = SphinxPackets(CODEC)
MIX: Final = MixSettings(
    mixer=PoissonSettings(delay_mean_s=0.1, transit_capacity=8, own_capacity=4),
    limits=NeighbourLimits(packets_burst=64.0, transit_share=0.5, links_max=3, unsent_max=4),
    epoch_length_s=60.0,
    replay_capacity=64,
    delivered_capacity=8,
)
PEERS: Final = PeerSettings(capacity=4)
LIFE_S: Final = 600
OPTIONS: Final = (f"-max_len={8 * GEOMETRY.packet_bytes}", "-timeout=10", "-rss_limit_mb=1024")


def _entropy(label: str) -> Entropy:
    drawn = 0

    def draw(length: int) -> bytes:
        nonlocal drawn
        drawn += 1
        return shake_256(f"{label}/{drawn}".encode()).digest(length)

    return draw


def _identity(number: int) -> NodeId:
    return NodeId(crypto_sign_seed_keypair(number.to_bytes(32))[0])


def _describe(number: int, *, serial: int, public_key: bytes, now_s: float = 0.0) -> Descriptor:
    return sign(
        number.to_bytes(32),
        serial=serial,
        epoch=0,
        public_key=public_key,
        fingerprint=bytes(32),
        valid_until_s=int(now_s) + LIFE_S,
        addresses=[f"10.0.0.{number}:4433"],
    )


IDS: Final = tuple(_identity(number) for number in range(6))
KEYS: Final = tuple(CODEC.generate_key(_entropy(f"key/{number}")) for number in range(6))
DESCRIPTORS: Final = tuple(
    _describe(number, serial=serial, public_key=KEYS[number].public_bytes).data
    for number in range(1, 6)
    for serial in (1, 2)
)


def _node() -> MixNode:
    view = PeerView(own_id=IDS[0], settings=PEERS)
    routes = OverlayRoutes(peers=view, path_length=2)

    def describe(key: KeyRotated, now_s: float) -> Descriptor:
        return _describe(0, serial=key.serial, public_key=key.public_key, now_s=now_s)

    node = build_mix_node(
        MIX,
        node_id=IDS[0],
        packets=PACKETS,
        peers=view,
        routes=routes,
        destinations=ReachDestinations(source=IDS[0], routes=routes),
        entropy=_entropy("node"),
        describe=describe,
    )
    node.start(now_s=0.0)
    node.link_up(IDS[1], now_s=0.0)
    node.receive_control(DESCRIPTORS[0], from_peer=IDS[1], now_s=0.0)
    return node


def _good_packets() -> tuple[bytes, ...]:
    """One of each kind that the node would take."""
    us, other = Hop(IDS[0], _node().public_key), Hop(IDS[1], KEYS[1].public_bytes)
    surb = PACKETS.make_surb([other], entropy=_entropy("surb"))[0]
    envelopes: list[Envelope] = [Message(MessageId(bytes(16)), b"data", surb), Drop(surb), Loop(MessageId(b"l" * 16))]
    packets = [
        PACKETS.wrap([us], envelope, entropy=_entropy(f"to us/{kind}")) for kind, envelope in enumerate(envelopes)
    ]
    relayed = PACKETS.wrap([us, other], Loop(MessageId(b"l" * 16)), entropy=_entropy("relayed"))
    reply = PACKETS.acknowledge(PACKETS.make_surb([us], entropy=_entropy("reply"))[0])[1]
    return (*packets, relayed, reply)


GOOD: Final = _good_packets()


def _changed(good: bytes, data: bytes) -> bytes:
    """The good bytes with some of them changed: two bytes of position and a mask, again and again."""
    changed = bytearray(good)
    for at in range(0, len(data) - 2, 3):
        changed[int.from_bytes(data[at : at + 2]) % len(changed)] ^= data[at + 2]
    return bytes(changed)


def _acts(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        end = at + 4 + int.from_bytes(data[at + 2 : at + 4])
        yield data[at], data[at + 1], data[at + 4 : end]
        at = end


class Pair:
    """The two nodes; packets wait for the batch until something else happens."""

    def __init__(self) -> None:
        self.single, self.batched = _node(), _node()
        self._batch: list[tuple[NodeId, bytes]] = []
        self._now_s = 1.0

    def packet(self, peer: NodeId, packet: bytes) -> None:
        self.single.receive_packet(packet, from_peer=peer, now_s=self._now_s)
        self._batch.append((peer, packet))

    def act(self, what: int, who: int, data: bytes) -> None:
        peer = IDS[who % len(IDS)]
        match what % 8:
            case 0:
                self.packet(peer, data)
            case 1:
                self.packet(peer, data[: GEOMETRY.packet_bytes].ljust(GEOMETRY.packet_bytes, b"\0"))
            case 2:
                self.packet(peer, _changed(GOOD[what // 8 % len(GOOD)], data))
            case kind:
                self.settle()
                self._now_s += 0.01 * len(data) if kind == 7 else 0.0
                for node in (self.single, self.batched):
                    self._do(node, kind, what // 8, peer, data)

    def _do(self, node: MixNode, kind: int, choice: int, peer: NodeId, data: bytes) -> None:
        match kind:
            case 3:
                node.receive_control(data, from_peer=peer, now_s=self._now_s)
            case 4:
                changed = _changed(DESCRIPTORS[choice % len(DESCRIPTORS)], data)
                node.receive_control(changed, from_peer=peer, now_s=self._now_s)
            case 5:
                node.link_up(peer, now_s=self._now_s)
            case 6:
                node.link_down(peer, now_s=self._now_s)
            case _:
                node.handle_timer(now_s=self._now_s)

    def settle(self) -> None:
        """Both have had all packets: they must be in the same state, and within their bounds."""
        self.batched.receive_packets(self._batch, now_s=self._now_s)
        self._batch.clear()
        seen = [
            (
                node.counters.as_dict(),
                list(iter(node.next_event, None)),
                node.next_timer_s(),
                node.mixer.transit_waiting,
            )
            for node in (self.single, self.batched)
        ]
        if seen[0] != seen[1]:
            raise AssertionError("a batch was not taken like its packets one after the other")
        self._check(self.single)

    def _check(self, node: MixNode) -> None:
        if node.mixer.transit_waiting > MIX.mixer.transit_capacity + MIX.limits.unsent_max:
            raise AssertionError("more packets wait than may")
        if len(node.peers) > PEERS.capacity:
            raise AssertionError("more peers are known than may be")
        for peer in IDS[1:]:
            known = node.peers.descriptor(peer)
            if known is not None and known.data not in DESCRIPTORS:
                raise AssertionError("a descriptor that its node did not sign is believed")


def fuzz_one(data: bytes) -> None:
    """Try one input."""
    pair = Pair()
    for what, who, piece in _acts(data):
        pair.act(what, who, piece)
    pair.settle()


def main(arguments: Sequence[str]) -> None:
    """Run libFuzzer, for a limited time unless the arguments say how long."""
    if atheris is None:
        sys.exit("atheris is not installed; `make fuzz` installs it")
    limits = [] if arguments else [f"-max_total_time={os.environ.get('FUZZ_SECONDS', '60')}"]
    atheris.Setup([sys.argv[0], *OPTIONS, *limits, *arguments], fuzz_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
