"""A manager as a process, a run that never was, and who watches it: for the benchmark and the end-to-end tests."""

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from unlinkabledfl.experiment.records import RunDescription, RunDirectory, RunRecorder, Status
from unlinkabledfl.mixnet.topology import circulant

TOKEN = "a-token-of-this-process-only"  # noqa: S105
GAUGES = (
    "round", "completeness_now", "queue_own", "queue_transit", "fragments_planned", "fragments_open", "fragments_held",
    "peers_routable", "peers_gone", "cover_share", "packets_sent", "packets_relayed", "bytes_sent",
)  # fmt: skip

Message = tuple[str, str, str]
"""Type, id and data."""


class ServedManager:
    """`unlinkabledfl serve` as a child, which may be killed and started again at the same port."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs
        self.port = 0
        self.start_s = 0.0
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, and wait until its page is there."""
        began_s = time.perf_counter()
        command = [sys.executable, "-m", "unlinkabledfl.cli", "serve", "--json", "--runs", str(self.runs)]
        command += ["--port", str(self.port), "--token", TOKEN]
        # The command is ours, and no shell reads it.
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603
        assert self._process.stdout is not None
        self.port = int(json.loads(self._process.stdout.readline())["address"].rpartition(":")[2])
        self.ask("/")
        self.start_s = time.perf_counter() - began_s

    def ask(self, path: str, *, method: str = "GET", body: object = None) -> Any:  # noqa: ANN401 - any document
        """Return what it answers."""
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            raw = answer.read()
        assert answer.status < 400, raw
        return json.loads(raw) if answer.headers["content-type"] == "application/json" else raw

    def cpu_s(self) -> float:
        """Return the processor time that it has used, of all its threads."""
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End it."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.communicate(timeout=60)
            self._process = None


class Viewer(threading.Thread):
    """One who watches a run from its beginning to its end, and comes back when he loses the manager."""

    def __init__(self, manager: ServedManager, run: str) -> None:
        super().__init__(daemon=True)
        self.messages: list[Message] = []
        self.came_back = 0
        self._manager = manager
        self._run = run

    def run(self) -> None:
        """Watch."""
        while not (self.messages and self.messages[-1][0] == "end"):
            try:
                self._watch()
            except (OSError, http.client.HTTPException):
                self.came_back += 1
                time.sleep(0.1)

    def _watch(self) -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        if self.messages:
            headers["Last-Event-ID"] = self.messages[-1][1]
        with closing(http.client.HTTPConnection("127.0.0.1", self._manager.port, timeout=60)) as connection:
            connection.request("GET", f"/api/runs/{self._run}/stream", headers=headers)
            answer = connection.getresponse()
            fields: dict[str, str] = {}
            while line := answer.readline().decode():
                if line != "\n":
                    name, _, value = line.rstrip("\n").partition(": ")
                    fields[name] = value
                    continue
                if "data" in fields:
                    self.messages.append((fields["event"], fields.get("id", ""), fields["data"]))
                fields = {}


@contextmanager
def written_run(path: Path, *, nodes: int) -> Iterator[RunRecorder]:
    """A run whose records this process writes."""
    topology = circulant(nodes, 4)
    description = RunDescription(run=path.name, backend="process", nodes=nodes, planned_rounds=1, seed=1)
    edges = [(one, other) for one in range(nodes) for other in topology.neighbours(one) if one < other]
    recorder = RunRecorder(RunDirectory.create(path, scenario_toml="", description=description, edges=edges))
    try:
        yield recorder
    finally:
        recorder.finish(Status.FINISHED)


def write_samples(recorder: RunRecorder, *, nodes: int, seconds: int, from_s: int = 0) -> None:
    """Write what so many nodes say at 1 Hz, spread over each second as nodes are, in real time."""
    draw = random.Random(from_s)
    began_s = time.monotonic()
    for number in range(seconds * nodes):
        at_s = number / nodes
        time.sleep(max(0.0, began_s + at_s - time.monotonic()))
        values = {name: round(draw.uniform(0.0, 1e6), 3) for name in GAUGES}
        recorder.record(time_s=from_s + at_s, round_number=None, node=number % nodes, metrics=values)
