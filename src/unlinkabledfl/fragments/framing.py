"""A fragment's bytes: fourteen of header, then what its codec wrote. No pickle, no padding: the packet pads.

    version (1) ‖ codec (1) ‖ round (4) ‖ start (4) ‖ stop (4) ‖ body

Numbers are big-endian. The content id is not among the bytes, it is their hash: an id that the sender could
choose would let it erase another's fragment from every pool that it reaches first. A resend has the same bytes, so the
same id.

Invariant: parsing reads the header only, and never past the end.
"""

import struct
from dataclasses import dataclass
from hashlib import sha256
from typing import NewType

from unlinkabledfl.errors import FragmentError
from unlinkabledfl.fragments.arrays import Vector

VERSION = 1
CONTENT_ID_BYTES = 16
_HEADER = struct.Struct(">BBIII")
HEADER_BYTES = _HEADER.size
MAX_ROUND = 2**32 - 1

ContentId = NewType("ContentId", bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What the first bytes of a fragment say, not yet compared with anything."""

    codec: int
    round: int
    start: int
    stop: int

    def to_bytes(self) -> bytes:
        """Return the bytes before the body."""
        return _HEADER.pack(VERSION, self.codec, self.round, self.start, self.stop)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fragment:
    """The values of one range, as one round of training left them somewhere."""

    round: int
    start: int
    stop: int
    values: Vector
    content_id: ContentId


def parse_header(data: bytes) -> Header:
    """Read the header; FragmentError if there is none of ours."""
    if len(data) < HEADER_BYTES:
        raise FragmentError("truncated", f"{len(data)} bytes, the header has {HEADER_BYTES}")
    version, codec, round_number, start, stop = _HEADER.unpack_from(data)
    if version != VERSION:
        raise FragmentError("bad_version", f"version {version}")
    return Header(codec=codec, round=round_number, start=start, stop=stop)


def content_id(data: bytes) -> ContentId:
    """Return the name of exactly these bytes."""
    return ContentId(sha256(data).digest()[:CONTENT_ID_BYTES])
