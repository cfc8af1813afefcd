import pytest
import torch

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.learning.models import MODELS, Halved, Shape, build_model, parameter_count

GREY = (1, 28, 28)
COLOUR = (3, 32, 32)
IMAGENET = (3, 224, 224)


@pytest.mark.parametrize(
    ("name", "shape", "classes", "published"),
    [
        ("lenet5", GREY, 10, 61_706),
        ("squeezenet1_1", IMAGENET, 1000, 1_235_496),
        ("mobilenet_v2", IMAGENET, 1000, 3_504_872),
    ],
)
def test_a_model_has_as_many_parameters_as_published(name: str, shape: Shape, classes: int, published: int) -> None:
    assert parameter_count(build_model(name, shape, classes)) == published


@pytest.mark.parametrize(
    ("name", "shape", "count"),
    [
        ("lenet5", COLOUR, 62_006),
        ("squeezenet1_1", GREY, 726_474),
        ("squeezenet1_1", COLOUR, 727_626),
        ("mobilenet_v2", GREY, 2_236_106),
        ("mobilenet_v2", COLOUR, 2_236_682),
    ],
)
def test_the_counts_for_our_shapes_stay_as_they_are(name: str, shape: Shape, count: int) -> None:
    assert parameter_count(build_model(name, shape, 10)) == count


@pytest.mark.parametrize("shape", [GREY, COLOUR])
@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_model_gives_each_image_finite_scores_that_differ(name: str, shape: Shape) -> None:
    model = build_model(name, shape, 10, seed=3).eval()

    with torch.inference_mode():
        scores = model(torch.randn(2, *shape, generator=torch.Generator().manual_seed(4)))

    assert scores.shape == (2, 10)
    assert torch.isfinite(scores).all()
    assert not torch.equal(scores[0], scores[1])


def test_equal_seeds_give_equal_weights_and_leave_the_global_generator_alone() -> None:
    torch.manual_seed(11)
    expected = torch.rand(1)
    torch.manual_seed(11)

    one = build_model("lenet5", GREY, 10, seed=5)
    drawn = torch.rand(1)
    other = build_model("lenet5", GREY, 10, seed=5)

    assert torch.equal(drawn, expected)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize(
    ("name", "shape", "classes", "key"),
    [
        ("resnet", GREY, 10, "model"),
        ("lenet5", (1, 28, 30), 10, "model.shape"),
        ("lenet5", (1, 8, 8), 10, "model.shape"),
        ("lenet5", GREY, 1, "model.classes"),
    ],
)
def test_what_no_model_can_take_is_refused_by_its_key(name: str, shape: Shape, classes: int, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build_model(name, shape, classes)

    assert caught.value.key == key


@pytest.mark.parametrize("side", [7, 14])
def test_halving_gives_the_same_numbers_with_and_without_gradients(side: int) -> None:
    images = torch.randn(5, 3, side, side, generator=torch.Generator().manual_seed(6))
    images[0, 0, 0, 0] = torch.nan

    with torch.inference_mode():
        fast = Halved()(images)

    torch.testing.assert_close(fast, Halved()(images), rtol=0.0, atol=0.0, equal_nan=True)
