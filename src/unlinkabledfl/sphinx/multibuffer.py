"""X25519, eight at a time, through Intel's multi-buffer library.

One AVX-512 IFMA instruction multiplies eight pairs of 52-bit limbs, so eight multiplications run in lockstep in the
time of about one. The PyPI package `ipp-crypto` (extra `ipp`) carries the library, for Linux on x86-64. It asks the
loader for four libraries of Intel's compiler run time although it uses no symbol of theirs, and does not declare
them; so the extra names `intel-cmplr-lib-rt` too, and those files are loaded first, by path.

Which processor will do is for the library to say (`mbx_is_crypto_mb_applicable`, `mbx_get_algo_info`): AMD's recent
ones do as well. Before its first use it must reproduce a test vector of RFC 7748 in every lane.

Invariant: results are right on all but points of special form. The library (2026.2.0) errs on some u-coordinates, such
as those just below the prime or 2^90 - 1; among millions of random points not one differs. So nothing may be refused on
the word of this module alone: the codec multiplies again, exactly, before it refuses a packet
(docs/decisions/0003-eight-lanes.md). Points of small order never reach the library; their result is zeros, which the
caller refuses.
"""

import ctypes
import struct
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from unlinkabledfl.errors import LocalProtocolError
from unlinkabledfl.sphinx.small_order import PRIME, SMALL_ORDER_U

__all__ = ["MultiBufferX25519", "load", "why_unavailable"]

_LIBRARY: Final = ("ipp-crypto", "libcrypto_mb.so")
# In the order of their own dependencies. Once loaded, each satisfies the loader under its name.
_RUN_TIME: Final = tuple(
    ("intel-cmplr-lib-rt", name) for name in ("libintlc.so.5", "libirng.so", "libimf.so", "libsvml.so")
)

_LANES: Final = 8
_KEY_BYTES: Final = 32
_GROUP_BYTES: Final = _LANES * _KEY_BYTES
_ALGORITHM_X25519: Final = 4  # MBX_ALGO_X25519
_WIDTH_EIGHT: Final = 8  # the bit of mbx_get_algo_info's answer that stands for eight lanes

_BASE_POINT: Final = b"\x09" + bytes(31)
_ZERO: Final = bytes(_KEY_BYTES)
_RIGHT_LENGTH: Final = frozenset({_KEY_BYTES})


def _encodings_of_small_order() -> frozenset[bytes]:
    """Return every 32 bytes that decode to a point whose order divides 8, on the curve or on its twist."""
    # X25519 ignores the top bit and reduces what lies between the prime and 2^255.
    values = {value + extra for value in SMALL_ORDER_U for extra in (0, PRIME) if value + extra < 2**255}
    return frozenset((value + high).to_bytes(_KEY_BYTES, "little") for value in values for high in (0, 2**255))


_SMALL_ORDER: Final = _encodings_of_small_order()

# RFC 7748, section 6.1: Alice's private key, Bob's public key, their secret, and Alice's public key.
_TEST_PRIVATE: Final = bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")
_TEST_PEER: Final = bytes.fromhex("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f")
_TEST_SECRET: Final = bytes.fromhex("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742")
_TEST_PUBLIC: Final = bytes.fromhex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")

_Group = ctypes.c_char * _GROUP_BYTES
_Addresses = ctypes.c_void_p * _LANES
_split = struct.Struct(f"{_KEY_BYTES}s" * _LANES).unpack
_NOTHING: Final = bytes(_GROUP_BYTES)


class _Scratch:
    """The memory of one call: eight scalars, points and results, and where each of them lies."""

    __slots__ = ("_kept", "point_addresses", "points", "result_addresses", "results", "scalar_addresses", "scalars")

    def __init__(self) -> None:
        self.scalars, self.points, self.results = _Group(), _Group(), _Group()
        tables = [_addresses(self.scalars), _addresses(self.points), _addresses(self.results)]
        self._kept = tables  # what the three addresses below point to
        self.scalar_addresses, self.point_addresses, self.result_addresses = (
            ctypes.c_void_p(ctypes.addressof(table)) for table in tables
        )


def _addresses(group: "ctypes.Array[ctypes.c_char]") -> "ctypes.Array[ctypes.c_void_p]":
    start = ctypes.addressof(group)
    return _Addresses(*range(start, start + _GROUP_BYTES, _KEY_BYTES))


