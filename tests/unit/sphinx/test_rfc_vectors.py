"""Keys and secrets of the reference and of the product against published vectors.

X25519: RFC 7748, sections 5.2 and 6.1. X-Wing: draft-connolly-cfrg-xwing-kem, appendix C, whose seeds are the output of
SHAKE128 on nothing. ML-KEM has no vector here: it is right if X-Wing's is, and the library opens what we make.
"""

from hashlib import shake_128

import pytest
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference import mlkem_reference
from tests.reference.sphinx_reference import BASE_POINT, Format, RefusedError, public_key, receiver_secret, x25519
from tests.unit.sphinx.nodes import load_key
from unlinkabledfl.sphinx import Geometry, Sphinx
from unlinkabledfl.sphinx.multiplier import OneByOne

SECTION_5_2 = [
    (
        "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
        "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
        "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
    ),
    (
        "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
        "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
        "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957",
    ),
]
ALICE = "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"
ALICE_PUBLIC = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
BOB = "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"
BOB_PUBLIC = "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
SHARED = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"


def unhex(text: str) -> bytes:
    return bytes.fromhex(text)


@pytest.mark.parametrize(("scalar", "u", "expected"), SECTION_5_2)
def test_the_ladder_multiplies_as_section_5_2_says(scalar: str, u: str, expected: str) -> None:
    assert x25519(unhex(scalar), unhex(u)).hex() == expected


def test_the_ladder_iterates_to_the_values_of_section_5_2() -> None:
    results = [BASE_POINT]
    scalar = u = BASE_POINT
    for _ in range(1_000):
        scalar, u = x25519(scalar, u), scalar
        results.append(scalar)

    assert results[1].hex() == "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079"
    assert results[1_000].hex() == "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51"


@pytest.mark.parametrize(
    ("private", "public", "peer"), [(ALICE, ALICE_PUBLIC, BOB_PUBLIC), (BOB, BOB_PUBLIC, ALICE_PUBLIC)]
)
def test_both_sides_of_section_6_1_agree(private: str, public: str, peer: str) -> None:
    assert x25519(unhex(private), BASE_POINT).hex() == public
    assert x25519(unhex(private), unhex(peer)).hex() == SHARED


@pytest.mark.parametrize(("private", "public"), [(ALICE, ALICE_PUBLIC), (BOB, BOB_PUBLIC)])
@pytest.mark.parametrize("key_layer", ["x25519", "x25519-kem"])
def test_a_nodes_key_is_an_x25519_key(key_layer: str, private: str, public: str) -> None:
    key = load_key(Sphinx(Geometry(key_layer=key_layer)), unhex(private))

    assert (key.private_bytes.hex(), key.public_bytes.hex()) == (private, public)


@given(scalar=st.binary(min_size=32, max_size=32), u=st.binary(min_size=32, max_size=32))
def test_the_ladder_equals_a_library_on_any_input(scalar: bytes, u: bytes) -> None:
    """Non-canonical u and points off the curve included: X25519 is defined on all of them."""
    expected: bytes | str
    try:
        expected = X25519PrivateKey.from_private_bytes(scalar).exchange(X25519PublicKey.from_public_bytes(u))
    except ValueError:  # how the library refuses a zero result
        expected = "bad_element"
    result: bytes | str
    try:
        result = x25519(scalar, u)
    except RefusedError as refusal:
        result = refusal.cause

    assert result == expected


@settings(max_examples=10)
@given(seed=st.binary(min_size=64, max_size=64), message=st.binary(min_size=32, max_size=32))
def test_a_library_opens_the_encapsulations_of_the_reference(seed: bytes, message: bytes) -> None:
    private = MLKEM768PrivateKey.from_seed_bytes(seed)

    secret, ciphertext = mlkem_reference.encapsulate(private.public_key().public_bytes_raw(), message)

    assert private.decapsulate(ciphertext) == secret


def test_the_layer_pq_gives_the_secret_that_the_draft_publishes() -> None:
    drawn = shake_128(b"").digest(96)
    seed, message, ephemeral = drawn[:32], drawn[32:64], drawn[64:]
    form = Format(key_layer="pq", max_hops=1, body_bytes=16_384)
    geometry = Geometry(key_layer="pq", max_hops=1, body_bytes=16_384)
    key = load_key(Sphinx(geometry), seed)
    _, kem_ciphertext = mlkem_reference.encapsulate(key.public_bytes[:1184], message)
    element = kem_ciphertext + x25519(ephemeral, BASE_POINT)

    published = unhex("d2df0522128f09dd8e2c92b1e905c793d8f57a54c3da25861f10bf4ca613e384")
    assert key.public_bytes == public_key(form, seed)
    assert receiver_secret(form, private=seed, public=key.public_bytes, alpha=element) == published
    assert geometry.layer.secrets(key, [element], OneByOne()) == [published]
