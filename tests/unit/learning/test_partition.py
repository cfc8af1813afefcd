import math
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.statistics_chi_square import chi_square_survival
from tests.statistics_ks import ks_p_value
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.learning.partition import Dirichlet, Iid, Partitioner, Shards, partitioner
from unlinkabledfl.learning.partition_picture import partition_picture

SIGNIFICANCE = 1e-3  # of every statistical test here: one in a thousand seeds would fail, and the seeds are fixed

partitioners = st.one_of(
    st.just(Iid()),
    st.floats(1e-3, 1e3).map(Dirichlet),
    st.just(Shards(per_node=1)),
)


@given(
    kind=partitioners,
    labels=st.lists(st.integers(0, 9), min_size=1, max_size=200),
    data=st.data(),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_sample_is_in_exactly_one_part_and_no_part_is_empty(
    kind: Partitioner, labels: list[int], data: st.DataObject, seed: int
) -> None:
    nodes = data.draw(st.integers(1, len(labels)))

    parts = kind.split(np.array(labels, dtype=np.uint8), nodes=nodes, rng=np.random.default_rng(seed))

    assert len(parts) == nodes
    assert min(len(part) for part in parts) >= 1
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(labels)))


@given(kind=partitioners, seed=st.integers(0, 2**32 - 1))
def test_the_same_generator_state_gives_the_same_partition(kind: Partitioner, seed: int) -> None:
    labels = np.arange(120, dtype=np.uint8) % 10

    first = kind.split(labels, nodes=7, rng=np.random.default_rng(seed))
    second = kind.split(labels, nodes=7, rng=np.random.default_rng(seed))

    assert [part.tolist() for part in first] == [part.tolist() for part in second]


@pytest.mark.parametrize("name", ["iid", "dirichlet", "shards"])
def test_another_seed_gives_another_partition_of_ascending_parts(name: str) -> None:
    labels = np.arange(1_000, dtype=np.uint8) % 10

    first, second = (partitioner(name).split(labels, nodes=8, rng=np.random.default_rng(seed)) for seed in (1, 2))

    assert [part.tolist() for part in first] != [part.tolist() for part in second]
    assert all(np.all(np.diff(part) > 0) for part in first)


def test_iid_parts_differ_in_size_by_one_at_most() -> None:
    parts = Iid().split(np.zeros(103, dtype=np.uint8), nodes=10, rng=np.random.default_rng(1))

    assert sorted(len(part) for part in parts) == [10] * 7 + [11] * 3


def test_iid_parts_have_the_classes_of_the_whole() -> None:
    labels = np.repeat(np.arange(10, dtype=np.uint8), 1_000)
    nodes = 20

    parts = Iid().split(labels, nodes=nodes, rng=np.random.default_rng(7))

    observed = np.array([np.bincount(labels[part], minlength=10) for part in parts])
    expected = len(labels) / nodes / 10
    statistic = float(((observed - expected) ** 2 / expected).sum())
    survival = chi_square_survival(statistic, (nodes - 1) * 9)
    # Neither too far from independence nor, as a stratified deal would be, too near.
    assert SIGNIFICANCE / 2 < survival < 1 - SIGNIFICANCE / 2


@pytest.mark.parametrize(
    ("alpha", "distribution"),
    [(1.0, lambda x: x), (2.0, lambda x: 3 * x**2 - 2 * x**3), (0.5, lambda x: 2 / math.pi * math.asin(math.sqrt(x)))],
)
def test_the_share_of_the_first_of_two_nodes_follows_the_beta_law(alpha, distribution) -> None:  # type: ignore[no-untyped-def]
    labels = np.zeros(20_000, dtype=np.uint8)
    rng = np.random.default_rng(11)

    shares = [len(Dirichlet(alpha).split(labels, nodes=2, rng=rng)[0]) / len(labels) for _ in range(400)]

    assert ks_p_value(shares, distribution) > SIGNIFICANCE


