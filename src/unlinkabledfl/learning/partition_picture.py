"""Draw how a dataset is divided among nodes, as an SVG: rectangles and words, which need no plotting library."""

from collections.abc import Sequence
from html import escape
from typing import Final

import numpy as np

from unlinkabledfl.learning.datasets.dataset import LabelArray
from unlinkabledfl.learning.partition import Indices

_LEFT: Final = 60.0
_PLOT_HEIGHT: Final = 260.0
_BASE: Final = 300.0
_LEGEND_WIDTH: Final = 180.0
_LINE: Final = 20.0


def partition_picture(
    parts: Sequence[Indices], labels: LabelArray, classes: Sequence[str], *, title: str = "Samples of each node"
) -> str:
    """Draw a partition as an SVG: a bar a node, as high as its samples are many, in a colour for each class."""
    counts = [np.bincount(labels[part], minlength=len(classes)) for part in parts]
    tallest = max(int(count.sum()) for count in counts)
    colours = [f"hsl({360 * k // len(classes)} 65% {(45, 65)[k % 2]}%)" for k in range(len(classes))]
    step = max(6.0, min(40.0, 900.0 / len(parts)))
    bars = []
    for node, count in enumerate(counts):
        top = _BASE
        for label in range(len(classes)):
            if not count[label]:
                continue
            bar_height = _PLOT_HEIGHT * int(count[label]) / tallest
            top -= bar_height
            about = f"node {node}: {count[label]} of {count.sum()} are {classes[label]}"
            bars.append(
                f'<rect x="{_LEFT + node * step:.2f}" y="{top:.2f}" width="{0.85 * step:.2f}" '
                f'height="{bar_height:.2f}" fill="{colours[label]}"><title>{escape(about)}</title></rect>'
            )
    right = _LEFT + len(parts) * step
    width = right + _LEGEND_WIDTH
    axis = [
        _text(_LEFT, _BASE + 16, "node 0"),
        _text(right, _BASE + 16, f"node {len(parts) - 1}", anchor="end"),
        _text(_LEFT - 6, _BASE, "0", anchor="end"),
        _text(_LEFT - 6, _BASE - _PLOT_HEIGHT + 4, f"{tallest}", anchor="end"),
        f'<path d="M{_LEFT} {_BASE}H{right:.2f}" stroke="#555"/>',
    ]
    legend = []
    for label, (name, colour) in enumerate(zip(classes, colours, strict=True)):
        y = _BASE - _PLOT_HEIGHT + label * _LINE
        legend.append(f'<rect x="{right + 16:.2f}" y="{y:.2f}" width="12" height="12" fill="{colour}"/>')
        legend.append(_text(right + 34, y + 10, name))
    height = _BASE + max(32.0, len(classes) * _LINE - _PLOT_HEIGHT)
    body = "\n".join([_text(_LEFT, 20, title), *axis, *bars, *legend])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(title)}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'font-family="sans-serif" font-size="12">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )


def _text(x: float, y: float, content: str, *, anchor: str = "start") -> str:
    return f'<text x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}">{escape(content)}</text>'
