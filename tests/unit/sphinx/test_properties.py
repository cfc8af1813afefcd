"""What holds for every packet, whatever its path, payload, key layer and random bytes."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.fuzz_unwrap import fuzz_one
from tests.unit.sphinx.nodes import GEOMETRIES, Tags, World, flipped, paths, payloads, streams
from tests.vectors.make_sphinx import Stream, pattern
from unlinkabledfl.errors import PacketError
from unlinkabledfl.mixnet.replay import ReplayWindow
from unlinkabledfl.sphinx import Deliver, Forward, Geometry, Hop, Reply, Unwrapped

WORLDS = {geometry.key_layer: World(geometry) for geometry in GEOMETRIES}
PRIME = 2**255 - 19
ORDER_EIGHT = (
    0x00B8495F16056286FDB1329CEB8D09DA6AC49FF1FAE35616AEB8413B7C7AEBE0,
    0x57119FD0DD4E22D8868E1C58C45C44045BEF839C55B1D0B1248C50A3BC959C5F,
)
SMALL_ORDER_U = (0, 1, *ORDER_EIGHT, PRIME - 1, PRIME, PRIME + 1)
"""Every u below 2^255 whose point has an order that divides 8, from RFC 7748's curve and its twist."""


@pytest.fixture(scope="module", params=sorted(WORLDS))
def world(request: pytest.FixtureRequest) -> World:
    return WORLDS[request.param]


def cause_of(world: World, packet: bytes, node: int, tags: Tags | None = None) -> str:
    """Why the node refuses the packet."""
    with pytest.raises(PacketError) as caught:
        world.codec.unwrap(packet, key=world.keys[node], replays=tags if tags is not None else Tags())
    return caught.value.cause


def aligned_blocks(data: bytes) -> set[bytes]:
    return {data[at : at + 16] for at in range(0, len(data) - 15, 16)}


# ----------------------------------------------------------------------------------------------------- it arrives


@given(data=st.data())
def test_any_payload_arrives_over_any_path_with_what_each_hop_was_to_know(world: World, data: st.DataObject) -> None:
    nodes, payload, entropy = data.draw(paths(world)), data.draw(payloads(world)), data.draw(streams())
    delays = data.draw(st.lists(st.integers(0, 2**32 - 1), min_size=len(nodes), max_size=len(nodes)))
    packet = world.codec.wrap(world.path(nodes, delays), payload, entropy=entropy)

    *relayed, last = world.travel(packet, nodes)

    assert last == Deliver(delay_us=delays[-1], payload=payload)
    assert [(step.next_hop, step.delay_us) for step in relayed if isinstance(step, Forward)] == [
        (world.ids[node], delay) for node, delay in zip(nodes[1:], delays, strict=False)
    ]


@given(data=st.data())
def test_any_reply_comes_back_over_any_path(world: World, data: st.DataObject) -> None:
    nodes, payload, entropy = data.draw(paths(world)), data.draw(payloads(world)), data.draw(streams())
    surb, keys = world.codec.make_surb(world.path(nodes), entropy=entropy)

    first_hop, packet = world.codec.reply(surb, payload)
    *relayed, last = world.travel(packet, nodes)

    assert first_hop == world.ids[nodes[0]]
    assert len(relayed) == len(nodes) - 1
    assert isinstance(last, Reply)
    assert last.surb_id == keys.surb_id
    assert world.codec.open_reply(keys, last.body) == payload


@given(data=st.data())
def test_every_length_is_the_geometrys(world: World, data: st.DataObject) -> None:
    nodes, payload, entropy = data.draw(paths(world)), data.draw(payloads(world)), data.draw(streams())
    forward = world.codec.wrap(world.path(nodes), payload, entropy=entropy)
    surb, _ = world.codec.make_surb(world.path(nodes), entropy=entropy)
    _, reply = world.codec.reply(surb, payload)

    wire = world.on_the_wire(forward, nodes) + world.on_the_wire(reply, nodes)

    assert {len(packet) for packet in wire} == {world.geometry.packet_bytes}
    assert len(surb.to_bytes()) == world.geometry.surb_bytes


