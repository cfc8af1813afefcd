"""The trace of a run, from before its first packet to the two files in its directory.

    absent --begin, the scenario asks for it--> open
    open --nodes take down--------------------> open
    open --keep, its two files are written----> kept

`begin` makes a folder for the logs that only this user can read, and takes away what a former part of a resumed run
left: a trace is of one stretch. `keep` makes the two files of them, however the run ended, and removes the folder.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from unlinkabledfl.analysis.files import OBSERVED, ORACLE, write_recording
from unlinkabledfl.analysis.parquet import arrow
from unlinkabledfl.analysis.trace import PublicSettings
from unlinkabledfl.experiment.graphs import ExchangeSets, build_topology
from unlinkabledfl.experiment.linking.deployment import own_rate_per_s
from unlinkabledfl.experiment.planning import plan_experiment
from unlinkabledfl.experiment.records.files import writing
from unlinkabledfl.experiment.scenario import Scenario
from unlinkabledfl.experiment.tracing.logs import TraceFolder
from unlinkabledfl.experiment.tracing.merging import merge
from unlinkabledfl.experiment.translation import mixer_settings
from unlinkabledfl.simulation import chances

__all__ = ["Kept", "begin_trace", "check_trace", "falling_order", "keep_trace", "public_settings"]

_FOLDER = "trace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a trace came to."""

    crossings: int
    targets: int
    cut_at_s: float | None

    def sentence(self) -> str:
        """Tell people."""
        told = f"traced {self.crossings:,} packets on links, {self.targets:,} of which delivered a fragment"
        full = "monitoring.trace_crossings reached"
        return told if self.cut_at_s is None else f"{told}; nothing after {self.cut_at_s:,.0f} s: {full}"


def check_trace(scenario: Scenario) -> None:
    """ConfigError if a trace is asked for that could not be written in the end."""
    if scenario.monitoring.trace:
        arrow()


def begin_trace(scenario: Scenario, directory: Path) -> TraceFolder | None:
    """Return where to take down what happens, if the scenario asks for it."""
    if not scenario.monitoring.trace:
        return None
    folder = directory / _FOLDER
    with writing(folder):
        shutil.rmtree(folder, ignore_errors=True)
        for name in (OBSERVED, ORACLE):
            (directory / name).unlink(missing_ok=True)
        folder.mkdir(mode=0o700)
    return TraceFolder(path=folder, most=scenario.monitoring.trace_crossings)


def keep_trace(scenario: Scenario, folder: TraceFolder, directory: Path) -> Kept:
    """Make the two files, and remove the logs; where that fails, the logs stay."""
    share = 1 if scenario.run.backend == "simulation" else scenario.topology.nodes
    plan = plan_experiment(scenario)
    merged = merge(
        folder.path,
        plan.node_ids,
        public_settings(scenario),
        begun_at_s=folder.begun_at_s(),
        full_at=folder.full_at(share),
    )
    recording = merged.recording
    owned = falling_order(scenario)[: round(scenario.monitoring.trace_compromised * plan.nodes)]
    with writing(directory / OBSERVED):
        write_recording(directory, recording, compromised=owned)
    shutil.rmtree(folder.path, ignore_errors=True)
    return Kept(crossings=len(recording.crossings), targets=len(recording.targets), cut_at_s=merged.cut_at_s)


def public_settings(scenario: Scenario) -> PublicSettings:
    """Return what everybody knows of a scenario."""
    topology = build_topology(scenario)
    exchange = ExchangeSets(topology, scenario.mixnet)
    mixnet = scenario.mixnet
    mixer = mixer_settings(mixnet)
    return PublicSettings(
        topology=topology,
        route="direct" if mixnet.path_length == 1 and mixnet.route != "valiant" else mixnet.route,
        path_length=mixnet.path_length,
        mixer=mixer,
        destinations=tuple(exchange.of(node) for node in range(topology.nodes)),
        own_rate_per_s=own_rate_per_s(mixer),
    )


def falling_order(scenario: Scenario) -> list[int]:
    """Return all nodes in the order in which an adversary gets hold of them: so larger shares hold smaller ones."""
    order = list(range(scenario.topology.nodes))
    chances(scenario.run.seed, "compromised").shuffle(order)
    return order
