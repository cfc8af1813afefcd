"""Charts as inline SVG: a few kinds, drawn here, coloured by the page around them, readable without a script."""

from unlinkabledfl.experiment.report.charts.bars import (
    Histogram,
    Stack,
    bin_edges,
    count_between,
    histogram_chart,
    stacked_bars,
)
from unlinkabledfl.experiment.report.charts.frame import Axis, Frame, LogAxis
from unlinkabledfl.experiment.report.charts.graph import graph_chart
from unlinkabledfl.experiment.report.charts.heat import Cell, HeatTable, heat_table
from unlinkabledfl.experiment.report.charts.lines import Band, Line, line_chart
from unlinkabledfl.experiment.report.charts.points import Point, point_chart
from unlinkabledfl.experiment.report.charts.scale import (
    PERCENT,
    PLAIN,
    Unit,
    bytes_unit,
    domain,
    number,
    seconds_unit,
)
from unlinkabledfl.experiment.report.charts.timeline import Lane, Span, timeline_chart

__all__ = [
    "PERCENT",
    "PLAIN",
    "Axis",
    "Band",
    "Cell",
    "Frame",
    "HeatTable",
    "Histogram",
    "Lane",
    "Line",
    "LogAxis",
    "Point",
    "Span",
    "Stack",
    "Unit",
    "bin_edges",
    "bytes_unit",
    "count_between",
    "domain",
    "graph_chart",
    "heat_table",
    "histogram_chart",
    "line_chart",
    "number",
    "point_chart",
    "seconds_unit",
    "stacked_bars",
    "timeline_chart",
]
