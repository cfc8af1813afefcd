"""From values to places on a drawing: domains, ticks that people read easily, and units that fit the size."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

__all__ = ["PLAIN", "Scale", "Unit", "bytes_unit", "domain", "seconds_unit", "ticks"]

_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
_PADDING: Final = 0.06
_DECIMALS_MAX: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What a value is divided by to be shown, and what then stands behind it."""

    divisor: float = 1.0
    suffix: str = ""

    def text(self, value: float) -> str:
        """Return a value for people: four digits at most, and its unit."""
        return number(value / self.divisor) + self.suffix


PLAIN: Final = Unit()
PERCENT: Final = Unit(divisor=0.01, suffix="%")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A straight line from a domain of values to a span of the drawing."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return where a value lies."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def number(value: float) -> str:
    """Write a number with about four digits, without an exponent where people would not use one."""
    size = abs(value)
    if not math.isfinite(value):
        return str(value)
    if size and (size >= 1e15 or size < 1e-4):
        return f"{value:.3g}"
    if size >= 1000.0 or value == round(value):
        return f"{value:,.0f}"
    digits = 1 if size >= 100.0 else 2 if size >= 10.0 else 3 if size >= 1.0 else 4
    return f"{value:.{digits}f}".rstrip("0").rstrip(".")


def domain(values: Iterable[float], *, zero: bool = False, most: float | None = None) -> tuple[float, float]:
    """Return a range that holds all finite values with some room; `zero`: from zero on; `most`: no room above it."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return 0.0, 1.0
    low, high = min(finite), max(finite)
    if zero:
        low = min(0.0, low)
    if high - low < 1e-12 * max(1.0, abs(high)):
        if most is not None and 0.0 <= low <= most:
            return 0.0, most
        spread = abs(high) * 0.5 or 1.0
        low, high = (low if zero and low == 0.0 else low - spread), high + spread
    room = (high - low) * _PADDING
    low = low if zero and low == 0.0 else low - room
    if min(finite) >= 0.0:
        low = max(0.0, low)
    high = high + room
    return low, high if most is None or high <= most or low >= most else most


def ticks(low: float, high: float, *, count: int = 5, whole: bool = False) -> list[float]:
    """Return round values within a range, about as many as asked for."""
    raw = (high - low) / max(1, count)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(step * power for step in _STEPS if step * power >= raw * 0.999)
    if whole:
        step = max(1.0, round(step))
    first = math.ceil(low / step - 1e-9)
    return [index * step for index in range(first, math.floor(high / step + 1e-9) + 1)]


def tick_labels(values: Sequence[float], unit: Unit) -> list[str]:
    """Write ticks with as many decimals as tell them apart, and no more."""
    shown = [value / unit.divisor for value in values]
    step = min((after - before for before, after in pairwise(shown)), default=1.0)
    decimals = next((count for count in range(_DECIMALS_MAX) if _is_whole(step * 10.0**count)), _DECIMALS_MAX)
    return [f"{value + 0.0:,.{decimals}f}" for value in shown]


def _is_whole(value: float) -> bool:
    return value >= 0.999 and abs(value - round(value)) < 1e-3


def bytes_unit(largest: float) -> Unit:
    """Return the unit in which this many bytes, and fewer, read well."""
    sizes = ((1e12, " TB"), (1e9, " GB"), (1e6, " MB"), (1e3, " kB"))
    return next((Unit(divisor=size, suffix=name) for size, name in sizes if largest >= size), Unit(suffix=" B"))


def seconds_unit(largest: float) -> Unit:
    """Return the unit in which this many seconds, and fewer, read well."""
    if largest >= 3 * 3600.0:
        return Unit(divisor=3600.0, suffix=" h")
    if largest >= 600.0:
        return Unit(divisor=60.0, suffix=" min")
    return Unit(suffix=" s") if largest >= 0.5 else Unit(divisor=1e-3, suffix=" ms")