@given(data=st.data())
def test_consecutive_packets_on_the_wire_share_no_aligned_block(world: World, data: st.DataObject) -> None:
    nodes, payload, entropy = data.draw(paths(world)), data.draw(payloads(world)), data.draw(streams())
    forward = world.codec.wrap(world.path(nodes), payload, entropy=entropy)
    surb, _ = world.codec.make_surb(world.path(nodes), entropy=entropy)
    _, reply = world.codec.reply(surb, payload)

    for wire in world.on_the_wire(forward, nodes), world.on_the_wire(reply, nodes):
        for before, after in pairwise(wire):
            assert aligned_blocks(before) & aligned_blocks(after) == set()
            body_at = world.geometry.header_bytes
            assert aligned_blocks(before[body_at:]) & aligned_blocks(after[body_at:]) == set()


# --------------------------------------------------------------------------------------------- changed on its way


def bits(world: World) -> st.SearchStrategy[int]:
    """Any bit of a packet; one of the header as likely as one of the body."""
    header = 8 * world.geometry.header_bytes
    return st.one_of(st.integers(0, header - 1), st.integers(header, 8 * world.geometry.packet_bytes - 1))


@given(data=st.data())
def test_a_changed_bit_of_a_packet_is_refused_and_delivers_nothing(world: World, data: st.DataObject) -> None:
    nodes, bit = data.draw(paths(world)), data.draw(bits(world))
    hop = data.draw(st.integers(0, len(nodes) - 1))
    packet = world.codec.wrap(world.path(nodes), data.draw(payloads(world)), entropy=data.draw(streams()))
    changed = flipped(world.on_the_wire(packet, nodes)[hop], bit)

    if bit < 8 * world.geometry.header_bytes:
        tags = Tags()
        assert cause_of(world, changed, nodes[hop], tags) == "bad_mac"
        assert tags.seen == []  # a forgery leaves no trace
    else:
        *_, before_last = [changed, *(relayed_bodies(world, changed, nodes[hop:-1]))]
        assert cause_of(world, before_last, nodes[-1]) == "bad_payload"


@given(data=st.data())
def test_a_changed_bit_of_a_reply_is_refused_and_opens_to_nothing(world: World, data: st.DataObject) -> None:
    nodes, bit = data.draw(paths(world)), data.draw(bits(world))
    hop = data.draw(st.integers(0, len(nodes) - 1))
    surb, keys = world.codec.make_surb(world.path(nodes), entropy=data.draw(streams()))
    _, packet = world.codec.reply(surb, data.draw(payloads(world)))
    changed = flipped(world.on_the_wire(packet, nodes)[hop], bit)

    if bit < 8 * world.geometry.header_bytes:
        assert cause_of(world, changed, nodes[hop]) == "bad_mac"
    else:
        *_, last = world.travel(changed, nodes[hop:])
        assert isinstance(last, Reply)
        with pytest.raises(PacketError, match="bad_reply"):
            world.codec.open_reply(keys, last.body)


def relayed_bodies(world: World, packet: bytes, relays: Sequence[int]) -> list[bytes]:
    """The packet after each relay; relays cannot see that its body was changed."""
    return [step.packet for step in world.travel(packet, relays) if isinstance(step, Forward)]


# ----------------------------------------------------------------------------------------------------- only once


@given(data=st.data())
def test_every_hop_refuses_what_it_has_processed_before(world: World, data: st.DataObject) -> None:
    nodes, payload, entropy = data.draw(paths(world)), data.draw(payloads(world)), data.draw(streams())
    packet = world.codec.wrap(world.path(nodes), payload, entropy=entropy)

    for node, arriving in zip(nodes, world.on_the_wire(packet, nodes), strict=True):
        tags = Tags()
        world.codec.unwrap(arriving, key=world.keys[node], replays=tags)
        assert cause_of(world, arriving, node, tags) == "replayed"


