"""The eight-lane X25519 equals PyNaCl's on every input that a packet can carry, honest or not."""

from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.bindings import crypto_scalarmult, crypto_scalarmult_base

from unlinkabledfl.errors import LocalProtocolError
from unlinkabledfl.sphinx import multibuffer
from unlinkabledfl.sphinx.multibuffer import MultiBufferX25519

P = 2**255 - 19
ZERO = bytes(32)

# Every u-coordinate of small order, canonical or not (the curve's, its twist's, and both plus the prime).
SMALL_ORDER = [
    0,
    1,
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
    P - 1,
    P,
    P + 1,
]
NON_CANONICAL = [P + 2, P + 3, P + 9, P + 18]
HIGH_BIT = [2**255 + u for u in (*SMALL_ORDER, 9, P + 9)]
ORDINARY = [2, 9, 2**254, 0x55 << 240]
POINTS = [*SMALL_ORDER, *NON_CANONICAL, *HIGH_BIT, *ORDINARY]
# Bits that clamping sets and clears, and the order of the base point.
SCALARS = [0, 1, 7, 8, 2**254, 2**255 - 1, 2**255, 2**256 - 1, 2**252 + 27742317777372353535851937790883648493]


REASON = multibuffer.why_unavailable()
needs_the_library = pytest.mark.skipif(REASON is not None, reason=str(REASON))

keys = st.binary(min_size=32, max_size=32)


def little_endian(values: list[int]) -> list[bytes]:
    return [value.to_bytes(32, "little") for value in values]


def one_by_one(scalar: bytes, point: bytes) -> bytes:
    """PyNaCl's result, with zeros where it raises because the result is zero."""
    try:
        return crypto_scalarmult(scalar, point)
    except RuntimeError:
        return ZERO


@pytest.fixture(scope="module")
def backend() -> MultiBufferX25519:
    found = multibuffer.load()
    assert found is not None
    return found


@needs_the_library
def test_random_scalars_and_points_give_what_pynacl_gives(backend: MultiBufferX25519) -> None:
    random = Random(20)
    scalars = [random.randbytes(32) for _ in range(500)]
    points = [random.randbytes(32) for _ in range(500)]

    assert backend.x25519(scalars, points) == list(map(one_by_one, scalars, points))
    assert backend.public_keys(scalars) == [crypto_scalarmult_base(scalar) for scalar in scalars]


@needs_the_library
def test_edge_scalars_and_points_give_what_pynacl_gives_in_any_lane(backend: MultiBufferX25519) -> None:
    pairs = list(product(little_endian(SCALARS), little_endian(POINTS)))

    for lane in range(8):
        scalars, points = map(list, zip(*pairs[lane:], *pairs[:lane], strict=True))
        assert backend.x25519(scalars, points) == list(map(one_by_one, scalars, points))


@needs_the_library
def test_edge_scalars_have_the_public_keys_that_pynacl_gives(backend: MultiBufferX25519) -> None:
    scalars = little_endian(SCALARS)

    assert backend.public_keys(scalars) == [crypto_scalarmult_base(scalar) for scalar in scalars]


@needs_the_library
@pytest.mark.parametrize("u", SMALL_ORDER)
def test_a_point_of_small_order_gives_zeros_and_spares_its_neighbours(backend: MultiBufferX25519, u: int) -> None:
    random = Random(u)
    scalars = [random.randbytes(32) for _ in range(8)]
    points = [random.randbytes(32) for _ in range(8)]
    points[3] = u.to_bytes(32, "little")

    results = backend.x25519(scalars, points)

    assert one_by_one(scalars[3], points[3]) == ZERO
    assert results == list(map(one_by_one, scalars, points))


@needs_the_library
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 16, 17])
def test_any_number_of_rows_gives_as_many_results(backend: MultiBufferX25519, count: int) -> None:
    random = Random(count)
    scalars = [random.randbytes(32) for _ in range(count)]
    points = [random.randbytes(32) for _ in range(count)]

    assert backend.x25519(scalars, points) == list(map(one_by_one, scalars, points))
    assert backend.public_keys(scalars) == [crypto_scalarmult_base(scalar) for scalar in scalars]


@needs_the_library
@given(st.lists(st.tuples(keys, keys), max_size=20))
def test_any_scalar_with_any_public_key_gives_what_pynacl_gives(
    backend: MultiBufferX25519, rows: list[tuple[bytes, bytes]]
) -> None:
    scalars = [scalar for scalar, _ in rows]
    points = backend.public_keys([secret for _, secret in rows])

    assert backend.x25519(scalars, points) == list(map(one_by_one, scalars, points))


@needs_the_library
def test_threads_may_share_an_instance(backend: MultiBufferX25519) -> None:
    random = Random(4)
    jobs = [([random.randbytes(32) for _ in range(24)], [random.randbytes(32) for _ in range(24)]) for _ in range(40)]

    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda job: backend.x25519(*job), jobs * 5))

    assert results == [list(map(one_by_one, *job)) for job in jobs] * 5


@needs_the_library
@pytest.mark.parametrize("wrong", [b"", bytes(31), bytes(33)])
def test_a_key_of_another_length_is_refused_before_the_library_reads_past_it(
    backend: MultiBufferX25519, wrong: bytes
) -> None:
    good = bytes(range(32))

    with pytest.raises(LocalProtocolError, match="has 32 bytes"):
        backend.x25519([good, wrong], [good, good])
    with pytest.raises(LocalProtocolError, match="has 32 bytes"):
        backend.x25519([good, good], [wrong, good])
    with pytest.raises(LocalProtocolError, match="has 32 bytes"):
        backend.public_keys([wrong])


@needs_the_library
def test_scalars_without_their_points_are_refused(backend: MultiBufferX25519) -> None:
    with pytest.raises(LocalProtocolError, match="2 scalars cannot be paired with 1 points"):
        backend.x25519([bytes(32), bytes(32)], [bytes(32)])


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing_is_installed(package: str) -> None:
        raise PackageNotFoundError(package)

    monkeypatch.setattr(multibuffer, "distribution", nothing_is_installed)

    assert multibuffer.load() is None
    assert multibuffer.why_unavailable() == "the package intel-cmplr-lib-rt is not installed (extra `ipp`)"
