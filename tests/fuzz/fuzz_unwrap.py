"""Feed broken packets to the codec: nothing but PacketError comes out, and nothing of a changed packet is delivered.

    python tests/fuzz/fuzz_unwrap.py                        for FUZZ_SECONDS, 60 by default
    python tests/fuzz/fuzz_unwrap.py -runs=1000             or with any option of libFuzzer
    python tests/fuzz/fuzz_unwrap.py crash-0123abcd         one input again

The first byte of an input says which geometry and what to do with the rest of the input.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from hashlib import shake_256
from typing import Final

try:
    import atheris
except ImportError:  # the module stays importable, so that type checks and tests see it
    atheris = None

with atheris.instrument_imports(include=["unlinkabledfl"]) if atheris else nullcontext():
    from unlinkabledfl.errors import PacketError
    from unlinkabledfl.sphinx import Deliver, Forward, Geometry, Hop, NodeId, Reply, Sphinx, Surb

GEOMETRIES: Final = (
    Geometry(max_hops=3, body_bytes=1_024),
    Geometry(max_hops=3, body_bytes=2_048, key_layer="x25519-kem"),
    Geometry(max_hops=2, body_bytes=8_192, key_layer="pq"),
)
# An input has to be able to fill the longest packet.
OPTIONS: Final = (f"-max_len={max(geometry.packet_bytes for geometry in GEOMETRIES) + 64}", "-timeout=10")


def _bytes(label: str, length: int) -> bytes:
    return shake_256(label.encode()).digest(length)


class _Forgetful:
    """Calls every tag new: each input stands by itself."""

    def test_and_set(self, tag: bytes, /) -> bool:
        return len(tag) == 16


class Target:
    """One geometry: a node, and a good packet of each kind that it can receive."""

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry
        self._codec = Sphinx(geometry)
        self._key = self._codec.generate_key(lambda length: _bytes("key", length))
        us = Hop(NodeId(_bytes("us", 32)), self._key.public_bytes)
        payload = _bytes("payload", geometry.payload_bytes)
        surb, self._surb_keys = self._codec.make_surb([us], entropy=lambda length: _bytes("reply", length))
        self._good = (
            self._codec.wrap([us], payload, entropy=lambda length: _bytes("deliver", length)),
            self._codec.wrap([us, us], payload, entropy=lambda length: _bytes("forward", length)),
            self._codec.reply(surb, payload)[1],
        )

    def arbitrary(self, data: bytes) -> None:
        """The input is the packet."""
        self._unwrap(data)

    def right_length(self, data: bytes) -> None:
        """The input is the packet, brought to the length that gets it past the first check."""
        size = self._geometry.packet_bytes
        if self._unwrap(data[:size].ljust(size, b"\0")) is not None:
            raise AssertionError("a packet that nobody made was accepted")

    def mutated(self, data: bytes) -> None:
        """The input says which good packet, which bytes to change (2 bytes of position and a mask), what to append."""
        good = self._good[data[0] % len(self._good)] if data else self._good[0]
        packet = bytearray(good)
        for at in range(1, len(data) - 2, 3):
            packet[int.from_bytes(data[at : at + 2], "big") % len(packet)] ^= data[at + 2]
        packet += data[1:][3 * ((len(data) - 1) // 3) :] if data else b""
        result = self._unwrap(bytes(packet))
        header = self._geometry.header_bytes
        if packet[:header] != good[:header] and result is not None:
            raise AssertionError("a changed header was accepted")
        if len(packet) != len(good) and result is not None:
            raise AssertionError("a packet of another length was accepted")
        if packet != good and isinstance(result, Deliver):
            raise AssertionError("a changed body was delivered")
        if packet != good and isinstance(result, Reply) and self._opens(result.body):
            raise AssertionError("a changed reply was opened")

    def batch(self, data: bytes) -> None:
        """Good packets with the input's pieces between them: a bad neighbour changes nothing for them."""
        size = 1 + len(data) // 8
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        packets = [packet for piece in pieces for packet in (piece, self._good[0])]
        results = self._codec.unwrap_batch(packets, key=self._key, replays=_Forgetful())
        if not all(isinstance(result, Deliver) for result in results[1::2]):
            raise AssertionError("a good packet was refused because of its neighbours")

    def reply_block(self, data: bytes) -> None:
        """The input is a reply block that a peer sent us, and the body of a reply to ours."""
        try:
            surb = Surb.from_bytes(data, self._geometry)
            self._codec.reply(surb, bytes(self._geometry.payload_bytes))
        except PacketError:
            pass
        size = self._geometry.body_bytes
        if self._opens(data[:size].ljust(size, b"\0")):
            raise AssertionError("a reply that nobody made was opened")

    def _unwrap(self, packet: bytes) -> Forward | Deliver | Reply | None:
        try:
            return self._codec.unwrap(packet, key=self._key, replays=_Forgetful())
        except PacketError:
            return None

    def _opens(self, body: bytes) -> bool:
        try:
            self._codec.open_reply(self._surb_keys, body)
        except PacketError:
            return False
        return True


TARGETS: Final = tuple(Target(geometry) for geometry in GEOMETRIES)
WAYS: Final = (Target.arbitrary, Target.right_length, Target.mutated, Target.batch, Target.reply_block)


def fuzz_one(data: bytes) -> None:
    """Try one input."""
    selector, rest = (data[0], data[1:]) if data else (0, b"")
    target = TARGETS[selector % len(TARGETS)]
    WAYS[selector // len(TARGETS) % len(WAYS)](target, rest)


def main(arguments: Sequence[str]) -> None:
    """Run libFuzzer, for a limited time unless the arguments say how long."""
    if atheris is None:
        sys.exit("atheris is not installed; `make fuzz` installs it")
    limits = [] if arguments else [f"-max_total_time={os.environ.get('FUZZ_SECONDS', '60')}"]
    atheris.Setup([sys.argv[0], *OPTIONS, *limits, *arguments], fuzz_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