@given(data=st.data())
def test_a_reply_block_works_once(world: World, data: st.DataObject) -> None:
    nodes = data.draw(paths(world))
    surb, _ = world.codec.make_surb(world.path(nodes), entropy=data.draw(streams()))
    _, first = world.codec.reply(surb, world.payload("first"))
    _, second = world.codec.reply(surb, world.payload("second"))
    tags = Tags()

    world.codec.unwrap(first, key=world.keys[nodes[0]], replays=tags)

    assert first != second
    assert cause_of(world, second, nodes[0], tags) == "replayed"


def test_a_full_window_refuses_what_is_new_alone_and_in_a_batch(world: World) -> None:
    entropy = Stream("full window")
    packets = [world.codec.wrap(world.path([0]), world.payload(), entropy=entropy) for _ in range(5)]
    window = ReplayWindow(capacity=2)

    results = world.codec.unwrap_batch(packets, key=world.keys[0], replays=window)

    delivered = Deliver(delay_us=1_000, payload=world.payload())
    assert [shown(result) for result in results] == [delivered] * 2 + ["replay_window_full"] * 3
    with pytest.raises(PacketError, match="replay_window_full"):
        world.codec.unwrap(packets[2], key=world.keys[0], replays=window)


# ---------------------------------------------------------------------------------------------------- not for us


@given(data=st.data())
def test_a_packet_for_another_node_is_refused(world: World, data: st.DataObject) -> None:
    nodes, entropy = data.draw(paths(world)), data.draw(streams())
    packet = world.codec.wrap(world.path(nodes), world.payload(), entropy=entropy)
    others = [node for node in range(len(world.keys)) if node != nodes[0]]

    assert {cause_of(world, packet, node) for node in others} == {"bad_mac"}


@given(data=st.data())
def test_any_other_length_is_refused(world: World, data: st.DataObject) -> None:
    size = world.geometry.packet_bytes
    packet = world.codec.wrap(world.path([0]), world.payload(), entropy=data.draw(streams()))
    length = data.draw(st.integers(0, 2 * size).filter(lambda other: other != size))

    assert cause_of(world, packet[:length].ljust(length, b"\0"), 0) == "bad_length"


@given(label=st.integers(0, 2**64))
def test_random_bytes_of_the_right_length_are_refused(world: World, label: int) -> None:
    noise = pattern(f"noise/{label}", world.geometry.packet_bytes)

    assert cause_of(world, noise, 0) == "bad_mac"


@given(data=st.binary(max_size=200))
def test_the_fuzz_target_finds_nothing_in_small_inputs(data: bytes) -> None:
    fuzz_one(data)


@pytest.mark.parametrize("high_bit", [0, 1 << 255])
@pytest.mark.parametrize("u", SMALL_ORDER_U)
def test_elements_of_small_order_are_refused_alone_and_in_a_batch(world: World, u: int, high_bit: int) -> None:
    good = world.codec.wrap(world.path([0]), world.payload(), entropy=Stream("small order"))
    end = world.geometry.element_bytes
    bad = good[: end - 32] + (u | high_bit).to_bytes(32, "little") + good[end:]

    assert cause_of(world, bad, 0) == "bad_element"
    assert [shown(each) for each in unwrap_all(world, [bad] * 9, 0, Tags())] == ["bad_element"] * 9


# ----------------------------------------------------------------------------------------------------- in batches


def shown(result: Unwrapped | PacketError) -> Unwrapped | str:
    """A result that can be compared: exceptions compare by identity."""
    return result.cause if isinstance(result, PacketError) else result


def unwrap_all(world: World, packets: Sequence[bytes], node: int, tags: Tags) -> list[Unwrapped | PacketError]:
    return world.codec.unwrap_batch(packets, key=world.keys[node], replays=tags)


