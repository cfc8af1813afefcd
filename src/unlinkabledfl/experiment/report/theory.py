"""The quantities of the learning theorems in a report, as a table that says what each means."""

from typing import Any

from unlinkabledfl.experiment.report.page import Table, table_html
from unlinkabledfl.experiment.report.run_data import RunData
from unlinkabledfl.experiment.theory.measured import measured_theory

__all__ = ["theory_html"]

_NOTHING = "not measured"


def theory_html(data: RunData) -> str:
    """Write what was measured of a run."""
    found = measured_theory(data.path, data.table, data.scenario_toml)
    rows = [
        ["p̄, probability that a range is covered", *_coverage(found["coverage"])],
        ["K_eff, contributors of a covered range", *_contributors(found["contributors"])],
        ["ν_q, variance of the quantizer", *_quantization(found["quantization"])],
        ["Krum's condition, range by range", *_krum(found["krum"])],
    ]
    return table_html(Table(caption="Of the whole run, its worst round", headings=["", "measured", "how"], rows=rows))


def _coverage(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return [_NOTHING, ""]
    mean = "" if found["mean"] is None else f", {found['mean']:.4f} on average"
    return [f"at least {found['least']:.4f}{mean}", "by fragments of peers; where none came, local values stay"]


def _contributors(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return [_NOTHING, ""]
    return [f"{found['least']:.2f} to {found['mean']:.2f}", "the local model included; means over nodes"]


def _quantization(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return [_NOTHING, ""]
    how = f"codec {found['codec']}, of the last models of {found['models']} nodes, {found['values']:,} values"
    return [f"{found['variance']:.3g}, {found['relative']:.2e} of the variance of the values", how]


def _krum(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return [_NOTHING, ""]
    how = f"B = {found['byzantine']} needs {found['needed']} candidates; the fewest were {found['candidates_least']}"
    return [f"held for {found['holds_share']:.1%} of nodes and rounds", how]
