"""Whole federations in virtual time: rounds complete, accounts add up, and whoever comes, goes or dies stops nobody."""

import numpy as np
import pytest

from tests.unit.node.federation import FAST, OFF, Federation, Plan, rounds_of
from tests.unit.node.learners import SoftmaxLearner, blank_model
from unlinkabledfl.mixnet.mixers import OutboxSettings, PoissonSettings
from unlinkabledfl.node.learner import State
from unlinkabledfl.node.ledger import Totals
from unlinkabledfl.node.settings import AggregationSettings, ParticipantSettings, PayloadSettings, RoundSettings
from unlinkabledfl.simulation import Crash, LinkSettings, Partition
from unlinkabledfl.simulation.mixnet import RouteName

CALM = PoissonSettings(delay_mean_s=0.2, emission_rate_per_s=6.0, loop_rate_per_s=0.2)
SLOW = PoissonSettings(delay_mean_s=1.0, emission_rate_per_s=4.0, loop_rate_per_s=1.0)
OUTBOX = OutboxSettings(outbox_size=10, delay_mean_s=0.05, delay_deviation_s=0.005)
LOSSY = LinkSettings(latency_s=0.02, loss=0.02)
ABOUT = pytest.approx


def finished(plan: Plan, *, seed: int = 1, but: tuple[int, ...] = ()) -> Federation:
    federation = Federation(plan, seed=seed)
    federation.run_until_finished(but=but)
    return federation


def check_accounts(federation: Federation, node: int) -> Totals:
    """Everything that was sent or received has one end, and the reports say so."""
    gauges = federation.participant(node).gauges()
    totals = federation.participant(node).totals
    assert totals.fragments_sent == (
        totals.fragments_acknowledged + totals.fragments_given_up + gauges["fragments_open"]
    )
    assert totals.fragments_received == (
        totals.fragments_aggregated + totals.fragments_late + totals.fragments_refused + gauges["fragments_held"]
    )
    reported = federation.reports[node].values()
    at_the_end = federation.totals[node]
    for name in ("fragments_sent", "fragments_received", "fragments_aggregated", "packets_sent", "bytes_sent"):
        assert sum(report[name] for report in reported) == getattr(at_the_end, name)
    return totals


def by_hand(plan: Plan, federation: Federation, rounds: int) -> list[State]:
    """What the federation must come to when every exchange is complete: means over a node and its partners."""
    learners = [SoftmaxLearner(index) for index in range(plan.nodes)]
    for number in range(1, rounds + 1):
        for learner in learners:
            learner.train(number)
        trained = [learner.state() for learner in learners]
        for index, learner in enumerate(learners):
            circle = [trained[other] for other in (index, *federation.partners[index])]
            learner.load({name: np.mean([each[name] for each in circle], axis=0) for name in blank_model()})
    return [learner.state() for learner in learners]


def alone(nodes: int, *, rounds: int) -> float:
    """The mean accuracy of nodes that never exchange anything."""
    learners = [SoftmaxLearner(index) for index in range(nodes)]
    for learner in learners:
        for number in range(1, rounds + 1):
            learner.train(number)
    return float(np.mean([learner.evaluate()["accuracy"] for learner in learners]))


@pytest.mark.parametrize(
    ("mixer", "route"),
    [
        pytest.param(FAST, RouteName.OVERLAY, id="poisson overlay"),
        pytest.param(OUTBOX, RouteName.WALK, id="outbox walk"),
        pytest.param(OFF, RouteName.OVERLAY, id="off"),
    ],
)
def test_without_loss_every_round_is_complete_and_the_models_are_the_means_by_hand(
    mixer: object, route: RouteName
) -> None:
    plan = Plan(nodes=16, mixer=mixer, route=route)  # type: ignore[arg-type]

    federation = finished(plan)

    assert set(federation.metric("completeness").values()) == {1.0}
    assert set(federation.finished.values()) == {"done"}
    for index, expected in enumerate(by_hand(plan, federation, 3)):
        state = federation.participant(index).state
        for name in expected:
            np.testing.assert_allclose(state[name], expected[name], rtol=1e-4, atol=1e-5)
    totals = [check_accounts(federation, index) for index in range(16)]
    assert sum(each.fragments_sent for each in totals) == sum(each.fragments_aggregated for each in totals)
    assert sum(each.fragments_late + each.fragments_refused + each.fragments_given_up for each in totals) == 0


def test_learning_together_is_better_than_alone() -> None:
    federation = finished(Plan(nodes=8, mixer=OFF, settings=rounds_of(5)))

    together = np.mean([federation.reports[index][5]["accuracy"] for index in range(8)])
    assert together > alone(8, rounds=5) + 0.1


def test_with_losses_on_every_link_every_round_is_still_complete() -> None:
    federation = finished(Plan(nodes=8, mixer=CALM, links=LOSSY))

    assert set(federation.metric("completeness").values()) == {1.0}
    totals = [check_accounts(federation, index) for index in range(8)]
    assert sum(each.fragments_resent for each in totals) > 0
    assert sum(each.fragments_sent for each in totals) == sum(each.fragments_aggregated for each in totals)


