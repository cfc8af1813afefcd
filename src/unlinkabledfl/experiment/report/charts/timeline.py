"""What happened when: the rounds as spans on the time axis, and a lane of marks for each kind of event."""

from collections.abc import Sequence
from dataclasses import dataclass

from unlinkabledfl.experiment.report.charts.frame import Axis
from unlinkabledfl.experiment.report.charts.scale import Scale
from unlinkabledfl.experiment.report.charts.svg import drawing, element, escaped, text

__all__ = ["Lane", "Span", "timeline_chart"]

_LANE_HEIGHT = 24.0
_WIDTH = 1320.0
_RIGHT = 20.0
_MARK_WIDTH = 6.0
_SAID_MAX = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A round, from its first node's start to its last node's end."""

    label: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """All events of one kind: when, and what each said."""

    label: str
    marks: Sequence[tuple[float, str]]
    class_: str


def timeline_chart(
    *, name: str, title: str, description: str, axis: Axis, spans: Sequence[Span], lanes: Sequence[Lane]
) -> str:
    """Draw the rounds above, the lanes below. Marks that would lie on each other become one, with their number."""
    left = 80.0
    scale = Scale(low=axis.low, high=axis.high, start=left, end=_WIDTH - _RIGHT)
    y = 14.0
    parts = []
    if spans:
        parts.append(text("rounds", x=left - 10, y=y + _LANE_HEIGHT + 4, anchor="end"))
        parts += [_span(span, scale, y, index % 2) for index, span in enumerate(spans)]
        y += 2 * _LANE_HEIGHT + 8.0
    for lane in lanes:
        middle = y + _LANE_HEIGHT / 2
        parts.append(text(lane.label, x=left - 10, y=middle + 4, anchor="end"))
        parts.append(element("path", d=f"M{left:.0f} {middle:.1f}H{_WIDTH - _RIGHT:.0f}", class_="grid"))
        parts += _marks(lane, scale, middle)
        y += _LANE_HEIGHT
    bottom = y + 6.0
    parts.append(element("path", d=f"M{left:.0f} {bottom:.1f}H{_WIDTH - _RIGHT:.0f}", class_="axis"))
    for value, label in zip(*axis.ticks(10), strict=True):
        x = scale(value)
        parts.append(element("path", d=f"M{x:.1f} {bottom:.1f}v4", class_="axis"))
        parts.append(text(label, x=x, y=bottom + 18, anchor="middle"))
    middle = (left + _WIDTH - _RIGHT) / 2
    parts.append(text(axis.title(), x=middle, y=bottom + 36, class_="label", anchor="middle"))
    return drawing("".join(parts), name=name, title=title, description=description, width=_WIDTH, height=bottom + 42)


def _span(span: Span, scale: Scale, y: float, row: int) -> str:
    # Two rows in turn: rounds of different nodes overlap.
    x, end = scale(span.start_s), scale(span.end_s)
    box = {"x": x, "y": y + row * _LANE_HEIGHT, "width": max(1.0, end - x), "height": _LANE_HEIGHT - 4, "rx": 3}
    about = f"<title>{escaped(f'{span.label}: {span.start_s:,.1f} s to {span.end_s:,.1f} s')}</title>"
    drawn = element("rect", about, class_="span", **box)
    short = span.label.removeprefix("round ")
    if end - x > 8.0 * len(short):
        drawn += text(short, x=(x + end) / 2, y=y + row * _LANE_HEIGHT + 14, anchor="middle")
    return drawn


def _marks(lane: Lane, scale: Scale, middle: float) -> list[str]:
    groups: list[list[tuple[float, str]]] = []
    for mark in sorted(lane.marks):
        if groups and scale(mark[0]) - scale(groups[-1][0][0]) < _MARK_WIDTH:
            groups[-1].append(mark)
        else:
            groups.append([mark])
    drawn = []
    for group in groups:
        x = scale(group[0][0])
        said = "\n".join([sentence for _, sentence in group[:_SAID_MAX]])
        if len(group) > _SAID_MAX:
            said += f"\nand {len(group) - _SAID_MAX} more"
        about = f"<title>{escaped(said)}</title>"
        radius = 4.0 + min(4.0, 0.6 * (len(group) - 1))
        drawn.append(element("circle", about, cx=x, cy=middle, r=radius, class_=f"mark {lane.class_}"))
    return drawn
