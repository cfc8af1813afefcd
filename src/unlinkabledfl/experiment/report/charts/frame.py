"""The frame around a plot: where it lies, its axes, ticks, grid and legend."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from unlinkabledfl.experiment.report.charts.scale import PLAIN, Scale, Unit, number, tick_labels, ticks
from unlinkabledfl.experiment.report.charts.svg import drawing, element, text

__all__ = ["Axis", "Frame", "LogAxis"]

_CHARACTER_WIDTH = 6.3
_TICKS_MAX = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One direction: its values, what they are, and how they are written."""

    low: float
    high: float
    label: str
    unit: Unit = PLAIN
    whole: bool = False
    """Ticks at whole numbers only, as rounds are."""

    def ticks(self, count: int) -> tuple[list[float], list[str]]:
        """Return where ticks are and what they say."""
        low, high = self.low / self.unit.divisor, self.high / self.unit.divisor
        places = [place * self.unit.divisor for place in ticks(low, high, count=count, whole=self.whole)]
        return places, tick_labels(places, self.unit)

    def title(self) -> str:
        """Return what the axis shows, with its unit."""
        unit = self.unit.suffix.strip()
        return f"{self.label}, {unit}" if unit else self.label


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAxis(Axis):
    """An axis whose values are decimal logarithms; its ticks say what they are the logarithms of."""

    def ticks(self, count: int) -> tuple[list[float], list[str]]:
        """Return where 1, 2 and 5 times powers of ten are; fewer of them where those are too many."""
        exponents = range(math.floor(self.low), math.ceil(self.high) + 1)
        shown: list[float] = []
        for steps in ((1, 2, 5), (1, 3), (1,)):
            values = [step * 10.0**exponent for exponent in exponents for step in steps]
            shown = [value for value in values if self.low <= math.log10(value) <= self.high]
            if len(shown) <= count:
                break
        return [math.log10(value) for value in shown], [number(value) for value in shown]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A drawing with two axes. `legend`: pairs of a CSS class and its label."""

    name: str
    title: str
    description: str
    x: Axis
    y: Axis
    legend: Sequence[tuple[str, str]] = field(default=())
    width: float = 640.0
    height: float = 300.0

    @property
    def left(self) -> float:
        """Where the plot begins: right of the widest tick label."""
        labels = self.y.ticks(5)[1]
        return 34.0 + _CHARACTER_WIDTH * max((len(label) for label in labels), default=1)

    @property
    def top(self) -> float:
        """Where the plot begins, below its legend."""
        return 16.0 + 18.0 * len(self._legend_rows())

    @property
    def bottom(self) -> float:
        """Where the plot ends."""
        return self.height - 44.0

    @property
    def right(self) -> float:
        """Where the plot ends."""
        return self.width - 20.0

    def scale_x(self) -> Scale:
        """Return places from left to right."""
        return Scale(low=self.x.low, high=self.x.high, start=self.left, end=self.right)

    def scale_y(self) -> Scale:
        """Return places from the bottom to the top."""
        return Scale(low=self.y.low, high=self.y.high, start=self.bottom, end=self.top)

    def around(self, body: str) -> str:
        """Draw the frame, the body within, and the axes."""
        return drawing(
            self._grid() + self._legend() + body + self._axes(),
            name=self.name,
            title=self.title,
            description=self.description,
            width=self.width,
            height=self.height,
        )

    def _grid(self) -> str:
        scale = self.scale_y()
        parts = []
        for value, label in zip(*self.y.ticks(5), strict=True):
            y = scale(value)
            parts.append(element("path", d=f"M{self.left:.0f} {y:.1f}H{self.right:.0f}", class_="grid"))
            parts.append(text(label, x=self.left - 7, y=y + 4, anchor="end"))
        return "".join(parts)

    def _axes(self) -> str:
        scale = self.scale_x()
        middle = (self.left + self.right) / 2
        parts = [element("path", d=f"M{self.left:.0f} {self.bottom:.1f}H{self.right:.0f}", class_="axis")]
        longest = max(map(len, self.x.ticks(_TICKS_MAX)[1]), default=1)
        fitting = int((self.right - self.left) / (_CHARACTER_WIDTH * longest + 26.0))
        for value, label in zip(*self.x.ticks(max(2, min(_TICKS_MAX, fitting))), strict=True):
            x = scale(value)
            parts.append(element("path", d=f"M{x:.1f} {self.bottom:.1f}v4", class_="axis"))
            parts.append(text(label, x=x, y=self.bottom + 18, anchor="middle"))
        parts.append(text(self.x.title(), x=middle, y=self.height - 6, class_="label", anchor="middle"))
        centre = (self.top + self.bottom) / 2
        parts.append(text(self.y.title(), x=13, y=centre, class_="label", anchor="middle", rotate=True))
        return "".join(parts)

    def _legend_rows(self) -> list[list[tuple[str, str, float]]]:
        rows: list[list[tuple[str, str, float]]] = []
        room = self.width - 34.0
        x = room + 1.0
        for class_, label in self.legend:
            wide = 46.0 + _CHARACTER_WIDTH * len(label)
            if x + wide > room:
                rows.append([])
                x = 0.0
            rows[-1].append((class_, label, x))
            x += wide
        return rows

    def _legend(self) -> str:
        parts = []
        for line, row in enumerate(self._legend_rows()):
            y = 12.0 + 18.0 * line
            for class_, label, x in row:
                box = f"M{x + 34:.0f} {y - 5:.0f}h16v6h-16z"
                parts.append(element("path", d=box, class_=f"swatch {class_}"))
                parts.append(text(label, x=x + 55, y=y + 2))
        return "".join(parts)