class MultiBufferX25519:
    """RFC 7748 scalar multiplication in groups of eight.

    Threads may share an instance, and the library runs without the interpreter's lock: each call takes a scratch of its
    own from a pool (a list's `pop` and `append` are atomic), which holds no key any more when it goes back.
    """

    __slots__ = ("_multiply", "_multiply_base", "_pool")

    def __init__(self, library: ctypes.CDLL) -> None:
        self._multiply = library.mbx_x25519_mb8
        self._multiply_base = library.mbx_x25519_public_key_mb8
        self._multiply.restype = self._multiply_base.restype = ctypes.c_uint32
        self._pool: list[_Scratch] = []

    def x25519(self, scalars: Sequence[bytes], points: Sequence[bytes]) -> list[bytes]:
        """Return X25519(scalar, point) for each pair; zeros where the point is of small order."""
        if len(scalars) != len(points):
            raise LocalProtocolError(f"{len(scalars)} scalars cannot be paired with {len(points)} points")
        if _SMALL_ORDER.isdisjoint(points):
            return self._in_groups(scalars, points)
        safe = [_BASE_POINT if point in _SMALL_ORDER else point for point in points]
        results = self._in_groups(scalars, safe)
        return [_ZERO if point in _SMALL_ORDER else result for point, result in zip(points, results, strict=True)]

    def public_keys(self, scalars: Sequence[bytes]) -> list[bytes]:
        """Return X25519(scalar, 9) for each scalar."""
        return self._in_groups(scalars, None)

    def _in_groups(self, scalars: Sequence[bytes], points: Sequence[bytes] | None) -> list[bytes]:
        # A wrong length here would shift every key after it.
        if not _RIGHT_LENGTH.issuperset(map(len, scalars)) or not _RIGHT_LENGTH.issuperset(map(len, points or ())):
            raise LocalProtocolError(f"every X25519 scalar and point has {_KEY_BYTES} bytes")
        try:
            scratch = self._pool.pop()
        except IndexError:
            scratch = _Scratch()
        results: list[bytes] = []
        for first in range(0, len(scalars), _LANES):
            scratch.scalars.raw = _eight(scalars, first)
            if points is None:
                status = self._multiply_base(scratch.result_addresses, scratch.scalar_addresses)
            else:
                scratch.points.raw = _eight(points, first)
                status = self._multiply(scratch.result_addresses, scratch.scalar_addresses, scratch.point_addresses)
            if status:  # four bits a lane, all zero where nothing is wrong
                raise LocalProtocolError(f"the multi-buffer library failed: status {status:#010x}")
            results.extend(_split(scratch.results))
        scratch.scalars.raw = scratch.results.raw = _NOTHING
        self._pool.append(scratch)
        del results[len(scalars) :]
        return results


def _eight(column: Sequence[bytes], first: int) -> bytes:
    """Return eight keys in a row, from `first` on; where there are fewer, the base point stands in."""
    joined = b"".join(column[first : first + _LANES])
    return joined if len(joined) == _GROUP_BYTES else joined + _BASE_POINT * (_LANES - len(joined) // _KEY_BYTES)


def load() -> MultiBufferX25519 | None:
    """Return the eight-lane X25519, or None where it is not installed or the processor cannot run it."""
    found = _find()
    return found if isinstance(found, MultiBufferX25519) else None


def why_unavailable() -> str | None:
    """Return what `load` misses, as half a sentence for people, or None where it succeeds."""
    found = _find()
    return found if isinstance(found, str) else None


def _find() -> MultiBufferX25519 | str:
    try:
        for package, name in _RUN_TIME:
            ctypes.CDLL(str(_locate(package, name)))
        library = ctypes.CDLL(str(_locate(*_LIBRARY)))
    except PackageNotFoundError as missing:
        return f"the package {missing.name} is not installed (extra `ipp`)"
    except OSError as refused:
        return f"a library does not load: {refused}"
    library.mbx_get_cpu_features.restype = ctypes.c_uint64
    library.mbx_is_crypto_mb_applicable.argtypes = (ctypes.c_uint64,)
    library.mbx_get_algo_info.restype = ctypes.c_uint64
    if not library.mbx_is_crypto_mb_applicable(library.mbx_get_cpu_features()):
        return "the processor lacks AVX-512 IFMA"
    if not library.mbx_get_algo_info(_ALGORITHM_X25519) & _WIDTH_EIGHT:
        return "the library has no eight-lane X25519 for this processor"
    backend = MultiBufferX25519(library)
    if not _reproduces_the_test_vector(backend):
        return "the library fails the test vector of RFC 7748"
    return backend


def _locate(package: str, name: str) -> Path:
    """Return where an installed package put a file of that name: only its own list of files is trusted."""
    found = distribution(package)
    for file in found.files or ():
        if file.name == name:
            return Path(str(found.locate_file(file))).resolve()
    raise FileNotFoundError(f"{package} {found.version} holds no {name}")


def _reproduces_the_test_vector(backend: MultiBufferX25519) -> bool:
    secrets = backend.x25519([_TEST_PRIVATE] * _LANES, [_TEST_PEER] * _LANES)
    publics = backend.public_keys([_TEST_PRIVATE] * _LANES)
    return secrets == [_TEST_SECRET] * _LANES and publics == [_TEST_PUBLIC] * _LANES
