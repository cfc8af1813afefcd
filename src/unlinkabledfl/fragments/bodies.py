"""What stands behind a fragment's header: four forms of a slice of values, each with its number.

    1 plain     value (4) …                                                          float32
    2 relative  length (2) ‖ frame of exponents (length) ‖ frame of signs and mantissas
    3 stepped   step (4) ‖ escapes (2) ‖ escape (4) … ‖ frame of symbols
    4 dithered  step (4) ‖ escapes (2) ‖ offset (2) ‖ phase (4) ‖ escape (4) … ‖ frame of symbols

Integers are big-endian, floats are little-endian float32, frames are Zstandard's without magic number (`lossless`).
What a receiver needs is in the body alone: the precisions `q4` to `q8` share form 3, and `fit` may use any form.

Invariant: decoding returns as many values as the range has, or raises FragmentError, and allocates no more than that.
"""

import struct

import numpy as np

from unlinkabledfl.errors import FragmentError
from unlinkabledfl.fragments.arrays import Symbols, Vector
from unlinkabledfl.fragments.lossless import Lossless
from unlinkabledfl.fragments.symbols import ESCAPE, SMALLEST_STEP, Dither, restore_dithered, restore_stepped

PLAIN, RELATIVE, STEPPED, DITHERED = 1, 2, 3, 4
_LENGTH = struct.Struct(">H")
_STEP = struct.Struct("<f")
_ESCAPES = struct.Struct(">H")
_DITHER = struct.Struct(">HI")
STEPPED_BYTES = _STEP.size + _ESCAPES.size
DITHERED_BYTES = STEPPED_BYTES + _DITHER.size
_VALUE = np.dtype("<f4")
_MANTISSA_BITS = 7  # of the sixteen bits of a relative value
MAX_ESCAPES = 2**16 - 1


def encode_plain(values: Vector) -> bytes:
    """Form 1."""
    return values.astype(_VALUE, copy=False).tobytes()


def encode_relative(values: Vector, lossless: Lossless, *, mantissa_bits: int, rng: np.random.Generator) -> bytes:
    """Form 2: sign, exponent and so many bits of mantissa, rounded stochastically; relative error below 2^-bits.

    Rounding the mantissa may carry into the exponent, as it should; a value keeps its sign, and zero stays zero.
    """
    dropped = 23 - mantissa_bits
    words = values.view(np.uint32) + rng.integers(0, 1 << dropped, size=values.size, dtype=np.uint32)
    words >>= np.uint32(dropped)
    words <<= np.uint32(dropped)
    exponents = (words >> np.uint32(23)).astype(np.uint8)
    rest = ((words >> np.uint32(24)) & np.uint32(0x80)) | ((words >> np.uint32(16)) & np.uint32(0x7F))
    frame = lossless.compress(exponents.tobytes())
    return _LENGTH.pack(len(frame)) + frame + lossless.compress(rest.astype(np.uint8).tobytes())


def encode_stepped(symbols: Symbols, lossless: Lossless, *, step: float) -> bytes:
    """Form 3, without escapes: every value has a symbol."""
    return _STEP.pack(step) + _ESCAPES.pack(0) + lossless.compress(symbols.data)


def encode_dithered(symbols: Symbols, escapes: Vector, lossless: Lossless, *, step: float, dither: Dither) -> bytes:
    """Form 4."""
    return b"".join(
        (
            _STEP.pack(step),
            _ESCAPES.pack(escapes.size),
            _DITHER.pack(dither.offset, dither.phase),
            encode_plain(escapes),
            lossless.compress(symbols.data),
        )
    )


def decode_body(form: int, body: memoryview, count: int, lossless: Lossless) -> Vector:
    """Return the `count` values of a body of that form; not yet compared with any bound."""
    match form:
        case 1:
            return _decode_plain(body, count)
        case 2:
            return _decode_relative(body, count, lossless)
        case 3:
            step, symbols, escapes = _decode_symbols(body, count, STEPPED_BYTES, lossless)
            return restore_stepped(symbols, escapes, step=step)
        case 4:
            step, symbols, escapes = _decode_symbols(body, count, DITHERED_BYTES, lossless)
            dither = Dither(*_DITHER.unpack_from(body, STEPPED_BYTES))
            return restore_dithered(symbols, escapes, step=step, dither=dither)
        case _:
            raise FragmentError("unknown_codec", f"form {form}")


def _decode_plain(body: memoryview, count: int) -> Vector:
    if len(body) != count * _VALUE.itemsize:
        raise FragmentError("bad_size", f"{len(body)} bytes for {count} values")
    return np.frombuffer(body, dtype=_VALUE).astype(np.float32)


def _decode_relative(body: memoryview, count: int, lossless: Lossless) -> Vector:
    if len(body) < _LENGTH.size:
        raise FragmentError("truncated", "no frame length")
    (length,) = _LENGTH.unpack_from(body)
    exponents, rest = (
        np.frombuffer(lossless.decompress(bytes(frame), size=count), dtype=np.uint8).astype(np.uint32)
        for frame in (body[_LENGTH.size : _LENGTH.size + length], body[_LENGTH.size + length :])
    )
    words = ((rest & np.uint32(0x80)) << np.uint32(24)) | (exponents << np.uint32(23))
    words |= (rest & np.uint32(0x7F)) << np.uint32(23 - _MANTISSA_BITS)
    return words.view(np.float32)


def _decode_symbols(body: memoryview, count: int, start: int, lossless: Lossless) -> tuple[float, Symbols, Vector]:
    """Return step, symbols and escapes; `start` is where the escapes begin."""
    if len(body) < start:
        raise FragmentError("truncated", "no step")
    (step,) = _STEP.unpack_from(body)
    (escaped,) = _ESCAPES.unpack_from(body, _STEP.size)
    frame_at = start + escaped * _VALUE.itemsize
    # Refuses NaN too, which is not at least anything.
    if not SMALLEST_STEP / 2 <= step < np.inf:
        raise FragmentError("bad_step", f"step {step}")
    if escaped > count or len(body) < frame_at:
        raise FragmentError("bad_escapes", f"{escaped} escapes in {len(body)} bytes")
    symbols = np.frombuffer(lossless.decompress(bytes(body[frame_at:]), size=count), dtype=np.uint8)
    if np.count_nonzero(symbols == ESCAPE) != escaped:
        raise FragmentError("bad_escapes", f"{escaped} escapes, not as many places")
    escapes = np.frombuffer(body[start:frame_at], dtype=_VALUE).astype(np.float32, copy=False)
    return step, symbols, escapes
