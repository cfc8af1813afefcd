"""What the packet tests share: nodes with reproducible keys, and a way along a path that checks every length."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from tests.vectors.make_sphinx import Stream, pattern
from unlinkabledfl.sphinx import Deliver, Forward, Geometry, Hop, NodeId, PrivateKey, Reply, Sphinx

GEOMETRIES = (
    Geometry(max_hops=5, body_bytes=1_024),
    Geometry(max_hops=4, body_bytes=2_048, key_layer="x25519-kem"),
    Geometry(max_hops=3, body_bytes=10_240, key_layer="pq"),
)
"""One for every key layer, as small as its reply blocks allow, so that many examples can be tried."""


@dataclass(slots=True)
class Tags:
    """Replay tags in the order in which they came."""

    seen: list[bytes] = field(default_factory=list)

    def test_and_set(self, tag: bytes, /) -> bool:
        if tag in self.seen:
            return False
        self.seen.append(tag)
        return True


def load_key(codec: Sphinx, private_bytes: bytes) -> PrivateKey:
    """The key that these 32 bytes are."""

    def give(length: int) -> bytes:
        assert length == len(private_bytes)
        return private_bytes

    return codec.generate_key(give)


class World:
    """A codec and one node more than a path can have."""

    def __init__(self, geometry: Geometry, *, backend: str = "auto") -> None:
        self.geometry = geometry
        self.codec = Sphinx(geometry, backend=backend)
        count = range(geometry.max_hops + 1)
        self.ids = [NodeId(pattern(f"id/{i}", 32)) for i in count]
        self.keys = [load_key(self.codec, pattern(f"key/{i}", 32)) for i in count]

    def path(self, nodes: Sequence[int], delays_us: Sequence[int] = ()) -> list[Hop]:
        delays_us = delays_us or [1_000 * (position + 1) for position in range(len(nodes))]
        return [
            Hop(self.ids[node], self.keys[node].public_bytes, delay_us)
            for node, delay_us in zip(nodes, delays_us, strict=True)
        ]

    def payload(self, label: object = "payload") -> bytes:
        return pattern(f"payload/{label}", self.geometry.payload_bytes)

    def unwrap(self, packet: bytes, node: int) -> Forward | Deliver | Reply:
        return self.codec.unwrap(packet, key=self.keys[node], replays=Tags())

    def travel(self, packet: bytes, nodes: Sequence[int]) -> list[Forward | Deliver | Reply]:
        """What each node makes of the packet, until one keeps it."""
        results = []
        for position, node in enumerate(nodes):
            assert len(packet) == self.geometry.packet_bytes
            result = self.unwrap(packet, node)
            results.append(result)
            if not isinstance(result, Forward):
                assert position == len(nodes) - 1
                break
            packet = result.packet
        return results

    def on_the_wire(self, packet: bytes, nodes: Sequence[int]) -> list[bytes]:
        """The packet as it arrives at each node of its path."""
        return [packet, *(step.packet for step in self.travel(packet, nodes) if isinstance(step, Forward))]


def paths(world: World) -> st.SearchStrategy[list[int]]:
    """Any path, the same node twice included: nothing in the format forbids it."""
    last = len(world.keys) - 1
    return st.lists(st.integers(0, last), min_size=1, max_size=world.geometry.max_hops)


def payloads(world: World) -> st.SearchStrategy[bytes]:
    """Payloads with as much or as little structure as the search likes."""
    length = world.geometry.payload_bytes
    return st.one_of(
        st.sampled_from([bytes(length), b"\xff" * length]),
        st.binary(min_size=1, max_size=64).map(lambda piece: (piece * length)[:length]),
        st.integers(0, 2**32).map(lambda label: pattern(f"payload/{label}", length)),
    )


def streams() -> st.SearchStrategy[Stream]:
    return st.integers(0, 2**64).map(lambda seed: Stream(f"entropy/{seed}"))


def flipped(data: bytes, bit: int) -> bytes:
    """The same bytes but for one bit."""
    changed = bytearray(data)
    changed[bit // 8] ^= 0x80 >> bit % 8
    return bytes(changed)
