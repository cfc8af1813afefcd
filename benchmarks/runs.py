"""What whole training runs cost, in both worlds: the published setting, a thousand nodes, and the plain baseline.

Each run is the command that anybody would type, in a session of its own; what its processes use is read meanwhile.

- `virtual-32`: preset `paper`, N = 32, real packets, over all of MNIST, every node evaluated on all test images after
  every round.
- `virtual-1000`: the same mixing among 1,000 nodes, with sealed packets; together they train on the 60,000 images of
  MNIST and are evaluated on 1,000 test images each.
- `real-32` and `real-100`: preset `paper` with real nodes, a mix process and a learner each, over QUIC.
- `direct-16`: no mixing, sixteen real nodes, Fashion-MNIST, batches of 32, every node evaluated on all test images. Its
  bars are what decentralizepy took for the same work: 12.4 s a round and 0.94 GB a process.

Fewer rounds than a run has by itself are extrapolated: start-up once, and the mean round after the first as often as it
is missing. Where other work takes the cores, wall time means little; `cpu_s` is then what to compare.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.environment import describe
from benchmarks.session_usage import Usage
from unlinkabledfl.errors import ConfigError, RunError
from unlinkabledfl.experiment.records import Problems, RunDirectory

if TYPE_CHECKING:
    from rich.console import RenderableType

_COMPLETE = {"completeness": ("≥", 1.0)}


@dataclass(frozen=True, slots=True)
class Study:
    """A run to be measured: its scenario, its rounds, and what is claimed of it."""

    scenario: tuple[str, ...]
    bars: dict[str, tuple[str, float]] = field(default_factory=dict)
    rounds: int = 10


STUDIES: dict[str, Study] = {
    "virtual-32": Study(("paper", "learning.training_time_s=2"), {"planned_wall_s": ("<", 180.0), **_COMPLETE}),
    "virtual-1000": Study(
        (
            "paper",
            "learning.training_time_s=2",
            "topology.nodes=1000",
            "simulation.packets=sealed",
            "learning.test_samples=1000",
            "monitoring.gauges_interval_s=10",
        ),
        {"planned_wall_s": ("<", 1_800.0), "memory_gib": ("≤", 8.0), **_COMPLETE},
    ),
    "real-32": Study(
        ("paper", "run.backend=process"), {**_COMPLETE, "resent_share": ("≤", 0.01), "memory_gib": ("≤", 24.0)}
    ),
    "real-100": Study(
        ("paper", "run.backend=process", "topology.nodes=100"),
        {**_COMPLETE, "resent_share": ("≤", 0.01), "memory_gib": ("≤", 24.0)},
    ),
    "direct-16": Study(
        (
            "direct",
            "run.backend=process",
            "topology.nodes=16",
            "learning.dataset=fashion-mnist",
            "learning.batch_size=32",
        ),
        {"seconds_a_round": ("≤", 12.4), "node_mib": ("≤", 89.0), **_COMPLETE},
        rounds=3,
    ),
}


def measure(*, rounds: int | None = None, runs: Sequence[str] = tuple(STUDIES)) -> dict[str, Any]:
    """Run each, and return the document that `bench runs --json` prints."""
    for name in runs:
        if name not in STUDIES:
            raise ConfigError(key="--runs", got=name, takes=f"some of {', '.join(STUDIES)}")
    started_s = time.perf_counter()
    figures = [_figures(name, STUDIES[name], rounds or STUDIES[name].rounds) for name in runs]
    return {"runs": figures, "seconds": time.perf_counter() - started_s, **describe("torch", "numpy", "qh3")}


def _figures(name: str, study: Study, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "run"
        document, used, wall_s = _run([*study.scenario, f"run.rounds={rounds}"], path)
        node_mib = _largest_node_mib(path)
    reported = document["rounds"]
    cpu_s_by_round = [document["nodes"] * each["cpu_s_per_node"] for each in reported]
    later_s = cpu_s_by_round[1:] or cpu_s_by_round
    missing_s = (study.rounds - rounds) * sum(later_s) / len(later_s)
    fragments = document["fragments"]
    figures = {
        "name": name,
        "rounds": rounds,
        "planned_rounds": study.rounds,
        "clock_s": document["run_clock_s"],
        "wall_s": wall_s,
        "cpu_s": used.cpu_s,
        "memory_gib": used.memory_bytes / 2**30,
        "node_mib": node_mib,
        "seconds_a_round": sum(each["seconds"] for each in reported) / len(reported),
        "cpu_s_by_round": cpu_s_by_round,
        "accuracy": reported[-1]["accuracy_mean"],
        "completeness": min(each["completeness"] for each in reported),
        "resent_share": document["network"]["fragments_resent"] / fragments["sent"],
        "given_up": fragments["given_up"],
        "planned_wall_s": wall_s * (1.0 + missing_s / used.cpu_s),
        "planned_cpu_s": used.cpu_s + missing_s,
    }
    figures["bars"] = [
        {"name": key, "value": figures[key], "sign": sign, "bar": bar, "holds": _holds(figures[key], sign, bar)}
        for key, (sign, bar) in study.bars.items()
    ]
    return figures


def _run(scenario: Sequence[str], path: Path) -> tuple[dict[str, Any], Usage, float]:
    """Run a preset with settings; return the document, what its processes used, and how long it took."""
    preset, *settings = scenario
    command = [sys.executable, "-m", "unlinkabledfl.cli", "run", preset, *(f"--set={each}" for each in settings)]
    started_s = time.perf_counter()
    with (
        (path.parent / "stdout").open("w+", encoding="utf-8") as told,
        subprocess.Popen(  # noqa: S603 -- our own command
            [*command, "--json", "--out", str(path)], stdout=told, start_new_session=True
        ) as process,
    ):
        used = Usage(process.pid)
        while process.poll() is None:
            used.look()
            time.sleep(1.0)
        wall_s = time.perf_counter() - started_s
        if process.returncode:
            raise RunError(f"the run {' '.join(scenario)} ended with code {process.returncode}")
        told.seek(0)
        return json.load(told), used, wall_s


def _largest_node_mib(path: Path) -> float | None:
    """Return what the largest node held at the end of a round, its learner included; None in the virtual world."""
    by_round = RunDirectory.open(path).metrics(Problems()).by_round("pss_mib")
    return max((value for nodes in by_round.values() for value in nodes.values()), default=None)


def _holds(value: float | None, sign: str, bar: float) -> bool | None:
    if value is None:
        return None
    return {"<": value < bar, "≤": value <= bar, "≥": value >= bar}[sign]


def render(document: dict[str, Any]) -> "RenderableType":
    """Return the tables that people see."""
    from rich.console import Group
    from rich.table import Table

    table = Table(title="whole training runs", title_justify="left")
    for column in ("run", "rounds", "clock s", "wall s", "CPU s", "s a round", "GiB", "MiB a node", "accuracy"):
        table.add_column(column, justify="left" if column == "run" else "right")
    bars = Table(title="what is claimed", title_justify="left")
    for column in ("run", "", "measured", "claimed", "holds"):
        bars.add_column(column, justify="left" if column in {"run", ""} else "right")
    for run in document["runs"]:
        table.add_row(
            run["name"],
            f"{run['rounds']} of {run['planned_rounds']}",
            f"{run['clock_s']:,.0f}",
            f"{run['wall_s']:,.0f}",
            f"{run['cpu_s']:,.0f}",
            f"{run['seconds_a_round']:,.1f}",
            f"{run['memory_gib']:.1f}",
            "–" if run["node_mib"] is None else f"{run['node_mib']:.0f}",
            f"{run['accuracy']:.3f}",
        )
        for bar in run["bars"]:
            holds = "–" if bar["holds"] is None else "yes" if bar["holds"] else "no"
            value = "–" if bar["value"] is None else f"{bar['value']:,.4g}"
            bars.add_row(run["name"], _TITLES[bar["name"]], value, f"{bar['sign']} {bar['bar']:g}", holds)
    return Group(table, bars, document["machine"]["cpu"])


_TITLES = {
    "planned_wall_s": "wall time of all rounds, s",
    "memory_gib": "memory of all processes, GiB",
    "completeness": "share of expected fragments that arrived, least round",
    "resent_share": "fragments sent again, share",
    "seconds_a_round": "a round, s",
    "node_mib": "memory of the largest node with its learner, MiB",
}
