import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlinkabledfl.errors import LocalProtocolError
from unlinkabledfl.node.events import Ending
from unlinkabledfl.node.rounds import (
    AggregationDue,
    AllOver,
    ExchangeBegins,
    ModelDue,
    Phase,
    RoundOver,
    Rounds,
    RoundsEvent,
    TrainingDue,
)
from unlinkabledfl.node.settings import Completion, RoundSettings

COMPLETIONS = list(Completion)


def rounds(count: int = 2, **options: object) -> Rounds:
    return Rounds(RoundSettings(rounds=count, **options))  # type: ignore[arg-type]


def drain(machine: Rounds) -> list[RoundsEvent]:
    return list(iter(machine.next_event, None))


def exchanging(machine: Rounds, *, at_s: float = 0.0, train_s: float = 1.0) -> Rounds:
    machine.begin(now_s=at_s)
    machine.trained(now_s=at_s + train_s)
    drain(machine)
    return machine


def finish(machine: Rounds, *, now_s: float, completeness: float = 1.0, furthest: int = 0) -> list[RoundsEvent]:
    machine.aggregated(now_s=now_s)
    machine.evaluated(completeness=completeness, furthest=furthest, now_s=now_s)
    return drain(machine)


def test_a_round_goes_through_its_phases_and_says_how_long_each_took() -> None:
    machine = rounds(1)
    machine.begin(now_s=10.0)
    machine.trained(now_s=12.0)
    machine.complete(now_s=15.0)
    machine.aggregated(now_s=15.5)
    machine.evaluated(completeness=1.0, furthest=1, now_s=16.5)

    assert drain(machine) == [
        TrainingDue(round_number=1),
        ExchangeBegins(round_number=1),
        AggregationDue(round_number=1),
        ModelDue(round_number=1, evaluate=True),
        RoundOver(round_number=1, train_s=2.0, exchange_s=3.0, aggregate_s=0.5, evaluate_s=1.0),
        AllOver(ending=Ending.DONE),
    ]
    assert machine.next_timer_s() is None


def test_the_deadline_ends_an_exchange_that_is_not_complete() -> None:
    machine = exchanging(rounds(deadline_s=30.0))

    machine.handle_timer(now_s=30.9)
    before = drain(machine)
    machine.handle_timer(now_s=31.0)

    assert (machine.next_timer_s(), before, drain(machine)) == (None, [], [AggregationDue(round_number=1)])


def test_time_that_a_node_did_not_get_does_not_count_against_its_deadline() -> None:
    machine = exchanging(rounds(deadline_s=30.0))

    machine.starved(4.0, now_s=20.0)

    assert machine.next_timer_s() == 35.0


def test_a_deadline_that_was_slept_through_leaves_time_to_read_what_came() -> None:
    machine = exchanging(rounds(deadline_s=30.0))

    machine.starved(7.0, now_s=38.0)
    machine.handle_timer(now_s=38.0)

    assert (drain(machine), machine.next_timer_s()) == ([], 45.0)


def test_an_event_loop_at_work_puts_nothing_off() -> None:
    machine = exchanging(rounds(deadline_s=30.0))
    for _ in range(100):
        machine.starved(0.1, now_s=20.0)

    assert machine.next_timer_s() == 31.0


def test_a_node_that_never_gets_time_waits_for_two_deadlines_and_no_longer() -> None:
    machine = exchanging(rounds(deadline_s=30.0))
    for instant in range(1, 100):
        machine.starved(1.0, now_s=float(instant))

    assert machine.next_timer_s() == 61.0


def test_a_peer_that_has_trained_only_now_gets_a_whole_deadline() -> None:
    machine = exchanging(rounds(deadline_s=30.0))

    machine.peer_trained(1, now_s=25.0)
    machine.handle_timer(now_s=31.0)

    assert (drain(machine), machine.next_timer_s()) == ([], 55.0)


@pytest.mark.parametrize("round_number", [0, 2])
def test_who_trains_for_another_round_is_not_waited_for(round_number: int) -> None:
    machine = exchanging(rounds(deadline_s=30.0))

    machine.peer_trained(round_number, now_s=25.0)

    assert machine.next_timer_s() == 31.0


def test_while_a_node_trains_itself_there_is_no_deadline_to_put_off() -> None:
    machine = rounds(deadline_s=30.0)
    machine.begin(now_s=0.0)

    machine.peer_trained(1, now_s=25.0)

    assert machine.next_timer_s() is None


@pytest.mark.parametrize("completion", [Completion.DEADLINE, Completion.CADENCE])
def test_a_fixed_end_is_neither_brought_forward_nor_put_off(completion: Completion) -> None:
    machine = exchanging(rounds(completion=completion, deadline_s=29.0, cadence_s=30.0))

    machine.complete(now_s=2.0)
    machine.starved(4.0, now_s=20.0)

    assert (drain(machine), machine.next_timer_s()) == ([], 30.0)


def test_beats_of_a_cadence_lie_on_one_grid_since_the_first_round() -> None:
    machine = exchanging(rounds(3, completion="cadence", cadence_s=10.0), at_s=5.0, train_s=2.0)
    first_s = machine.next_timer_s()
    machine.handle_timer(now_s=15.0)
    finish(machine, now_s=15.5)
    machine.trained(now_s=16.0)

    assert (first_s, machine.next_timer_s()) == (15.0, 25.0)


