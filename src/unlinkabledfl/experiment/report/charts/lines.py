"""Line charts: many thin lines and a bold one over them, or a band and its middle where lines would be too many."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from unlinkabledfl.experiment.report.charts.frame import Frame
from unlinkabledfl.experiment.report.charts.svg import element, escaped, path, place

__all__ = ["Band", "Line", "line_chart"]

_DOTS_MAX = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Points in order. A value that is not finite leaves a gap."""

    label: str
    xs: Sequence[float]
    ys: Sequence[float]
    class_: str = "thin"
    dots: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """The room between two curves."""

    label: str
    xs: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]
    class_: str = "band"


def line_chart(frame: Frame, lines: Sequence[Line], *, bands: Sequence[Band] = ()) -> str:
    """Draw bands, then lines, in their order."""
    return frame.around("".join([*(_band(frame, band) for band in bands), *(_line(frame, line) for line in lines)]))


def _line(frame: Frame, line: Line) -> str:
    scale_x, scale_y = frame.scale_x(), frame.scale_y()
    points: list[tuple[float, float] | None] = [
        (scale_x(x), scale_y(y)) if math.isfinite(y) else None for x, y in zip(line.xs, line.ys, strict=True)
    ]
    name = f"<title>{escaped(line.label)}</title>"
    drawn = [element("path", name, d=path(points), class_=f"line {line.class_}")]
    known = [point for point in points if point is not None]
    # A line through one point is invisible without its dot.
    if known and (len(known) == 1 or (line.dots and len(known) <= _DOTS_MAX)):
        drawn += [element("circle", name, cx=x, cy=y, r=3, class_=f"dot {line.class_}") for x, y in known]
    return "".join(drawn)


def _band(frame: Frame, band: Band) -> str:
    scale_x, scale_y = frame.scale_x(), frame.scale_y()
    rows = [row for row in zip(band.xs, band.lows, band.highs, strict=True) if all(map(math.isfinite, row))]
    if not rows:
        return ""
    there = [f"{place(scale_x(x))} {place(scale_y(high))}" for x, _, high in rows]
    back = [f"{place(scale_x(x))} {place(scale_y(low))}" for x, low, _ in reversed(rows)]
    outline = f"M{'L'.join(there + back)}Z"
    return element("path", f"<title>{escaped(band.label)}</title>", d=outline, class_=band.class_)
