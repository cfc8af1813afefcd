from typing import Any

import pytest

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.fragments import Policy
from unlinkabledfl.node.settings import (
    AggregationSettings,
    Completion,
    Exchange,
    ParticipantSettings,
    PayloadSettings,
    RoundSettings,
)
from unlinkabledfl.sphinx import NodeId

PEER = NodeId(bytes(32))


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"rounds": 0}, "run.rounds"),
        ({"first_round": 0}, "topology.join"),
        ({"first_round": 11}, "topology.join"),
        ({"last_round": 11}, "topology.exit"),
        ({"first_round": 5, "last_round": 4}, "topology.exit"),
        ({"completion": "soon"}, "aggregation.completion"),
        ({"deadline_s": 0.0}, "aggregation.deadline_s"),
        ({"deadline_s": float("nan")}, "aggregation.deadline_s"),
        ({"cadence_s": float("inf")}, "aggregation.cadence_s"),
        ({"trigger_change": -0.1, "completion": "cadence"}, "aggregation.trigger_change"),
        ({"trigger_change": 0.1}, "aggregation.trigger_change"),
        ({"evaluate_every": -1}, "monitoring.evaluate_every"),
    ],
)
def test_rounds_that_cannot_work_are_refused_by_the_name_of_their_key(options: dict[str, object], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RoundSettings(**{"rounds": 10, **options})  # type: ignore[arg-type]

    assert caught.value.key == key


@pytest.mark.parametrize(
    ("kind", "options", "key"),
    [
        (PayloadSettings, {"codec": "zip"}, "payload.codec"),
        (PayloadSettings, {"selection": "best"}, "payload.selection"),
        (PayloadSettings, {"ratio": 0.0}, "payload.ratio"),
        (PayloadSettings, {"bound": 0.0}, "payload.bound"),
        (PayloadSettings, {"obfuscation": "noise"}, "payload.obfuscation"),
        (PayloadSettings, {"obfuscation_scale": 0.0}, "payload.obfuscation_scale"),
        (PayloadSettings, {"obfuscation_scale": float("nan")}, "payload.obfuscation_scale"),
        (PayloadSettings, {"obfuscation_peers": 1}, "payload.obfuscation_peers"),
        (AggregationSettings, {"rule": "fragmedian"}, "aggregation.rule"),
        (AggregationSettings, {"staleness": "forget"}, "aggregation.staleness"),
        (AggregationSettings, {"staleness": "weight", "rule": "fragkrum"}, "aggregation.staleness"),
        (AggregationSettings, {"staleness_window": -1}, "aggregation.staleness_window"),
        (AggregationSettings, {"max_per_range": 0}, "aggregation.max_per_range"),
        (ParticipantSettings, {"rounds": RoundSettings(rounds=1), "queue_ahead": 0}, "mixnet.queue_ahead"),
        (Exchange, {"destinations": (PEER, PEER), "expected_from": ()}, "exchange.destinations"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_the_name_of_their_key(
    kind: type, options: dict[str, object], key: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        kind(**options)

    assert caught.value.key == key


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"payload": PayloadSettings(obfuscation="masks", ratio=0.5)}, "payload.ratio"),
        ({"payload": PayloadSettings(obfuscation="masks", error_feedback=True)}, "payload.error_feedback"),
        ({"aggregation": AggregationSettings(rule="trimmed_mean")}, "aggregation.rule"),
        ({"aggregation": AggregationSettings(staleness=Policy.KEEP)}, "aggregation.staleness"),
        ({"rounds": RoundSettings(rounds=1, completion=Completion.CADENCE)}, "aggregation.completion"),
        (
            {"rounds": RoundSettings(rounds=1, completion=Completion.DEADLINE, trigger_change=0.1)},
            "aggregation.trigger_change",
        ),
    ],
)
def test_masks_that_would_not_cancel_are_refused(options: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match="masks") as caught:
        ParticipantSettings(
            **{"rounds": RoundSettings(rounds=1), "payload": PayloadSettings(obfuscation="masks"), **options}
        )

    assert caught.value.key == key


def test_names_may_come_as_plain_strings() -> None:
    assert RoundSettings(rounds=1, completion="cadence").completion is Completion.CADENCE  # type: ignore[arg-type]
    assert AggregationSettings(staleness="keep").staleness is Policy.KEEP  # type: ignore[arg-type]


def test_a_node_that_stays_ends_with_the_federation_and_one_that_leaves_with_its_last_round() -> None:
    assert (RoundSettings(rounds=9).end, RoundSettings(rounds=9, last_round=5).end) == (9, 5)
