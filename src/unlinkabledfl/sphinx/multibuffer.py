"""X25519, eight at a time, through Intel's multi-buffer library.

One AVX-512 IFMA instruction multiplies eight pairs of 52-bit limbs, so eight independent multiplications run in lockstep
in the time of about one. The PyPI package `ipp-crypto` (extra `ipp`) carries the library, for Linux on x86-64. It asks the
dynamic loader for four libraries of Intel's compiler run time although it uses no symbol of theirs, and does not declare
that dependency; the extra therefore names `intel-cmplr-lib-rt` too, and its files are loaded first, by path.

Which processor will do is for the library to say (`mbx_is_crypto_mb_applicable`, `mbx_get_algo_info`): AMD's recent ones
do as well. Before the first use it must reproduce the test vector of RFC 7748 in every lane.

Invariant: a result here equals RFC 7748's byte for byte, so that the choice of backend changes no packet. Eight lanes are
one call: a group that is not full is padded with a lane of no consequence, and every lane's status is looked at. An
all-zero result (the point was of small order) comes back as zeros; the caller refuses it.
"""

import ctypes
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

from unlinkabledfl.errors import LocalProtocolError

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

# A call returns four bits a lane. Bit 2 says that the result is zero because the point was of small order.
_SMALL_ORDER_IN_EVERY_LANE: Final = 0x4444_4444

_PADDING: Final = b"\x09" + bytes(31)

# RFC 7748, section 6.1: Alice's private key, Bob's public key, their secret, and Alice's public key.
_TEST_PRIVATE: Final = bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")
_TEST_PEER: Final = bytes.fromhex("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f")
_TEST_SECRET: Final = bytes.fromhex("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742")
_TEST_PUBLIC: Final = bytes.fromhex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")

_Key = ctypes.c_char_p
_EightKeys = _Key * _LANES
_EightResults = ctypes.c_void_p * _LANES
_ResultBuffer = ctypes.c_char * _GROUP_BYTES


class MultiBufferX25519:
    """RFC 7748 scalar multiplication in groups of eight.

    It holds two entry points of the library and nothing that a call changes, so threads may share one instance, and the
    library runs without the interpreter's lock. Keys are read where they lie: the only copy made of a secret is the
    result, and the buffer that it passes through is cleared.
    """

    __slots__ = ("_multiply", "_multiply_base")

    def __init__(self, library: ctypes.CDLL) -> None:
        self._multiply = library.mbx_x25519_mb8
        self._multiply.argtypes = (_EightResults, _EightKeys, _EightKeys)
        self._multiply.restype = ctypes.c_uint32
        self._multiply_base = library.mbx_x25519_public_key_mb8
        self._multiply_base.argtypes = (_EightResults, _EightKeys)
        self._multiply_base.restype = ctypes.c_uint32

    def x25519(self, scalars: Sequence[bytes], points: Sequence[bytes]) -> list[bytes]:
        """Return X25519(scalar, point) for each pair; zeros where the point is of small order."""
        if len(scalars) != len(points):
            raise LocalProtocolError(f"{len(scalars)} scalars cannot be paired with {len(points)} points")
        return _in_groups(self._multiply, scalars, points)

    def public_keys(self, scalars: Sequence[bytes]) -> list[bytes]:
        """Return X25519(scalar, 9) for each scalar."""
        return _in_groups(self._multiply_base, scalars)


def _in_groups(function: Any, *columns: Sequence[bytes]) -> list[bytes]:  # noqa: ANN401 - a foreign function
    """Call `function(results, *eight of each column)` for every eight rows, and return one result a row."""
    rows = len(columns[0])
    for column in columns:
        # The library reads 32 bytes at each address, whatever lies there.
        if set(map(len, column)) - {_KEY_BYTES}:
            raise LocalProtocolError("every X25519 scalar and point is of 32 bytes")
    buffer = _ResultBuffer()
    start = ctypes.addressof(buffer)
    lanes = _EightResults(*range(start, start + _GROUP_BYTES, _KEY_BYTES))
    results: list[bytes] = []
    for first in range(0, rows, _LANES):
        groups = [column[first : first + _LANES] for column in columns]
        missing = _LANES - len(groups[0])
        if missing:
            groups = [(*group, *[_PADDING] * missing) for group in groups]
        status = function(lanes, *[_EightKeys(*group) for group in groups])
        if status & ~_SMALL_ORDER_IN_EVERY_LANE:
            raise LocalProtocolError(f"the multi-buffer library refused its arguments: status {status:#010x}")
        results += _split(buffer.raw)
    ctypes.memset(start, 0, _GROUP_BYTES)
    del results[rows:]
    return results


def _split(raw: bytes) -> list[bytes]:
    return [raw[start : start + _KEY_BYTES] for start in range(0, _GROUP_BYTES, _KEY_BYTES)]


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
