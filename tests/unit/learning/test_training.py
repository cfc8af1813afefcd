import time
from typing import Any

import pytest
import torch

from tests.unit.learning.samples import CLASSES, squares
from unlinkabledfl.errors import ConfigError, LearnerError
from unlinkabledfl.learning import training
from unlinkabledfl.learning.images import Images
from unlinkabledfl.learning.models import build_model
from unlinkabledfl.learning.settings import Epochs, OptimizerName, Schedule, Seconds, Steps, TrainingSettings

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "settings",
    [
        TrainingSettings(learning_rate=0.02, stop=Epochs(4)),
        TrainingSettings(learning_rate=0.02, stop=Epochs(4), nesterov=True, schedule=Schedule.COSINE, rounds=1),
        TrainingSettings(learning_rate=0.002, stop=Epochs(4), optimizer=OptimizerName.ADAMW, weight_decay=0.01),
        TrainingSettings(learning_rate=0.02, stop=Epochs(6), shift_pixels=1, label_smoothing=0.1),
    ],
    ids=["sgd", "nesterov", "adamw", "augmented"],
)
def test_lenet_learns_where_the_square_is(settings: TrainingSettings, device: str) -> None:
    model = build_model("lenet5", (1, 28, 28), CLASSES, seed=1).to(device)

    training.train(model, Images(*squares(320, seed=2), device=device), settings, round_number=1, generator=generator())

    assert training.evaluate(model, Images(*squares(100, seed=3), device=device))["accuracy"] > 0.95


@pytest.mark.parametrize(
    ("stop", "samples", "steps"),
    [(Epochs(1), 50, 4), (Epochs(2), 100, 8), (Steps(3), 38, 3), (Steps(5), 63, 5)],
)
def test_a_round_stops_after_its_epochs_or_steps(stop: Epochs | Steps, samples: int, steps: int) -> None:
    images = Images(*squares(50, seed=2))
    settings = TrainingSettings(stop=stop, batch_size=16)

    metrics = training.train(
        build_model("lenet5", (1, 28, 28), CLASSES, seed=1), images, settings, round_number=1, generator=generator()
    )

    assert (metrics["samples"], metrics["steps"]) == (samples, steps)


def test_a_round_of_some_seconds_stops_soon_after_them() -> None:
    started_s = time.perf_counter()

    metrics = training.train(
        build_model("lenet5", (1, 28, 28), CLASSES, seed=1),
        Images(*squares(50, seed=2)),
        TrainingSettings(stop=Seconds(0.05)),
        round_number=1,
        generator=generator(),
    )

    assert metrics["steps"] >= 1
    assert time.perf_counter() - started_s < 5.0


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (TrainingSettings(learning_rate=0.1), [0.1, 0.1, 0.1]),
        (TrainingSettings(learning_rate=0.1, schedule=Schedule.LINEAR), [0.1, 0.05, 0.0]),
        (TrainingSettings(learning_rate=0.1, schedule=Schedule.COSINE, final_rate=0.2), [0.1, 0.06, 0.02]),
        (TrainingSettings(learning_rate=0.1, schedule=Schedule.LINEAR, steady_rounds=5), [0.1, 0.1, 0.0]),
        (TrainingSettings(learning_rate=0.1, schedule=Schedule.LINEAR, steady_rounds=2.5), [0.1, 0.2 / 3, 0.0]),
    ],
)
def test_a_schedule_runs_over_all_rounds_and_stays_at_its_end(
    settings: TrainingSettings, expected: list[float]
) -> None:
    rates = [settings.rate_at(done) for done in (0.0, 5.0, 10.0)]

    assert rates == pytest.approx(expected)
    assert settings.rate_at(25.0) == pytest.approx(expected[-1])


def test_the_rate_rises_while_it_warms_up() -> None:
    settings = TrainingSettings(learning_rate=0.1, warmup_rounds=2.0)

    assert [settings.rate_at(done) for done in (0.0, 1.0, 2.0)] == pytest.approx([0.0, 0.05, 0.1])


def test_training_that_diverges_is_an_error_that_says_so() -> None:
    settings = TrainingSettings(learning_rate=1e6, stop=Steps(20))

    with pytest.raises(LearnerError, match="diverged in round 5"):
        training.train(
            build_model("lenet5", (1, 28, 28), CLASSES, seed=1),
            Images(*squares(64, seed=2)),
            settings,
            round_number=5,
            generator=generator(),
        )


def test_centralized_gradients_leave_the_mean_of_every_filter_and_row_as_it_was() -> None:
    model = build_model("lenet5", (1, 28, 28), CLASSES, seed=1)
    weights = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    biases = [parameter for parameter in model.parameters() if parameter.ndim == 1]
    before = [(weight.flatten(1).mean(1).clone(), weight.detach().clone()) for weight in weights]
    settings = TrainingSettings(learning_rate=0.01, centralize=True, stop=Steps(5))

    training.train(model, Images(*squares(64, seed=2)), settings, round_number=1, generator=generator())

    for weight, (mean, old) in zip(weights, before, strict=True):
        torch.testing.assert_close(weight.flatten(1).mean(1), mean, rtol=0.0, atol=1e-6)
        assert not torch.equal(weight, old)
    assert all(bias.any() for bias in biases)


def test_a_shift_moves_each_image_and_fills_with_the_mean() -> None:
    inputs = torch.zeros(200, 1, 5, 5)
    inputs[:, :, 2, 2] = 1.0

    moved = training._shift(inputs, 1, generator())  # noqa: SLF001 - augmentation has no other observable

    places = {tuple(image.nonzero()[0].tolist()) for image in moved[:, 0]}
    assert places == {(row, column) for row in (1, 2, 3) for column in (1, 2, 3)}
    assert torch.equal(moved.sum((1, 2, 3)), torch.ones(200))


@pytest.mark.parametrize(
    "wrong",
    [
        {"learning_rate": 0.0},
        {"learning_rate": float("nan")},
        {"batch_size": 0},
        {"momentum": 1.0},
        {"label_smoothing": -0.1},
        {"weight_decay": -1.0},
        {"final_rate": 2.0},
        {"steady_rounds": 10},
        {"nesterov": True, "momentum": 0.0},
    ],
)
def test_a_recipe_that_cannot_work_names_its_key(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        TrainingSettings(**wrong)

    assert caught.value.key == f"training.{next(iter(wrong))}"


@pytest.mark.parametrize("stop", [Epochs, Steps, Seconds])
def test_a_round_takes_at_least_something(stop: type[Epochs] | type[Steps] | type[Seconds]) -> None:
    with pytest.raises(ConfigError):
        stop(0)


def test_auto_takes_a_gpu_only_where_there_is_one() -> None:
    assert training.choose_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert training.choose_device("cpu").type == "cpu"
    with pytest.raises(ConfigError):
        training.choose_device("tpu")
