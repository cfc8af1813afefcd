"""What all processes of a session use, read from outside while they run: CPU time, and memory at its highest."""

import time
from pathlib import Path

from unlinkabledfl.experiment.backends.process.usage import read_cpu_s, read_pss_mib

_MEMORY_EVERY_S = 5.0
"""Reading the memory of two hundred processes takes a while, on cores that they could use."""


class Usage:
    """CPU and memory of the processes of a session, those that have ended included as they were last seen."""

    def __init__(self, session: int) -> None:
        self._session = session
        self._cpu_s: dict[int, float] = {}
        self._memory_at_s = time.monotonic()
        self.memory_bytes = 0

    @property
    def cpu_s(self) -> float:
        """What all of them have used."""
        return sum(self._cpu_s.values())

    def look(self) -> None:
        """Read what they use now; memory not every time."""
        members = [process for process in map(int, _process_ids()) if _session_of(process) == self._session]
        for process in members:
            cpu_s = read_cpu_s(process)
            if cpu_s is not None:
                self._cpu_s[process] = cpu_s
        if time.monotonic() >= self._memory_at_s:
            mib = sum(read_pss_mib(process) or 0.0 for process in members)
            self.memory_bytes = max(self.memory_bytes, round(mib * 2**20))
            self._memory_at_s = time.monotonic() + _MEMORY_EVERY_S


def _process_ids() -> list[str]:
    return [folder.name for folder in Path("/proc").glob("[0-9]*")]


def _session_of(process: int) -> int | None:
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[3])