def test_equal_seeds_give_equal_runs() -> None:
    plan = Plan(nodes=6, mixer=CALM, links=LOSSY, settings=rounds_of(2, payload=PayloadSettings(codec="q4")))

    one, other, third = (finished(plan, seed=seed) for seed in (3, 3, 4))

    assert one.reports == other.reports
    assert one.reports != third.reports


def test_after_an_exit_the_others_go_on_without_waiting_for_the_deadline() -> None:
    plan = Plan(nodes=12, mixer=CALM, settings=rounds_of(6), unlike={3: rounds_of(6, last_round=2)})

    federation = finished(plan)

    assert (federation.finished[3], sorted(federation.reports[3])) == ("exit", [1, 2])
    exchange_s = federation.metric("exchange_s", of=set(range(12)) - {3})
    # A quarantine of thirty seconds is what the mix takes to find its way around; the deadline is six hundred.
    assert max(exchange_s.values()) < 60.0
    assert max(value for (_, number), value in exchange_s.items() if number == 6) < 15.0
    for index in set(range(12)) - {3}:
        left = 3 in federation.partners[index]
        degrees = len(federation.partners[index])
        assert federation.reports[index][6]["completeness"] == ABOUT((degrees - left) / degrees)
        check_accounts(federation, index)


def test_a_crashed_peer_is_missed_but_not_waited_for() -> None:
    plan = Plan(nodes=12, mixer=CALM, route=RouteName.WALK, settings=rounds_of(4), faults=[Crash(node=3, at_s=10.0)])

    federation = finished(plan, but=(3,))

    others = set(range(12)) - {3}
    assert all(sorted(federation.reports[index]) == [1, 2, 3, 4] for index in others)
    assert max(federation.metric("exchange_s", of=others).values()) < 120.0
    for index in others:
        check_accounts(federation, index)


@pytest.mark.parametrize(
    "foreseen", [pytest.param(True, id="foreseen"), pytest.param(False, id="unforeseen", marks=pytest.mark.slow)]
)
def test_who_joins_late_takes_part_two_rounds_later_at_most(foreseen: bool) -> None:
    plan = Plan(nodes=12, settings=rounds_of(6), unlike={3: rounds_of(6, first_round=3)}, absent=[3], foreseen=foreseen)
    federation = Federation(plan)
    while not any(2 in federation.reports[index] for index in range(12)):
        federation.world.run_for(0.5)
    federation.world.enter(3)

    federation.run_until_finished()

    assert sorted(federation.reports[3])[0] == 3
    completeness = federation.metric("completeness")
    assert {value for (_, number), value in completeness.items() if number >= 5} == {1.0}
    assert federation.reports[3][6]["accuracy"] > 0.6
    assert max(federation.metric("exchange_s").values()) < 120.0
    if foreseen:
        # Nobody misses somebody who was not to be there.
        assert max(value for (_, number), value in federation.metric("exchange_s").items() if number == 1) < 15.0
    for index in range(12):
        check_accounts(federation, index)


def test_who_is_cut_off_does_not_run_through_its_rounds_alone() -> None:
    cut = Partition(groups=((3,),), at_s=8.0, until_s=68.0)
    plan = Plan(nodes=12, degree=2, mixer=CALM, settings=rounds_of(8, deadline_s=40.0), faults=[cut])

    federation = finished(plan)

    alone_s = {number: at_s for number, at_s in federation.ended_s[3].items() if 12.0 < at_s < 68.0}
    assert len(alone_s) <= 2
    assert max(federation.reports[3]) == 8
    for index in range(12):
        check_accounts(federation, index)


def test_a_deadline_bounds_every_exchange_even_if_nothing_ever_comes() -> None:
    nothing = LinkSettings(latency_s=0.02, loss=1.0)

    federation = finished(Plan(nodes=4, degree=2, links=nothing, settings=rounds_of(2, deadline_s=20.0)))

    assert set(federation.metric("completeness").values()) == {0.0}
    assert list(federation.metric("exchange_s").values()) == ABOUT([20.0] * 8)
    assert set(federation.metric("uncovered_ranges").values()) == {3.0}
    for index in range(4):
        check_accounts(federation, index)


def test_an_exchange_by_deadline_lasts_as_long_whatever_has_come() -> None:
    federation = finished(Plan(mixer=CALM, settings=rounds_of(3, completion="deadline", deadline_s=12.0)))

    assert list(federation.metric("exchange_s").values()) == ABOUT([12.0] * 24)
    assert min(federation.metric("completeness").values()) == 1.0


