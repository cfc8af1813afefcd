"""What is not good costs less than what is: counted in operations, because clocks on a busy machine tell little.

`unlinkabledfl bench packet` measures the same in CPU time.
"""

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType

import pytest

from tests.unit.mixnet.nodes import (
    LOOP,
    Network,
    bad_packets,
    describe,
    drain,
    entropy,
    flipped,
    identity,
    packet_for,
)
from unlinkabledfl.mixnet.config import MixSettings
from unlinkabledfl.mixnet.keys import KeyRotated
from unlinkabledfl.mixnet.mix_node import MixNode
from unlinkabledfl.mixnet.mixers import PoissonSettings

NEIGHBOUR = identity(2)
MIX = MixSettings(mixer=PoissonSettings(delay_mean_s=0.5, cover=False))
MULTIPLICATIONS = ("exchange", "crypto_scalarmult")
PASSES = ("encrypt",)  # over the header or the body
CHECKS_OF_SIGNATURES = ("crypto_sign_open",)


def operations(act: Callable[[], object]) -> Counter[str]:
    """Every call of a function or method while this happens, by name."""
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "c_call":
            calls[getattr(argument, "__name__", "?")] += 1
        elif event == "call":
            calls["python"] += 1

    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return calls


def cost(calls: Counter[str]) -> tuple[int, int, int]:
    """Multiplications, passes of a cipher, and calls of anything."""
    return sum(calls[name] for name in MULTIPLICATIONS), sum(calls[name] for name in PASSES), calls.total()


def taking(node: MixNode, packet: bytes) -> Callable[[], object]:
    """Take a packet, and have done with all that follows from it."""

    def act() -> None:
        node.receive_packet(packet, from_peer=NEIGHBOUR, now_s=1.0)
        node.handle_timer(now_s=20.0)
        drain(node)

    return act


@pytest.mark.parametrize("name", [name for name in bad_packets(Network()) if name != "reply block to nowhere"])
def test_every_packet_that_is_refused_takes_less_than_one_that_is_relayed(name: str) -> None:
    network, good = Network(settings=MIX), Network(settings=MIX)
    *before, refused = bad_packets(network)[name][0]
    for packet in before:
        taking(network[1], packet)()

    bad = cost(operations(taking(network[1], refused)))

    relayed = packet_for(good[1], good[3], envelope=LOOP, seed=1, delay_us=1_000)
    multiplications, passes, calls = cost(operations(taking(good[1], relayed)))
    assert (multiplications, passes) == (2, 5)
    assert (bad[0] <= multiplications, bad[1] <= passes, bad[2] < calls) == (True, True, True)


@pytest.mark.parametrize(
    ("name", "multiplications", "passes"),
    [
        ("truncated", 0, 0),
        ("oversized", 0, 0),
        ("zeros", 1, 0),
        ("random", 1, 0),
        ("tampered header", 1, 0),
        ("mis-addressed", 1, 0),
        ("replayed", 1, 0),
        ("tampered body", 1, 5),
    ],
)
def test_the_cheapest_check_that_fails_decides(name: str, multiplications: int, passes: int) -> None:
    network = Network(settings=MIX)
    *before, refused = bad_packets(network)[name][0]
    for packet in before:
        network[1].receive_packet(packet, from_peer=NEIGHBOUR, now_s=1.0)

    calls = operations(lambda: network[1].receive_packet(refused, from_peer=NEIGHBOUR, now_s=1.0))

    assert cost(calls)[:2] == (multiplications, passes)


def test_a_flood_and_a_stranger_cost_no_cryptography_at_all() -> None:
    network = Network(settings=MIX)
    packet = packet_for(network[1], network[3], envelope=LOOP)
    calls = operations(lambda: network[1].receive_packet(packet, from_peer=identity(9), now_s=1.0))

    assert cost(calls)[:2] == (0, 0)
    assert network[1].counters["unlinked"] == 1


def descriptor(serial: int) -> bytes:
    return describe(3, KeyRotated(epoch=0, serial=serial, public_key=bytes(31) + b"\x07"), 0.0).data


def absurd(data: bytes) -> bytes:
    return data.replace(b"10.0.0.3:4433", b"127.0.0.1:443")


@pytest.mark.parametrize(
    ("data", "cause", "checks"),
    [
        (descriptor(5)[:100], "truncated", 0),
        (bytes(5_000), "too_long", 0),
        (entropy(1)(300), "bad_version", 0),
        (descriptor(3), "stale_epoch", 0),
        (absurd(descriptor(5)), "bad_address", 0),
        (flipped(descriptor(5), -1), "bad_signature", 1),
    ],
)
def test_only_a_descriptor_that_would_be_news_has_its_signature_checked(data: bytes, cause: str, checks: int) -> None:
    network = Network(settings=MIX)
    node = network[1]
    node.receive_control(descriptor(4), from_peer=NEIGHBOUR, now_s=1.0)
    drain(node)

    calls = operations(lambda: node.receive_control(data, from_peer=NEIGHBOUR, now_s=1.0))
    good = operations(lambda: node.receive_control(descriptor(6), from_peer=NEIGHBOUR, now_s=1.0))

    assert (node.counters[cause], sum(calls[name] for name in CHECKS_OF_SIGNATURES)) == (1, checks)
    assert calls.total() < good.total()
