"""The theorems' quantities: of presets, of runs, and beside what was published."""

from pathlib import Path

import numpy as np
import pytest

from tests.unit.experiment.html_pages import sound_page
from tests.unit.experiment.synthetic_run import write_run
from unlinkabledfl.experiment.indicators import indicators
from unlinkabledfl.experiment.records import RunDescription, RunDirectory, RunRecorder, Status
from unlinkabledfl.experiment.report import load_run, report_html
from unlinkabledfl.experiment.scenario import preset, to_toml
from unlinkabledfl.experiment.theory.measured import measured_theory
from unlinkabledfl.experiment.theory_study.reproduction import page, render, reproduce

SCENARIO = preset("demo", ["topology.nodes=4", "topology.degree=2", "aggregation.byzantine=1", "payload.codec=q8"])


def recorded(path: Path, rounds: list[dict[str, list[float]]]) -> RunDirectory:
    """A run of four nodes with these figures, and a model of the first node."""
    description = RunDescription(run="demo", backend="simulation", nodes=4, planned_rounds=len(rounds), seed=1)
    directory = RunDirectory.create(path, scenario_toml=to_toml(SCENARIO), description=description)
    recorder = RunRecorder(directory)
    for number, metrics in enumerate(rounds, start=1):
        for node in range(4):
            figures = {name: values[node] for name, values in metrics.items()}
            recorder.record(time_s=float(number), round_number=number, node=node, metrics=figures)
    model = {"w": np.random.default_rng(3).standard_normal(20_000).astype(np.float32)}
    directory.save_checkpoint(0, round_number=len(rounds), state=model)
    recorder.finish(Status.FINISHED)
    return directory


def measured(path: Path) -> dict[str, object]:
    data = load_run(path)
    return measured_theory(data.path, data.table, data.scenario_toml)


def test_coverage_contributors_and_krum_are_those_of_the_worst_round(tmp_path: Path) -> None:
    recorded(
        tmp_path / "run",
        [
            {"uncovered_ranges": [0, 0, 0, 0], "candidates_min": [5, 5, 5, 5], "candidates_mean": [5, 5, 5, 5]},
            {"uncovered_ranges": [1, 0, 0, 0], "candidates_min": [3, 5, 4, 4], "candidates_mean": [4, 5, 5, 5]},
        ],
    )

    found = measured(tmp_path / "run")

    # One node of four lacked one of three ranges.
    assert found["coverage"] == {"least": 0.75, "mean": pytest.approx(1 - 1 / 12)}
    assert found["contributors"] == {"least": 4.0, "mean": 4.75}
    assert found["krum"] == {
        "byzantine": 1,
        "needed": 5,
        "candidates_least": 3,
        "holds_share": 5 / 8,
        "infeasible_ranges": 0,
    }


def test_the_quantizers_variance_is_that_of_its_steps(tmp_path: Path) -> None:
    recorded(tmp_path / "run", [{"candidates_min": [1, 1, 1, 1]}])

    found = measured(tmp_path / "run")["quantization"]

    assert isinstance(found, dict)
    assert (found["models"], found["values"], found["codec"]) == (1, 20_000, "q8")
    # Unbiased rounding to steps of width s has a variance of at most s²/4 a value; a range of ±4σ has 255 of them.
    assert 0.0 < found["variance_per_value"] < (8.5 / 255) ** 2 / 4
    assert found["variance"] == pytest.approx(found["variance_per_value"] * 20_000)


def test_what_a_run_does_not_hold_is_not_measured(tmp_path: Path) -> None:
    directory = recorded(tmp_path / "run", [{"candidates_min": [float("nan")] * 4}])
    for path in (directory.path / "checkpoints").iterdir():
        path.unlink()

    assert set(measured(tmp_path / "run").values()) == {None}


def test_a_run_whose_scenario_is_damaged_has_a_report_all_the_same(tmp_path: Path) -> None:
    directory = recorded(tmp_path / "run", [{"candidates_min": [1, 1, 1, 1]}])
    directory.scenario_path.write_text("[run")

    page = sound_page(report_html(load_run(tmp_path / "run")))

    assert "What the theorems ask for" in page.text
    assert page.text.count("not measured") == 4


def test_a_report_tells_what_was_measured(tmp_path: Path) -> None:
    write_run(tmp_path / "run")

    assert "K_eff" in sound_page(report_html(load_run(tmp_path / "run"))).text


def test_check_tells_where_the_bound_says_nothing() -> None:
    theory = indicators(preset("paper")).theory

    assert theory.senders == pytest.approx(3.0)
    assert theory.bound == pytest.approx(0.5)
    assert (theory.compromised, theory.bound_compromised) == (0.25, 1.0)
    assert theory.all_compromised_idealized == 0.0625
    assert theory.all_relays_compromised == pytest.approx(8 / 31)


def test_routes_of_many_lengths_are_said_not_to_be_counted() -> None:
    theory = indicators(preset("paper", ["mixnet.route=valiant"])).theory

    assert theory.bound is None
    assert "not computed" in theory.basis


def test_every_published_number_is_met() -> None:
    document = reproduce(tell=lambda _: None)

    assert all(row["holds"] for row in document["published"])
    stated = {row["what"]: row["published"] for row in document["published"]}
    assert stated["H_path, K=5, O=100"] == 33.23
    assert stated["H_relay^loc, K=5, O=100"] == 6.04
    reach = {(row["family"], row["degree"], row["path_length"]): row["within"] for row in document["reach"]}
    assert (reach["circulant", 4, 2], reach["full", 31, 1]) == (12.0, 31.0)
    sound_page(page(document))
    assert render(document) is not None
