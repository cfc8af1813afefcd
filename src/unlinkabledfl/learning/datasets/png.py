"""A small PNG reader: eight bits a channel, grey or RGB, not interlaced.

One source of CIFAR-10 packs it into PNG files. An image library would be a dependency of every node for the sake of
one download; the format is an inflate and five row filters. Whatever this reader does not know it refuses.

Invariant: never more than the header's width × height is unpacked, however much the stream holds, and the header is
held against what the caller expects before anything is unpacked.
"""

import struct
import zlib
from typing import Final

import numpy as np

from unlinkabledfl.learning.datasets.dataset import Bytes

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_CHANNELS: Final = {0: 1, 2: 3}
_EIGHT_BITS: Final = 8
_HEADER: Final = struct.Struct(">IIBBBBB")
_CHUNK: Final = struct.Struct(">I4s")
_CRC: Final = struct.Struct(">I")
_NONE, _SUB, _UP, _AVERAGE, _PAETH = range(5)


class PngError(Exception):
    """The file is no PNG, is damaged, or is of a kind that this reader does not know."""


def read_png(data: bytes, *, width: int, height: int) -> Bytes:
    """Return the pixels, of shape (height, width, channels), of an image that has this size."""
    header, stream = _chunks(data)
    found_width, found_height, bits, colour, compression, filtering, interlace = header
    if (found_width, found_height) != (width, height):
        raise PngError(f"the image is {found_width} × {found_height}, not {width} × {height}")
    if bits != _EIGHT_BITS or colour not in _CHANNELS or compression or filtering or interlace:
        raise PngError(f"only 8-bit grey or RGB without interlacing is read (bits {bits}, colour type {colour})")
    channels = _CHANNELS[colour]
    row_bytes = 1 + width * channels
    inflate = zlib.decompressobj()
    try:
        raw = inflate.decompress(stream, height * row_bytes + 1)
    except zlib.error as error:
        raise PngError(f"its pixels do not unpack: {error}") from error
    if len(raw) != height * row_bytes:
        raise PngError(f"its pixels unpack to {len(raw)} bytes or more, not to {height * row_bytes}")
    rows = np.frombuffer(raw, dtype=np.uint8).reshape(height, row_bytes)
    return _unfilter(rows, channels).reshape(height, width, channels)


def _chunks(data: bytes) -> tuple[tuple[int, ...], bytes]:
    if not data.startswith(_SIGNATURE):
        raise PngError("it does not begin as a PNG does")
    header: tuple[int, ...] | None = None
    pixels: list[bytes] = []
    at = len(_SIGNATURE)
    while at + _CHUNK.size <= len(data):
        length, kind = _CHUNK.unpack_from(data, at)
        body_at = at + _CHUNK.size
        at = body_at + length + _CRC.size
        if at > len(data):
            break
        body = data[body_at : body_at + length]
        if zlib.crc32(body, zlib.crc32(kind)) != _CRC.unpack_from(data, body_at + length)[0]:
            raise PngError(f"the checksum of its part {kind!r} is wrong")
        if kind == b"IHDR" and header is None and length == _HEADER.size:
            header = _HEADER.unpack(body)
        elif kind == b"IDAT":
            pixels.append(body)
        elif kind == b"IEND" and header is not None:
            return header, b"".join(pixels)
    raise PngError("it ends too early")


def _unfilter(rows: Bytes, channels: int) -> Bytes:
    height, row_bytes = rows.shape
    pixels = np.empty((height, row_bytes - 1), dtype=np.uint8)
    above = np.zeros(row_bytes - 1, dtype=np.uint8)
    for row, target in zip(rows, pixels, strict=True):
        kind, line = int(row[0]), row[1:]
        if kind == _NONE:
            target[:] = line
        elif kind == _SUB:
            # Each byte is the difference to the same channel of the pixel before: undone, a running sum modulo 256.
            np.cumsum(line.reshape(-1, channels), axis=0, dtype=np.uint8, out=target.reshape(-1, channels))
        elif kind == _UP:
            np.add(line, above, out=target)
        elif kind in {_AVERAGE, _PAETH}:
            target[:] = _unfilter_sequential(kind, line.tolist(), above.tolist(), channels)
        else:
            raise PngError(f"it names a row filter {kind} that does not exist")
        above = target
    return pixels


def _unfilter_sequential(kind: int, line: list[int], above: list[int], channels: int) -> list[int]:
    """Undo the filters in which a byte depends on the one undone before: no vector operation, but they are rare."""
    done = [0] * channels  # the pixel left of the first one
    above = [0] * channels + above
    for index, difference in enumerate(line):
        left, up, corner = done[index], above[index + channels], above[index]
        predicted = (left + up) // 2 if kind == _AVERAGE else _paeth(left, up, corner)
        done.append((difference + predicted) & 0xFF)
    return done[channels:]


def _paeth(left: int, up: int, corner: int) -> int:
    """Return which of the three neighbours lies nearest to left + up - corner; earlier ones win ties."""
    estimate = left + up - corner
    return min((left, up, corner), key=lambda neighbour: abs(estimate - neighbour))
