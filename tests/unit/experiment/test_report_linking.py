"""The page of a board shows what is in its document, whole or in part, and is a sound page."""

import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.experiment.html_pages import sound_page
from unlinkabledfl.experiment.report.charts import Axis, Frame, LogAxis, Point, point_chart
from unlinkabledfl.experiment.report.linking import linking_html

ADVERSARIES = ("paper", "route", "flow", "grouping", "disclosure")


def row(
    configuration: str, adversary: str, *, accuracy: float, compromised: float = 0.0, **more: Any
) -> dict[str, Any]:
    return {
        "configuration": configuration,
        "compromised": compromised,
        "all_relays_compromised": compromised**2,
        "adversary": adversary,
        "accuracy": accuracy,
        "ci_low": max(0.0, accuracy - 0.02),
        "ci_high": min(1.0, accuracy + 0.02),
        "baseline": 0.03,
        "published_baseline": 0.08,
        "p_link_mean": accuracy,
        "advantage": accuracy - 0.03,
        "shannon_bits": 3.0,
        "min_bits": 2.0,
        "calibration_error": 0.01,
        "calibration": [{"claimed": accuracy, "hit_rate": accuracy, "targets": 4000}],
        "posterior": {"best": [0] * 9 + [4000] + [0] * 30, "true_sender": [4000] + [0] * 39},
        "targets": 4000,
        "rtt_s_mean": 20.0,
        "bytes_per_node_round": 5e6,
        **more,
    }  # fmt: skip


def described(name: str, *, sweep: str, path_length: int = 2, shares: tuple[float, ...] = (0.0,)) -> dict[str, Any]:
    mixer = {"kind": "outbox", "outbox_size": 100}
    return {"name": name, "sweep": sweep, "path_length": path_length, "compromised": list(shares), "mixer": mixer}


def document() -> dict[str, Any]:
    """A board of four deployments, one of them under two shares of compromised nodes."""
    places = {"direct": 0.99, "K=1": 1.0, "paper": 0.5, "paper, c=0.25": 0.6, "K=3": 0.25}
    board = [
        row(name, adversary, accuracy=accuracy, compromised=0.25 if "c=" in name else 0.0)
        for name, accuracy in places.items()
        for adversary in ADVERSARIES
    ]
    return {
        "experiment": "linking",
        "seed": 1,
        "board": board,
        "configurations": [
            described("direct", sweep="ablation"),
            described("K=1", sweep="ablation", path_length=1),
            described("paper", sweep="c", shares=(0.0, 0.25)),
            described("K=3", sweep="K", path_length=3),
        ],
        "published": {"rows": [{"configuration": "paper", "accuracy": 0.08}]},
        "bars": [{"what": "`flow` on <strong>", "low": 0.0, "high": 0.05, "measured": 0.04, "holds": True}],
        "machine": {"cores": 2},
        "versions": {"numpy": "2"},
        "seconds": 1.0,
    }


def test_a_whole_board_is_a_sound_page_with_all_its_pictures() -> None:
    page = sound_page(linking_html(document()))

    titles = {drawing[0].text for drawing in page.drawings()}
    assert "How often each adversary names the sender" in titles
    assert "Accuracy by path length K, hops" in titles
    assert "Accuracy by share c of compromised nodes of paper" in titles
    assert {"Linkability against mean round trip, s", "Linkability against sent by a node in a round, MB"} < titles
    assert {"Best guesses on paper", "Calibration on paper"} < titles
    assert "flow on <strong>" in page.text


def test_the_sweep_over_path_lengths_holds_the_published_design() -> None:
    source = linking_html(document())

    table = source[source.index("Accuracy by K") :]
    assert re.findall(r'<th scope="row">([0-9]+)</th>', table[: table.index("</table>")]) == ["1", "2", "3"]


def test_a_cell_that_guessing_explains_is_framed() -> None:
    quiet = document()
    for each in quiet["board"]:
        each["ci_low"] = 0.03
    loud = document()

    # One frame is in the legend.
    assert linking_html(quiet).count('class="quiet"') == len(quiet["board"]) + 1
    assert linking_html(loud).count('class="quiet"') == 1


@pytest.mark.parametrize("place", [0, 7, 41, 120, 199])
def test_a_histogram_shows_every_target_wherever_it_lies(place: int) -> None:
    one = {**document(), "board": document()["board"][:1]}
    counts = [0] * 200
    counts[place] = 4000
    one["board"][0]["posterior"]["best"] = counts

    page = sound_page(linking_html(one))

    (drawing,) = [each for each in page.drawings() if (each[0].text or "").startswith("Best guesses")]
    (area,) = [each for each in drawing if each.get("class", "").startswith("area")]
    assert area.get("d", "").count("M") == 1


@pytest.mark.parametrize("missing", ["configurations", "published", "bars", "machine"])
def test_a_document_without_a_part_has_a_page_without_it(missing: str) -> None:
    part = {key: value for key, value in document().items() if key != missing}

    sound_page(linking_html(part))


def test_figures_that_nobody_measured_are_dashes() -> None:
    bare = document()
    for each in bare["board"]:
        each["rtt_s_mean"] = each["bytes_per_node_round"] = None

    page = sound_page(linking_html(bare))

    assert "Linkability against cost" not in page.text


def test_a_board_on_which_nobody_took_part_says_so() -> None:
    empty = {**document(), "board": [], "refused": [{"adversary": "flow", "reason": "its <path> lengths vary"}]}

    page = sound_page(linking_html(empty))

    assert "No adversary knew this deployment" in page.text
    assert "its <path> lengths vary" in page.text


def test_ticks_of_a_logarithmic_axis_are_round_numbers() -> None:
    places, labels = LogAxis(low=math.log10(0.6), high=math.log10(400.0), label="s").ticks(10)

    assert labels == ["1", "2", "5", "10", "20", "50", "100", "200"]
    assert places == [math.log10(float(label)) for label in labels]
    assert LogAxis(low=-3.0, high=9.0, label="s").ticks(13)[1][:2] == ["0.001", "0.01"]


@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)), min_size=1, max_size=30))
def test_names_of_points_never_cover_each_other(places: list[tuple[float, float]]) -> None:
    frame = Frame(
        name="points",
        title="points",
        description="points",
        x=Axis(low=0.0, high=1.0, label="x"),
        y=Axis(low=0.0, high=1.0, label="y"),
    )
    points = [
        Point(label=f"name-{index:02d}", x=x, y=y, low=y, high=y, class_="s1") for index, (x, y) in enumerate(places)
    ]

    drawn = point_chart(frame, points)

    found = re.findall(r'<text x="([\d.-]+)" y="([\d.-]+)"(?: text-anchor="(\w+)")?>name-', drawn)
    wide = 7.0 * 7
    boxes = []
    for x, y, anchor in found:
        start = {"": float(x), "end": float(x) - wide, "middle": float(x) - wide / 2}[anchor]
        boxes.append((start, float(y)))
    for one in range(len(boxes)):
        for other in range(one):
            apart_x = abs(boxes[one][0] - boxes[other][0]) >= wide - 0.2
            apart_y = abs(boxes[one][1] - boxes[other][1]) >= 12.0 - 0.2
            assert apart_x or apart_y