def test_dirichlet_shares_of_different_classes_are_drawn_apart() -> None:
    labels = np.repeat(np.arange(2, dtype=np.uint8), 2_000)
    rng = np.random.default_rng(5)
    runs = 400

    counts = np.array(
        [np.bincount(labels[Dirichlet(1.0).split(labels, nodes=2, rng=rng)[0]], minlength=2) for _ in range(runs)]
    )

    correlation = float(np.corrcoef(counts.T)[0, 1])
    # Under independence √n·r is standard normal in the limit: 3.29 has a two-sided probability of 0.001.
    assert abs(correlation) * math.sqrt(runs) < 3.29


def test_a_node_that_dirichlet_leaves_without_samples_is_given_one_of_the_richest() -> None:
    labels = np.zeros(100, dtype=np.uint8)

    parts = Dirichlet(alpha=0.001).split(labels, nodes=10, rng=np.random.default_rng(3))

    assert sorted(len(part) for part in parts) == [1] * 9 + [91]


def test_shards_give_each_node_few_classes() -> None:
    labels = np.repeat(np.arange(10, dtype=np.uint8), 100)

    parts = Shards(per_node=2).split(labels, nodes=50, rng=np.random.default_rng(1))

    assert {len(part) for part in parts} == {20}
    assert max(len(np.unique(labels[part])) for part in parts) == 2


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("even", {}, "learning.partition: got 'even', takes one of iid, dirichlet, shards"),
        ("dirichlet", {"alpha": 0.0}, "learning.partition.alpha: got 0.0, takes a number above 0, such as 10 or 0.5"),
        ("dirichlet", {"alpha": math.nan}, "learning.partition.alpha: got nan, takes a number above 0"),
        ("shards", {"per_node": 0}, "learning.partition.per_node: got 0, takes a whole number from 1"),
        ("shards", {"per_node": 1.5}, "learning.partition.per_node: got 1.5, takes a whole number from 1"),
        ("iid", {"alpha": 1.0}, "learning.partition.alpha: got 1.0, takes no option with iid"),
        (
            "shards",
            {"alpha": 1.0},
            "learning.partition.alpha: got 1.0, takes no such option: those of shards are per_node",
        ),
    ],
)
def test_a_setting_that_cannot_work_is_a_sentence(name: str, options: dict[str, float], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        partitioner(name, **options)

    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("kind", [Iid(), Dirichlet(), Shards(per_node=1)])
@pytest.mark.parametrize("nodes", [0, -1, 11])
def test_more_nodes_than_samples_or_none_at_all_are_refused(kind: Partitioner, nodes: int) -> None:
    with pytest.raises(ConfigError, match=f"nodes: got {nodes}, takes 1 to 10: every node needs one of the 10 samples"):
        kind.split(np.zeros(10, dtype=np.uint8), nodes=nodes, rng=np.random.default_rng(1))


def test_more_shards_than_samples_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"per_node: got 4, takes at most 3 with 3 nodes and 10 samples"):
        Shards(per_node=4).split(np.zeros(10, dtype=np.uint8), nodes=3, rng=np.random.default_rng(1))


def test_the_picture_has_a_bar_for_each_class_of_each_node_as_high_as_its_count() -> None:
    labels = np.array([0, 0, 0, 1, 1, 0], dtype=np.uint8)
    parts = [np.array([0, 1, 3]), np.array([2, 4, 5])]

    picture = ElementTree.fromstring(partition_picture(parts, labels, ("cats & dogs", "<other>")))

    svg = "{http://www.w3.org/2000/svg}"
    bars = [rect for rect in picture.iter(f"{svg}rect") if rect.find(f"{svg}title") is not None]
    heights = {bar.findtext(f"{svg}title"): float(bar.attrib["height"]) for bar in bars}
    assert heights == {
        "node 0: 2 of 3 are cats & dogs": pytest.approx(260 * 2 / 3, abs=0.01),
        "node 0: 1 of 3 are <other>": pytest.approx(260 / 3, abs=0.01),
        "node 1: 2 of 3 are cats & dogs": pytest.approx(260 * 2 / 3, abs=0.01),
        "node 1: 1 of 3 are <other>": pytest.approx(260 / 3, abs=0.01),
    }
