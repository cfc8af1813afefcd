"""What whole training runs cost in virtual time: the published setting, and a thousand nodes.

Each run is the command that anybody would type, in a session of its own; what its processes use is read once a second.

- `published`: preset `paper`, N = 32, real packets, ten rounds over all of MNIST, every node evaluated on all test
  images after every round. Claimed: under 180 s on two cores.
- `thousand`: the same mixing among 1,000 nodes, with sealed packets; together they train on the 60,000 images of MNIST
  and are evaluated on 1,000 test images each. Claimed for ten rounds: under 30 minutes and 8 GiB. Fewer rounds are
  extrapolated: start-up once, and the mean round after the first as often as it is missing.

Where other work takes the cores, wall time means little; `cpu_s` is then what to compare: two cores need half of it
at the least.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.environment import describe

if TYPE_CHECKING:
    from rich.console import RenderableType

ROUNDS = 10
RUNS: dict[str, tuple[str, ...]] = {
    "published": ("paper", "--set=learning.training_time_s=2"),
    "thousand": (
        "paper",
        "--set=learning.training_time_s=2",
        "--set=topology.nodes=1000",
        "--set=simulation.packets=sealed",
        "--set=learning.test_samples=1000",
        "--set=monitoring.gauges_interval_s=10",
    ),
}
BARS = {"published": {"wall_s": 180.0}, "thousand": {"wall_s": 1800.0, "memory_gib": 8.0}}
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def measure(*, rounds: int = ROUNDS, names: Sequence[str] = tuple(RUNS)) -> dict[str, Any]:
    """Run each, and return the document."""
    started_s = time.perf_counter()
    figures = [_figures(name, rounds) for name in names]
    return {"runs": figures, "seconds": time.perf_counter() - started_s, **describe("torch", "numpy")}


def _figures(name: str, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        command = [
            sys.executable,
            "-m",
            "unlinkabledfl.cli",
            "run",
            *RUNS[name],
            f"--set=run.rounds={rounds}",
            "--json",
        ]
        started_s = time.perf_counter()
        with subprocess.Popen(  # noqa: S603 -- our own command
            [*command, "--json", "--out", f"{scratch}/run"], stdout=subprocess.PIPE, start_new_session=True
        ) as process:
            used = Usage(process.pid)
            while process.poll() is None:
                used.look()
                time.sleep(1.0)
            wall_s = time.perf_counter() - started_s
            if process.returncode:
                raise SystemExit(f"the run {name} ended with code {process.returncode}")
            assert process.stdout is not None
            document = json.loads(process.stdout.read())
        times_s = _ends_of_rounds(Path(scratch) / "run" / "metrics.csv")
    document_rounds = document["rounds"]
    per_round_s = [document["nodes"] * each["cpu_s_per_node"] for each in document_rounds]
    later_s = per_round_s[1:] or per_round_s
    missing = ROUNDS - rounds
    cpu_s = used.cpu_s
    return {
        "name": name,
        "rounds": rounds,
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "cpu_s_per_round": per_round_s,
        "memory_gib": used.memory_bytes / 2**30,
        "virtual_s": times_s,
        "accuracy": document_rounds[-1]["accuracy_mean"],
        "completeness": min(each["completeness"] for each in document_rounds),
        "wall_s_of_ten_rounds": wall_s * (1.0 + missing * (sum(later_s) / len(later_s)) / cpu_s),
        "cpu_s_of_ten_rounds": cpu_s + missing * sum(later_s) / len(later_s),
    }


class Usage:
    """CPU and memory of all processes of a session."""

    def __init__(self, session: int) -> None:
        self._session = session
        self._cpu_s: dict[int, float] = {}
        self.memory_bytes = 0

    @property
    def cpu_s(self) -> float:
        """What all of them used, those that have ended included."""
        return sum(self._cpu_s.values())

    def look(self) -> None:
        """Read what they use now."""
        memory_bytes = 0
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) != self._session:
                    continue
                self._cpu_s[int(folder.name)] = (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
                memory_bytes += _proportional_bytes(folder / "smaps_rollup")
            except OSError:
                continue
        self.memory_bytes = max(self.memory_bytes, memory_bytes)


def _proportional_bytes(rollup: Path) -> int:
    """Return the memory of a process, pages that it shares counted in part."""
    for line in rollup.read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def _ends_of_rounds(metrics: Path) -> float:
    """Return how much virtual time passed."""
    with metrics.open() as lines:
        next(lines)
        return max(float(line.partition(",")[0]) for line in lines)


def render(document: dict[str, Any]) -> "RenderableType":
    """Return the table that people see."""
    from rich.table import Table

    table = Table(title="training runs in virtual time", title_justify="left")
    for column in ("run", "rounds", "virtual s", "wall s", "CPU s", "GiB", "accuracy", "ten rounds: wall s", "CPU s"):
        table.add_column(column, justify="left" if column == "run" else "right")
    for run in document["runs"]:
        table.add_row(
            run["name"],
            str(run["rounds"]),
            f"{run['virtual_s']:,.0f}",
            f"{run['wall_s']:,.0f}",
            f"{run['cpu_s']:,.0f}",
            f"{run['memory_gib']:.1f}",
            f"{run['accuracy']:.3f}",
            f"{run['wall_s_of_ten_rounds']:,.0f} (claimed: < {BARS[run['name']]['wall_s']:,.0f})",
            f"{run['cpu_s_of_ten_rounds']:,.0f}",
        )
    return table


if __name__ == "__main__":
    print(json.dumps(measure(rounds=int(sys.argv[1]), names=sys.argv[2:] or tuple(RUNS)), indent=2))
