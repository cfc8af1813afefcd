import pytest

from tests.unit.mixnet.nodes import CODEC, GEOMETRY, PACKETS, entropy, flipped
from unlinkabledfl.errors import PacketError
from unlinkabledfl.mixnet.items import MessageId
from unlinkabledfl.mixnet.packets import Delivered, Drop, Envelope, Loop, Message, Relayed, Returned
from unlinkabledfl.mixnet.replay import ReplayWindow
from unlinkabledfl.sphinx import Hop, NodeId

KEYS = [PACKETS.generate_key(entropy(number)) for number in range(3)]
ME, RELAY, DESTINATION = (
    Hop(NodeId(bytes([number]) * 32), key.public_bytes, 250_000) for number, key in enumerate(KEYS)
)


def window() -> ReplayWindow:
    return ReplayWindow(capacity=10)


def test_sizes_are_those_of_the_geometry() -> None:
    assert (PACKETS.packet_bytes, PACKETS.max_hops) == (GEOMETRY.packet_bytes, GEOMETRY.max_hops)
    assert PACKETS.data_bytes == GEOMETRY.payload_bytes - 1 - 16 - GEOMETRY.surb_bytes - 4


def test_every_kind_of_packet_weighs_the_same() -> None:
    surb, _, _ = PACKETS.make_surb([ME], entropy=entropy(5))
    kinds: list[Envelope] = [Message(MessageId(b"m" * 16), b"data", surb), Drop(surb), Loop(MessageId(b"l" * 16))]

    sizes = {len(PACKETS.wrap(path, kind, entropy=entropy(6))) for kind in kinds for path in ([ME], [RELAY, ME])}

    assert sizes == {GEOMETRY.packet_bytes}


def test_a_message_goes_there_and_its_acknowledgement_back() -> None:
    surb, surb_id, secret = PACKETS.make_surb([RELAY, ME], entropy=entropy(5))
    message = Message(MessageId(b"m" * 16), b"data", surb)
    packet = PACKETS.wrap([RELAY, DESTINATION], message, entropy=entropy(6))

    relayed = PACKETS.unwrap(packet, key=KEYS[1], replays=window())
    assert isinstance(relayed, Relayed)
    assert (relayed.next_hop, relayed.delay_s) == (DESTINATION.node_id, 0.25)
    delivered = PACKETS.unwrap(relayed.packet, key=KEYS[2], replays=window())
    assert delivered == Delivered(0.25, message)
    next_hop, reply = PACKETS.acknowledge(surb)
    assert next_hop == RELAY.node_id
    back = PACKETS.unwrap(reply, key=KEYS[1], replays=window())
    assert isinstance(back, Relayed)
    assert [len(each) for each in (packet, relayed.packet, reply, back.packet)] == [GEOMETRY.packet_bytes] * 4
    returned = PACKETS.unwrap(back.packet, key=KEYS[0], replays=window())

    assert isinstance(returned, Returned)
    assert returned.surb_id == surb_id
    PACKETS.open_acknowledgement(secret, returned.body)
    with pytest.raises(PacketError) as caught:
        PACKETS.open_acknowledgement(secret, flipped(returned.body, 0))
    assert caught.value.cause == "bad_reply"


def test_a_destination_that_answers_with_something_else_is_refused() -> None:
    surb, _, secret = PACKETS.make_surb([ME], entropy=entropy(5))
    _, reply = CODEC.reply(surb, b"\x01" * GEOMETRY.payload_bytes)
    returned = PACKETS.unwrap(reply, key=KEYS[0], replays=window())

    assert isinstance(returned, Returned)
    with pytest.raises(PacketError) as caught:
        PACKETS.open_acknowledgement(secret, returned.body)
    assert caught.value.cause == "bad_acknowledgement"
