"""The study of the content boundary: federations in memory, what recipients see of them, and the document."""

import numpy as np
import pytest

from unlinkabledfl.experiment.content.federation import federate
from unlinkabledfl.experiment.content.gossip import Gossip
from unlinkabledfl.experiment.content.measuring import measure
from unlinkabledfl.experiment.content.setting import Setting
from unlinkabledfl.experiment.content.sight import Received, Sight
from unlinkabledfl.fragments import Grid, StateLayout

NODES = 6
STATE = {"weight": np.zeros((200, 100), dtype=np.float32)}
LAYOUT = StateLayout(STATE)
MODELS = [np.random.default_rng(node).normal(0.0, 0.1, 20_000).astype(np.float32) for node in range(NODES)]
SMALL = {"dataset": "fashion-mnist-mini", "nodes": NODES, "samples": 240, "test_samples": 100, "rounds": 3,
         "recipients": 2}  # fmt: skip


def setting(**options: object) -> Setting:
    return Setting(**({"preset": "strong", "alpha": 0.1, "seed": 1, **SMALL} | options))  # type: ignore[arg-type]


def exchanged(**options: object) -> Gossip:
    gossip = Gossip(setting(**options), LAYOUT)
    gossip.begin(MODELS, [np.zeros_like(model) for model in MODELS], round_number=1)
    return gossip


# -- the exchange -----------------------------------------------------------------------------------------------------


def test_a_preset_says_who_exchanges_with_whom_and_in_how_many_fragments() -> None:
    sizes = {
        name: (len(Gossip(setting(preset=name, nodes=16), LAYOUT).partners[0]), len(exchanged(preset=name).grid))
        for name in ("paper", "strong")
    }

    assert sizes == {"paper": (7, 3), "strong": (15, 2)}


@pytest.mark.parametrize("options", [{}, {"obfuscation": "masks", "scale": 3.0}])
def test_a_node_averages_what_it_gets_with_its_own_and_masks_do_not_change_that(options: dict[str, object]) -> None:
    gossip = exchanged(**options)

    average = gossip.average(2, gossip.receive(2))

    # What is left is the error of quantization, about a thirtieth of a value's deviation each.
    assert float(np.abs(average - np.mean(MODELS, axis=0)).std()) < 0.01


def test_a_masked_fragment_is_far_from_what_was_sent_and_a_bare_one_is_near() -> None:
    bare, masked = exchanged().receive(2), exchanged(obfuscation="masks", scale=3.0).receive(2)
    truth = np.stack([MODELS[node] for node in (0, 1, 3, 4, 5)])

    assert float((bare - truth).std()) < 0.01
    assert float((masked - truth).std()) == pytest.approx(0.3, rel=0.1)


def test_what_is_lost_or_sent_to_others_is_not_averaged() -> None:
    none = exchanged(lost=1.0)
    half = exchanged(dispersal=0.5)

    assert np.array_equal(none.average(0, none.receive(0)), MODELS[0])
    rows = half.receive(0)
    places = [place.slice for place in half.grid.ranges]
    average = half.average(0, rows)
    # Each sender's share is one range of two.
    candidates = [round(float(MODELS[0][at].std() ** 2 / average[at].std() ** 2)) for at in places]
    assert sum(candidates) == NODES - 1 + len(places)


# -- what recipients see ----------------------------------------------------------------------------------------------

GRID = Grid(100, 10)
ROWS = np.arange(5 * 100, dtype=np.float32).reshape(5, 100)
SIGHT = Sight(
    grid=GRID,
    bare=-ROWS,
    rounds=[
        Received(before=np.full(100, number, np.float32), own=np.full(100, -number, np.float32), rows=ROWS + number)
        for number in range(3)
    ],
)


@pytest.mark.parametrize(("ratio", "ranges"), [(0.1, 1), (0.25, 3), (1.0, 10)])
def test_a_view_shows_a_share_of_each_senders_ranges(ratio: float, ranges: int) -> None:
    view, truth = SIGHT.view(ratio=ratio, rng=np.random.default_rng(1))

    for number, (seen, senders) in enumerate(zip(view.later, truth, strict=True), start=1):
        assert np.bincount(np.concatenate(senders), minlength=5).tolist() == [ranges] * 5
        for place, rows, sent in zip(view.ranges, seen.fragments, senders, strict=True):
            assert rows.tolist() == (ROWS[sent, place] + number).tolist()


def test_the_first_round_is_whole_and_in_order_and_may_be_leaked() -> None:
    received, leaked = (
        SIGHT.view(ratio=0.1, rng=np.random.default_rng(1), leaked=leaks)[0].first for leaks in (False, True)
    )

    assert np.concatenate(received.fragments, axis=1).tolist() == ROWS.tolist()
    assert np.concatenate(leaked.fragments, axis=1).tolist() == (-ROWS).tolist()


def test_the_order_of_fragments_is_drawn_afresh() -> None:
    _, truth = SIGHT.view(ratio=1.0, rng=np.random.default_rng(1))

    assert len({tuple(senders.tolist()) for found in truth for senders in found}) > 5


# -- measuring --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_masks_end_what_a_recipient_sees_and_cost_no_accuracy() -> None:
    bare = measure(setting(samples=1_200, rounds=5, test_samples=500), ratios=(1.0,))
    masked = measure(setting(samples=1_200, rounds=5, test_samples=500, obfuscation="masks", scale=3.0), ratios=(1.0,))

    found = {
        (kind, each["attack"], each["reference"]): each["identity"]
        for kind, document in (("bare", bare), ("masked", masked))
        for each in document["figures"]
    }
    assert found["bare", "persistent", "received"] > 0.8
    assert found["masked", "persistent", "received"] < 0.4
    assert found["masked", "published", "received"] < 0.4
    assert abs(bare["accuracy"] - masked["accuracy"]) < 0.15


def test_equal_settings_give_equal_figures() -> None:
    first, second = (measure(setting(), ratios=(0.5,)) for _ in range(2))

    assert first == second
    assert {each["attack"] for each in first["figures"]} == {"published", "persistent"}
    assert first["peers"] == NODES - 1


def test_every_recipient_keeps_every_round() -> None:
    found = federate(setting())

    assert [len(sight.rounds) for sight in found.sights] == [3, 3]
    assert 0.0 < found.accuracy < 1.0