def test_who_trains_through_a_beat_misses_that_one_and_no_round() -> None:
    machine = exchanging(rounds(3, completion="cadence", cadence_s=10.0), at_s=5.0, train_s=24.0)

    assert (machine.round, machine.next_timer_s()) == (1, 35.0)


def test_immediate_rounds_wait_for_nobody() -> None:
    machine = rounds(completion="immediate")
    machine.begin(now_s=0.0)
    drain(machine)

    machine.trained(now_s=3.0)

    assert drain(machine) == [ExchangeBegins(round_number=1), AggregationDue(round_number=1)]


@pytest.mark.parametrize(
    ("every", "evaluated"), [(1, [1, 2, 3, 4, 5]), (2, [2, 4, 5]), (3, [3, 5]), (9, [5]), (0, [5])]
)
def test_evaluation_follows_its_interval_and_the_last_round(every: int, evaluated: list[int]) -> None:
    machine = rounds(5, evaluate_every=every, completion="immediate")
    machine.begin(now_s=0.0)
    events = []
    for _ in range(5):
        machine.trained(now_s=1.0)
        events += drain(machine) + finish(machine, now_s=1.0)

    assert [event.round_number for event in events if isinstance(event, ModelDue) and event.evaluate] == evaluated


def test_a_scheduled_exit_ends_the_rounds_early() -> None:
    machine = exchanging(rounds(10, first_round=4, last_round=4))
    machine.complete(now_s=2.0)

    events = finish(machine, now_s=3.0)

    assert (machine.phase, events[-1]) == (Phase.OVER, AllOver(ending=Ending.EXIT))


@pytest.mark.parametrize(
    ("completeness", "furthest", "expected"),
    [
        (1.0, 9, 4),  # whose own round works, cannot be pushed ahead
        (0.5, 9, 4),
        (0.49, 9, 9),
        (0.49, 3, 4),  # never back, never the same again
        (0.0, 99, 10),  # nor beyond the end
    ],
)
def test_only_who_is_left_behind_skips_rounds(completeness: float, furthest: int, expected: int) -> None:
    machine = exchanging(rounds(10, first_round=3))
    machine.complete(now_s=2.0)

    finish(machine, now_s=3.0, completeness=completeness, furthest=furthest)

    assert machine.round == expected


def test_who_is_asynchronous_skips_nothing() -> None:
    machine = exchanging(rounds(10, completion="immediate"))

    finish(machine, now_s=3.0, completeness=0.0, furthest=9)

    assert machine.round == 2


@pytest.mark.parametrize("what", ["begin", "trained", "aggregated", "evaluated"])
def test_an_answer_that_nobody_waits_for_is_our_own_mistake(what: str) -> None:
    machine = exchanging(rounds())
    options = {"completeness": 1.0, "furthest": 1} if what == "evaluated" else {}

    with pytest.raises(LocalProtocolError, match="phase exchange"):
        getattr(machine, what)(now_s=5.0, **options)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["trained", "complete", "timer", "aggregated", "evaluated", "starved", "peer"]),
        st.floats(0.0, 20.0),
        st.floats(0.0, 1.0),
        st.integers(0, 12),
    ),
    max_size=120,
)


@given(st.sampled_from(COMPLETIONS), st.integers(1, 4), st.integers(4, 8), STEPS)
def test_rounds_only_go_up_and_each_that_begins_ends_once_in_order(
    completion: Completion, first: int, last: int, steps: list[tuple[str, float, float, int]]
) -> None:
    machine = rounds(last, first_round=first, completion=completion, deadline_s=9.0, cadence_s=7.0)
    machine.begin(now_s=0.0)
    events = drain(machine)
    now_s = 0.0
    for what, wait_s, completeness, furthest in steps:
        now_s += wait_s
        if what == "trained" and machine.phase is Phase.TRAIN:
            machine.trained(now_s=now_s)
        elif what == "complete":
            machine.complete(now_s=now_s)
        elif what == "timer":
            machine.handle_timer(now_s=now_s)
        elif what == "aggregated" and machine.phase is Phase.AGGREGATE:
            machine.aggregated(now_s=now_s)
        elif what == "evaluated" and machine.phase is Phase.EVALUATE:
            machine.evaluated(completeness=completeness, furthest=furthest, now_s=now_s)
        elif what == "starved":
            machine.starved(wait_s, now_s=now_s)
        elif what == "peer":
            machine.peer_trained(furthest, now_s=now_s)
        events += drain(machine)

    began = [event.round_number for event in events if isinstance(event, TrainingDue)]
    assert began == sorted(set(began))
    assert began[0] == first
    assert max(began) <= last
    order = (TrainingDue, ExchangeBegins, AggregationDue, ModelDue, RoundOver)
    told = [event for event in events if not isinstance(event, AllOver)]
    assert [(type(event), event.round_number) for event in told] == [
        (kind, number) for number in began for kind in order
    ][: len(told)]
    over = [event for event in events if isinstance(event, AllOver)]
    assert over == ([AllOver(ending=Ending.DONE)] if machine.phase is Phase.OVER else [])
    lengths_s = [
        length_s
        for event in told
        if isinstance(event, RoundOver)
        for length_s in (event.train_s, event.exchange_s, event.aggregate_s, event.evaluate_s)
    ]
    assert all(length_s >= 0.0 for length_s in lengths_s)
