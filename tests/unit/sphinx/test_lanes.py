"""Eight lanes that err must change nothing that anybody can see."""

from collections.abc import Sequence
from hashlib import shake_256

import pytest

from unlinkabledfl.errors import PacketError
from unlinkabledfl.sphinx import Forward, Geometry, Hop, NodeId, PrivateKey, Sphinx
from unlinkabledfl.sphinx.multiplier import OneByOne


class LyingLanes(OneByOne):
    """Wrong about every shared secret, as the real ones are about a few points."""

    def shared(self, key: PrivateKey, points: Sequence[bytes]) -> list[bytes]:
        return [bytes([secret[0] ^ 1]) + secret[1:] for secret in super().shared(key, points)]


class SeenNothing:
    def test_and_set(self, tag: bytes, /) -> bool:
        return True


class Stream:
    def __init__(self, label: bytes) -> None:
        self._label = label
        self._count = 0

    def __call__(self, size: int) -> bytes:
        self._count += 1
        return shake_256(self._label + self._count.to_bytes(8)).digest(size)


def test_a_packet_is_accepted_although_the_lanes_give_a_wrong_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    entropy = Stream(b"lanes")
    codec = Sphinx(Geometry(max_hops=2, body_bytes=2048), backend="pynacl")
    keys = [codec.generate_key(entropy) for _ in range(2)]
    path = [Hop(NodeId(bytes([index] * 32)), key.public_bytes) for index, key in enumerate(keys)]
    payload = bytes(codec.geometry.payload_bytes)
    packets = [codec.wrap(path, payload, entropy=entropy) for _ in range(3)]
    expected = [codec.unwrap(packet, key=keys[0], replays=SeenNothing()) for packet in packets]
    lying = Sphinx(codec.geometry, backend="pynacl")
    monkeypatch.setattr(lying, "_multiplier", LyingLanes())

    results = lying.unwrap_batch(packets, key=keys[0], replays=SeenNothing())

    assert results == expected
    assert all(isinstance(result, Forward) for result in results)


def test_a_forged_packet_is_still_refused_when_the_lanes_err(monkeypatch: pytest.MonkeyPatch) -> None:
    codec = Sphinx(Geometry(max_hops=1, body_bytes=1024), backend="pynacl")
    key = codec.generate_key(Stream(b"key"))
    monkeypatch.setattr(codec, "_multiplier", LyingLanes())
    forged = Stream(b"forged")(codec.geometry.packet_bytes)

    (result,) = codec.unwrap_batch([forged], key=key, replays=SeenNothing())

    assert isinstance(result, PacketError)
    assert result.cause == "bad_mac"
