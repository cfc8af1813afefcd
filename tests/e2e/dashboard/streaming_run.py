"""A run that is told in real time and never was: a hundred nodes whose gauges are sampled once a second.

What it tells is drawn from a seed, and goes through the recorder of real runs into a directory that a manager watches.
"""

import random
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.unit.experiment.synthetic_run import create_run
from unlinkabledfl.experiment.records import EventKind, RunRecorder, Status

ROUND_S = 4.0
PHASES = ("train", "exchange", "aggregate", "evaluate")


class StreamingRun:
    """Tells until it is left."""

    def __init__(self, path: Path, *, nodes: int, rounds: int) -> None:
        self._nodes = nodes
        self._directory = create_run(path, nodes=nodes, rounds=rounds, run="hundred", route="overlay")
        self._recorder = RunRecorder(self._directory)
        self._random = random.Random(1)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tell)
        self.told = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self._recorder.finish(Status.FINISHED)
        self._directory.release()

    def _tell(self) -> None:
        begun_s, second = time.perf_counter(), 0
        while not self._over.wait(max(0.0, begun_s + second - time.perf_counter())):
            for node in range(self._nodes):
                self._gauges(node, second)
            round_number, step = divmod(second, int(ROUND_S))
            for node in range(self._nodes):
                self._recorder.phase(
                    time_s=float(second), round_number=round_number + 1, node=node, phase=PHASES[step % len(PHASES)]
                )
                if step == 0 and round_number > 0:
                    self._round(node, round_number, float(second))
            if step == 1:
                self._recorder.event(time_s=float(second), node=second % self._nodes, kind=EventKind.LINK, text="lost")
            second += 1
            self.told += 1

    def _gauges(self, node: int, second: int) -> None:
        draw = self._random.random
        self._recorder.record(
            time_s=float(second),
            round_number=None,
            node=node,
            metrics={
                "round": second // ROUND_S + 1,
                "completeness_now": draw(),
                "queue_own": int(40 * draw()),
                "queue_transit": int(90 * draw()),
                "fragments_open": int(30 * draw()),
                "peers_routable": 99,
                "peers_gone": 0,
                "cover_share": 0.6 + 0.1 * draw(),
                "packets_sent": 150 * second + int(20 * draw()),
                "packets_relayed": 100 * second + int(20 * draw()),
                "bytes_sent": 1_600_000 * second + int(90_000 * draw()),
            },
        )

    def _round(self, node: int, round_number: int, time_s: float) -> None:
        draw = self._random.random
        self._recorder.record(
            time_s=time_s,
            round_number=round_number,
            node=node,
            metrics={
                "accuracy": 0.9 - 0.5 / (round_number + 1) + 0.05 * draw(),
                "completeness": 0.9 + 0.1 * draw(),
                "round_s": ROUND_S,
                "rtt_s_p50": 0.5 + draw(),
                "rtt_s_p95": 1.5 + draw(),
                "bytes_sent": 6_400_000.0,
                "cpu_s": 0.4 + 0.1 * draw(),
                "cpu_mix_s": 0.1,
                "cpu_learner_s": 0.3,
                "pss_mib": 30 + 4 * draw(),
            },
        )
