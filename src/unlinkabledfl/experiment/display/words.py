"""How figures of a run are written in tables and lines."""

from unlinkabledfl.experiment.report.charts import bytes_unit, seconds_unit

__all__ = ["count", "data_size", "duration", "percent", "seconds"]

_NONE = "–"


def percent(value: float | None) -> str:
    """Write a share."""
    return _NONE if value is None else f"{100.0 * value:.1f}%"


def seconds(value: float | None) -> str:
    """Write a length of time by its size."""
    return _NONE if value is None else seconds_unit(value).text(value)


def data_size(value: float | None) -> str:
    """Write a number of bytes by its size."""
    return _NONE if value is None else bytes_unit(value).text(value)


def count(value: float | None) -> str:
    """Write a number of things."""
    return _NONE if value is None else f"{value:,.0f}"


def duration(value_s: float) -> str:
    """Write a length of time as a clock does: 0:07, 12:30, 1:02:03."""
    whole = round(value_s)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
