"""Two runs side by side: what was asked of them, how well they learned, and what that cost.

The interval around the difference in accuracy is over nodes. It says how sure the means of these two runs are; nodes of
one run learn from each other, and another seed would move them together, which no single run can show.
"""

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from unlinkabledfl.experiment.compare.statistics import Difference, paired_difference, welch_difference
from unlinkabledfl.experiment.report.run_data import RunData

__all__ = ["AccuracyComparison", "Comparison", "Cost", "Setting", "compare_runs"]

CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A key of the scenario that differs; None where a run does not have it."""

    key: str
    a: Any
    b: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyComparison:
    """The accuracy of each run in its last evaluated round."""

    round_a: int
    round_b: int
    mean_a: float
    mean_b: float
    nodes_a: int
    nodes_b: int
    difference: Difference
    is_paired: bool
    """Whether node i of one run has the data of node i of the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One cost of both runs. The ratio is b over a, None where there is none."""

    name: str
    what: str
    unit: str
    a: float | None
    b: float | None

    @property
    def ratio(self) -> float | None:
        """How many times the cost of a is that of b."""
        return self.b / self.a if self.a and self.b is not None else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """Everything that two runs can be compared by."""

    a: RunData
    b: RunData
    settings: Sequence[Setting]
    versions: Sequence[Setting]
    accuracy: AccuracyComparison | None
    costs: Sequence[Cost]
    problems: Sequence[str]

    def document(self) -> dict[str, Any]:
        """Return what `unlinkabledfl compare --json` prints."""
        accuracy = self.accuracy
        return {
            "a": self.a.document(),
            "b": self.b.document(),
            "scenario": [{"key": row.key, "a": row.a, "b": row.b} for row in self.settings],
            "versions_differ": [{"key": row.key, "a": row.a, "b": row.b} for row in self.versions],
            "accuracy": None
            if accuracy is None
            else {
                "round_a": accuracy.round_a,
                "round_b": accuracy.round_b,
                "mean_a": accuracy.mean_a,
                "mean_b": accuracy.mean_b,
                "nodes_a": accuracy.nodes_a,
                "nodes_b": accuracy.nodes_b,
                "difference": accuracy.difference.mean,
                "ci_low": accuracy.difference.low,
                "ci_high": accuracy.difference.high,
                "confidence": CONFIDENCE,
                "paired": accuracy.is_paired,
            },
            "costs": [
                {"name": cost.name, "what": cost.what, "unit": cost.unit, "a": cost.a, "b": cost.b, "ratio": cost.ratio}
                for cost in self.costs
            ],
            "notes": list(self.problems),
        }


def compare_runs(a: RunData, b: RunData) -> Comparison:
    """Compare two runs."""
    problems = [f"a: {problem}" for problem in a.problems] + [f"b: {problem}" for problem in b.problems]
    scenario_a, scenario_b = (_settings(run, name, problems) for run, name in ((a, "a"), (b, "b")))
    versions_a, versions_b = (_flat(run.summary.get("versions")) for run in (a, b))
    return Comparison(
        a=a,
        b=b,
        settings=_differing(scenario_a, scenario_b),
        versions=_differing(versions_a, versions_b),
        accuracy=_accuracy(a, b, is_same_data=_has_same_data(a, b, scenario_a, scenario_b)),
        costs=[cost for cost in _costs(a, b) if cost.a is not None or cost.b is not None],
        problems=problems,
    )


def _settings(run: RunData, name: str, problems: list[str]) -> dict[str, Any]:
    try:
        return _flat(tomllib.loads(run.scenario_toml))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        problems.append(f"{name}: scenario.toml: {error}")
        return {}


def _flat(table: object, prefix: str = "") -> dict[str, Any]:
    """Return a table's values under dotted keys. Dates, which JSON does not have, become text."""
    if not isinstance(table, Mapping):
        return {}
    found: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = _plain(value)
    return found


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever TOML can hold
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Setting]:
    keys = [*a, *(key for key in b if key not in a)]
    return [Setting(key=key, a=a.get(key), b=b.get(key)) for key in keys if a.get(key) != b.get(key)]


