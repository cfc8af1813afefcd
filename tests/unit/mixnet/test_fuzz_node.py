"""The fuzz target of a node in small, so that it cannot rot between two long runs."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.fuzz_node import DESCRIPTORS, GOOD, IDS, Pair, fuzz_one


def encoded(acts: list[tuple[int, int, bytes]]) -> bytes:
    return b"".join(bytes([what, who]) + len(data).to_bytes(2) + data for what, who, data in acts)


@settings(max_examples=60)
@given(acts=st.lists(st.tuples(st.integers(0, 255), st.integers(0, 255), st.binary(max_size=40)), max_size=12))
def test_the_fuzz_target_finds_nothing_in_small_inputs(acts: list[tuple[int, int, bytes]]) -> None:
    fuzz_one(encoded(acts))


def test_the_fuzz_target_gets_its_good_packets_and_descriptors_accepted() -> None:
    pair = Pair()
    for choice in range(len(DESCRIPTORS)):
        pair.act(4 + 8 * choice, 1, b"")
    for choice in range(len(GOOD)):
        pair.act(2 + 8 * choice, 1, b"")
    pair.settle()

    counts = pair.single.counters
    assert {name: counts[name] for name in ("received_message", "received_cover", "relayed", "ack_unknown")} == {
        "received_message": 1, "received_cover": 1, "relayed": 1, "ack_unknown": 1
    }  # fmt: skip
    assert counts["loop_unknown"] == 1
    assert [pair.single.peers.descriptor(peer) is not None for peer in IDS] == [False, *[True] * 4, False]
    assert counts["peer_table_full"] == 2
