"""The product and the slow reference implementation, byte for byte.

Where randomness is injected (`x25519`, `x25519-kem`) both make the same packets. ML-KEM draws its own, so of `pq` each
opens what the other made. In every layer both make the same of whatever arrives, good or bad.
"""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference import sphinx_reference as ref
from tests.unit.sphinx.nodes import GEOMETRIES, Tags, World, paths, payloads
from tests.vectors.make_sphinx import Stream
from unlinkabledfl.errors import LocalProtocolError, PacketError
from unlinkabledfl.sphinx import Deliver, Forward, Geometry, NodeId, Reply, Surb, SurbKeys, Unwrapped
from unlinkabledfl.sphinx.keylayers.x25519 import clamp_stable_product

LONGEST = Geometry(max_hops=10, body_bytes=2_048)
WORLDS = {f"{geometry.key_layer}-{geometry.max_hops}": World(geometry) for geometry in (*GEOMETRIES, LONGEST)}
EIGHT_TIMES_ORDER = 8 * (2**252 + 27742317777372353535851937790883648493)
# The reference takes up to a tenth of a second for a packet.
SLOW = settings(max_examples=max(1, settings().max_examples // 8))


@pytest.fixture(scope="module", params=sorted(WORLDS))
def world(request: pytest.FixtureRequest) -> World:
    return WORLDS[request.param]


@pytest.fixture(scope="module", params=sorted(name for name in WORLDS if not name.startswith("pq")))
def reproducible(request: pytest.FixtureRequest) -> World:
    return WORLDS[request.param]


def format_of(world: World) -> ref.Format:
    shape = world.geometry
    return ref.Format(key_layer=shape.key_layer, max_hops=shape.max_hops, body_bytes=shape.body_bytes)


def reference_path(world: World, nodes: Sequence[int]) -> list[ref.PathHop]:
    return [
        ref.PathHop(node_id=hop.node_id, public_key=hop.public_key, delay_us=hop.delay_us) for hop in world.path(nodes)
    ]


def as_product(peeled: ref.Peeled) -> Unwrapped:
    match peeled.command:
        case ref.FORWARD:
            return Forward(NodeId(peeled.node_id), peeled.delay_us, peeled.output)
        case ref.DELIVER:
            return Deliver(peeled.delay_us, peeled.output)
        case _:
            return Reply(peeled.node_id, peeled.output)


def compare_one_hop(world: World, packet: bytes, node: int) -> Unwrapped | str:
    """Both process the packet; their results, causes and replay tags are equal, or the test fails."""
    private = world.keys[node].private_bytes
    seen: set[bytes] = set()
    expected: Unwrapped | str
    try:
        expected = as_product(ref.process(format_of(world), packet, private=private, seen=seen))
    except ref.RefusedError as refusal:
        expected = refusal.cause
    tags = Tags()
    try:
        result: Unwrapped | str = world.codec.unwrap(packet, key=world.keys[node], replays=tags)
    except PacketError as refusal:
        result = refusal.cause
    assert (result, set(tags.seen)) == (expected, seen)
    return result


def compare_way(world: World, packet: bytes, nodes: Sequence[int]) -> Unwrapped | str:
    result: Unwrapped | str = Forward(world.ids[nodes[0]], 0, packet)
    for node in nodes:
        assert isinstance(result, Forward)
        result = compare_one_hop(world, result.packet, node)
    return result


@SLOW
@given(data=st.data())
def test_both_make_the_same_packet_from_the_same_entropy(reproducible: World, data: st.DataObject) -> None:
    world, label = reproducible, data.draw(st.text(max_size=8))
    nodes, payload = data.draw(paths(world)), data.draw(payloads(world))
    ours, theirs = Stream(label), Stream(label)

    packet = world.codec.wrap(world.path(nodes), payload, entropy=ours)

    assert packet == ref.wrap(format_of(world), reference_path(world, nodes), payload, entropy=theirs)
    assert ours.used == theirs.used


@SLOW
@given(data=st.data())
def test_both_make_the_same_reply_block_from_the_same_entropy(reproducible: World, data: st.DataObject) -> None:
    world, label = reproducible, data.draw(st.text(max_size=8))
    nodes, payload = data.draw(paths(world)), data.draw(payloads(world))
    ours, theirs = Stream(label), Stream(label)

    surb, keys = world.codec.make_surb(world.path(nodes), entropy=ours)
    reference_surb, secrets = ref.make_surb(format_of(world), reference_path(world, nodes), entropy=theirs)

    assert surb.to_bytes() == reference_surb
    assert (keys.surb_id, keys.seed, keys.hop_keys) == (secrets.surb_id, secrets.seed, secrets.payload_keys)
    assert ours.used == theirs.used
    assert world.codec.reply(surb, payload) == ref.reply(format_of(world), reference_surb, payload)


@SLOW
@given(data=st.data())
def test_both_make_the_same_of_a_packet_that_the_product_made(world: World, data: st.DataObject) -> None:
    nodes, payload = data.draw(paths(world)), data.draw(payloads(world))
    packet = world.codec.wrap(world.path(nodes), payload, entropy=Stream(data.draw(st.text(max_size=8))))

    result = compare_way(world, packet, nodes)

    assert isinstance(result, Deliver)
    assert result.payload == payload


@SLOW
@given(data=st.data())
def test_both_make_the_same_of_a_packet_that_the_reference_made(world: World, data: st.DataObject) -> None:
    nodes, payload = data.draw(paths(world)), data.draw(payloads(world))
    entropy = Stream(data.draw(st.text(max_size=8)))
    packet = ref.wrap(format_of(world), reference_path(world, nodes), payload, entropy=entropy)

    result = compare_way(world, packet, nodes)

    assert isinstance(result, Deliver)
    assert result.payload == payload


@SLOW
@given(data=st.data())
def test_each_opens_the_reply_to_the_others_reply_block(world: World, data: st.DataObject) -> None:
    nodes, payload = data.draw(paths(world)), data.draw(payloads(world))
    entropy, form = Stream(data.draw(st.text(max_size=8))), format_of(world)
    surb, keys = world.codec.make_surb(world.path(nodes), entropy=entropy)
    reference_surb, secrets = ref.make_surb(form, reference_path(world, nodes), entropy=entropy)

    ours = compare_way(world, ref.reply(form, surb.to_bytes(), payload)[1], nodes)
    theirs = compare_way(world, world.codec.reply(Surb.from_bytes(reference_surb, world.geometry), payload)[1], nodes)

    assert isinstance(ours, Reply)
    assert (ours.surb_id, world.codec.open_reply(keys, ours.body)) == (keys.surb_id, payload)
    assert isinstance(theirs, Reply)
    assert (theirs.surb_id, ref.open_reply(form, secrets, theirs.body)) == (secrets.surb_id, payload)
    kept = SurbKeys(surb_id=secrets.surb_id, seed=secrets.seed, hop_keys=secrets.payload_keys)
    assert world.codec.open_reply(kept, theirs.body) == payload


@SLOW
@given(data=st.data())
def test_both_make_the_same_of_a_damaged_packet(world: World, data: st.DataObject) -> None:
    nodes = data.draw(paths(world))
    packet = bytearray(world.codec.wrap(world.path(nodes), world.payload(), entropy=Stream("damaged")))
    at = data.draw(st.integers(0, len(packet) - 1))
    piece = data.draw(st.binary(max_size=64))
    packet[at : at + len(piece)] = piece

    result = compare_one_hop(world, bytes(packet), nodes[0])

    assert isinstance(result, str | Forward | Deliver)


@SLOW
@given(command=st.sampled_from([0, *range(4, 256)]))
def test_both_refuse_a_command_that_is_none(world: World, command: int) -> None:
    packet, _ = ref.wrap_traced(
        format_of(world),
        reference_path(world, [0]),
        world.payload(),
        entropy=Stream("command"),
        command=command,
    )

    assert compare_one_hop(world, packet, 0) == "bad_command"


@SLOW
@given(data=st.data())
def test_the_last_hop_sees_nothing_in_its_header_that_tells_how_long_the_path_was(
    world: World, data: st.DataObject
) -> None:
    """Zero padding would be visible there as a run of zeros, whose length is that of the path (Kuhn et al., 2019)."""
    form, nodes = format_of(world), data.draw(paths(world))
    packet = world.codec.wrap(world.path(nodes), world.payload(), entropy=Stream(data.draw(st.text(max_size=8))))
    arriving = world.on_the_wire(packet, nodes)[-1]
    peeled = ref.process(form, arriving, private=world.keys[nodes[-1]].private_bytes, seen=set())
    beta = arriving[form.element_bytes : form.element_bytes + form.beta_bytes]

    behind_the_slot = ref.ctr(peeled.keys.header_key, beta)[form.slot_bytes :]

    assert bytes(8) not in behind_the_slot


@given(left=st.binary(min_size=32, max_size=32), right=st.binary(min_size=32, max_size=32))
def test_the_product_of_two_scalars_multiplies_as_both_do_in_turn(left: bytes, right: bytes) -> None:
    product = clamp_stable_product(ref.clamp(left), ref.clamp(right)).to_bytes(32, "little")

    assert ref.clamp(product) == int.from_bytes(product, "little")
    assert ref.x25519(product, ref.BASE_POINT) == ref.x25519(left, ref.x25519(right, ref.BASE_POINT))


@pytest.mark.parametrize("residue", [2**254, 2**255 - 8, EIGHT_TIMES_ORDER - 2**254, EIGHT_TIMES_ORDER - 2**255 + 8])
def test_a_scalar_at_the_ends_of_the_clamped_range_keeps_its_point(residue: int) -> None:
    product = clamp_stable_product(8, residue // 8)

    assert product in {residue, EIGHT_TIMES_ORDER - residue}
    assert ref.clamp(product.to_bytes(32, "little")) == product


@pytest.mark.parametrize("residue", [0, 8, EIGHT_TIMES_ORDER - 2**255, 2**255, EIGHT_TIMES_ORDER - 8])
def test_a_scalar_that_no_clamp_leaves_alone_is_not_used(residue: int) -> None:
    with pytest.raises(LocalProtocolError):
        clamp_stable_product(8, residue // 8)


@pytest.mark.parametrize("encoding", [9, 9 + ref.PRIME, 9 + 2**255, 9 + ref.PRIME + 2**255])
@pytest.mark.parametrize("count", [1, 9])
def test_every_encoding_of_a_point_is_the_same_point_alone_and_in_a_batch(encoding: int, count: int) -> None:
    """RFC 7748 ignores the highest bit and reduces the rest, and so must every backend.

    The base point lends itself to it: its secret with a node is the node's public key, whoever asks.
    """
    world = WORLDS["x25519-5"]
    form, node = format_of(world), world.keys[0]
    alpha = encoding.to_bytes(32, "little")
    keys = ref.derive(form, secret=node.public_bytes, alpha=alpha, public=node.public_bytes)
    slot = ref.make_slot(form, ref.FORWARD, node_id=world.ids[1])
    beta = ref.ctr(keys.header_key, slot.ljust(form.beta_bytes, b"\0"))
    packet = alpha + beta + ref.gamma(keys, alpha, beta) + bytes(form.body_bytes)

    expected = as_product(ref.process(form, packet, private=node.private_bytes, seen=set()))
    results = world.codec.unwrap_batch([packet] * count, key=node, replays=Forgetful())

    assert results == [expected] * count


class Forgetful:
    """Calls every tag new, so that one packet can fill a batch."""

    def test_and_set(self, tag: bytes, /) -> bool:
        return len(tag) == 16
