"""Bars: stacked over rounds, and as histograms."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from unlinkabledfl.experiment.report.charts.frame import Frame
from unlinkabledfl.experiment.report.charts.scale import Unit
from unlinkabledfl.experiment.report.charts.svg import element, escaped, place

__all__ = ["Histogram", "Stack", "bin_edges", "histogram_chart", "stacked_bars"]

_BINS_MAX = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One layer of the bars: a height at each place."""

    label: str
    heights: Sequence[float]
    class_: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """How many values lie between each two edges."""

    label: str
    counts: Sequence[int]
    class_: str


def stacked_bars(frame: Frame, places: Sequence[float], stacks: Sequence[Stack], *, unit: Unit) -> str:
    """Draw a bar at each place, of layers that add up."""
    scale_x, scale_y = frame.scale_x(), frame.scale_y()
    gap = min((after - before for before, after in pairwise(places)), default=1.0)
    width = min(48.0, 0.72 * abs(scale_x(gap) - scale_x(0.0)))
    parts = []
    for index, where in enumerate(places):
        base = 0.0
        for stack in stacks:
            height = stack.heights[index]
            if not math.isfinite(height) or height <= 0.0:
                continue
            top, bottom = scale_y(base + height), scale_y(base)
            base += height
            about = escaped(f"{stack.label}: {unit.text(height)}")
            box = {"x": scale_x(where) - width / 2, "y": top, "width": width, "height": bottom - top}
            parts.append(element("rect", f"<title>{about}</title>", class_=f"fill {stack.class_}", **box))
    return frame.around("".join(parts))


def bin_edges(values: Sequence[float]) -> list[float]:
    """Return edges that show a distribution: as many as its size carries (Freedman and Diaconis), at most forty."""
    finite = sorted(value for value in values if math.isfinite(value))
    if not finite:
        return [0.0, 1.0]
    low, high = finite[0], finite[-1]
    if high - low < 1e-12 * max(1.0, abs(high)):
        room = abs(high) * 0.05 or 0.5
        return [low - room, high + room]
    spread = finite[(3 * len(finite)) // 4] - finite[len(finite) // 4]
    width = 2.0 * spread / len(finite) ** (1 / 3)
    bins = min(_BINS_MAX, math.ceil((high - low) / width)) if width > 0.0 else 10
    bins = max(bins, 5)
    return [low + (high - low) * index / bins for index in range(bins + 1)]


def count_between(values: Sequence[float], edges: Sequence[float]) -> list[int]:
    """Count values between edges of equal distance; what lies beyond them counts at the ends."""
    counts = [0] * (len(edges) - 1)
    low, width = edges[0], (edges[-1] - edges[0]) / len(counts)
    for value in values:
        if math.isfinite(value):
            counts[min(len(counts) - 1, max(0, int((value - low) / width)))] += 1
    return counts


def histogram_chart(frame: Frame, edges: Sequence[float], histograms: Sequence[Histogram], *, unit: Unit) -> str:
    """Draw histograms over each other, each as one translucent outline."""
    scale_x, scale_y = frame.scale_x(), frame.scale_y()
    base = place(scale_y(0.0))
    parts = []
    for histogram in histograms:
        outline: list[str] = []
        before = 0
        for count, left, right in zip([*histogram.counts, 0], edges, [*edges[1:], edges[-1]], strict=True):
            if count and not before:
                outline.append(f"M{place(scale_x(left))} {base}")
            if count:
                y = place(scale_y(count))
                outline.append(f"L{place(scale_x(left))} {y}L{place(scale_x(right))} {y}")
            elif before:
                outline.append(f"L{place(scale_x(left))} {base}Z")
            before = count
        about = escaped(f"{histogram.label}, {unit.text(edges[0])} to {unit.text(edges[-1])}")
        parts.append(element("path", f"<title>{about}</title>", d="".join(outline), class_=f"area {histogram.class_}"))
    return frame.around("".join(parts))
