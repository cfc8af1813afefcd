"""`reproduce content`: the curious recipient against the preset `paper`, and against `strong` without and with masks.

The document:

- `rows`: the published figures beside ours;
- `grid`: every cell: identity linking and bucket tracking by attack, α and r. `reference` says whether
  the recipient's reference is what it received in the first round, or the bare model of every peer, leaked to it;
- `accuracy`: of every kind of federation, and what it costs against the bare one;
- `bars`: what masks have to reach, and whether they do.
"""

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TYPE_CHECKING, Any, Final

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.content.measuring import measure
from unlinkabledfl.experiment.content.setting import Setting
from unlinkabledfl.experiment.content.summary import accuracies, bars, grid, rows
from unlinkabledfl.experiment.records.surroundings import describe
from unlinkabledfl.node.settings import OBFUSCATION_SCALE

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

__all__ = ["document_of", "page", "render", "reproduce", "settings_of"]

Tell = Callable[[str], None]
ALPHAS: Final = (0.1, 0.5, 1.0, 10.0)
SEEDS: Final = 2
_QUICK: Final = {"dataset": "fashion-mnist-mini", "nodes": 8, "samples": 800, "test_samples": 300, "rounds": 4,
                 "recipients": 2}  # fmt: skip


def reproduce(*, tell: Tell, seeds: int = SEEDS, quick: bool = False) -> dict[str, Any]:
    """Run all federations, as many at a time as there are cores, and return the document."""
    if seeds < 1:
        raise ConfigError(key="--seeds", got=seeds, takes="a whole number from 1", hint="two give an interval")
    started_s = time.perf_counter()
    settings = settings_of(range(1, seeds + 1), quick=quick)
    return {**document_of(_measured(settings, tell)), "quick": quick, "seconds": time.perf_counter() - started_s}


def settings_of(seeds: Sequence[int], *, quick: bool) -> list[Setting]:
    """Return every federation of the study; a quick one is small, and of the most telling α alone."""
    options: dict[str, Any] = dict(_QUICK) if quick else {}
    kinds: list[dict[str, Any]] = [
        {"preset": "paper"},
        {"preset": "strong"},
        {"preset": "strong", "obfuscation": "masks", "scale": OBFUSCATION_SCALE},
    ]
    alphas = ALPHAS[:1] if quick else ALPHAS
    return [Setting(alpha=alpha, seed=seed, **kind, **options) for seed in seeds for alpha in alphas for kind in kinds]


def document_of(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the document of these federations."""
    cells, accuracy = grid(found), accuracies(found)
    return {
        "experiment": "content",
        "rows": rows(cells),
        "grid": cells,
        "accuracy": accuracy,
        "bars": bars(cells, accuracy),
        "federations": [{name: value for name, value in each.items() if name != "figures"} for each in found],
        **describe("numpy", "torch"),
    }


def _measured(settings: Sequence[Setting], tell: Tell) -> list[dict[str, Any]]:
    from unlinkabledfl.learning.worker import PRELOAD  # noqa: PLC0415 -- takes PyTorch along

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOAD))
    found: dict[Setting, dict[str, Any]] = {}
    with ProcessPoolExecutor(min(cores, len(settings)), mp_context=context) as pool:
        under_way = {pool.submit(measure, setting): setting for setting in settings}
        for done in as_completed(under_way):
            found[under_way[done]] = done.result()
            tell(f"{len(found)} of {len(settings)} federations")
    return [found[setting] for setting in settings]


def render(document: dict[str, Any]) -> "RenderableType":
    """Return the tables that people see."""
    from rich.console import Group  # noqa: PLC0415 -- readers of JSON need no tables
    from rich.text import Text  # noqa: PLC0415

    machine = document["machine"]
    seconds = f"{document['seconds']:.0f} s on {machine['cores']} cores of {machine['cpu']}"
    explained = (
        "Shares of fragments; guessing has one in as many as there are peers. α: the smaller, the less data alike."
    )
    return Group(
        _published_table(document), Text(explained, style="dim"), _accuracy_table(document), _bars_table(document),
        Text(seconds, style="dim"),
    )  # fmt: skip


def page(document: dict[str, Any]) -> str:
    """Return the page with its pictures."""
    from unlinkabledfl.experiment.report.content import content_html  # noqa: PLC0415 -- readers of JSON need no page

    return content_html(document)


def _published_table(document: dict[str, Any]) -> "Table":
    from rich.table import Table  # noqa: PLC0415

    table = Table(title="What a curious recipient recognises", title_justify="left")
    for heading in ("", "published", "preset paper", "strong with masks"):
        table.add_column(heading, justify="right" if heading else "left")
    for row in document["rows"]:
        table.add_row(row["what"], *(_share(row[name]) for name in ("published", "paper_preset", "strong_preset")))
    return table


def _accuracy_table(document: dict[str, Any]) -> "Table":
    from rich.table import Table  # noqa: PLC0415

    table = Table(title="Accuracy", title_justify="left")
    for heading in ("preset", "obfuscation", "α", "accuracy", "± (95%)", "cost in points", "± (95%)"):
        table.add_column(heading, justify="left" if heading in {"preset", "obfuscation"} else "right")
    for kind in document["accuracy"]:
        mean, cost = kind["accuracy"], kind["cost_points"]
        table.add_row(
            kind["preset"],
            kind["obfuscation"],
            f"{kind['alpha']:g}",
            *(_share(mean[name]) for name in ("mean", "half_width")),
            *(
                _share(cost[name] if cost and kind["obfuscation"] != "none" else None)
                for name in ("mean", "half_width")
            ),
        )
    return table


def _bars_table(document: dict[str, Any]) -> "Table":
    from rich.table import Table  # noqa: PLC0415

    table = Table(title="What has to hold", title_justify="left")
    for heading in ("what", "at most", "measured", "holds"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for bar in document["bars"]:
        holds = "yes" if bar["holds"] else "[bold red]no"
        table.add_row(bar["what"], f"{bar['high']:.3f}", f"{bar['measured']:.3f}", holds)
    return table


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
