"""What the learning theorems ask for, measured from a run's records.

- p̄, the coverage, from `uncovered_ranges`: where U pairs of node and range went uncovered in a round of N nodes, every
  range was covered at no less than a share 1 − U/N of the nodes, and on average at 1 − U/(N · ranges);
- K_eff, the contributors of a covered range: between the means over nodes of `candidates_min` and `candidates_mean`,
  the local model included;
- ν_q, the variance of the quantizer: of the nodes' last models, encoded and decoded again;
- Krum's condition n_r > 2B + 2 for every range, from `candidates_min`.

Invariant: nothing is estimated from less than the records hold. What they lack, or hold as no number, is None.
"""

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np

from unlinkabledfl.analysis.entropy import krum_feasible
from unlinkabledfl.errors import UnlinkableError
from unlinkabledfl.experiment.graphs import build_topology
from unlinkabledfl.experiment.records.directory import RunDirectory
from unlinkabledfl.experiment.records.tables import MetricTable
from unlinkabledfl.experiment.scenario import Scenario, parse_scenario
from unlinkabledfl.experiment.translation import geometry_on
from unlinkabledfl.fragments import FragmentDecoder, FragmentEncoder, StateLayout, plan_grid
from unlinkabledfl.fragments.codecs import codec_by_name
from unlinkabledfl.mixnet.envelope import EnvelopeCodec

__all__ = ["measured_theory"]

_MODELS: Final = 4
"""Of so many nodes the last model is encoded again."""


def measured_theory(path: Path, table: MetricTable, scenario_toml: str) -> dict[str, Any]:
    """Return the quantities of the run in this directory; whatever state it is in, this raises nothing of ours."""
    try:
        scenario = parse_scenario(scenario_toml, origin=str(path / "scenario.toml"))
    except UnlinkableError:
        return {"coverage": None, "contributors": None, "quantization": None, "krum": None}
    quantization = _quantization(path, scenario)
    ranges = None if quantization is None else quantization["ranges"]
    return {
        "coverage": _coverage(table, ranges),
        "contributors": _contributors(table),
        "quantization": quantization,
        "krum": _krum(table, scenario),
    }


def _coverage(table: MetricTable, ranges: int | None) -> dict[str, float | None] | None:
    """Return p̄ of the worst round: no range did worse than `least`, and they did as `mean` on average."""
    rounds = _by_round(table, "uncovered_ranges")
    if not rounds:
        return None
    least = min(max(0.0, 1.0 - sum(nodes) / len(nodes)) for nodes in rounds)
    means = [max(0.0, 1.0 - sum(nodes) / (len(nodes) * ranges)) for nodes in rounds] if ranges else []
    return {"least": least, "mean": min(means) if means else None}


def _contributors(table: MetricTable) -> dict[str, float] | None:
    """Return between which values K_eff lies, in the round with the fewest."""
    least, mean = ([fmean(nodes) for nodes in _by_round(table, f"candidates_{which}")] for which in ("min", "mean"))
    return {"least": min(least), "mean": min(mean)} if least and mean else None


def _quantization(path: Path, scenario: Scenario) -> dict[str, Any] | None:
    """Return ν_q of the last models: of the whole vector, and a value; relative to the variance of its values."""
    directory = RunDirectory(path)
    errors, relative, values, ranges = [], [], 0, 0
    try:
        for node in list(directory.checkpointed_nodes())[:_MODELS]:
            state = directory.checkpoint(node).state
            found = _quantized(state, scenario)
            errors.append(found[0])
            relative.append(found[1])
            values, ranges = found[2], found[3]
    except UnlinkableError:
        return None
    if not errors:
        return None
    return {
        "models": len(errors),
        "values": values,
        "ranges": ranges,
        "codec": scenario.payload.codec,
        "variance": fmean(errors),
        "variance_per_value": fmean(errors) / values,
        "relative": fmean(relative),
    }


def _quantized(state: Mapping[str, Any], scenario: Scenario) -> tuple[float, float, int, int]:
    """Return ‖Q(x) − x‖², the same over ‖x − mean‖², and how many values and ranges there are."""
    layout = StateLayout(state)
    vector = layout.flatten(state)
    capacity_bytes = EnvelopeCodec(geometry_on(scenario.mixnet, build_topology(scenario))).data_bytes
    codec = codec_by_name(scenario.payload.codec, bits=scenario.payload.bits)
    grid = plan_grid(layout, codec, capacity_bytes=capacity_bytes)
    encoder = FragmentEncoder(grid, codec, capacity_bytes=capacity_bytes, bound=scenario.payload.bound)
    decoder = FragmentDecoder(grid, capacity_bytes=capacity_bytes, bound=scenario.payload.bound)
    error = 0.0
    for data in encoder.encode(vector, round_number=1, rng=np.random.default_rng(1)):
        fragment = decoder.decode(data)
        apart = fragment.values.astype(np.float64) - vector[fragment.start : fragment.stop]
        error += float(apart @ apart)
    spread = float(np.var(vector.astype(np.float64)) * len(vector))
    return error, error / spread if spread else 0.0, len(vector), len(grid)


def _krum(table: MetricTable, scenario: Scenario) -> dict[str, Any] | None:
    """Return of how many nodes and rounds every range had more than 2B + 2 candidates."""
    byzantine = scenario.aggregation.byzantine
    candidates = [value for nodes in _by_round(table, "candidates_min") for value in nodes]
    if not candidates:
        return None
    held = sum(krum_feasible(int(count), byzantine) for count in candidates)
    infeasible = [value for nodes in _by_round(table, "infeasible_ranges") for value in nodes]
    return {
        "byzantine": byzantine,
        "needed": 2 * byzantine + 3,
        "candidates_least": int(min(candidates)),
        "holds_share": held / len(candidates),
        "infeasible_ranges": int(sum(infeasible)),
    }


def _by_round(table: MetricTable, metric: str) -> list[list[float]]:
    """Return the values of all nodes, round by round, without those that are no numbers."""
    rounds = [[value for value in nodes.values() if isfinite(value)] for nodes in table.by_round(metric).values()]
    return [nodes for nodes in rounds if nodes]
