"""What a process has used: CPU time and memory, read where Linux keeps them, from outside the process.

Reading memory walks the page tables of the process, which takes about a millisecond for a small one. It is done by
whoever watches, so that no mix is late for it.
"""

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Usage", "descendants", "read_cpu_s", "read_pss_mib", "read_usage"]

_KIB_PER_MIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """CPU time since the start, and the proportional set size: a page that n processes share counts 1/n for each."""

    cpu_s: float
    pss_mib: float


def read_usage(process_id: int) -> Usage | None:
    """Return what a process has used; none if it has ended, or if this is not Linux."""
    cpu_s, pss_mib = read_cpu_s(process_id), read_pss_mib(process_id)
    return None if cpu_s is None or pss_mib is None else Usage(cpu_s=cpu_s, pss_mib=pss_mib)


def read_cpu_s(process_id: int) -> float | None:
    """Return its CPU time, user and system; none if it has ended, or if this is not Linux."""
    try:
        text = Path(f"/proc/{process_id}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # The second field, the name, may hold anything, blanks and parentheses included; the last `)` ends it.
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read_pss_mib(process_id: int) -> float | None:
    """Return its proportional set size; none if it has ended, or if this is not Linux."""
    try:
        text = Path(f"/proc/{process_id}/smaps_rollup").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    kib = next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), None)
    return None if kib is None else kib / _KIB_PER_MIB


def descendants(process_id: int) -> list[int]:
    """Return the processes that this one has started, and those that they have, as far as they live."""
    found: list[int] = []
    pending = [process_id]
    while pending:
        for listing in Path(f"/proc/{pending.pop()}/task").glob("*/children"):
            try:
                below = [int(word) for word in listing.read_text(encoding="ascii").split()]
            except OSError:
                continue  # it has ended since
            found += below
            pending += below
    return found
