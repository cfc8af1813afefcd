"""Everything a report or a comparison needs of a run, read once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from unlinkabledfl.errors import RunError
from unlinkabledfl.experiment.records.directory import RunDescription, RunDirectory
from unlinkabledfl.experiment.records.recorder import EventKind, Status
from unlinkabledfl.experiment.records.tables import NONE, Event, MetricTable, Problems
from unlinkabledfl.experiment.records.totals import Totals

__all__ = ["RunData", "Spread", "load_run", "spread"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How a figure lies among the nodes."""

    low: float
    p10: float
    median: float
    mean: float
    p90: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunData:
    """A run as it was read. `problems`: what could not be read, in sentences."""

    path: Path
    description: RunDescription
    status: Status
    table: MetricTable
    totals: Totals
    events: Sequence[Event]
    edges: Sequence[tuple[int, int]]
    scenario_toml: str
    summary: Mapping[str, Any]
    problems: Sequence[str]

    @property
    def attackers(self) -> frozenset[int]:
        """The nodes that poisoned, as the scenario asked."""
        return frozenset(
            event.node for event in self.events if event.kind is EventKind.ATTACK and event.node is not None
        )

    @property
    def dead(self) -> frozenset[int]:
        """The nodes that ended when they should not have."""
        return frozenset(
            event.node for event in self.events if event.kind is EventKind.DEATH and event.node is not None
        )

    def document(self) -> dict[str, Any]:
        """Return what `unlinkabledfl report --json` prints."""
        summary = self.summary
        description = self.description
        return {
            "run": description.run,
            "backend": description.backend,
            "nodes": description.nodes,
            "planned_rounds": description.planned_rounds,
            "seed": description.seed,
            "status": self.status.value,
            **({"reason": summary["reason"]} if summary.get("reason") else {}),
            "rounds": self.totals.rounds(),
            "fragments": self.totals.fragments(),
            "network": self.totals.network(),
            "deaths": sum(event.kind is EventKind.DEATH for event in self.events),
            "run_clock_s": round(self.table.end_s, 3),
            "notes": list(self.problems),
            "machine": summary.get("machine"),
            "versions": summary.get("versions"),
            "seconds": summary.get("seconds"),
        }


def load_run(path: Path) -> RunData:
    """Read a run directory, whatever state it is in; what is damaged is left out and named."""
    directory = RunDirectory.open(path)
    problems = Problems()
    try:
        summary = directory.summary()
    except RunError as error:
        problems.add(str(error))
        summary = {}
    try:
        scenario_toml = directory.scenario_toml()
    except RunError as error:
        problems.add(str(error))
        scenario_toml = ""
    table = directory.metrics(problems)
    description = directory.description()
    seen = int(table.nodes.max(initial=NONE)) + 1
    if seen > description.nodes:
        if description.nodes:
            problems.add(f"there are figures of node {seen - 1}, and the run has {description.nodes} nodes")
        description = RunDescription(
            run=description.run,
            backend=description.backend,
            nodes=seen,
            planned_rounds=description.planned_rounds,
            seed=description.seed,
        )
    notes = summary.get("notes")
    return RunData(
        path=path,
        description=description,
        status=directory.status(),
        table=table,
        totals=_totals(table),
        events=directory.events(problems),
        edges=_sound(directory.edges(problems), description.nodes),
        scenario_toml=scenario_toml,
        summary=summary,
        problems=[*(str(note) for note in notes if isinstance(note, str)), *problems.sentences()]
        if isinstance(notes, list)
        else problems.sentences(),
    )


def spread(values: Sequence[float]) -> Spread:
    """Return how at least one value is spread."""
    ordered = sorted(values)

    def quantile(share: float) -> float:
        place = share * (len(ordered) - 1)
        below = int(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (place - below) * (ordered[above] - ordered[below])

    return Spread(
        low=ordered[0],
        p10=quantile(0.1),
        median=median(ordered),
        mean=fmean(ordered),
        p90=quantile(0.9),
        high=ordered[-1],
    )


def _totals(table: MetricTable) -> Totals:
    totals = Totals()
    for _, round_number, node, name, value in table.rows():
        if NONE not in (round_number, node):
            totals.add(round_number=round_number, node=node, metrics={name: value})
    return totals


def _sound(edges: Sequence[tuple[int, int]], nodes: int) -> list[tuple[int, int]]:
    """Keep edges between nodes that there are, each once."""
    pairs = {(min(edge), max(edge)) for edge in edges if edge[0] != edge[1] and max(edge) < nodes}
    return sorted(pairs)
