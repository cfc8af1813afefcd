"""The document of `bench learning` holds what it promises; here with the packaged dataset and few nodes."""

import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from benchmarks import learning
from benchmarks.kept_runs import KeptRuns
from benchmarks.learning import Run, federate
from unlinkabledfl.cli import main
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.learning import datasets
from unlinkabledfl.learning.images import Images, channel_statistics
from unlinkabledfl.learning.models import build_model
from unlinkabledfl.learning.partition import Dirichlet
from unlinkabledfl.learning.pytorch_learner import PyTorchLearner
from unlinkabledfl.learning.settings import Steps, TrainingSettings

DATASET = "fashion-mnist-mini"


@pytest.fixture(autouse=True)
def _own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNLINKABLEDFL_DATA", str(tmp_path / "data"))


@pytest.mark.slow
def test_the_document_carries_the_promised_keys_and_can_be_shown() -> None:
    document = learning.measure(datasets=[DATASET], sizes=[5], seeds=2, memory=False)

    found = document["accuracy"][DATASET]["5"]
    assert {"machine", "versions", "seconds"} <= set(document)
    assert found["mean"] == pytest.approx(sum(found["seeds"]) / 2)
    assert found["half_width"] > 0.0
    assert found["mean"] > 0.6
    console = Console(width=200, record=True)
    console.print(learning.render(document))
    assert f"{found['mean']:.4f}" in console.export_text()


def test_a_federation_is_the_same_again_from_the_same_seed() -> None:
    run = Run(DATASET, nodes=5, seed=4, rounds=1)

    assert federate(run) == federate(run)


def test_a_federation_is_learners_that_each_average_with_all_peers_within_two_hops() -> None:
    # Five nodes in a circulant of degree 4 all reach each other: after a round they hold the same mean of their models.
    settings = TrainingSettings(learning_rate=0.005, stop=Steps(4))
    train, test = datasets.load(DATASET)
    mean, std = channel_statistics(train.images)
    parts = Dirichlet(10.0).split(train.labels, nodes=5, rng=np.random.default_rng(2))
    learners = [
        PyTorchLearner(
            build_model("lenet5", (1, 28, 28), 10, seed=2),
            Images(train.images[part], train.labels[part], mean=mean, std=std),
            Images(test.images, test.labels, mean=mean, std=std),
            settings=settings,
            seed=2 * 5 + node,
        )
        for node, part in enumerate(parts)
    ]
    for learner in learners:
        learner.train(1)
    states = [learner.state() for learner in learners]
    learners[0].load({name: np.mean([state[name] for state in states], axis=0) for name in states[0]})

    accuracy = federate(Run(DATASET, nodes=5, seed=2, rounds=1), settings)

    # Each node sums the same models in an order of its own, so that a single image in a thousand may fall differently.
    assert accuracy == pytest.approx(learners[0].evaluate()["accuracy"], abs=0.002)


def test_a_kept_run_is_not_repeated_and_one_with_another_recipe_is_not_taken_for_it(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    run = {"dataset": DATASET, "seed": 1, "recipe": {"learning_rate": 0.01}}

    KeptRuns(path).keep(run, 0.75, seconds=3.0)

    assert KeptRuns(path).find(run) == 0.75
    assert KeptRuns(path).find({**run, "recipe": {"learning_rate": 0.02}}) is None
    assert KeptRuns(None).find(run) is None


def test_a_file_that_does_not_hold_runs_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text('{"run": {}, "found": 0.5}\nnot json\n', encoding="utf-8")

    with pytest.raises(ConfigError, match="line 2"):
        KeptRuns(path)


def test_the_command_line_cuts_the_work_and_goes_on_from_kept_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep = tmp_path / "runs.jsonl"
    for seed, accuracy in enumerate((0.5, 0.7)):
        identity = learning._identity(Run(DATASET, 5, seed))  # noqa: SLF001 -- what a longer call would have written
        KeptRuns(keep).keep(identity, accuracy, seconds=1.0)
    monkeypatch.setattr("benchmarks.learner_memory.measure_memory", lambda: None)

    arguments = ["--datasets", DATASET, "--sizes", "5", "--seeds", "2", "--keep", str(keep), "--json"]
    assert main(["bench", "learning", *arguments]) == 0

    document = json.loads(capsys.readouterr().out)
    assert document["accuracy"] == {
        DATASET: {"5": {"mean": pytest.approx(0.6), "half_width": pytest.approx(1.2706, rel=1e-3), "seeds": [0.5, 0.7]}}
    }
    assert document["recipes"][DATASET]["batch_size"] == learning.recipe(DATASET).batch_size
