"""`unlinkabledfl bench manager`: what the manager costs while a run of 32 nodes tells it of itself once a second each.

The manager is a process of its own, as `unlinkabledfl serve` starts it; its processor time is what the system counts
for that process. A record of thirteen gauges comes from each node every second, spread over the second, for `rounds`
seconds: with nobody watching, with one viewer who also asks for the state of all nodes every second as the dashboard
does, and with ten viewers. After the last part the manager is killed and started again, while the run goes on.
"""

import tempfile
import threading
import time
from pathlib import Path
from signal import SIGKILL
from typing import TYPE_CHECKING, Any

from benchmarks.environment import describe
from benchmarks.manager_watched import ServedManager, Viewer, write_samples, written_run

if TYPE_CHECKING:
    from rich.console import RenderableType

    from unlinkabledfl.experiment.records import RunRecorder

NODES = 32
VIEWERS = 10
BARS = {"start_s": 3.0, "cpu_share": 0.05}
"""What the README claims: a page in so many seconds, and of one core at most this share."""


def measure(*, rounds: int = 20) -> dict[str, Any]:
    """Measure and return the document that `bench manager --json` prints."""
    started_s = time.perf_counter()
    shares: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        manager = ServedManager(Path(folder) / "runs")
        manager.start()
        start_s = manager.start_s
        try:
            with written_run(manager.runs / "alone", nodes=NODES) as recorder:
                shares["nobody"] = _share(manager, recorder, seconds=rounds)
            with written_run(manager.runs / "one", nodes=NODES) as recorder:
                shares["one"] = _watched_share(manager, recorder, seconds=rounds)
            with written_run(manager.runs / "ten", nodes=NODES) as recorder:
                viewers = [Viewer(manager, "ten") for _ in range(VIEWERS)]
                for viewer in viewers:
                    viewer.start()
                shares["ten"] = _share(manager, recorder, seconds=rounds)
                restart_s = _restart(manager, recorder, from_s=rounds)
            for viewer in viewers:
                viewer.join(timeout=60)
        finally:
            manager.stop()
    told = [len(viewer.messages) - 1 for viewer in viewers]
    return {
        "nodes": NODES,
        "start_s": start_s,
        "cpu_share": shares,
        "viewers": VIEWERS,
        "identical": all(viewer.messages == viewers[0].messages for viewer in viewers),
        "came_back": sum(viewer.came_back > 0 for viewer in viewers),
        "restart_s": restart_s,
        "records": NODES * (rounds + _AFTER_S),
        "records_seen_least": min(told),
        "rounds": rounds,
        **describe("fastapi", "starlette", "uvicorn"),
        "seconds": time.perf_counter() - started_s,
    }


_AFTER_S = 4


def _share(manager: ServedManager, recorder: "RunRecorder", *, seconds: int) -> float:
    before_s, began_s = manager.cpu_s(), time.perf_counter()
    write_samples(recorder, nodes=NODES, seconds=seconds)
    return (manager.cpu_s() - before_s) / (time.perf_counter() - began_s)


def _watched_share(manager: ServedManager, recorder: "RunRecorder", *, seconds: int) -> float:
    """Measure with one viewer who follows the stream and asks for the nodes and the run every second."""
    Viewer(manager, "one").start()
    enough = threading.Event()

    def poll() -> None:
        while not enough.wait(1.0):
            manager.ask("/api/runs/one/nodes")
            manager.ask("/api/runs/one")

    poller = threading.Thread(target=poll, daemon=True)
    poller.start()
    share = _share(manager, recorder, seconds=seconds)
    enough.set()
    poller.join()
    return share


def _restart(manager: ServedManager, recorder: "RunRecorder", *, from_s: int) -> float:
    """Kill the manager, go on writing, and start it again half-way."""
    manager.stop(SIGKILL)
    write_samples(recorder, nodes=NODES, seconds=_AFTER_S // 2, from_s=from_s)
    manager.start()
    write_samples(recorder, nodes=NODES, seconds=_AFTER_S // 2, from_s=from_s + _AFTER_S // 2)
    return manager.start_s


def render(document: dict[str, Any]) -> "RenderableType":
    """Return the table that people see."""
    from rich.table import Table

    table = Table(title=f"The manager, while {document['nodes']} nodes say thirteen figures a second each")
    table.add_column("what")
    table.add_column("figure", justify="right")
    table.add_column("bar", justify="right")
    table.add_row("from the command to its page", f"{document['start_s']:.2f} s", f"< {BARS['start_s']:g} s")
    for name, words in (("nobody", "nobody watches"), ("one", "one dashboard"), ("ten", "ten viewers")):
        bar = f"< {BARS['cpu_share']:.0%}"
        table.add_row(f"of one core, {words}", f"{document['cpu_share'][name]:.1%}", bar)
    table.add_row("ten streams are identical", "yes" if document["identical"] else "no", "yes")
    lost = document["records"] - document["records_seen_least"]
    table.add_row("records lost when it was killed and started again", f"{lost:,}", "0")
    return table
