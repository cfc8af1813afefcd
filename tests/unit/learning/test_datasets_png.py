import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlinkabledfl.learning.datasets.png import PngError, read_png

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png_of(
    rows: bytes, *, width: int, height: int, colour: int = 2, bits: int = 8, interlace: int = 0, pieces: int = 1
) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlace)
    packed = zlib.compress(rows)
    cut = -(-len(packed) // pieces)
    body = b"".join(chunk(b"IDAT", packed[at : at + cut]) for at in range(0, len(packed), cut))
    return SIGNATURE + chunk(b"IHDR", header) + chunk(b"tEXt", b"by\0nobody") + body + chunk(b"IEND", b"")


def filtered(pixels: "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]", kinds: list[int]) -> bytes:
    """Apply row filters as the PNG specification defines them, byte by byte."""
    height, width, channels = pixels.shape
    out = bytearray()
    for y in range(height):
        out.append(kinds[y])
        for x in range(width):
            for c in range(channels):
                left = int(pixels[y, x - 1, c]) if x else 0
                up = int(pixels[y - 1, x, c]) if y else 0
                corner = int(pixels[y - 1, x - 1, c]) if x and y else 0
                estimate = left + up - corner
                nearest = left
                if abs(estimate - up) < abs(estimate - nearest):
                    nearest = up
                if abs(estimate - corner) < abs(estimate - nearest):
                    nearest = corner
                predicted = (0, left, up, (left + up) // 2, nearest)[kinds[y]]
                out.append((int(pixels[y, x, c]) - predicted) % 256)
    return bytes(out)


@given(
    height=st.integers(1, 6),
    width=st.integers(1, 7),
    channels=st.sampled_from([1, 3]),
    seed=st.integers(0, 2**32 - 1),
    pieces=st.integers(1, 3),
    data=st.data(),
)
def test_pixels_survive_every_row_filter(
    *, height: int, width: int, channels: int, seed: int, pieces: int, data: st.DataObject
) -> None:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=np.uint8)
    kinds = data.draw(st.lists(st.integers(0, 4), min_size=height, max_size=height))
    colour = {1: 0, 3: 2}[channels]

    image = png_of(filtered(pixels, kinds), width=width, height=height, colour=colour, pieces=pieces)

    assert np.array_equal(read_png(image, width=width, height=height), pixels)


GOOD = png_of(bytes(2 * 7), width=2, height=2)


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (b"GIF89a", "does not begin as a PNG does"),
        (SIGNATURE, "ends too early"),
        (GOOD[:-13], "ends too early"),
        (GOOD[:60] + bytes([GOOD[60] ^ 1]) + GOOD[61:], "checksum of its part"),
        (png_of(bytes(2 * 7), width=3, height=2), "is 3 × 2, not 2 × 2"),
        (png_of(bytes(2 * 7), width=2, height=2, bits=16), "only 8-bit"),
        (png_of(bytes(2 * 7), width=2, height=2, colour=3), "only 8-bit"),
        (png_of(bytes(2 * 7), width=2, height=2, interlace=1), "without interlacing"),
        (png_of(bytes(13), width=2, height=2), "unpack to 13 bytes or more, not to 14"),
        (png_of(bytes(10_000_000), width=2, height=2), "unpack to 15 bytes or more, not to 14"),
        (png_of(b"\x05" + bytes(13), width=2, height=2), "row filter 5"),
        (SIGNATURE + GOOD[8:33] + chunk(b"IDAT", b"no zlib") + chunk(b"IEND", b""), "do not unpack"),
    ],
)
def test_what_is_no_such_picture_is_refused_with_its_reason(image: bytes, reason: str) -> None:
    with pytest.raises(PngError, match=reason):
        read_png(image, width=2, height=2)


@given(at=st.integers(0, len(GOOD) - 1), value=st.integers(0, 255), cut=st.integers(0, len(GOOD)))
def test_a_damaged_picture_is_refused_or_reads_as_before(at: int, value: int, cut: int) -> None:
    damaged = (GOOD[:at] + bytes([value]) + GOOD[at + 1 :])[:cut]

    try:
        pixels = read_png(damaged, width=2, height=2)
    except PngError:
        return
    assert not pixels.any()
