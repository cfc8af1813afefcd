"""`reproduce frontier`: how linkable overlay routes over Poisson mixes are, against what they cost.

Two numbers decide it: K, and how many packets a relay holds among which one hides. What a node holds on average is the
mean delay times the rate of what passes it, and that is in proportion to `emission_rate_per_s × delay_mean_s`, the
*hold* of a point: how many packets of its own a node emits in one mean delay. Twice the delay at half the rates is the
same picture in slow motion, so a point stands for all bandwidths: more bandwidth buys less delay, not less linkability.
Loop cover is sent at an eighth of the rate of the rest throughout.

`tune` reads the measured points from a file in the package. This command makes it anew:

    unlinkabledfl reproduce frontier --out DIR && python docs/store_frontier.py DIR/frontier.json
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.linking.board import Tell, run_board
from unlinkabledfl.experiment.linking.configurations import Entry, planned, row_name
from unlinkabledfl.experiment.linking.reproduction import described
from unlinkabledfl.experiment.records.surroundings import describe
from unlinkabledfl.mixnet.mixers import PoissonSettings

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = [
    "COMMAND",
    "LOOP_SHARE",
    "Point",
    "frontier_entries",
    "page",
    "points_of",
    "read_points",
    "render",
    "reproduce",
]

PATH_LENGTHS: Final = (2, 3, 4, 5)
HOLDS: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
LOOP_SHARE: Final = 1 / 8
TARGETS: Final = 1_200
COMMAND: Final = "unlinkabledfl reproduce frontier --out DIR"

_FILE: Final = "frontier.json"
_RATE_PER_S: Final = 8.0
_FRAGMENTS: Final = 4
_OWNED: Final = 0.25
_LEAST_TARGETS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One measured point of the frontier."""

    path_length: int
    hold: float
    advantage: float
    """ε of the strongest adversary of single packets, by what it claims, which is what comes true."""


def reproduce(*, tell: Tell, targets: int = TARGETS, seed: int = 1) -> dict[str, Any]:
    """Measure every point and return the document."""
    if targets < _LEAST_TARGETS:
        raise ConfigError(key="--targets", got=targets, takes=f"a whole number from {_LEAST_TARGETS}")
    started_s = time.perf_counter()
    chosen = frontier_entries(targets=targets)
    board = [row.document() for row in run_board(chosen, seed=seed, tell=tell)]
    return {
        "experiment": "frontier",
        "command": COMMAND,
        "seed": seed,
        "targets_wanted": targets,
        "points": [_point(entry, board) for entry in chosen],
        "configurations": [described(entry) for entry in chosen],
        "board": board,
        "seconds": time.perf_counter() - started_s,
        **describe("numpy", "cryptography", "PyNaCl"),
    }


def frontier_entries(*, targets: int) -> list[Entry]:
    """Return the deployments of the grid."""
    return [
        Entry(
            deployment=planned(
                f"K={hops}, hold {hold:g}",
                "overlay",
                hops,
                mixer_with(hold / _RATE_PER_S, rate_per_s=_RATE_PER_S),
                targets=targets,
                fragments=_FRAGMENTS,
            ),
            sweep="hold",
            shares=(0.0, _OWNED),
            targets=targets,
        )
        for hops in PATH_LENGTHS
        for hold in HOLDS
    ]


def mixer_with(delay_mean_s: float, *, rate_per_s: float) -> PoissonSettings:
    """Return the mixing at a point of the frontier."""
    return PoissonSettings(
        delay_mean_s=delay_mean_s,
        emission_rate_per_s=rate_per_s,
        loop_rate_per_s=rate_per_s * LOOP_SHARE,
        transit_capacity=20_000,
    )


def _point(entry: Entry, board: Sequence[dict[str, Any]]) -> dict[str, Any]:
    deployment = entry.deployment
    rows = {(row["configuration"], row["adversary"]): row for row in board}
    flow, owned = rows[deployment.name, "flow"], rows[row_name(deployment.name, _OWNED), "flow"]
    return {
        "path_length": deployment.path_length,
        "hold": entry_hold(entry),
        "nodes": deployment.nodes,
        "packets_per_s": deployment.packets_per_s,
        "rtt_s_mean": flow["rtt_s_mean"],
        "targets": flow["targets"],
        "advantage": flow["advantage"],
        "p_link_mean": flow["p_link_mean"],
        "accuracy": flow["accuracy"],
        "ci_low": flow["ci_low"],
        "ci_high": flow["ci_high"],
        "grouping_accuracy": rows[deployment.name, "grouping"]["accuracy"],
        "owned": {
            "share": _OWNED,
            "all_relays_compromised": owned["all_relays_compromised"],
            "advantage": owned["advantage"],
            "accuracy": owned["accuracy"],
            "ci_low": owned["ci_low"],
            "ci_high": owned["ci_high"],
        },
    }


def entry_hold(entry: Entry) -> float:
    """Return how many packets of its own a node of this deployment emits in one mean delay."""
    mixer = entry.deployment.mixer
    return mixer.emission_rate_per_s * mixer.delay_mean_s if isinstance(mixer, PoissonSettings) else 0.0


def read_points(path: Path | None = None) -> tuple[list[Point], dict[str, Any]]:
    """Return the points of a document of `reproduce frontier`, or of the one in the package, and the document."""
    try:
        if path is None:
            text = (resources.files(__package__) / _FILE).read_text(encoding="utf-8")
        else:
            text = path.read_text(encoding="utf-8")
        document = json.loads(text)
        return points_of(document), document
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            key="--frontier",
            got=f"{path}: {error}"[:200],
            takes="a document of `reproduce frontier`",
            hint=f"make one: {COMMAND}",
        ) from None


def points_of(document: dict[str, Any]) -> list[Point]:
    """Return the points of a document."""
    return [
        Point(path_length=int(each["path_length"]), hold=float(each["hold"]), advantage=float(each["advantage"]))
        for each in document["points"]
    ]


def page(document: dict[str, Any]) -> str:
    """Return the page with its pictures."""
    from unlinkabledfl.experiment.report.linking import linking_html  # noqa: PLC0415 -- readers of JSON need no page

    return linking_html(document)


def render(document: dict[str, Any]) -> "RenderableType":
    """Return the table that people see."""
    from rich.table import Table  # noqa: PLC0415 -- readers of JSON need no tables

    table = Table(
        title="Linkability against delay and bytes",
        title_justify="left",
        caption="hold: own packets emitted in a mean delay; round trip at 8 emissions a second; c: compromised nodes",
    )
    for heading in ("K", "hold", "packets/s", "rtt s", "claimed", "hit", "grouped", "c=0.25", "all relays"):
        table.add_column(heading, justify="right")
    for point in document["points"]:
        owned = point["owned"]
        table.add_row(
            str(point["path_length"]),
            f"{point['hold']:g}",
            f"{point['packets_per_s']:.0f}",
            "–" if point["rtt_s_mean"] is None else f"{point['rtt_s_mean']:.1f}",
            f"{point['p_link_mean']:.4f}",
            f"{point['accuracy']:.4f}",
            f"{point['grouping_accuracy']:.4f}",
            f"{owned['accuracy']:.4f}",
            f"{owned['all_relays_compromised']:.4f}",
        )
    return table
