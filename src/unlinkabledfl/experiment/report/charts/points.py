"""Points with their names and intervals: one figure of many things against another."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from unlinkabledfl.experiment.report.charts.frame import Frame
from unlinkabledfl.experiment.report.charts.svg import element, escaped, text

__all__ = ["Point", "point_chart"]

_CHARACTER_WIDTH: Final = 7.0
_LINE_HEIGHT: Final = 12.0
_PLACES: Final = ((9.0, 4.0, "start"), (-9.0, 4.0, "end"), (0.0, -10.0, "middle"), (0.0, 19.0, "middle"),
                  (9.0, -9.0, "start"), (-9.0, -9.0, "end"), (9.0, 17.0, "start"), (-9.0, 17.0, "end"))  # fmt: skip
"""Where a name may stand beside its point, the best place first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One thing. `low` and `high`: the interval of its height."""

    label: str
    x: float
    y: float
    low: float
    high: float
    class_: str
    about: str = ""


def point_chart(frame: Frame, points: Sequence[Point]) -> str:
    """Draw the points; a name that finds no room beside the others is left to the pointer."""
    scale_x, scale_y = frame.scale_x(), frame.scale_y()
    known = [point for point in points if math.isfinite(point.x) and math.isfinite(point.y)]
    taken = [_box(scale_x(point.x), scale_y(point.y), 12.0, 12.0) for point in known]
    drawn = []
    for point in known:
        x, y = scale_x(point.x), scale_y(point.y)
        about = f"<title>{escaped(point.about or point.label)}</title>"
        spread = f"M{x:.1f} {scale_y(point.low):.1f}V{scale_y(point.high):.1f}"
        drawn.append(element("path", d=spread, class_=f"whisker {point.class_}"))
        drawn.append(element("circle", about, cx=x, cy=y, r=5, class_=f"dot {point.class_}"))
        wide = _CHARACTER_WIDTH * len(point.label)
        for along, down, anchor in _PLACES:
            box = _named(x + along, y + down, wide, anchor)
            is_inside = box[0] >= frame.left and box[2] <= frame.width and box[1] >= 0.0 and box[3] <= frame.bottom
            if is_inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                drawn.append(text(point.label, x=x + along, y=y + down, anchor=anchor))
                break
    return frame.around("".join(drawn))


Box = tuple[float, float, float, float]


def _box(x: float, y: float, wide: float, high: float) -> Box:
    return x - wide / 2, y - high / 2, x + wide / 2, y + high / 2


def _named(x: float, y: float, wide: float, anchor: str) -> Box:
    start = {"start": x, "end": x - wide, "middle": x - wide / 2}[anchor]
    return start, y - _LINE_HEIGHT + 2.0, start + wide, y + 2.0


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
