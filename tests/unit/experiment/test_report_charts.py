"""Charts: values land where they belong, ticks are read easily, and odd data does not break a drawing."""

import math
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from unlinkabledfl.experiment.report.charts import (
    PERCENT,
    PLAIN,
    Axis,
    Band,
    Frame,
    Histogram,
    Line,
    Stack,
    Unit,
    bin_edges,
    bytes_unit,
    count_between,
    domain,
    graph_chart,
    histogram_chart,
    line_chart,
    number,
    seconds_unit,
    stacked_bars,
)
from unlinkabledfl.experiment.report.charts.scale import tick_labels, ticks

FINITE = st.floats(-1e12, 1e12, allow_nan=False)


def frame(*, low: float = 0.0, high: float = 10.0, legend: tuple[tuple[str, str], ...] = ()) -> Frame:
    return Frame(
        name="test",
        title="A <test>",
        description="of & drawings",
        x=Axis(low=0.0, high=10.0, label="round", whole=True),
        y=Axis(low=low, high=high, label="value"),
        legend=legend,
    )


@given(low=FINITE, size=st.floats(1e-6, 1e12), count=st.integers(2, 12))
def test_ticks_are_few_ascending_round_and_within_the_range(low: float, size: float, count: int) -> None:
    high = low + size
    assume(size > 1e-9 * max(abs(low), abs(high)))

    places = ticks(low, high, count=count)

    assert 1 <= len(places) <= 2 * count + 1
    assert places == sorted(set(places))
    slack = 1e-6 * size
    assert low - slack <= places[0]
    assert places[-1] <= high + slack
    assert len(set(tick_labels(places, PLAIN))) == len(places)


@given(values=st.lists(st.floats() | FINITE, max_size=20), zero=st.booleans())
def test_a_domain_holds_every_finite_value_and_has_a_width(values: list[float], zero: bool) -> None:
    assume(all(not math.isfinite(value) or abs(value) < 1e300 for value in values))

    low, high = domain(values, zero=zero)

    assert low < high
    finite = [value for value in values if math.isfinite(value)]
    assert all(low <= value <= high for value in finite)
    if finite and min(finite) >= 0:
        assert low >= 0
    if finite and zero:
        assert low <= 0


def test_a_share_is_not_drawn_beyond_the_whole() -> None:
    assert domain([0.97, 1.0], most=1.0)[1] == 1.0
    assert domain([1.0, 1.0], most=1.0) == (0.0, 1.0)


@given(values=st.lists(FINITE, min_size=1, max_size=200))
def test_a_histogram_counts_every_value_once(values: list[float]) -> None:
    edges = bin_edges(values)

    counts = count_between(values, edges)

    assert edges == sorted(edges)
    assert len(counts) <= 40
    assert sum(counts) == len(values)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (0.5, "0.5"), (0.12345, "0.1235"), (1234.5, "1,234"), (99.95, "99.95"), (123.456, "123.5"),
        (1e-7, "1e-07"), (3e18, "3e+18"), (-2.5, "-2.5"), (math.nan, "nan"),
    ],
)  # fmt: skip
def test_numbers_are_written_for_people(value: float, text: str) -> None:
    assert number(value) == text


def test_units_fit_the_size() -> None:
    assert [bytes_unit(size).text(size) for size in (12, 3_444_000, 2.5e9)] == ["12 B", "3.444 MB", "2.5 GB"]
    assert [seconds_unit(size).text(size) for size in (0.2, 31, 1200, 9e4)] == ["200 ms", "31 s", "20 min", "25 h"]
    assert PERCENT.text(0.6275) == "62.75%"


def test_a_line_goes_through_its_points_and_lifts_the_pen_where_a_value_is_missing() -> None:
    drawn = ET.fromstring(line_chart(frame(), [Line(label="l", xs=[0, 5, 7, 10], ys=[0, 10, math.nan, 5])]))
    here = frame()
    data = next(path.get("d") or "" for path in drawn.iter("path") if "line" in (path.get("class") or ""))

    points = [tuple(map(float, pair)) for pair in re.findall(r"([\d.]+) ([\d.]+)", data)]
    middle = (here.top + here.bottom) / 2
    assert data.count("M") == 2
    assert points == [
        pytest.approx(point, abs=0.06)
        for point in [(here.left, here.bottom), ((here.left + here.right) / 2, here.top), (here.right, middle)]
    ]


