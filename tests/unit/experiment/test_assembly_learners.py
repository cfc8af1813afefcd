"""Learners from a scenario: the same data wherever they are made, and attackers that attack."""

from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.learning import recipe
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.learners import STATISTICS, classifier, every_node, training_settings
from unlinkabledfl.experiment.model_sizes import IMAGES, TEST_SAMPLES, TRAIN_SAMPLES, layout_of
from unlinkabledfl.experiment.planning import plan_experiment
from unlinkabledfl.experiment.scenario import preset
from unlinkabledfl.experiment.tasks import EVERY_NODE, learner_settings
from unlinkabledfl.fragments import StateLayout
from unlinkabledfl.learning import datasets
from unlinkabledfl.learning.images import channel_statistics
from unlinkabledfl.learning.models import MODELS, build_model
from unlinkabledfl.learning.settings import Epochs, Seconds, Steps
from unlinkabledfl.learning.worker_process import find_factory
from unlinkabledfl.node.learner import State

torch.set_num_threads(1)  # tests run side by side, and learners train on one core

SMALL = ["learning.train_samples=160", "learning.test_samples=50", "learning.batch_size=20"]


def equal(one: State, other: State) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def honest(settings: dict[str, Any]) -> dict[str, Any]:
    return {**settings, "attack": None}


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        ["attack.kind=label_flip", "attack.chosen=[2]"],
        ["attack.kind=sign_flip", "attack.chosen=[2]"],
        ["attack.kind=gaussian", "attack.chosen=[2]", "attack.magnitude=3"],
        ["learning.partition=iid"],
        ["learning.partition=shards", "learning.shards_per_node=2"],
    ],
)
def test_a_node_learns_the_same_in_its_own_process_and_among_all(overrides: list[str]) -> None:
    plan = plan_experiment(preset("demo", [*SMALL, *overrides]))
    alone = find_factory(plan.node(2).learner.factory)(plan.node(2).learner.settings)
    together = every_node(plan.every_node_learners)
    begin = alone.state()

    assert equal(begin, together.initial())
    together.train(5, round_number=1, state=begin)  # whatever came before
    state, metrics = together.train(2, round_number=1, state=begin)

    assert metrics == alone.train(1)
    assert equal(state, alone.state())
    assert together.evaluate(2, state=state) == alone.evaluate()


@pytest.mark.parametrize("kind", ["label_flip", "sign_flip", "gaussian"])
def test_an_attacker_ends_elsewhere_than_an_honest_node(kind: str) -> None:
    plan = plan_experiment(preset("demo", [*SMALL, f"attack.kind={kind}", "attack.chosen=[2]"]))
    settings = plan.node(2).learner.settings
    attacker, same_but_honest = classifier(settings), classifier(honest(settings))

    attacker.train(1)
    same_but_honest.train(1)

    assert not equal(attacker.state(), same_but_honest.state())


def test_a_turned_update_goes_as_far_as_its_magnitude_says() -> None:
    plan = plan_experiment(preset("demo", [*SMALL, "attack.kind=sign_flip", "attack.chosen=[2]", "attack.magnitude=2"]))
    settings = plan.node(2).learner.settings
    attacker, same_but_honest = classifier(settings), classifier(honest(settings))
    before = {name: array.copy() for name, array in attacker.state().items()}

    attacker.train(1)
    same_but_honest.train(1)

    for name, array in same_but_honest.state().items():
        np.testing.assert_allclose(attacker.state()[name], before[name] - 2 * (array - before[name]), atol=1e-6)


def test_every_sample_belongs_to_one_node() -> None:
    scenario = preset("demo", SMALL)
    learners = [classifier(learner_settings(scenario, index=index, attacks=False)) for index in range(8)]
    samples = [learner.train(1)["samples"] for learner in learners]

    assert sum(samples) == 160


