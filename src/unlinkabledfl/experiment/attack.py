"""`unlinkabledfl attack`: every adversary against what a run left, and a page of it beside the run.

The document has the board's rows, as `reproduce linking` has, of one configuration: the run.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from unlinkabledfl.analysis.attack import Refusal, all_relays_compromised, attack
from unlinkabledfl.analysis.files import read_groups, read_oracle, read_trace
from unlinkabledfl.analysis.trace import Indices, Oracle, Trace
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.linking.configurations import TARGETS, row_name
from unlinkabledfl.experiment.records import RunDirectory
from unlinkabledfl.experiment.records.files import write_file
from unlinkabledfl.experiment.records.surroundings import describe
from unlinkabledfl.experiment.records.tables import MetricTable
from unlinkabledfl.experiment.report import load_run

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["attack_run", "render", "write_board", "write_page"]

PAGE: Final = "attack.html"


def attack_run(
    path: Path, *, names: Sequence[str] = (), shares: Sequence[float] = (0.0,), targets: int = TARGETS
) -> dict[str, Any]:
    """Attack the trace of a run, with each share of its nodes compromised, and return the document.

    Of more targets than wanted some models are drawn, whose fragments are attacked together; 0: all are.
    """
    if targets < 0:
        raise ConfigError(key="--targets", got=targets, takes="a whole number from 1, or 0 for all")
    started_s = time.perf_counter()
    run = load_run(path)
    board: list[dict[str, Any]] = []
    refused: dict[str, str] = {}
    trace = None
    for share in dict.fromkeys(shares):
        whole = read_trace(path, share=share)
        trace, oracle, groups = _thinned(
            whole, read_oracle(path, whole), read_groups(path, whole), wanted=targets, seed=run.description.seed
        )
        cost = {
            "rtt_s_mean": _mean(run.table, "rtt_s_mean"),
            "bytes_per_node_round": _mean(run.table, "bytes_sent"),
        }
        where = {
            "configuration": row_name(run.description.run, share),
            "compromised": share,
            "all_relays_compromised": all_relays_compromised(oracle, trace.compromised),
        }
        for found in attack(trace, oracle, groups=groups, names=names):
            if isinstance(found, Refusal):
                refused[found.adversary] = found.reason
            else:
                board.append({**where, **found.document(), **cost})
    return {
        "experiment": "attack",
        "run": run.description.run,
        "backend": run.description.backend,
        "nodes": run.description.nodes,
        "seed": run.description.seed,
        "status": run.status.value,
        "crossings": 0 if trace is None else len(trace.crossings),
        "board": board,
        "refused": [{"adversary": name, "reason": reason} for name, reason in refused.items()],
        "notes": list(run.problems),
        "seconds": time.perf_counter() - started_s,
        **describe("numpy", "pyarrow"),
    }


def write_board(document: dict[str, Any], run: Path) -> Path:
    """Write the document into the directory of the run, for whoever shows it later."""
    path = RunDirectory.open(run).board_path
    write_file(path, json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n")
    return path


def _thinned(
    trace: Trace, oracle: Oracle, groups: Indices | None, *, wanted: int, seed: int
) -> tuple[Trace, Oracle, Indices | None]:
    """Return about so many targets, whole groups of them, drawn without a look at who sent them."""
    if not wanted or len(trace.targets) <= wanted:
        return trace, oracle, groups
    numbers = np.arange(len(trace.targets)) if groups is None else groups
    order = np.random.default_rng(seed).permutation(int(numbers.max()) + 1)
    sizes = np.bincount(numbers, minlength=len(order))[order]
    enough = int(np.searchsorted(np.cumsum(sizes), wanted)) + 1
    rows = np.flatnonzero(np.isin(numbers, order[:enough]))
    thin = Oracle(origin=oracle.origin[rows], path=tuple(oracle.path[row] for row in rows))
    kept = None if groups is None else np.unique(groups[rows], return_inverse=True)[1].reshape(-1).astype(np.int64)
    return replace(trace, targets=trace.targets[rows]), thin, kept


def write_page(document: dict[str, Any], path: Path) -> Path:
    """Write the page of a document."""
    from unlinkabledfl.experiment.report.linking import linking_html  # noqa: PLC0415 -- machines need no page

    write_file(path, linking_html(document))
    return path


def render(document: dict[str, Any]) -> "RenderableType":
    """Return the tables that people see."""
    from rich.console import Group  # noqa: PLC0415 -- readers of JSON need no tables
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    tables = []
    for configuration in dict.fromkeys(row["configuration"] for row in document["board"]):
        table = Table(
            title=f"Who sent it? {configuration}, {document['nodes']} nodes", title_justify="left", padding=(0, 0, 0, 1)
        )
        for heading in ("adversary", "accuracy", "interval", "p_link", "1/|U|", "ε", "bits", "min", "calibr."):
            table.add_column(heading, justify="left" if heading == "adversary" else "right", no_wrap=True)
        for row in document["board"]:
            if row["configuration"] == configuration:
                table.add_row(*_cells(row))
        tables.append(table)
    some = document["board"][0] if document["board"] else {"targets": 0}
    explained = (
        f"{some['targets']:,} fragments. p_link: what it believed of its best guess. 1/|U|: guessing among the senders"
        " that route and last hop allow. ε: p_link above that. bits, min: Shannon and min-entropy of what it believes."
        " calibr.: how far claims and hits lie apart."
    )
    refusals = [Text(f"{each['adversary']} did not take part: {each['reason']}") for each in document["refused"]]
    return Group(*tables, Text(explained, style="dim"), *refusals)


def _cells(row: dict[str, Any]) -> list[str]:
    return [
        row["adversary"],
        f"{row['accuracy']:.3f}",
        f"{row['ci_low']:.2f}–{row['ci_high']:.2f}",
        f"{row['p_link_mean']:.3f}",
        f"{row['baseline']:.3f}",
        f"{row['advantage']:+.3f}",
        f"{row['shannon_bits']:.2f}",
        f"{row['min_bits']:.2f}",
        f"{row['calibration_error']:.3f}",
    ]


def _mean(table: MetricTable, metric: str) -> float | None:
    """Return the mean of a figure over nodes and rounds; None where nobody measured it."""
    values = [value for nodes in table.by_round(metric).values() for value in nodes.values() if isfinite(value)]
    return fmean(values) if values else None
