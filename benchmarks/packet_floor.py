"""The floor under a hop's cost: what OpenSSL takes for the same primitives, with nothing around them.

A C loop (`packet_floor.c`) where this machine can compile one, else the sum of what `openssl speed` prints, else none.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.rounds import Case

ITERATIONS = 200
TAG_BYTES = 32


@dataclass(frozen=True, slots=True)
class Floor:
    """How to take one sample, and what it is a sample of."""

    sample: Case
    source: str


@contextmanager
def floor(body_bytes: int) -> Iterator[Floor | None]:
    """Give the best floor that this machine can measure, or None."""
    with tempfile.TemporaryDirectory() as directory:
        program = _compile(Path(directory))
        if program is not None:
            yield Floor(lambda: _run(program, body_bytes), f"a C loop over libcrypto, {_openssl_version()}")
        elif shutil.which("openssl"):
            # It measures for a whole second each: once is enough.
            total = _speed(body_bytes)
            yield Floor(lambda: total, f"the sum of `openssl speed`, {_openssl_version()}")
        else:
            yield None


def _compile(directory: Path) -> Path | None:
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    program = directory / "packet_floor"
    source = Path(__file__).with_suffix(".c")
    built = subprocess.run(  # noqa: S603 - our own source, no shell
        [compiler, "-O2", "-o", program, source, "-lcrypto"], check=False, capture_output=True, timeout=60
    )
    return program if built.returncode == 0 else None


def _run(program: Path, body_bytes: int) -> float:
    printed = _output([str(program), str(ITERATIONS), str(body_bytes)])
    # With AES in counter mode and with AES-GCM: whichever this processor is faster at.
    return min(map(float, printed.split()))


def _speed(body_bytes: int) -> float:
    covered = body_bytes - TAG_BYTES
    speed = ["openssl", "speed", "-mr", "-seconds", "1"]
    exchange_s = float(_result([*speed, "ecdhx25519"]))
    aes_bytes_per_s = float(_result([*speed, "-bytes", str(covered), "-evp", "aes-256-ctr"]))
    hash_bytes_per_s = float(_result([*speed, "-bytes", str(covered), "ghash"]))
    return 2e6 * (exchange_s + covered / aes_bytes_per_s + covered / hash_bytes_per_s)


def _result(command: list[str]) -> str:
    """Return the last field of the line with the final figure."""
    (line,) = (line for line in _output(command).splitlines() if line.startswith("+F"))
    return line.rpartition(":")[2]


def _openssl_version() -> str:
    return " ".join(_output(["openssl", "version"]).split()[:2]) if shutil.which("openssl") else "OpenSSL"


def _output(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout  # noqa: S603 - as above
