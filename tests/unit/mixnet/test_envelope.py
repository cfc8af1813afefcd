import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.mixnet.nodes import CODEC, ENVELOPES, GEOMETRY, entropy
from unlinkabledfl.errors import LocalProtocolError, PacketError
from unlinkabledfl.mixnet.items import MessageId
from unlinkabledfl.mixnet.packets import Drop, Envelope, Loop, Message
from unlinkabledfl.sphinx import Hop, NodeId

KEY = CODEC.generate_key(entropy(1)).public_bytes
SURB = CODEC.make_surb([Hop(NodeId(b"n" * 32), KEY)], entropy=entropy(2))[0]
ID = MessageId(bytes(range(16)))

envelopes = st.one_of(
    st.binary(max_size=ENVELOPES.data_bytes).map(lambda data: Message(ID, data, SURB)),
    st.just(Drop(SURB)),
    st.binary(min_size=16, max_size=16).map(lambda loop_id: Loop(MessageId(loop_id))),
)


@given(envelopes)
def test_every_payload_has_one_length_and_says_what_was_meant(envelope: Envelope) -> None:
    payload = ENVELOPES.encode(envelope)

    assert len(payload) == GEOMETRY.payload_bytes == len(ENVELOPES.acknowledgement)
    assert ENVELOPES.decode(payload) == envelope


def test_the_format_is_as_documented() -> None:
    payload = ENVELOPES.encode(Message(ID, b"data", SURB))

    start = b"\x01" + ID + SURB.to_bytes() + b"\0\0\0\x04data"
    assert payload == start + bytes(GEOMETRY.payload_bytes - len(start))


def test_a_message_may_fill_the_payload_and_no_more() -> None:
    full = Message(ID, b"x" * ENVELOPES.data_bytes, SURB)

    assert ENVELOPES.encode(full)[-1:] == b"x"
    with pytest.raises(LocalProtocolError):
        ENVELOPES.encode(Message(ID, b"x" * (ENVELOPES.data_bytes + 1), SURB))


@given(st.binary(max_size=GEOMETRY.payload_bytes), st.sampled_from([b"", b"\1", b"\2", b"\3", b"\4"]))
def test_any_payload_is_an_envelope_or_refused(data: bytes, kind: bytes) -> None:
    payload = (kind + data)[: GEOMETRY.payload_bytes].ljust(GEOMETRY.payload_bytes, b"\0")
    try:
        envelope = ENVELOPES.decode(payload)
    except PacketError as refusal:
        assert refusal.cause == "bad_envelope"  # noqa: PT017 -- both outcomes are allowed
    else:
        assert isinstance(envelope, Message | Drop | Loop)


def test_only_the_acknowledgement_acknowledges() -> None:
    ENVELOPES.check_acknowledgement(ENVELOPES.acknowledgement)

    with pytest.raises(PacketError) as caught:
        ENVELOPES.check_acknowledgement(ENVELOPES.encode(Drop(SURB)))
    assert caught.value.cause == "bad_acknowledgement"