def test_a_cadence_lets_all_aggregate_at_the_same_instants() -> None:
    federation = finished(Plan(mixer=CALM, settings=rounds_of(3, completion="cadence", cadence_s=15.0)))

    for number in (1, 2, 3):
        # An evaluation takes 0.2 s.
        instants_s = [federation.ended_s[index][number] - 0.2 for index in range(8)]
        assert instants_s == ABOUT([15.0 * number] * 8, abs=1e-3)
    assert set(federation.metric("completeness").values()) == {1.0}


def test_asynchronous_nodes_never_wait_and_learn_all_the_same() -> None:
    aggregation = AggregationSettings(staleness="weight", staleness_window=50)  # type: ignore[arg-type]
    settings = ParticipantSettings(
        rounds=RoundSettings(rounds=12, completion="immediate", evaluate_every=0),  # type: ignore[arg-type]
        payload=PayloadSettings(codec="f32"),
        aggregation=aggregation,
    )
    plan = Plan(mixer=CALM, settings=settings, train_s=lambda node, _: 2.0 + node)

    federation = finished(plan)

    assert all(sorted(federation.reports[index]) == list(range(1, 13)) for index in range(8))
    assert max(federation.metric("exchange_s").values()) == 0.0
    # The slowest trains four and a half times as long as the fastest, and nobody is held up by it.
    ends_s = [federation.ended_s[index][12] for index in (0, 7)]
    assert ends_s[1] / ends_s[0] == ABOUT(4.5, rel=0.05)
    for index in range(8):
        totals = check_accounts(federation, index)
        assert totals.fragments_aggregated > 0
    together = np.mean([federation.reports[index][12]["accuracy"] for index in range(8)])
    assert together > alone(8, rounds=12) + 0.1


def test_a_share_of_the_ranges_is_complete_when_that_share_has_come() -> None:
    payload = PayloadSettings(codec="f32", ratio=0.5, selection="rotating")

    federation = finished(Plan(settings=rounds_of(4, payload=payload)))

    assert set(federation.metric("completeness").values()) == {1.0}
    # Two of three ranges, from each of seven partners.
    assert set(federation.metric("fragments_expected").values()) == {14.0}
    assert set(federation.metric("fragments_aggregated").values()) == {14.0}


def test_who_is_left_behind_skips_to_where_the_others_are() -> None:
    """Node 5 trains its second round for as long as the others need for many, then as fast as they do."""
    settings = rounds_of(30, deadline_s=10.0)
    plan = Plan(mixer=OFF, settings=settings, train_s=lambda node, number: 120.0 if (node, number) == (5, 2) else 1.0)

    federation = finished(plan)

    numbers = sorted(federation.reports[5])
    skipped = set(range(1, 31)) - set(numbers)
    assert len(skipped) >= 3
    assert numbers[-1] == 30
    # Together again, they find each other's fragments.
    assert federation.reports[5][30]["completeness"] == 1.0
    for index in range(8):
        check_accounts(federation, index)


def test_a_resumed_federation_comes_to_the_models_of_one_that_was_never_interrupted() -> None:
    whole = finished(Plan(mixer=OFF, settings=rounds_of(4)))
    first = finished(Plan(mixer=OFF, settings=rounds_of(2)))
    states = {index: first.participant(index).state for index in range(8)}

    second = Federation(Plan(mixer=OFF, settings=rounds_of(4, first_round=3), states=states), seed=77)
    second.run_until_finished()

    assert sorted(second.reports[0]) == [3, 4]
    for index in range(8):
        for name, array in whole.participant(index).state.items():
            np.testing.assert_allclose(second.participant(index).state[name], array, rtol=1e-4, atol=1e-5)


def test_robust_rules_report_the_ranges_that_they_cannot_decide() -> None:
    settings = ParticipantSettings(
        rounds=RoundSettings(rounds=2),
        payload=PayloadSettings(codec="f32"),
        aggregation=AggregationSettings(rule="fragkrum", byzantine=3),
    )

    federation = finished(Plan(nodes=8, mixer=OFF, settings=settings))

    # Eight candidates; Krum with B = 3 needs nine.
    assert set(federation.metric("infeasible_ranges").values()) == {3.0}
    assert set(federation.metric("fragments_refused").values()) == {21.0}


@pytest.mark.slow
@pytest.mark.parametrize("mixer", [FAST, SLOW], ids=["fast", "slow"])
@pytest.mark.parametrize("seed", range(4))
def test_churn_and_losses_together_stop_nobody(mixer: PoissonSettings, seed: int) -> None:
    plan = Plan(
        nodes=16,
        mixer=mixer,
        links=LOSSY,
        settings=rounds_of(8),
        unlike={5: rounds_of(8, last_round=4)},
        faults=[Crash(node=11, at_s=30.0)],
    )

    federation = finished(plan, seed=seed, but=(11,))

    for index in set(range(16)) - {5, 11}:
        assert sorted(federation.reports[index])[-1] == 8
        check_accounts(federation, index)
    assert max(federation.metric("exchange_s", of=set(range(16)) - {5, 11}).values()) < 600.0