def one_by_one(world: World, packets: Sequence[bytes], node: int, tags: Tags) -> list[Unwrapped | str]:
    results: list[Unwrapped | str] = []
    for packet in packets:
        try:
            results.append(world.codec.unwrap(packet, key=world.keys[node], replays=tags))
        except PacketError as refusal:
            results.append(refusal.cause)
    return results


def arrivals(world: World, node: int, entropy: Stream) -> list[bytes]:
    """One of every kind of packet that can arrive at the node, good and bad."""
    other = (node + 1) % len(world.keys)
    deliver = world.codec.wrap(world.path([node]), world.payload(), entropy=entropy)
    relay = world.codec.wrap(world.path([node, other]), world.payload(), entropy=entropy)
    surb, _ = world.codec.make_surb(world.path([node]), entropy=entropy)
    element = world.geometry.element_bytes
    return [
        deliver,
        relay,
        world.codec.reply(surb, world.payload())[1],
        world.codec.wrap(world.path([other]), world.payload(), entropy=entropy),
        flipped(world.codec.wrap(world.path([node]), world.payload(), entropy=entropy), 8 * element),
        flipped(world.codec.wrap(world.path([node]), world.payload(), entropy=entropy), 8 * len(deliver) - 1),
        bytes(element) + relay[element:],
        relay[:-1],
        b"",
    ]


@pytest.mark.parametrize("backend", ["auto", "pynacl"])
@given(data=st.data())
def test_a_batch_gives_what_its_packets_give_one_by_one(world: World, backend: str, data: st.DataObject) -> None:
    batched = World(world.geometry, backend=backend)
    kinds = arrivals(world, 1, data.draw(streams()))
    # More than one of a kind is a replay, whichever comes first.
    packets = [kinds[kind] for kind in data.draw(st.lists(st.integers(0, len(kinds) - 1), max_size=24))]
    batch_tags, single_tags = Tags(), Tags()

    results = unwrap_all(batched, packets, 1, batch_tags)

    assert [shown(result) for result in results] == one_by_one(world, packets, 1, single_tags)
    assert batch_tags.seen == single_tags.seen


@pytest.mark.parametrize("backend", ["auto", "pynacl"])
@given(data=st.data())
def test_packets_made_together_are_those_made_one_by_one(backend: str, data: st.DataObject) -> None:
    """The layer pq draws randomness of its own, so this holds for the other two."""
    world = WORLDS[data.draw(st.sampled_from(["x25519", "x25519-kem"]))]
    batched = World(world.geometry, backend=backend)
    routes = data.draw(st.lists(paths(world), max_size=10))
    jobs: list[tuple[list[Hop], bytes]] = [
        (world.path(nodes), world.payload(position)) for position, nodes in enumerate(routes)
    ]

    packets = batched.codec.wrap_batch(jobs, entropy=Stream("batch"))

    entropy = Stream("batch")
    assert packets == [world.codec.wrap(path, payload, entropy=entropy) for path, payload in jobs]


# ------------------------------------------------------------------------------------------------------- entropy


def header_entropy_bytes(geometry: Geometry, hops: int) -> int:
    """What docs/packet.md lets a sender draw for one header: its scalars, then the padding."""
    scalars = 1 if geometry.key_layer == "x25519" else hops
    return 32 * scalars + (geometry.max_hops - hops) * geometry.slot_bytes


@given(data=st.data())
def test_a_sender_draws_the_entropy_of_the_specification(world: World, data: st.DataObject) -> None:
    nodes, label = data.draw(paths(world)), data.draw(st.integers(0, 2**32))
    forward, backward = Stream(f"forward/{label}"), Stream(f"backward/{label}")

    world.codec.wrap(world.path(nodes), world.payload(), entropy=forward)
    surb, keys = world.codec.make_surb(world.path(nodes), entropy=backward)

    drawn = pattern(f"backward/{label}", 64)
    assert forward.used == header_entropy_bytes(world.geometry, len(nodes))
    assert backward.used == 64 + forward.used
    assert (keys.surb_id, keys.seed, surb.seed) == (drawn[:32], drawn[32:], drawn[32:])
