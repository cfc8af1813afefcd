"""Feed broken fragments to the pool: it raises nothing, counts each, and no aggregate leaves the bound.

    python tests/fuzz/fuzz_fragments.py                     for FUZZ_SECONDS, 60 by default
    python tests/fuzz/fuzz_fragments.py -runs=1000          or with any option of libFuzzer
    python tests/fuzz/fuzz_fragments.py crash-0123abcd      one input again

The first byte of an input says what to do with the rest of it.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Final

import numpy as np

try:
    import atheris
except ImportError:  # the module stays importable, so that type checks and tests see it
    atheris = None

with atheris.instrument_imports(include=["unlinkabledfl"]) if atheris else nullcontext():
    from unlinkabledfl.fragments import (
        FragmentDecoder,
        FragmentEncoder,
        Grid,
        Policy,
        Pool,
        Staleness,
        codec_by_name,
        rule_by_name,
    )
    from unlinkabledfl.fragments.framing import HEADER_BYTES, Header

GRID: Final = Grid(900, 300, 60, 60)
CAPACITY_BYTES: Final = 1_300
BOUND: Final = 50.0
ROUND: Final = 3
FORMS: Final = (1, 2, 3, 4)
LOCAL: Final = np.random.default_rng(1).normal(0.0, 1.0, GRID.values).astype(np.float32)
OPTIONS: Final = (f"-max_len={CAPACITY_BYTES + 64}", "-timeout=10", "-rss_limit_mb=1024")


def _good() -> tuple[bytes, ...]:
    """Return a fragment of each range in each codec."""
    rng = np.random.default_rng(2)
    found = []
    for name, capacity_bytes in (("f32", CAPACITY_BYTES), ("q8", CAPACITY_BYTES), ("q4", 400), ("fit", 300)):
        encoder = FragmentEncoder(GRID, codec_by_name(name), capacity_bytes=capacity_bytes)
        found += encoder.encode(LOCAL, round_number=ROUND, rng=rng)
    return tuple(found)


GOOD: Final = _good()


def arbitrary(data: bytes) -> list[bytes]:
    """The input is the fragment."""
    return [data]


def body(data: bytes) -> list[bytes]:
    """The input is the body, behind a header that passes; its first byte says which."""
    if not data:
        return []
    place = GRID.ranges[data[0] % len(GRID)]
    form = FORMS[data[0] // len(GRID) % len(FORMS)]
    return [Header(codec=form, round=ROUND, start=place.start, stop=place.stop).to_bytes() + data[1:]]


def mutated(data: bytes) -> list[bytes]:
    """The input says which good fragment, which bytes to change (2 bytes of position and a mask), what to append."""
    fragment = bytearray(GOOD[data[0] % len(GOOD)] if data else GOOD[0])
    for at in range(1, len(data) - 2, 3):
        fragment[int.from_bytes(data[at : at + 2], "big") % len(fragment)] ^= data[at + 2]
    fragment += data[1:][3 * ((len(data) - 1) // 3) :] if data else b""
    return [bytes(fragment)]


def mutated_body(data: bytes) -> list[bytes]:
    """The same, with the header left alone, and twice: the second is a duplicate or refused again."""
    (fragment,) = mutated(data)
    header = GOOD[data[0] % len(GOOD)] if data else GOOD[0]
    return [header[:HEADER_BYTES] + fragment[HEADER_BYTES:]] * 2


WAYS: Final = (arbitrary, body, mutated, mutated_body)


def fuzz_one(data: bytes) -> None:
    """Try one input."""
    selector, rest = (data[0], data[1:]) if data else (0, b"")
    policy = Policy.DROP if selector & 1 else Policy.KEEP
    decoder = FragmentDecoder(GRID, capacity_bytes=CAPACITY_BYTES, bound=BOUND)
    pool = Pool(decoder, staleness=Staleness(policy=policy), first_round=ROUND)
    fragments = WAYS[selector // 2 % len(WAYS)](rest)
    accepted = [pool.receive(fragment) for fragment in fragments]
    if pool.received != len(fragments) or sum(pool.counts.values()) != accepted.count(False):
        raise AssertionError(f"{len(fragments)} fragments, counted {pool.counts}")
    if accepted[1:] == [True]:
        raise AssertionError("a duplicate was accepted")
    result = pool.aggregate(LOCAL, rule_by_name("fragfedavg"))
    if pool.counts["aggregated"] + pool.tally().held != sum(accepted):
        raise AssertionError(f"{sum(accepted)} accepted, counted {pool.counts}")
    if not np.abs(result.vector).max() <= BOUND:
        raise AssertionError("an aggregate is beyond the bound")


def main(arguments: Sequence[str]) -> None:
    """Run libFuzzer, for a limited time unless the arguments say how long."""
    if atheris is None:
        sys.exit("atheris is not installed; `make fuzz` installs it")
    limits = [] if arguments else [f"-max_total_time={os.environ.get('FUZZ_SECONDS', '60')}"]
    atheris.Setup([sys.argv[0], *OPTIONS, *limits, *arguments], fuzz_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
