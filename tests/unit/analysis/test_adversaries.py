"""What adversaries must be whatever they believe: distributions, from a trace alone, over who is possible at all."""

import numpy as np
import pytest

from tests.unit.analysis.recordings import CALIBRATION, OVERLAY, WALK, recorded
from unlinkabledfl.analysis.adversaries import (
    Adversary,
    DisclosureAdversary,
    FlowAdversary,
    GroupingAdversary,
    PaperAdversary,
    RouteAdversary,
)
from unlinkabledfl.analysis.adversaries.protocol import Posteriors, Remembering
from unlinkabledfl.analysis.trace import Crossings, PublicSettings, Trace
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.linking.deployment import Deployment
from unlinkabledfl.mixnet.mixers import OffSettings, OutboxSettings
from unlinkabledfl.mixnet.topology import full

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

    with pytest.raises(
        ConfigError, match=r"attack\.route: got 'cascade', takes direct, overlay, walk, walk_up_to, val"
    ):
        RouteAdversary().posteriors(with_settings(trace, route="cascade"))


def test_route_inverts_valiant_and_who_needs_one_path_length_says_so() -> None:
    trace, _ = recorded(OVERLAY).recording.observed()
    valiant = with_settings(trace, route="valiant", topology=full(10))

    # In a full mesh both legs are one link: the last hop is the middle, and whoever else writes may be the sender.
    assert RouteAdversary().posteriors(valiant) == pytest.approx(RouteAdversary().posteriors(trace))
    with pytest.raises(ConfigError, match=r"attack\.route: got 'valiant', takes overlay, walk, direct \(its path"):
        FlowAdversary().posteriors(valiant)
    with pytest.raises(ConfigError, match=r"attack\.route: got 'valiant', takes routes with a largest number of hops"):
        PaperAdversary().posteriors(valiant)


def test_answers_tell_more_of_the_sender() -> None:
    trace, oracle = recorded(CALIBRATION).recording.observed()
    rows = np.arange(len(trace.targets))

    there = FlowAdversary(follows_answers=False).posteriors(trace)[rows, oracle.origin]
    both = FlowAdversary().posteriors(trace)[rows, oracle.origin]

    assert np.log(both).mean() > np.log(there).mean()


@pytest.mark.parametrize("compromised", [[], [1, 4, 7]], ids=["watching", "owning"])
def test_flow_is_right_as_often_as_it_claims(compromised: list[int]) -> None:
    trace, oracle = recorded(CALIBRATION).recording.observed(compromised=compromised)
    rows = np.arange(len(trace.targets))

    posteriors = FlowAdversary().posteriors(trace)

    # Four standard errors of a mean over independent targets: a calibrated adversary fails once in 16,000 seeds.
    claimed, hit = posteriors.max(axis=1), posteriors.argmax(axis=1) == oracle.origin
    noise = 4.0 * np.sqrt((claimed * (1.0 - claimed)).mean() / len(rows))
    assert len(rows) >= 700
    assert hit.mean() == pytest.approx(claimed.mean(), abs=noise)
    # And over all that it says of anybody: what it gave to true senders is what it expected to give.
    expected, given = (posteriors**2).sum(axis=1), posteriors[rows, oracle.origin]
    spread = np.sqrt(((posteriors**3).sum(axis=1) - expected**2).mean() / len(rows))
    assert given.mean() == pytest.approx(expected.mean(), abs=4.0 * spread)


def test_who_remembers_says_the_same_and_thinks_once() -> None:
    trace, _ = recorded(OVERLAY).recording.observed()
    another, _ = recorded(OVERLAY).recording.observed(compromised=[1])
    asked: list[Trace] = []

    class Counting(RouteAdversary):
        def posteriors(self, trace: Trace) -> Posteriors:
            asked.append(trace)
            return super().posteriors(trace)

    remembering = Remembering(Counting())

    assert (remembering.posteriors(trace) == remembering.posteriors(trace)).all()
    assert remembering.posteriors(another).shape[0] == len(another.targets)
    assert (remembering.name, asked) == ("route", [trace, another])


@pytest.mark.parametrize(
    ("mixer", "got"),
    [(OutboxSettings(cover=False), "100, cover false"), (OutboxSettings(outbox_size=10), "10, cover true")],
)
def test_an_outbox_whose_cycles_cannot_be_told_is_left_alone(mixer: OutboxSettings, got: str) -> None:
    trace, _ = recorded(WALK).recording.observed()

    with pytest.raises(ConfigError, match=rf"attack\.mixer: got 'an outbox of {got}', takes an outbox of 25 places"):
        FlowAdversary().posteriors(with_settings(trace, mixer=mixer))


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda each: each.name)
def test_where_all_write_alike_disclosure_finds_about_what_the_last_hop_tells(deployment: Deployment) -> None:
    trace, oracle = recorded(deployment).recording.observed()
    rows = np.arange(len(trace.targets))

    route = RouteAdversary().posteriors(trace)[rows, oracle.origin]
    disclosure = DisclosureAdversary().posteriors(trace)[rows, oracle.origin]

    # In bits a target: noise that is taken for evidence would cost the true senders theirs.
    assert np.log2(disclosure).mean() > np.log2(route).mean() - 0.05


def test_who_had_left_is_not_suspected() -> None:
    trace, _ = recorded(OVERLAY).recording.observed()
    crossings = trace.crossings
    # Node 3 has sent nothing for five seconds when the last targets leave, longer than packets are under way.
    gone = (crossings.source == 3) & (crossings.left_at_s > crossings.left_at_s[trace.targets[-20]] - 5.0)
    kept = np.flatnonzero(~gone)
    places = {int(index): place for place, index in enumerate(kept)}
    late = [places[int(target)] for target in trace.targets[-20:] if int(target) in places]
    columns = {name: getattr(crossings, name)[kept] for name in Crossings.__slots__}
    without = Trace(
        settings=trace.settings,
        crossings=Crossings(**columns),
        targets=np.array(late, dtype=np.int64),
        compromised=(),
        before=np.full(len(kept), -1, dtype=np.int64),
    )

    found = DisclosureAdversary().posteriors(without)

    assert (found[:, 3] == 0.0).all()
    assert (found.max(axis=1) < 0.5).all()


def test_without_delays_there_is_nothing_to_invert() -> None:
    trace, _ = recorded(OVERLAY).recording.observed()

    with pytest.raises(ConfigError, match=r"attack\.mixer: got 'off'"):
        FlowAdversary().posteriors(with_settings(trace, mixer=OffSettings()))
