"""Write fragment-good.json and fragment-bad.json, the golden vectors of fragments.

    python tests/vectors/make_fragment.py

Written from the tables in `unlinkabledfl/fragments/framing.py` and `bodies.py`, not with their code: Zstandard's frames
are put together here by hand, with blocks that are stored or repeat one byte. A second run writes the same bytes.
"""

import hashlib
import json
import math
import struct
from pathlib import Path
from typing import Any

PLACE = Path(__file__).parent
GRID = {"parameters": 24, "slice_values": 8, "statistics": 4, "statistics_slice_values": 4}
CAPACITY_BYTES = 200
BOUND = 1000.0
VALUES = [0.0, -0.0, 1.0, -1.5, 0.1, 999.0, -1e-20, 3.25]
SYMBOLS = [0, 1, 127, -1, -127, 64, -64, 5]
ESCAPE = -128


def header(*, form: int, start: int = 8, stop: int = 16, round_number: int = 7, version: int = 1) -> bytes:
    """Return version, codec, round, start and stop."""
    return struct.pack(">BBIII", version, form, round_number, start, stop)


def frame(content: bytes, *, claims: int | None = None, repeat: int | None = None) -> bytes:
    """Return a frame with one block: stored, or the first byte `repeat` times."""
    descriptor = b"\x20" + bytes([len(content) if claims is None else claims])
    size, kind, data = (len(content), 0, content) if repeat is None else (repeat, 1, content[:1])
    return descriptor + (size << 3 | kind << 1 | 1).to_bytes(3, "little") + data


def wide_frame(content: bytes, claims: int) -> bytes:
    """Return a stored frame that claims a size of up to eight bytes' worth."""
    return b"\xe0" + claims.to_bytes(8, "little") + (len(content) << 3 | 1).to_bytes(3, "little") + content


def floats(*values: float) -> bytes:
    """Return values as they travel."""
    return struct.pack(f"<{len(values)}f", *values)


def symbols(*values: int) -> bytes:
    """Return symbols as they travel."""
    return bytes(value % 256 for value in values)


def stepped(content: bytes, *escapes: float, step: float = 0.25) -> bytes:
    """Return a body of form 3; `content` is the frame."""
    return floats(step) + struct.pack(">H", len(escapes)) + floats(*escapes) + content


def dithered(content: bytes, *escapes: float, step: float = 0.25, offset: int = 0, phase: int = 0) -> bytes:
    """Return a body of form 4."""
    return floats(step) + struct.pack(">HHI", len(escapes), offset, phase) + floats(*escapes) + content


def relative(exponents: bytes, rest: bytes) -> bytes:
    """Return a body of form 2; both are frames."""
    return struct.pack(">H", len(exponents)) + exponents + rest


def noise(offset: int, phase: int, count: int) -> list[float]:
    """Return the subtracted dither: 16-bit words of a SHAKE-256 stream, read in a circle."""
    stream = hashlib.shake_256(b"unlinkabledfl/dither/v1").digest(2 * 2**16)
    table = struct.unpack(f"<{2**16}H", stream)
    return [table[(offset + at) % 2**16] / 2**16 + phase / 2**32 - 1.0 for at in range(count)]


def good(name: str, data: bytes, values: list[float], step: float = 0.0, **fields: int) -> dict[str, Any]:
    """Return one entry; a step says how exactly the values are known."""
    return {
        "name": name,
        "data": data.hex(),
        "round": fields.get("round_number", 7),
        "start": fields.get("start", 8),
        "stop": fields.get("stop", 16),
        "content_id": hashlib.sha256(data).digest()[:16].hex(),
        "values": values,
        "tolerance": step / 2**16,
    }


def good_cases() -> list[dict[str, Any]]:
    """Fragments that must be read, and what they say."""
    exact = list(struct.unpack("<8f", floats(*VALUES)))
    with_escape = [*SYMBOLS[:3], ESCAPE, *SYMBOLS[4:]]
    cases = [
        good("plain", header(form=1) + floats(*VALUES), exact),
        good(
            "plain, first round, first range", header(form=1, start=0, stop=8, round_number=0) + floats(*VALUES), exact,
            round_number=0, start=0, stop=8,
        ),
        good(
            "relative statistics",
            header(form=2, start=24, stop=28) + relative(frame(bytes([127, 128, 0, 120])), frame(b"\x00\xc0\x00\x7f")),
            [1.0, -3.0, 0.0, 2.0**-7 * (1 + 127 / 128)], start=24, stop=28,
        ),
        good("stepped", header(form=3) + stepped(frame(symbols(*SYMBOLS))), [0.25 * k for k in SYMBOLS]),
        good(
            "stepped, one byte repeated", header(form=3) + stepped(frame(b"\x03", claims=8, repeat=8)), [0.75] * 8
        ),
        good(
            "stepped, an escape", header(form=3) + stepped(frame(symbols(*with_escape)), 500.0),
            [0.25 * k if k != ESCAPE else 500.0 for k in with_escape],
        ),
    ]  # fmt: skip
    for offset, phase in ((0, 0), (1, 2**31), (65_530, 2**32 - 1)):
        values = [(k - w) * 0.25 for k, w in zip(SYMBOLS, noise(offset, phase, 8), strict=True)]
        body = dithered(frame(symbols(*SYMBOLS)), offset=offset, phase=phase)
        cases.append(good(f"dithered, offset {offset}, phase {phase}", header(form=4) + body, values, 0.25))
    values = [(k - w) * 0.25 for k, w in zip(with_escape, noise(9, 9, 8), strict=True)]
    values[3] = -77.5
    body = dithered(frame(symbols(*with_escape)), -77.5, offset=9, phase=9)
    cases.append(good("dithered, an escape", header(form=4) + body, values, 0.25))
    return cases