def _has_same_data(a: RunData, b: RunData, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    def data(settings: Mapping[str, Any]) -> dict[str, Any]:
        names = ("dataset", "partition", "alpha", "shards_per_node", "train_samples", "test_samples")
        return {key: settings.get(key) for key in ("run.seed", *(f"learning.{name}" for name in names))}

    return bool(one) and a.description.nodes == b.description.nodes and data(one) == data(other)


def _accuracy(a: RunData, b: RunData, *, is_same_data: bool) -> AccuracyComparison | None:
    last = [(max(by_round), by_round[max(by_round)]) for run in (a, b) if (by_round := _finite(run, "accuracy"))]
    if len(last) < 2:  # noqa: PLR2004 - it takes two
        return None
    (round_a, nodes_a), (round_b, nodes_b) = last
    is_paired = is_same_data and nodes_a.keys() == nodes_b.keys()
    order = sorted(nodes_a)
    difference = (
        paired_difference([nodes_a[node] for node in order], [nodes_b[node] for node in order], confidence=CONFIDENCE)
        if is_paired
        else welch_difference(list(nodes_a.values()), list(nodes_b.values()), confidence=CONFIDENCE)
    )
    return AccuracyComparison(
        round_a=round_a,
        round_b=round_b,
        mean_a=fmean(nodes_a.values()),
        mean_b=fmean(nodes_b.values()),
        nodes_a=len(nodes_a),
        nodes_b=len(nodes_b),
        difference=difference,
        is_paired=is_paired,
    )


def _costs(a: RunData, b: RunData) -> list[Cost]:
    def cost(name: str, what: str, unit: str, of: Callable[[RunData], float | None]) -> Cost:
        return Cost(name=name, what=what, unit=unit, a=of(a), b=of(b))

    def mean(metric: str) -> Callable[[RunData], float | None]:
        return lambda run: _mean_of_rounds(run, metric)

    def per_round(key: str) -> Callable[[RunData], float | None]:
        def of(run: RunData) -> float | None:
            total, rounds = run.totals.network()[key], len(run.totals.rounds())
            return None if total is None or not rounds else total / rounds

        return of

    return [
        cost("round_s", "a node's round, on the run clock", "s", mean("round_s")),
        cost("exchange_s", "of it exchange", "s", mean("exchange_s")),
        cost("rtt_s_p50", "median round trip of a fragment", "s", mean("rtt_s_p50")),
        cost("bytes_sent", "sent by a node in a round", "B", mean("bytes_sent")),
        cost("packets_sent", "packets of all nodes in a round", "", per_round("packets_sent")),
        cost("cover_share", "cover among the packets originated", "%", lambda run: run.totals.network()["cover_share"]),
        cost("cpu_s", "processor time of a node in a round", "s", mean("cpu_s")),
        cost("pss_mib", "memory of a node", "MiB", mean("pss_mib")),
        cost("run_clock_s", "the whole run, on its clock", "s", lambda run: run.table.end_s or None),
        cost("seconds", "the whole run, in real time", "s", _real_seconds),
    ]


def _finite(run: RunData, metric: str) -> dict[int, dict[int, float]]:
    rows = {
        number: {node: value for node, value in nodes.items() if math.isfinite(value)}
        for number, nodes in run.table.by_round(metric).items()
    }
    return {number: nodes for number, nodes in rows.items() if nodes}


def _mean_of_rounds(run: RunData, metric: str) -> float | None:
    """Return the mean over nodes of each round, averaged over the rounds."""
    means = [fmean(nodes.values()) for nodes in _finite(run, metric).values()]
    return fmean(means) if means else None


def _real_seconds(run: RunData) -> float | None:
    seconds = run.summary.get("seconds")
    return float(seconds) if isinstance(seconds, int | float) and not isinstance(seconds, bool) else None
