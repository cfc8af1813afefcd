"""Many real nodes for `bench node`: a short run of the product itself, and what its nodes used and held meanwhile."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import mean, median
from typing import Any

from unlinkabledfl.experiment.backends.process.backend import ProcessBackend
from unlinkabledfl.experiment.conduct import conduct, create_run
from unlinkabledfl.experiment.records import EventKind, Status
from unlinkabledfl.experiment.scenario import preset

NODES = 32
PACKETS_PER_S = 50.0
_OVERRIDES = (
    "run.backend=process",
    "learning.dataset=fashion-mnist-mini",
    "mixnet.mixer=poisson",
    "mixnet.delay_mean_s=0.1",
    # A message goes over two links and its acknowledgement over two: four packets for each that is emitted.
    f"mixnet.emission_rate_per_s={PACKETS_PER_S / 4}",
    "mixnet.loop_rate_per_s=0",
    "monitoring.gauges_interval_s=0",
)


class _Rounds:
    """A recorder that keeps the figures of rounds."""

    def __init__(self) -> None:
        self.rounds: dict[tuple[int, int], dict[str, float]] = {}
        self.deaths: list[str] = []

    def record(
        self, *, time_s: float, round_number: int | None, node: int | None, metrics: Mapping[str, float]
    ) -> None:
        if round_number is not None and node is not None:
            self.rounds.setdefault((round_number, node), {"time_s": time_s}).update(metrics)

    def event(self, *, time_s: float, node: int | None, kind: EventKind, text: str) -> None:
        if kind is EventKind.DEATH:
            self.deaths.append(f"node {node}: {text}")

    def phase(self, *, time_s: float, round_number: int, node: int, phase: str) -> None:
        pass

    def finish(self, status: Status, *, reason: str = "") -> None:
        pass


def measure_mesh(*, nodes: int = NODES, rounds: int = 4) -> dict[str, Any]:
    """Run so many nodes over a circulant, four links each, and sum up their last rounds; the first warms up."""
    scenario = preset("paper", (*_OVERRIDES, f"topology.nodes={nodes}", f"run.rounds={rounds}"))
    recorder = _Rounds()
    with tempfile.TemporaryDirectory() as folder:
        directory = create_run(scenario, Path(folder) / "run")
        try:
            conduct(scenario, directory=directory, backend=ProcessBackend(), watchers=[recorder])
        finally:
            directory.release()
    if recorder.deaths:
        raise RuntimeError(f"nodes of the mesh died: {recorder.deaths}")
    seconds = mean(_of(recorder, rounds, "time_s")) - mean(_of(recorder, 1, "time_s"))
    later = range(2, rounds + 1)
    mix_s = sum(sum(_of(recorder, number, "cpu_mix_s")) for number in later)
    sent = sum(sum(_of(recorder, number, "packets_sent")) for number in later)
    pss_mix, pss_node = _of(recorder, rounds, "pss_mix_mib"), _of(recorder, rounds, "pss_mib")
    return {
        "nodes": nodes,
        "packets_per_s_and_node": sent / seconds / nodes,
        "cores": mix_s / seconds,
        "cpu_us_per_packet": mix_s / sent * 1e6,
        "completeness": min(min(_of(recorder, number, "completeness")) for number in range(1, rounds + 1)),
        "given_up": sum(sum(_of(recorder, number, "fragments_given_up")) for number in range(1, rounds + 1)),
        "seconds_a_round": seconds / (rounds - 1),
        "pss_mix_mib": mean(pss_mix),
        "pss_mix_mib_max": max(pss_mix),
        "pss_node_mib": mean(pss_node),
        "pss_node_mib_max": max(pss_node),
        "rtt_s_p50": median(_of(recorder, rounds, "rtt_s_p50")),
    }


def _of(recorder: _Rounds, round_number: int, metric: str) -> list[float]:
    return [metrics[metric] for (number, _), metrics in recorder.rounds.items() if number == round_number]
