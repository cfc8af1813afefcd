"""The deployments of the board, and what it asks of them."""

from dataclasses import replace

import numpy as np
import pytest

from unlinkabledfl.experiment.linking.bars import bars
from unlinkabledfl.experiment.linking.board import attack_entry
from unlinkabledfl.experiment.linking.configurations import Entry, deployment_of, entries, row_name
from unlinkabledfl.experiment.linking.deployment import Deployment, record
from unlinkabledfl.experiment.scenario import preset
from unlinkabledfl.experiment.translation import mixer_settings
from unlinkabledfl.mixnet.mixers import OutboxSettings, PoissonSettings

SMALL = Deployment(
    name="small",
    route="overlay",
    path_length=3,
    mixer=PoissonSettings(delay_mean_s=0.2, emission_rate_per_s=5.0, loop_rate_per_s=0.5),
    fragments=2,
    rounds=2,
    round_s=8.0,
    warm_up_s=4.0,
    nodes=8,
)


def row(configuration: str, adversary: str, accuracy: float, **more: float) -> dict[str, object]:
    return {
        "configuration": configuration, "adversary": adversary, "accuracy": accuracy, "ci_low": accuracy - 0.01,
        "ci_high": accuracy + 0.01, "baseline": 0.04, "all_relays_compromised": 0.01, "rtt_s_mean": 10.0, **more,
    }  # fmt: skip


def strong_board(accuracy: float, owned: float) -> list[dict[str, object]]:
    adversaries = ("paper", "route", "flow", "grouping")
    return [
        *(row("strong", adversary, accuracy) for adversary in adversaries),
        *(row("strong, c=0.25", adversary, owned) for adversary in adversaries),
    ]


def test_strong_on_the_board_is_the_preset() -> None:
    found = {entry.deployment.name: entry for entry in entries()}["strong"].deployment
    scenario = preset("strong")

    assert (found.route, found.path_length, found.mixer) == (
        scenario.mixnet.route,
        scenario.mixnet.path_length,
        mixer_settings(scenario.mixnet),
    )
    assert (found.nodes, found.fragments, len(found.destinations()[0])) == (32, 4, 31)


def test_every_configuration_has_a_name_of_its_own_and_targets_enough() -> None:
    found = entries(targets=4_000)
    names = [row_name(entry.deployment.name, share) for entry in found for share in entry.shares]

    assert len(set(names)) == len(names)
    for entry in found:
        deployment = entry.deployment
        sent = deployment.rounds * deployment.fragments * sum(map(len, deployment.destinations()))
        assert sent * (1.0 - max(entry.shares)) >= 4_000


def test_few_targets_are_whole_groups_of_a_whole_round() -> None:
    entry = Entry(deployment=SMALL, sweep="test", targets=20)

    rows = attack_entry(entry, seed=1)

    assert [found.score.adversary for found in rows] == ["paper", "route", "flow", "grouping", "disclosure"]
    assert {found.score.targets for found in rows} == {20}


def test_who_is_away_sends_nothing_and_what_is_lost_is_sent_again() -> None:
    calm = record(SMALL, seed=1)
    stormy = record(replace(SMALL, crashes=2, links=replace(SMALL.links, loss=0.05)), seed=1)

    def longest_silence(recorded: object) -> float:
        crossings = recorded.recording.crossings  # type: ignore[attr-defined]
        times = [crossings.left_at_s[crossings.source == node] for node in range(SMALL.nodes)]
        return max(float(np.diff(sent[sent > SMALL.warm_up_s]).max()) for sent in times)

    assert longest_silence(stormy) > SMALL.round_s / 3 > longest_silence(calm)
    assert np.isnan(stormy.recording.crossings.arrived_at_s).any()
    assert len(stormy.recording.targets) < len(calm.recording.targets)


def test_an_outbox_is_fed_its_share_a_cycle() -> None:
    outbox = replace(SMALL, mixer=OutboxSettings(outbox_size=10, delay_mean_s=0.1))

    # A seventh of ten places at K = 3 is one, and a cycle takes a second.
    assert [outbox.handed_over_s(place) for place in range(3)] == pytest.approx([0.0, 1.0, 2.0])
    assert SMALL.handed_over_s(100) == 0.0


def test_an_exchange_lasts_until_the_last_answer_is_back() -> None:
    found = record(SMALL, seed=1)

    # Fourteen messages at five a second, then at least a round trip.
    assert found.exchange_s_mean is not None
    assert found.rtt_s_mean is not None
    assert 14 / 5.0 + found.rtt_s_mean < found.exchange_s_mean < SMALL.round_s


def test_links_of_a_scenario_are_those_of_its_deployment() -> None:
    found = deployment_of(preset("strong", ["links.latency_s=0.1", "links.loss=0.02"]), name="far", targets=10)

    assert (found.links.latency_s, found.links.loss, found.links.bandwidth_bytes_per_s) == (0.1, 0.02, None)


def test_bars_hold_where_the_adversary_guesses_and_not_where_it_knows() -> None:
    held, missed = bars(strong_board(0.034, 0.05)), bars(strong_board(0.2, 0.2))

    assert [bar["holds"] for bar in held] == [True] * 8
    assert [bar["holds"] for bar in missed] == [False] * 7 + [True]
    # All relays compromised, or a guess among the rest, and 0.03.
    assert held[3]["high"] == pytest.approx(0.01 + 0.99 * 0.04 + 0.03)


def test_what_was_left_out_of_a_board_has_no_bar() -> None:
    assert bars([row("O=10", "paper", 0.08)]) == []