def test_a_stop_is_by_epochs_unless_steps_or_seconds_are_asked_for() -> None:
    def stop(*overrides: str) -> object:
        settings = learner_settings(preset("demo", overrides), index=0, attacks=False)
        return training_settings(settings["training"]).stop

    assert stop() == Epochs(1)
    assert stop("learning.steps=7") == Steps(7)
    assert stop("learning.seconds=1.5") == Seconds(1.5)


def test_a_schedule_runs_over_the_rounds_of_the_run() -> None:
    settings = learner_settings(preset("demo", ["learning.schedule=linear", "run.rounds=7"]), index=0, attacks=False)

    assert training_settings(settings["training"]).rounds == 7


def test_the_recipe_that_the_benchmark_claims_can_be_asked_for() -> None:
    wanted = recipe("cifar10")
    named = {key: getattr(wanted, key) for key in ("optimizer", "learning_rate", "schedule", "steady_rounds")}
    overrides = [f"learning.{key}={value}" for key, value in named.items()]
    scenario = preset("demo", [*overrides, "learning.centralize=true", f"run.rounds={wanted.rounds}"])

    assert training_settings(learner_settings(scenario, index=0, attacks=False)["training"]) == wanted


class Own:
    """A user's learner: it says what it was told."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings


def make_own(settings: dict[str, Any]) -> Own:
    return Own(settings)


def test_a_learner_of_ones_own_finds_its_options_and_its_place() -> None:
    scenario = preset("demo", [f"learning.factory={__name__}:make_own", "learning.options={hidden=32}"])
    config = plan_experiment(scenario).node(3)

    assert config.learner.factory == f"{__name__}:make_own"
    assert (config.learner.settings["options"], config.learner.settings["index"]) == ({"hidden": 32}, 3)


def test_a_factory_that_does_not_exist_is_named() -> None:
    plan = plan_experiment(preset("demo", ["learning.factory=no.such.module:make"]))

    with pytest.raises(ConfigError, match=r"learning\.factory: got 'no\.such\.module:make'"):
        every_node(plan.every_node_learners)


def test_the_factory_of_all_nodes_is_where_it_is_said_to_be() -> None:
    assert find_factory(EVERY_NODE).__name__ == every_node.__name__


# -- what is known without opening anything ---------------------------------------------------------------------------


@pytest.mark.parametrize("dataset", IMAGES)
@pytest.mark.parametrize("model", MODELS)
def test_sizes_are_those_of_the_models(model: Any, dataset: Any) -> None:
    channels, side, classes = IMAGES[dataset]
    built = build_model(model, (channels, side, side), classes)
    layout = StateLayout({name: tensor.numpy() for name, tensor in built.state_dict().items()})
    known = layout_of(model, dataset)

    assert (known.parameters, known.statistics) == (layout.parameters, layout.statistics)


def test_the_catalogue_has_the_sizes_and_classes_that_planning_knows() -> None:
    known = {name: (TRAIN_SAMPLES[name], TEST_SAMPLES[name], IMAGES[name]) for name in TRAIN_SAMPLES}
    found = {
        name: (
            entry.arrays["train_images"].shape[0],
            entry.arrays["test_images"].shape[0],
            (entry.arrays["train_images"].shape[1], entry.arrays["train_images"].shape[2], len(entry.classes)),
        )
        for name, entry in datasets.CATALOGUE.items()
    }

    assert known == found


def test_the_kept_statistics_are_those_of_the_packaged_data() -> None:
    images = datasets.load("fashion-mnist-mini").train.images

    np.testing.assert_allclose(STATISTICS["fashion-mnist-mini"], channel_statistics(images), rtol=1e-9)


@pytest.mark.slow
def test_the_kept_statistics_are_those_of_all_data_that_is_here() -> None:
    for name in [name for name in STATISTICS if datasets.state(name) in {"ready", "packaged"}]:
        images = datasets.load(name).train.images
        np.testing.assert_allclose(STATISTICS[name], channel_statistics(images), rtol=1e-9)
