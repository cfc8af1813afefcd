"""What ties a process to the one that started it, and where it may run: calls to the Linux kernel.

Elsewhere the calls that do not exist are left out: a process then still ends when its control pipe closes.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Collection

from unlinkabledfl.errors import ConfigError

__all__ = ["available_cores", "check_cores", "die_with_parent", "name_process", "pin"]

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_NAME_BYTES = 15


def die_with_parent(number: signal.Signals, *, parent: int) -> None:
    """Have the kernel send this signal to us when `parent` ends, even by SIGKILL; at once if it has ended already."""
    _prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(number))
    # The parent may have ended before the call above; then nobody would tell us.
    if os.getppid() != parent:
        signal.raise_signal(number)


def name_process(name: str) -> None:
    """Show this name in `ps` and `top`; the first 15 characters count."""
    _prctl(_PR_SET_NAME, ctypes.c_char_p(name.encode("ascii", "replace")[:_NAME_BYTES]))


def available_cores() -> frozenset[int]:
    """Return the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def check_cores(cores: Collection[int], *, key: str) -> None:
    """ConfigError that names the first core that is not there."""
    there = available_cores()
    for core in cores:
        if core not in there:
            raise ConfigError(
                key=key,
                got=core,
                takes=f"cores that exist here and that this process may use: {_ranges(sorted(there))}",
                hint="`nproc` says how many there are",
            )


def pin(cores: Collection[int]) -> None:
    """Run on these cores only."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)


def _prctl(option: int, argument: object) -> None:
    if sys.platform == "linux":
        library = ctypes.CDLL(None, use_errno=True)
        if library.prctl(option, argument, 0, 0, 0) != 0:
            error = ctypes.get_errno()
            raise OSError(error, f"prctl {option}: {os.strerror(error)}")


def _ranges(numbers: list[int]) -> str:
    """`0-3, 8` for 0, 1, 2, 3, 8."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ", ".join("-".join(str(end) for end in part) for part in parts)