def test_a_single_point_is_a_dot() -> None:
    drawn = ET.fromstring(line_chart(frame(), [Line(label="l", xs=[3], ys=[4])]))

    assert len([circle for circle in drawn.iter("circle")]) == 1


def test_words_are_escaped_and_a_picture_is_named_and_described() -> None:
    drawn = ET.fromstring(line_chart(frame(), [Line(label="<b>&", xs=[1, 2], ys=[1, 2])]))

    assert [child.text for child in drawn][:2] == ["A <test>", "of & drawings"]
    assert drawn.get("aria-labelledby") == "test-t test-d"
    assert "<b>&" in [title.text for title in drawn.iter("title")]


def test_bars_stand_on_each_other() -> None:
    stacks = [Stack(label="a", heights=[2, 0], class_="c1"), Stack(label="b", heights=[3, math.nan], class_="c2")]
    drawn = ET.fromstring(stacked_bars(frame(), [1, 2], stacks, unit=Unit(suffix=" s")))
    scale = frame().scale_y()

    boxes = [(float(box.get("y", 0)), float(box.get("height", 0))) for box in drawn.iter("rect")]
    assert boxes == [
        pytest.approx((scale(2), scale(0) - scale(2)), abs=0.11),
        pytest.approx((scale(5), scale(2) - scale(5)), abs=0.11),
    ]
    assert [title.text for title in drawn.iter("title")][1:] == ["a: 2 s", "b: 3 s"]


def test_a_histogram_is_drawn_where_there_is_something() -> None:
    counts = Histogram(label="h", counts=[0, 2, 0, 0, 1], class_="c1")
    drawn = ET.fromstring(histogram_chart(frame(), [0, 2, 4, 6, 8, 10], [counts], unit=PLAIN))

    area = next(path.get("d") or "" for path in drawn.iter("path") if "area" in (path.get("class") or ""))
    assert (area.count("M"), area.count("Z")) == (2, 2)


def test_a_band_without_a_value_is_not_drawn() -> None:
    band = Band(label="b", xs=[1, 2], lows=[math.nan, math.nan], highs=[1, 2])

    assert 'class="band"' not in line_chart(frame(), [], bands=[band])


def test_a_legend_that_is_too_long_takes_another_line_and_moves_the_plot() -> None:
    short = frame(legend=(("mean", "mean"),))
    long = frame(legend=tuple(("mean", f"a rather long label {index}") for index in range(6)))

    assert long.top > short.top


@given(
    nodes=st.integers(2, 40),
    pairs=st.lists(st.tuples(st.integers(0, 39), st.integers(0, 39)), max_size=80),
)
@settings(max_examples=settings().max_examples // 4)
def test_any_graph_is_drawn_with_every_node_inside_the_picture(nodes: int, pairs: list[tuple[int, int]]) -> None:
    edges = sorted({(min(p), max(p)) for p in pairs if p[0] != p[1] and max(p) < nodes})
    looks = [("q0", f"node {node}") for node in range(nodes)]

    drawn = ET.fromstring(graph_chart(name="g", title="t", description="d", looks=looks, edges=edges, legend=()))

    width, height = map(float, (drawn.get("viewBox") or "").split()[2:])
    circles = list(drawn.iter("circle"))
    assert len(circles) == nodes
    for circle in circles:
        assert 0 < float(circle.get("cx", -1)) < width
        assert 0 < float(circle.get("cy", -1)) < height


def test_a_circulant_is_drawn_as_a_circle_and_the_same_graph_always_alike() -> None:
    ring = [(node, (node + 1) % 12) for node in range(12)]
    looks = [("", "")] * 12

    def draw() -> str:
        return graph_chart(name="g", title="t", description="d", looks=looks, edges=ring, legend=())

    circles = list(ET.fromstring(draw()).iter("circle"))
    spots = [(float(circle.get("cx", 0)) - 320, float(circle.get("cy", 0)) - 280) for circle in circles]
    assert [math.hypot(*spot) for spot in spots] == pytest.approx([254] * 12, abs=0.1)
    assert draw() == draw()