def bad_cases() -> list[dict[str, str]]:
    """Return bytes that must be refused, and the cause."""
    eight = frame(symbols(*SYMBOLS))
    plain = header(form=1) + floats(*VALUES)
    found = {
        "empty": ("truncated", b""),
        "header cut": ("truncated", plain[:13]),
        "longer than a packet": ("too_long", plain.ljust(CAPACITY_BYTES + 1, b"\0")),
        "version 0": ("bad_version", header(form=1, version=0) + floats(*VALUES)),
        "version 2": ("bad_version", header(form=1, version=2) + floats(*VALUES)),
        "codec 0": ("unknown_codec", header(form=0) + floats(*VALUES)),
        "codec 5": ("unknown_codec", header(form=5) + floats(*VALUES)),
        "range between two": ("off_grid", header(form=1, start=9, stop=17) + floats(*VALUES)),
        "range of two": ("off_grid", header(form=1, start=0, stop=16) + floats(*VALUES * 2)),
        "empty range": ("off_grid", header(form=1, start=8, stop=8)),
        "range backwards": ("off_grid", header(form=1, start=16, stop=8) + floats(*VALUES)),
        "range beyond the end": ("off_grid", header(form=1, start=28, stop=36) + floats(*VALUES)),
        "range of the whole index space": ("off_grid", header(form=1, start=0, stop=2**32 - 1)),
        "plain, a byte short": ("bad_size", plain[:-1]),
        "plain, a byte more": ("bad_size", plain + b"\0"),
        "plain, NaN": ("not_finite", header(form=1) + floats(math.nan, *VALUES[1:])),
        "plain, infinity": ("not_finite", header(form=1) + floats(math.inf, *VALUES[1:])),
        "plain, minus infinity": ("not_finite", header(form=1) + floats(*VALUES[:7], -math.inf)),
        "plain, beyond the bound": ("out_of_bound", header(form=1) + floats(1000.5, *VALUES[1:])),
        "plain, below the bound": ("out_of_bound", header(form=1) + floats(*VALUES[:7], -1000.5)),
        "stepped, no body": ("truncated", header(form=3)),
        "stepped, step 0": ("bad_step", header(form=3) + stepped(eight, step=0.0)),
        "stepped, step negative": ("bad_step", header(form=3) + stepped(eight, step=-1.0)),
        "stepped, step NaN": ("bad_step", header(form=3) + stepped(eight, step=math.nan)),
        "stepped, step infinite": ("bad_step", header(form=3) + stepped(eight, step=math.inf)),
        "stepped, values beyond the bound": ("out_of_bound", header(form=3) + stepped(eight, step=9)),
        "stepped, values that overflow": ("not_finite", header(form=3) + stepped(eight, step=3e38)),
        "stepped, no frame": ("bad_compression", header(form=3) + stepped(b"")),
        "stepped, frame cut": ("bad_compression", header(form=3) + stepped(eight[:-1])),
        "stepped, bytes after the frame": ("bad_compression", header(form=3) + stepped(eight + b"\0")),
        "stepped, seven symbols": ("bad_size", header(form=3) + stepped(frame(symbols(*SYMBOLS[:7])))),
        "stepped, nine symbols": ("bad_size", header(form=3) + stepped(frame(symbols(*SYMBOLS, 1)))),
        "bomb: claims eight, holds 131,072": (
            "bad_compression", header(form=3) + stepped(frame(b"\x01", claims=8, repeat=2**17)),
        ),
        "bomb: claims 2 to the 40": ("bad_size", header(form=3) + stepped(wide_frame(bytes(8), 2**40))),
        "claims eight, holds seven": ("bad_compression", header(form=3) + stepped(frame(bytes(7), claims=8))),
        "an escape without a place": ("bad_escapes", header(form=3) + stepped(eight, 1.0)),
        "a place without an escape": (
            "bad_escapes", header(form=3) + stepped(frame(symbols(*SYMBOLS[:7], ESCAPE))),
        ),
        "more escapes than values": ("bad_escapes", header(form=3) + stepped(eight, *[1.0] * 9)),
        "more escapes than bytes": ("bad_escapes", header(form=3) + floats(0.25) + b"\0\x08"),
        "an escape that is NaN": (
            "not_finite", header(form=3) + stepped(frame(symbols(*SYMBOLS[:7], ESCAPE)), math.nan),
        ),
        "dithered, no dither": ("truncated", header(form=4) + stepped(b"")),
        "relative, no body": ("truncated", header(form=2, start=24, stop=28) + b"\0"),
        "relative, length beyond the end": (
            "bad_compression", header(form=2, start=24, stop=28) + b"\xff\xff" + frame(bytes(4)) + frame(bytes(4)),
        ),
        "relative, exponent of infinity": (
            "not_finite", header(form=2, start=24, stop=28) + relative(frame(b"\xff\0\0\0"), frame(bytes(4))),
        ),
        "relative, exponents for eight": (
            "bad_size", header(form=2, start=24, stop=28) + relative(frame(bytes(8)), frame(bytes(4))),
        ),
    }  # fmt: skip
    return [{"name": name, "cause": cause, "data": data.hex()} for name, (cause, data) in found.items()]


def documents() -> dict[Path, str]:
    """Both files."""
    settings = {"grid": GRID, "capacity_bytes": CAPACITY_BYTES, "bound": BOUND}
    return {
        PLACE / "fragment-good.json": json.dumps({**settings, "cases": good_cases()}, indent=1) + "\n",
        PLACE / "fragment-bad.json": json.dumps({**settings, "cases": bad_cases()}, indent=1) + "\n",
    }


if __name__ == "__main__":
    for path, text in documents().items():
        path.write_text(text)
