"""Two runs side by side: the statistics are right, and the page says what differs."""

import argparse
import json
import random
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.experiment.html_pages import sound_page
from tests.unit.experiment.synthetic_run import create_run, write_run
from unlinkabledfl.cli import compare as command
from unlinkabledfl.experiment.compare import compare_runs, comparison_html
from unlinkabledfl.experiment.compare.statistics import (
    Difference,
    paired_difference,
    t_quantile,
    welch_difference,
)
from unlinkabledfl.experiment.records import RunRecorder, Status
from unlinkabledfl.experiment.report import load_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("runs")
    slow = write_run(folder / "walk", nodes=12, rounds=4, run="walk")
    fast = write_run(folder / "overlay", nodes=12, rounds=5, run="overlay", route="overlay", ceiling=0.8, slowness=2.0)
    return slow.path, fast.path


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true")
    command.add_to(parser.add_subparsers(), common)
    return parser.parse_args(["compare", *words])


@pytest.mark.parametrize(
    ("share", "freedom", "quantile"),
    # From the printed tables of Student's distribution.
    [
        (0.975, 1, 12.7062), (0.975, 2, 4.3027), (0.975, 5, 2.5706), (0.975, 30, 2.0423), (0.975, 1000, 1.9623),
        (0.95, 10, 1.8125), (0.995, 3, 5.8409), (0.9, 7, 1.4149),
    ],
)  # fmt: skip
def test_the_quantiles_are_those_of_the_tables(share: float, freedom: float, quantile: float) -> None:
    assert t_quantile(share, freedom) == pytest.approx(quantile, abs=1e-4)


def test_a_paired_difference_is_the_textbook_one() -> None:
    found = paired_difference([1.0, 2.0, 3.0, 4.0], [1.5, 2.0, 4.0, 4.5])

    # Differences 0.5, 0, 1, 0.5: mean 0.5, standard deviation 0.40825, t(0.975, 3) = 3.18245.
    assert (found.mean, found.low, found.high) == pytest.approx((0.5, -0.14961, 1.14961), abs=1e-5)


def test_a_difference_of_unpaired_values_is_that_of_welch() -> None:
    found = welch_difference([27.5, 21.0, 19.0, 23.6, 17.0, 17.9], [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0])

    # Variances 15.724 and 4.2943: a standard error of 1.77692 with 7.047 degrees of freedom. The tables have
    # t(0.975) = 2.3646 for 7 and 2.3060 for 8, so 2.361 or 2.362 between.
    assert found.mean == pytest.approx(2.5)
    assert found.low == pytest.approx(2.5 - 1.77692 * 2.3615, abs=0.002)
    assert found.high == pytest.approx(2.5 + 1.77692 * 2.3615, abs=0.002)


def test_the_interval_holds_the_true_difference_as_often_as_it_says() -> None:
    draw = random.Random(11)
    held = 0
    trials = 300
    for _ in range(trials):
        one = [draw.gauss(0.0, 1.0) for _ in range(8)]
        other = [draw.gauss(0.5, 2.0) for _ in range(6)]
        found = welch_difference(one, other)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0.5 <= found.high

    # 95% of 300, give or take 3.3 standard deviations of 3.8: fails by chance for one seed in a thousand.
    assert 272 <= held <= 298


@given(one=st.lists(st.floats(0, 1), min_size=1, max_size=20), other=st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_turning_the_runs_around_turns_the_difference_around(one: list[float], other: list[float]) -> None:
    there, back = welch_difference(one, other), welch_difference(other, one)

    assert there.mean == pytest.approx(-back.mean)
    if there.low is None or there.high is None:
        assert min(len(one), len(other)) == 1
    else:
        assert [there.low, there.high] == pytest.approx([-(back.high or 0.0), -(back.low or 0.0)])
        assert there.low <= there.mean <= there.high


def test_one_value_has_no_interval() -> None:
    assert paired_difference([1.0], [3.0]) == Difference(mean=2.0, low=None, high=None)


def test_the_document_says_what_differs_in_settings_accuracy_and_cost(runs: tuple[Path, Path]) -> None:
    a, b = map(load_run, runs)

    document = json.loads(json.dumps(compare_runs(a, b).document(), allow_nan=False))

    assert document["scenario"] == [
        {"key": "run.rounds", "a": 4, "b": 5},
        {"key": "mixnet.route", "a": "walk", "b": "overlay"},
    ]
    assert document["versions_differ"] == []
    accuracy = document["accuracy"]
    means = [fmean(run.table.by_round("accuracy")[last].values()) for run, last in ((a, 4), (b, 5))]
    assert [accuracy["mean_a"], accuracy["mean_b"]] == pytest.approx(means)
    assert accuracy["difference"] == pytest.approx(means[1] - means[0])
    assert accuracy["ci_low"] < accuracy["difference"] < accuracy["ci_high"]
    assert (accuracy["round_a"], accuracy["round_b"], accuracy["paired"]) == (4, 5, True)
    costs = {cost["name"]: cost for cost in document["costs"]}
    assert costs["exchange_s"]["ratio"] == pytest.approx(2.0, rel=0.1)
    assert costs["rtt_s_p50"]["ratio"] == pytest.approx(2.0, rel=0.1)
    assert costs["bytes_sent"]["ratio"] == pytest.approx(1.0, rel=0.1)


def test_nodes_with_other_data_are_not_paired(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    other_seed = write_run(tmp_path / "seed", nodes=12, rounds=4, seed=8)

    found = compare_runs(load_run(runs[0]), load_run(other_seed.path)).accuracy

    assert found is not None
    assert not found.is_paired


def test_a_run_is_like_itself(runs: tuple[Path, Path]) -> None:
    comparison = compare_runs(load_run(runs[0]), load_run(runs[0]))

    assert comparison.accuracy is not None
    assert comparison.accuracy.difference == Difference(mean=0.0, low=0.0, high=0.0)
    assert {cost.ratio for cost in comparison.costs} == {1.0}
    assert "The scenarios are the same" in sound_page(comparison_html(comparison)).text


def test_the_page_is_sound_and_overlays_the_curves(runs: tuple[Path, Path]) -> None:
    html = comparison_html(compare_runs(*map(load_run, runs)))

    page = sound_page(html)
    assert page.tags.count("svg") == 8
    assert html.count('class="line s1"') == html.count('class="line s2"') == 8
    assert "mixnet.route walk overlay" in page.text
    assert "Nodes are paired" in page.text


def test_a_run_without_figures_can_be_compared_too(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    empty = create_run(tmp_path / "empty", run="<empty>")
    RunRecorder(empty).finish(Status.FAILED, reason="no route")
    (empty.path / "scenario.toml").write_text("[[[")

    comparison = compare_runs(load_run(empty.path), load_run(runs[0]))

    assert comparison.accuracy is None
    assert comparison.problems[0].startswith("a: scenario.toml: ")
    assert "<empty>" in sound_page(comparison_html(comparison)).text
    json.dumps(comparison.document(), allow_nan=False)
    sound_page(comparison_html(compare_runs(load_run(empty.path), load_run(empty.path))))


def test_the_command_prints_tables_for_people_and_a_document_for_machines(
    runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "c.html"

    command.handle(arguments(*map(str, runs), "--out", str(page)))
    for_people = capsys.readouterr()
    command.handle(arguments(*map(str, runs), "--json"))
    for_machines = capsys.readouterr()

    assert (for_people.out, "mixnet.route" in for_people.err, "interval over nodes" in for_people.err) == (
        "", True, True,
    )  # fmt: skip
    assert json.loads(for_machines.out)["report"] is None
    sound_page(page.read_text(encoding="utf-8"))
