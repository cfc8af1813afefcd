"""The handshake of a link: who proves what to whom, and every way in which a proof can be wrong."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.transport.virtual import entropy, identity, node_id
from unlinkabledfl.errors import ControlError, LocalProtocolError
from unlinkabledfl.sphinx import NodeId
from unlinkabledfl.transport.certificates import LinkIdentity
from unlinkabledfl.transport.handshake import Dialling, Listening, Proved, Welcomed, transcript
from unlinkabledfl.transport.settings import DATAGRAM_BYTES_MAX

CELL_BYTES = 10_558
DIALLER, LISTENER, MALLORY = 1, 2, 3
PROOF_HEAD = 75


def knows_dialler(peer: NodeId, fingerprint: bytes, introduction: bytes) -> bool:
    return (peer, fingerprint) == (node_id(DIALLER), identity(DIALLER).fingerprint)


def listening(number: int = LISTENER, *, seed: int = 7, cell_bytes: int = CELL_BYTES) -> Listening:
    return Listening(identity=identity(number), cell_bytes=cell_bytes, knows=knows_dialler, entropy=entropy(seed))


def dialling(
    number: int = DIALLER,
    *,
    claims: int | None = None,
    to: int = LISTENER,
    signs_with: LinkIdentity | None = None,
    cell_bytes: int = CELL_BYTES,
    introduction: bytes = b"",
    padded_bytes: int = 0,
) -> Dialling:
    return Dialling(
        node_id=node_id(claims or number),
        identity=signs_with or identity(number),
        listener_fingerprint=identity(to).fingerprint,
        cell_bytes=cell_bytes,
        entropy=entropy(5),
        introduction=introduction,
        padded_bytes=padded_bytes,
    )


def proof_of(dialler: Dialling, challenge: bytes) -> bytes:
    proof = dialler.receive(challenge)
    assert isinstance(proof, bytes)
    return proof


def cause(listener: Listening, proof: bytes) -> str:
    with pytest.raises(ControlError) as refused:
        listener.receive(proof)
    return refused.value.cause


def test_both_sides_open_the_link_once_the_listener_knows_the_dialler() -> None:
    listener, dialler = listening(), dialling()

    proof = proof_of(dialler, listener.challenge())
    proved = listener.receive(proof)
    welcomed = dialler.receive(listener.welcome() + b"cells")

    assert (proved, welcomed, dialler.rest()) == (Proved(peer=node_id(DIALLER)), Welcomed(), b"cells")


def test_the_messages_are_pinned_to_the_byte() -> None:
    listener, dialler = listening(), dialling(introduction=b"hello", padded_bytes=1_280)
    certificate = identity(DIALLER).certificate

    challenge = listener.challenge()
    proof = proof_of(dialler, challenge)

    nonces = (entropy(5)(32), entropy(7)(32))
    assert challenge == bytes.fromhex("01 0000293e") + nonces[1]
    lengths = struct.pack(">HHH", len(certificate), 5, 1_280 - PROOF_HEAD - len(certificate) - 5 - 64)
    signed = b"".join(
        [
            b"unlinkabledfl/link/v1/dialler\x00",
            bytes.fromhex("01 0000293e"),
            identity(DIALLER).fingerprint,
            identity(LISTENER).fingerprint,
            *nonces,
            node_id(DIALLER),
            b"hello",
        ]
    )
    expected = b"".join(
        [
            bytes.fromhex("01 0000293e"),
            node_id(DIALLER),
            nonces[0],
            lengths,
            certificate,
            b"hello",
            identity(DIALLER).sign(signed),
        ]
    )
    assert proof == expected.ljust(1_280, b"\0")
    assert listener.receive(proof) == Proved(peer=node_id(DIALLER))
    assert listener.welcome() == b"\x01"


def test_the_transcript_tells_the_roles_apart() -> None:
    fields = {"cell_bytes": 5, "nonces": (b"a" * 32, b"b" * 32), "rest": b""}

    one = transcript(dialler_fingerprint=b"x" * 32, listener_fingerprint=b"y" * 32, **fields)  # type: ignore[arg-type]
    other = transcript(dialler_fingerprint=b"y" * 32, listener_fingerprint=b"x" * 32, **fields)  # type: ignore[arg-type]

    assert one != other


def test_a_proof_relayed_by_a_man_in_the_middle_is_refused() -> None:
    # The dialler dials Mallory, a peer of hers. Mallory dials the listener and hands its challenge to her.
    listener = listening()
    to_mallory = dialling(to=MALLORY)

    relayed = proof_of(to_mallory, listener.challenge())

    assert cause(listener, relayed) == "link_bad_proof"


def test_a_proof_from_an_earlier_connection_is_refused() -> None:
    earlier, later = listening(seed=7), listening(seed=8)
    proof = proof_of(dialling(), earlier.challenge())
    assert earlier.receive(proof) == Proved(peer=node_id(DIALLER))

    assert cause(later, proof) == "link_bad_proof"


def test_a_proof_for_one_listener_is_worth_nothing_at_another() -> None:
    # The same nonce on purpose: only the fingerprint of the listener differs.
    listener, other = listening(LISTENER), listening(MALLORY)
    assert listener.challenge() == other.challenge()

    assert cause(other, proof_of(dialling(), listener.challenge())) == "link_bad_proof"


def test_a_listeners_own_proof_reflected_at_it_is_refused() -> None:
    listener = listening()
    reflected = proof_of(dialling(LISTENER, to=DIALLER), listener.challenge())

    assert cause(listener, reflected) == "link_to_itself"


def test_somebody_elses_certificate_with_ones_own_key_is_refused() -> None:
    stolen = LinkIdentity(certificate=identity(DIALLER).certificate, private_key=identity(MALLORY).private_key)

    listener = listening()

    assert cause(listener, proof_of(dialling(signs_with=stolen), listener.challenge())) == "link_bad_proof"


def test_a_certificate_that_is_nobodys_is_refused() -> None:
    listener = listening()

    assert cause(listener, proof_of(dialling(MALLORY), listener.challenge())) == "link_unknown_certificate"


def test_a_peers_certificate_under_another_peers_name_is_refused() -> None:
    listener = listening()
    proof = proof_of(dialling(DIALLER, claims=MALLORY), listener.challenge())

    assert cause(listener, proof) == "link_unknown_certificate"


def test_an_introduction_cannot_be_exchanged() -> None:
    listener = listening()
    proof = proof_of(dialling(introduction=b"mine"), listener.challenge())

    assert cause(listener, proof.replace(b"mine", b"thei")) == "link_bad_proof"


@pytest.mark.parametrize("position", [5, 36, 37, 68, 80, -1])
def test_a_proof_with_a_changed_byte_is_refused(position: int) -> None:
    listener = listening()
    proof = bytearray(proof_of(dialling(), listener.challenge()))
    proof[position] ^= 1

    assert cause(listener, bytes(proof)) in {"link_bad_proof", "link_unknown_certificate"}


def test_a_truncated_proof_is_waited_for_to_the_last_byte() -> None:
    listener = listening()
    proof = proof_of(dialling(padded_bytes=1_280), listener.challenge())

    assert [listener.receive(proof[at : at + 1]) for at in range(len(proof) - 1)] == [None] * (len(proof) - 1)
    assert listener.receive(proof[-1:]) == Proved(peer=node_id(DIALLER))


def test_a_proof_that_announces_too_much_is_refused_before_it_comes() -> None:
    for lengths in ((2_049, 0, 0), (400, 0xFFFF, 0), (400, 0, DATAGRAM_BYTES_MAX + 1)):
        head = struct.pack(">BI32s32sHHH", 1, CELL_BYTES, node_id(DIALLER), bytes(32), *lengths)

        assert cause(listening(), head) == "link_proof_too_long"


def test_cells_before_the_welcome_are_refused() -> None:
    listener = listening()
    proof = proof_of(dialling(), listener.challenge())

    assert cause(listener, proof + b"\x01") == "link_early_data"
    listener = listening()
    listener.receive(proof_of(dialling(), listener.challenge()))
    assert cause(listener, b"\x01") == "link_early_data"


def test_other_versions_are_refused_at_their_first_byte() -> None:
    assert cause(listening(), b"\x02") == "link_bad_version"
    with pytest.raises(ControlError) as refused:
        dialling().receive(b"\x02")
    assert refused.value.cause == "link_bad_version"


def test_peers_whose_packets_differ_in_size_part_at_once() -> None:
    listener = listening(cell_bytes=99)

    with pytest.raises(ControlError) as refused:
        dialling().receive(listener.challenge())
    assert refused.value.cause == "link_other_cells"
    assert cause(listening(), proof_of(dialling(cell_bytes=99), listener.challenge())) == "link_other_cells"


def test_a_dialler_takes_nothing_but_a_welcome_after_its_proof() -> None:
    for answer in (b"\x00", b"\x02", listening().challenge()[1:]):
        dialler = dialling()
        proof_of(dialler, listening().challenge())
        with pytest.raises(ControlError) as refused:
            dialler.receive(answer)
        assert refused.value.cause == "link_bad_welcome"


def test_a_challenge_with_something_behind_it_is_refused() -> None:
    with pytest.raises(ControlError) as refused:
        dialling().receive(listening().challenge() + b"\x01")

    assert refused.value.cause == "link_bad_welcome"


def test_a_link_is_welcomed_once_and_only_after_its_proof() -> None:
    listener = listening()
    with pytest.raises(LocalProtocolError):
        listener.welcome()
    listener.receive(proof_of(dialling(), listener.challenge()))
    listener.welcome()
    with pytest.raises(LocalProtocolError):
        listener.welcome()


@given(st.binary(max_size=3_000), st.integers(1, 400))
def test_no_garbage_is_a_proof(data: bytes, piece: int) -> None:
    listener = listening()
    try:
        heard = [listener.receive(data[at : at + piece]) for at in range(0, len(data), piece)]
    except ControlError:
        return
    assert set(heard) <= {None}


@given(st.integers(0, 2_000), st.integers(1, 255))
def test_no_proof_survives_a_change_that_is_signed(position: int, mask: int) -> None:
    listener = listening()
    proof = bytearray(proof_of(dialling(introduction=b"i" * 50), listener.challenge()))
    signed_or_head = len(proof)  # no padding here: every byte counts
    proof[position % signed_or_head] ^= mask
    try:
        heard = listener.receive(bytes(proof))
    except ControlError:
        return
    assert heard is None  # a length grew: it waits for more, until it times out
