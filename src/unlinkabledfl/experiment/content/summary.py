"""Figures of single federations, put together: means over seeds with their intervals, the published ones beside them.

An interval is one of a mean over seeds, at 95%: fragments of one federation depend on each other and are no sample.
What masks cost in accuracy is a mean over pairs: the same seed and data with and without them.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import Any, Final

from unlinkabledfl.experiment.compare.statistics import t_quantile
from unlinkabledfl.experiment.content.published import PUBLISHED, PublishedFigure

__all__ = ["accuracies", "bars", "grid", "mean_of", "rows"]

Found = Mapping[str, Any]
_LEVEL: Final = 0.975
_CELL: Final = ("preset", "obfuscation", "scale", "dispersal", "lost", "alpha", "peers")
_FIGURE: Final = ("attack", "reference", "ratio")
_THIRD: Final = 1.0 / 3.0
_POINT: Final = 1.0


def mean_of(values: Sequence[float]) -> dict[str, Any]:
    """Return mean, half of its 95% interval (none of a single value), and how many values there are."""
    count = len(values)
    half = None if count < 2 else t_quantile(_LEVEL, count - 1) * stdev(values) / sqrt(count)  # noqa: PLR2004
    return {"mean": fmean(values), "half_width": half, "seeds": count}


def grid(found: Sequence[Found]) -> list[dict[str, Any]]:
    """Return a cell for every kind of federation, attack, reference and ratio."""
    cells: dict[tuple[Any, ...], list[Found]] = defaultdict(list)
    for federation in found:
        for figure in federation["figures"]:
            key = (*(federation[name] for name in _CELL), *(figure[name] for name in _FIGURE))
            cells[key].append(figure)
    return [
        {
            **dict(zip((*_CELL, *_FIGURE), key, strict=True)),
            "identity": mean_of([figure["identity"] for figure in figures]),
            "tracking": mean_of([figure["tracking"] for figure in figures]),
            "chance": 1.0 / key[_CELL.index("peers")],
            "fragments": sum(figure["fragments"] for figure in figures),
        }
        for key, figures in cells.items()
    ]


def accuracies(found: Sequence[Found]) -> list[dict[str, Any]]:
    """Return the accuracy of every kind of federation, and what it costs against the bare one with the same seeds."""
    kinds: dict[tuple[Any, ...], list[Found]] = defaultdict(list)
    for federation in found:
        kinds[tuple(federation[name] for name in _CELL)].append(federation)
    bare = {
        (federation["preset"], federation["alpha"], federation["seed"]): federation["accuracy"]
        for federation in found
        if federation["obfuscation"] == "none" and federation["dispersal"] == 1.0 and not federation["lost"]
    }
    made = []
    for key, federations in kinds.items():
        pairs = [
            100.0 * (bare[same] - federation["accuracy"])
            for federation in federations
            if (same := (federation["preset"], federation["alpha"], federation["seed"])) in bare
        ]
        made.append({
            **dict(zip(_CELL, key, strict=True)),
            "accuracy": mean_of([federation["accuracy"] for federation in federations]),
            "cost_points": mean_of(pairs) if pairs else None,
        })  # fmt: skip
    return made


def rows(cells: Sequence[Found]) -> list[dict[str, Any]]:
    """Return the published figures with ours: the preset `paper` as it is, `strong` with masks."""
    return [_row(figure, attack, cells) for attack in ("published", "persistent") for figure in PUBLISHED]


def _row(figure: PublishedFigure, attack: str, cells: Sequence[Found]) -> dict[str, Any]:
    def ours(preset: str, obfuscation: str) -> float | None:
        wanted = {"preset": preset, "obfuscation": obfuscation, "attack": attack, "reference": "received",
                  "alpha": figure.alpha, "ratio": figure.ratio}  # fmt: skip
        cell = _only(cells, wanted)
        return None if cell is None else cell[figure.target]["mean"]

    name = {"identity": "identity linking", "tracking": "bucket tracking"}[figure.target]
    known = attack == "published"
    return {
        "what": f"{name} by the {attack} attack, α={figure.alpha:g}, r={figure.ratio:g}",
        "published": (figure.low + figure.high) / 2.0 if known else None,
        "published_interval": [figure.low, figure.high] if known else None,
        "paper_preset": ours("paper", "none"),
        "strong_preset": ours("strong", "masks"),
        "unit": "share of fragments",
    }


def bars(cells: Sequence[Found], accuracy: Sequence[Found]) -> list[dict[str, Any]]:
    """Return what masks have to reach: a third of the bare figure, for at most a point of accuracy."""
    return [*_linking_bars(cells), *_cost_bars(accuracy)]


def _linking_bars(cells: Sequence[Found]) -> Iterator[dict[str, Any]]:
    for masked in cells:
        if masked["obfuscation"] != "masks" or masked["reference"] != "received":
            continue
        bare = _only(cells, {**{name: masked[name] for name in ("preset", "alpha", "attack", "ratio")},
                             "obfuscation": "none", "dispersal": 1.0, "lost": 0.0})  # fmt: skip
        if bare is None:
            continue
        # Nobody can be pushed below guessing, which strays: three deviations of it.
        chance = masked["chance"]
        guessing = chance + 3.0 * sqrt(chance * (1.0 - chance) / masked["fragments"])
        most = max(_THIRD * bare["identity"]["mean"], guessing)
        what = f"masks: identity linking by the {masked['attack']} attack, α={masked['alpha']:g}, r={masked['ratio']:g}"
        yield _bar(what, masked["identity"]["mean"], most)


def _cost_bars(accuracy: Sequence[Found]) -> Iterator[dict[str, Any]]:
    costs = [
        kind["cost_points"]["mean"]
        for kind in accuracy
        if kind["obfuscation"] == "masks" and not kind["lost"] and kind["cost_points"] is not None
    ]
    if costs:
        yield _bar("masks: points of accuracy, mean over all α", fmean(costs), _POINT)


def _bar(what: str, measured: float, most: float) -> dict[str, Any]:
    return {"what": what, "measured": measured, "low": 0.0, "high": most, "holds": measured <= most}


def _only(cells: Sequence[Found], wanted: Mapping[str, Any]) -> Found | None:
    return next((cell for cell in cells if all(cell[name] == value for name, value in wanted.items())), None)
