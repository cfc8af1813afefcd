"""`reproduce linking`: the whole board in virtual time, beside what was published, and what it has to reach.

The document describes itself:

- `board`: a row for each deployment, share of compromised nodes and adversary; `configuration` names the first two;
- `configurations`: what each deployment is, and which sweep it belongs to (`ablation`, `K`, `O`, `c`);
- `published`: the published figure beside ours, where there is one;
- `bars`: what has to hold, what was measured, and whether it holds.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.linking.bars import bars
from unlinkabledfl.experiment.linking.board import Tell, run_board
from unlinkabledfl.experiment.linking.configurations import TARGETS, Entry, entries
from unlinkabledfl.experiment.linking.published import ABLATION, ROUND_TRIP_S
from unlinkabledfl.experiment.records.surroundings import describe

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

__all__ = ["described", "page", "render", "reproduce"]

_HEADINGS = {"paper": "paper", "route": "route", "flow": "flow", "grouping": "group", "disclosure": "discl"}
_LEAST_TARGETS = 10


def reproduce(*, tell: Tell, targets: int = TARGETS, seed: int = 1, only: Sequence[str] = ()) -> dict[str, Any]:
    """Run the board, or only these deployments of it, and return its document."""
    if targets < _LEAST_TARGETS:
        raise ConfigError(
            key="--targets",
            got=targets,
            takes=f"a whole number from {_LEAST_TARGETS}",
            hint=f"{TARGETS} give intervals of about ±0.01",
        )
    started_s = time.perf_counter()
    chosen = _chosen(entries(targets=targets), only)
    board = [row.document() for row in run_board(chosen, seed=seed, tell=tell)]
    return {
        "experiment": "linking",
        "seed": seed,
        "targets_wanted": targets,
        "board": board,
        "configurations": [described(entry) for entry in chosen],
        "published": _published(board),
        "bars": bars(board),
        "seconds": time.perf_counter() - started_s,
        **describe("numpy", "cryptography", "PyNaCl"),
    }


def _chosen(whole: list[Entry], only: Sequence[str]) -> list[Entry]:
    names = [entry.deployment.name for entry in whole]
    for name in only:
        if name not in names:
            raise ConfigError(key="--only", got=name, takes=", ".join(names))
    return [entry for entry in whole if not only or entry.deployment.name in only]


def described(entry: Entry) -> dict[str, Any]:
    """Return what a deployment is, as documents say it."""
    deployment = entry.deployment
    return {
        "name": deployment.name,
        "sweep": entry.sweep,
        "compromised": list(entry.shares),
        "nodes": deployment.nodes,
        "degree": deployment.degree,
        "route": deployment.route,
        "path_length": deployment.path_length,
        "mixer": {"kind": type(deployment.mixer).__name__.removesuffix("Settings").lower(), **asdict(deployment.mixer)},
        "partners": len(deployment.destinations()[0]),
        "fragments": deployment.fragments,
        "rounds": deployment.rounds,
        "round_s": deployment.round_s,
    }


def _published(board: Sequence[dict[str, Any]]) -> dict[str, Any]:
    ours = {row["configuration"]: row for row in board if row["adversary"] == "paper"}
    rows = [
        {
            **asdict(row),
            "measured": ours[row.configuration]["accuracy"],
            "ci_low": ours[row.configuration]["ci_low"],
            "ci_high": ours[row.configuration]["ci_high"],
        }
        for row in ABLATION
        if row.configuration in ours
    ]
    return {"adversary": "paper", "rtt_s_mean": ROUND_TRIP_S, "rows": rows}


def render(document: dict[str, Any]) -> "RenderableType":
    """Return the tables that people see."""
    from rich.console import Group  # noqa: PLC0415 -- readers of JSON need no tables
    from rich.text import Text  # noqa: PLC0415

    machine = document["machine"]
    seconds = f"{document['seconds']:.0f} s on {machine['cores']} cores of {machine['cpu']}"
    explained = (
        "Top-1 accuracy; ±: half of the widest 95% interval of the row. guess: among the senders that route and last"
        " hop allow. MB: sent by a node in a round. c: share of compromised nodes."
    )
    return Group(
        _board_table(document), Text(explained, style="dim"), _bars_table(document), Text(seconds, style="dim")
    )


def page(document: dict[str, Any]) -> str:
    """Return the page with its pictures."""
    from unlinkabledfl.experiment.report.linking import linking_html  # noqa: PLC0415 -- readers of JSON need no page

    return linking_html(document)


def _board_table(document: dict[str, Any]) -> "Table":
    from rich.table import Table  # noqa: PLC0415

    published = {row["configuration"]: row["accuracy"] for row in document["published"]["rows"]}
    table = Table(
        title="How often each adversary names the sender", title_justify="left", box=None, padding=(0, 0, 0, 1)
    )
    table.add_column("", no_wrap=True)
    for heading in ("publ", *_HEADINGS.values(), "±", "guess", "rtt s", "MB"):
        table.add_column(heading, justify="right", no_wrap=True)
    names = list(dict.fromkeys(row["configuration"] for row in document["board"]))
    for name in names:
        rows = {row["adversary"]: row for row in document["board"] if row["configuration"] == name}
        some = next(iter(rows.values()))
        table.add_row(
            name,
            f"{published[name]:.2f}" if name in published else "",
            *(f"{rows[adversary]['accuracy']:.3f}" if adversary in rows else "–" for adversary in _HEADINGS),
            f"{max(row['ci_high'] - row['ci_low'] for row in rows.values()) / 2:.3f}",
            f"{some['baseline']:.3f}",
            "–" if some["rtt_s_mean"] is None else f"{some['rtt_s_mean']:.1f}",
            f"{some['bytes_per_node_round'] / 1e6:.1f}",
        )
    return table


def _bars_table(document: dict[str, Any]) -> "Table":
    from rich.table import Table  # noqa: PLC0415

    table = Table(title="What has to hold", title_justify="left")
    for heading in ("what", "asked", "measured", "holds"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for bar in document["bars"]:
        table.add_row(
            bar["what"],
            f"{bar['low']:.3f} to {bar['high']:.3f}" if bar["low"] else f"at most {bar['high']:.3f}",
            f"{bar['measured']:.3f}",
            "yes" if bar["holds"] else "[bold red]no",
        )
    return table
