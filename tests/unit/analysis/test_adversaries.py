"""What adversaries must be whatever they believe: distributions, from a trace alone, over who is possible at all."""

import numpy as np
import pytest

from tests.unit.analysis.recordings import OVERLAY, WALK, recorded
from unlinkabledfl.analysis.adversaries import (
    Adversary,
    DisclosureAdversary,
    FlowAdversary,
    GroupingAdversary,
    PaperAdversary,
    RouteAdversary,
)
from unlinkabledfl.analysis.trace import PublicSettings, Trace
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.linking.deployment import Deployment
from unlinkabledfl.mixnet.mixers import OffSettings

DEPLOYMENTS = (OVERLAY, WALK)


def adversaries(deployment: Deployment) -> list[Adversary]:
    flow = FlowAdversary()
    return [
        PaperAdversary(),
        RouteAdversary(),
        flow,
        GroupingAdversary(flow, recorded(deployment).groups),
        DisclosureAdversary(),
    ]


def with_settings(trace: Trace, **changes: object) -> Trace:
    settings = {name: getattr(trace.settings, name) for name in PublicSettings.__slots__} | changes
    return Trace(
        settings=PublicSettings(**settings),
        crossings=trace.crossings,
        targets=trace.targets,
        compromised=trace.compromised,
        before=trace.before,
    )


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda each: each.name)
def test_beliefs_are_distributions_in_which_the_truth_is_possible(deployment: Deployment) -> None:
    trace, oracle = recorded(deployment).recording.observed()

    for adversary in adversaries(deployment):
        posteriors = adversary.posteriors(trace)
        assert posteriors.shape == (len(trace.targets), deployment.nodes)
        assert posteriors.sum(axis=1) == pytest.approx(np.ones(len(posteriors)))
        assert (posteriors >= 0.0).all()
        assert (posteriors[np.arange(len(posteriors)), oracle.origin] > 0.0).all(), adversary.name


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda each: each.name)
def test_following_packets_is_worth_no_less_than_the_last_hop(deployment: Deployment) -> None:
    trace, oracle = recorded(deployment).recording.observed(compromised=[1, 4, 7])
    rows = np.arange(len(trace.targets))

    route = RouteAdversary().posteriors(trace)[rows, oracle.origin]
    flow = FlowAdversary().posteriors(trace)[rows, oracle.origin]

    # The mean logarithm of what was believed of the truth: no adversary that draws wrong conclusions gains by it.
    assert np.log(flow).mean() > np.log(route).mean()


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda each: each.name)
def test_where_all_relays_are_owned_the_sender_is_known(deployment: Deployment) -> None:
    recording = recorded(deployment).recording
    honest = 0
    trace, oracle = recording.observed(compromised=[node for node in range(deployment.nodes) if node != honest])

    posteriors = FlowAdversary().posteriors(trace)

    assert set(oracle.origin) == {honest}
    assert posteriors[:, honest] == pytest.approx(np.ones(len(posteriors)))


def test_one_group_is_worth_more_than_one_fragment() -> None:
    trace, oracle = recorded(WALK).recording.observed()
    rows = np.arange(len(trace.targets))

    single = RouteAdversary().posteriors(trace)[rows, oracle.origin]
    grouped = GroupingAdversary(RouteAdversary(), recorded(WALK).groups).posteriors(trace)[rows, oracle.origin]

    assert grouped.mean() > 1.2 * single.mean()


def test_a_group_of_one_changes_nothing() -> None:
    trace, _ = recorded(OVERLAY).recording.observed()
    alone = np.arange(len(trace.targets))

    grouped = GroupingAdversary(FlowAdversary(), alone).posteriors(trace)

    assert grouped == pytest.approx(FlowAdversary().posteriors(trace), abs=1e-9)


def test_no_timing_means_no_more_than_the_last_hop() -> None:
    trace, _ = recorded(OVERLAY).recording.observed()
    direct = with_settings(trace, route="direct")

    assert FlowAdversary().posteriors(direct) == pytest.approx(RouteAdversary().posteriors(direct))


def test_a_strategy_that_nobody_has_inverted_is_named() -> None:
    trace, _ = recorded(OVERLAY).recording.observed()

    with pytest.raises(ConfigError, match=r"attack\.route: got 'valiant', takes direct, overlay, walk"):
        RouteAdversary().posteriors(with_settings(trace, route="valiant"))


def test_without_delays_there_is_nothing_to_invert() -> None:
    trace, _ = recorded(OVERLAY).recording.observed()

    with pytest.raises(ConfigError, match=r"attack\.mixer: got 'off'"):
        FlowAdversary().posteriors(with_settings(trace, mixer=OffSettings()))
