"""The topology as a picture: nodes on a circle where the graph looks the same from each, else pulled by their edges."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from unlinkabledfl.experiment.report.charts.svg import drawing, element, escaped, place, text

__all__ = ["graph_chart"]

Points = NDArray[np.float64]
Edges = Sequence[tuple[int, int]]

EDGES_DRAWN_MAX: Final = 6_000
_PULLED_NODES_MAX: Final = 400
_STEPS: Final = 150
_WIDTH: Final = 640.0
_SIDE: Final = 560.0
_MARGIN: Final = 26.0
_NAMED_NODES_MAX: Final = 40
_SHADES: Final = 5


def graph_chart(
    *,
    name: str,
    title: str,
    description: str,
    looks: Sequence[tuple[str, str]],
    edges: Edges,
    legend: Sequence[tuple[str, str]],
    shades: tuple[str, str] | None = None,
) -> str:
    """Draw nodes and edges. `looks`: each node's CSS class, and what it says of itself.

    `shades`: what the lightest and the darkest of five shades stand for.
    """
    nodes = len(looks)
    points = _layout(nodes, edges)
    low, high = points.min(axis=0), points.max(axis=0)
    span = np.maximum(high - low, 1e-9).max()
    centre = (high + low) / 2
    points = (points - centre) / span * (_SIDE - 2 * _MARGIN) + np.array([_WIDTH / 2, _SIDE / 2])
    every = max(1, math.ceil(len(edges) / EDGES_DRAWN_MAX))
    lines = "".join(
        f"M{place(points[one][0])} {place(points[one][1])}L{place(points[other][0])} {place(points[other][1])}"
        for one, other in edges[::every]
    )
    radius = max(2.5, min(13.0, 150.0 / math.sqrt(nodes) / 2))
    faint = "edges faint" if len(edges) > 600 else "edges"  # noqa: PLR2004 - beyond that, single edges cannot be seen
    parts = [element("path", d=lines, class_=faint)] if lines else []
    for node, (class_, about) in enumerate(looks):
        x, y = float(points[node][0]), float(points[node][1])
        said = f"<title>{escaped(about)}</title>"
        parts.append(element("circle", said, cx=x, cy=y, r=radius, class_=f"node {class_}"))
        if nodes <= _NAMED_NODES_MAX:
            parts.append(text(str(node), x=x, y=y + 3.5, anchor="middle", class_="name"))
    parts.append(_legend(legend, shades))
    return drawing("".join(parts), name=name, title=title, description=description, width=_WIDTH, height=_SIDE + 34)


def _legend(entries: Sequence[tuple[str, str]], shades: tuple[str, str] | None) -> str:
    wide = [36.0 + 6.3 * len(label) for _, label in entries]
    ramp = 0.0 if shades is None else 6.3 * len("".join(shades)) + 14.0 * _SHADES + 40.0
    x = (_WIDTH - sum(wide) - ramp) / 2
    y = _SIDE + 16.0
    parts = []
    if shades is not None:
        least, most = shades
        start = x + 6.3 * len(least) + 8.0
        parts.append(text(least, x=start - 8, y=y + 4, anchor="end"))
        for shade in range(_SHADES):
            box = f"M{place(start + 14 * shade)} {place(y - 6)}h14v12h-14z"
            parts.append(element("path", d=box, class_=f"node q{shade}"))
        parts.append(text(most, x=start + 14 * _SHADES + 8, y=y + 4))
        x += ramp
    for (class_, label), step in zip(entries, wide, strict=True):
        parts.append(element("circle", cx=x + 6, cy=y, r=6, class_=f"node {class_}"))
        parts.append(text(label, x=x + 19, y=y + 4))
        x += step
    return "".join(parts)


def _layout(nodes: int, edges: Edges) -> Points:
    angles = np.arange(nodes) * (2 * np.pi / nodes) - np.pi / 2
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    if nodes > _PULLED_NODES_MAX or not edges or _looks_same_everywhere(nodes, edges):
        return circle
    return _pulled(nodes, edges, circle)


def _looks_same_everywhere(nodes: int, edges: Edges) -> bool:
    known = {frozenset(edge) for edge in edges}
    return all(frozenset(((one + 1) % nodes, (other + 1) % nodes)) in known for one, other in edges)


def _pulled(nodes: int, edges: Edges, points: Points) -> Points:
    """Let edges pull and nodes push until little moves (Fruchterman and Reingold), from the circle: no randomness."""
    ends = np.array(edges)
    ideal = 2.0 / math.sqrt(nodes)
    # A circle is a saddle for symmetric graphs: a fixed unevenness lets them unfold.
    points = points * (1.0 + 0.15 * np.sin(np.arange(nodes) * 2.4)[:, None])
    for step in range(_STEPS):
        apart = points[:, None, :] - points[None, :, :]
        distance = np.maximum(np.linalg.norm(apart, axis=2), 1e-3)
        force = (apart * (ideal**2 / distance**2)[:, :, None]).sum(axis=1)
        along = points[ends[:, 0]] - points[ends[:, 1]]
        pull = along * (np.linalg.norm(along, axis=1) / ideal)[:, None]
        np.add.at(force, ends[:, 0], -pull)
        np.add.at(force, ends[:, 1], pull)
        size = np.maximum(np.linalg.norm(force, axis=1), 1e-9)[:, None]
        points = points + force / size * np.minimum(size, 0.2 * (1.0 - step / _STEPS))
    return points
