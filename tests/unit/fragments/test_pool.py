import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.fragments import (
    Aggregate,
    FragmentDecoder,
    FragmentEncoder,
    Grid,
    Policy,
    Pool,
    Staleness,
    Tally,
    Vector,
    codec_by_name,
    rule_by_name,
)

GRID = Grid(10, 4)
CAPACITY_BYTES = 40
ENCODER = FragmentEncoder(GRID, codec_by_name("f32"), capacity_bytes=CAPACITY_BYTES)
MEAN = rule_by_name("fragfedavg")


def pool(policy: Policy = Policy.DROP, **options: Any) -> Pool:
    return Pool(
        FragmentDecoder(GRID, capacity_bytes=CAPACITY_BYTES, bound=100.0),
        staleness=Staleness(policy=policy, behind=2, ahead=1),
        first_round=5,
        **options,
    )


def constant(value: float) -> Vector:
    return np.full(10, value, dtype=np.float32)


def messages(value: float, *, round_number: int = 5, ranges: Any = None) -> list[bytes]:
    rng = np.random.default_rng(1)
    return ENCODER.encode(constant(value), round_number=round_number, rng=rng, ranges=ranges)


def fill(into: Pool, *values: float, round_number: int = 5, ranges: Any = None) -> None:
    for value in values:
        for data in messages(value, round_number=round_number, ranges=ranges):
            into.receive(data)


def by_range(result: Aggregate) -> list[float]:
    return [float(result.vector[place.start]) for place in GRID.ranges]


def test_fragments_of_peers_and_our_own_are_averaged_by_range() -> None:
    machine = pool()
    fill(machine, 2.0, 6.0)
    fill(machine, 12.0, ranges=[1])

    result = machine.aggregate(constant(1.0), MEAN)

    assert by_range(result) == [3.0, 5.25, 3.0]
    assert (result.fragments, result.candidates, result.infeasible, result.uncovered) == (7, (3, 4, 3), (), ())


def test_ranges_of_which_nothing_came_keep_our_values_and_are_reported() -> None:
    machine = pool()
    fill(machine, 3.0, ranges=[1])

    result = machine.aggregate(constant(1.0), MEAN)

    assert (by_range(result), result.uncovered) == ([1.0, 2.0, 1.0], (0, 2))


def test_ranges_with_too_few_candidates_for_krum_keep_our_values_and_are_reported() -> None:
    machine = pool()
    fill(machine, 2.0, 2.5, 2.75, ranges=[0, 1])
    fill(machine, 3.5, ranges=[1])

    result = machine.aggregate(constant(50.0), rule_by_name("fragkrum", byzantine=1))

    # Range 0 has four candidates, our own included; it needs more than 2·1 + 2.
    assert (by_range(result), result.infeasible, result.uncovered) == ([50.0, 2.5, 50.0], (0,), (2,))


def test_our_own_vector_is_not_changed() -> None:
    machine = pool()
    fill(machine, 2.0)
    local = constant(1.0)

    machine.aggregate(local, MEAN)

    assert local.tolist() == [1.0] * 10


def test_a_fragment_takes_part_once() -> None:
    machine = pool()
    fill(machine, 3.0)
    machine.aggregate(constant(1.0), MEAN)

    again = machine.aggregate(constant(1.0), MEAN)

    assert (by_range(again), again.fragments) == ([1.0] * 3, 0)


def test_a_resend_is_a_duplicate_even_after_the_first_was_used() -> None:
    machine = pool()
    (data,) = messages(3.0, ranges=[0])
    machine.receive(data)

    before = machine.receive(data)
    machine.aggregate(constant(1.0), MEAN)
    after = machine.receive(data)

    assert (before, after, machine.counts) == (False, False, {"aggregated": 1, "duplicate": 2})


@given(st.permutations(range(12)))
def test_the_order_of_arrival_changes_nothing(order: list[int]) -> None:
    stream = [data for value in (0.1, 0.7, 1 / 3, 9.1) for data in messages(value)]
    results = []
    for arrival in (range(12), order):
        machine = pool()
        for at in arrival:
            machine.receive(stream[at])
        results.append(machine.aggregate(constant(0.3), MEAN).vector.tobytes())

    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("policy", "round_number", "accepted", "mean"),
    [
        (Policy.DROP, 2, False, 1.0),
        (Policy.DROP, 4, False, 1.0),
        (Policy.DROP, 6, True, 1.0),
        (Policy.DROP, 7, False, 1.0),
        (Policy.KEEP, 2, False, 1.0),
        (Policy.KEEP, 3, True, 3.0),
        (Policy.KEEP, 6, True, 3.0),
        (Policy.KEEP, 7, False, 1.0),
        (Policy.WEIGHT, 2, False, 1.0),
        (Policy.WEIGHT, 3, True, 1.8),
        (Policy.WEIGHT, 4, True, 7 / 3),
        (Policy.WEIGHT, 6, True, 3.0),
    ],
)
def test_fragments_of_other_rounds_count_as_the_policy_says(
    policy: Policy, round_number: int, accepted: bool, mean: float
) -> None:
    machine = pool(policy)
    (data,) = messages(5.0, round_number=round_number, ranges=[0])

    assert machine.receive(data) is accepted
    assert machine.aggregate(constant(1.0), MEAN).vector[0] == pytest.approx(mean)
    stale, taken = int(not accepted and round_number < 5), int(mean != 1.0)
    held = int(accepted) - taken
    assert machine.tally() == Tally(
        received=1, aggregated=taken, late=stale, refused={} if accepted or stale else {"future_round": 1}, held=held
    )


def test_what_came_early_takes_part_in_its_round_under_drop() -> None:
    machine = pool()
    fill(machine, 3.0, round_number=6)
    early = machine.aggregate(constant(1.0), MEAN)

    machine.advance(6)
    waiting = machine.waiting(0)
    due = machine.aggregate(constant(1.0), MEAN)

    assert (early.fragments, waiting, due.fragments, by_range(due)) == (0, 1, 3, [2.0] * 3)


def test_what_becomes_too_old_is_dropped_and_counted() -> None:
    machine = pool(Policy.KEEP)
    fill(machine, 3.0)

    machine.advance(7)
    kept = machine.waiting(0)
    machine.advance(8)

    assert (kept, machine.waiting(0), machine.counts) == (1, 0, {"expired": 3})


def test_rounds_do_not_run_backwards() -> None:
    with pytest.raises(LocalProtocolError):
        pool().advance(4)


def test_a_range_holds_at_most_its_bound_a_round_even_if_emptied_in_between() -> None:
    machine = pool(max_per_range=2)
    fill(machine, 1.0, 2.0, 3.0, ranges=[0])
    machine.aggregate(constant(1.0), MEAN)
    fill(machine, 4.0, ranges=[0])
    fill(machine, 5.0, ranges=[1])

    assert machine.counts == {"aggregated": 2, "range_full": 2}
    assert machine.waiting(1) == 1


def test_a_refused_fragment_does_not_take_a_place() -> None:
    machine = pool(max_per_range=1)
    fill(machine, 101.0, 102.0, ranges=[0])
    fill(machine, 1.0, ranges=[0])

    assert (machine.counts, machine.waiting(0)) == ({"out_of_bound": 2}, 1)


@given(st.lists(st.binary(max_size=CAPACITY_BYTES + 2)))
def test_whatever_comes_the_pool_raises_nothing_and_counts_it(stream: list[bytes]) -> None:
    machine = pool()

    accepted = [machine.receive(data) for data in stream]

    tally = machine.tally()
    assert (tally.received, tally.held) == (len(stream), sum(accepted))
    assert tally.late + sum(tally.refused.values()) == accepted.count(False)


STEPS = st.one_of(
    st.tuples(st.just("receive"), st.integers(2, 9), st.integers(0, 2), st.sampled_from([1.0, 2.0, 3.0, 500.0])),
    st.tuples(st.just("advance"), st.integers(0, 2)),
    st.tuples(st.just("aggregate"), st.sampled_from(["fragfedavg", "fragkrum"])),
)


@given(st.sampled_from([Policy.DROP, Policy.KEEP]), st.lists(STEPS, max_size=60))
def test_every_fragment_received_ends_once_or_is_still_held(policy: Policy, steps: list[Any]) -> None:
    machine = pool(policy, max_per_range=3)
    received = aggregated = 0
    for step in steps:
        match step:
            case ("receive", round_number, at, value):
                machine.receive(messages(value, round_number=round_number, ranges=[at])[0])
                received += 1
            case ("advance", rounds):
                machine.advance(machine.round + rounds)
            case ("aggregate", rule):
                aggregated += machine.aggregate(constant(1.0), rule_by_name(rule)).fragments

        tally = machine.tally()
        assert (tally.received, tally.aggregated) == (received, aggregated)
        assert tally.received == tally.aggregated + tally.late + sum(tally.refused.values()) + tally.held
        assert min(tally.refused.values(), default=1) > 0


def test_each_way_to_end_has_its_name() -> None:
    machine = pool()
    fill(machine, 1.0, 2.0, ranges=[0])  # two of them, and our own, are enough for Krum
    fill(machine, 1.0, ranges=[1])  # too few
    fill(machine, 1.0, 500.0, ranges=[2], round_number=6)  # one waits, one is out of bound
    fill(machine, 1.0, ranges=[2], round_number=4)
    machine.aggregate(constant(1.0), rule_by_name("fragkrum"))

    before = machine.tally()
    machine.advance(9)

    refused = {"infeasible": 1, "out_of_bound": 1}
    assert before == Tally(received=6, aggregated=2, late=1, refused=refused, held=1)
    assert machine.tally() == Tally(received=6, aggregated=2, late=2, refused=refused, held=0)


def test_an_aggregation_goes_on_a_range_at_a_time_while_fragments_arrive() -> None:
    machine = pool()
    fill(machine, 3.0)
    local = constant(1.0)

    under_way = machine.aggregation(local, MEAN)
    local[:] = 99.0  # ours again: what began has its copy
    first = under_way.step()
    fill(machine, 5.0)
    second = under_way.step()
    result = under_way.step()

    assert (first, second) == (None, None)
    assert result is not None
    assert (by_range(result), result.candidates, result.fragments) == ([2.0, 3.0, 3.0], (2, 3, 3), 5)
    # What came after its range was combined waits, and grows old.
    assert (machine.tally().aggregated, machine.tally().held) == (5, 1)


def test_a_step_after_the_last_or_in_another_round_is_our_mistake() -> None:
    machine = pool()
    done = machine.aggregation(constant(1.0), MEAN)
    while done.step() is None:
        pass
    overtaken = machine.aggregation(constant(1.0), MEAN)
    machine.advance(6)

    for under_way in (done, overtaken):
        with pytest.raises(LocalProtocolError, match="within its round"):
            under_way.step()


@given(st.integers(0, 2), st.lists(st.tuples(st.integers(0, 29), st.integers(1, 255)), min_size=1, max_size=4))
def test_a_damaged_fragment_raises_nothing_and_never_spoils_the_model(at: int, damage: list[tuple[int, int]]) -> None:
    machine = pool()
    data = bytearray(messages(1.0)[at])
    for place, mask in damage:
        data[place % len(data)] ^= mask
    machine.receive(bytes(data))

    result = machine.aggregate(constant(1.0), MEAN)

    assert np.isfinite(result.vector).all()
    assert np.abs(result.vector).max() <= 100.0


def test_a_rule_that_cannot_weigh_is_refused_where_staleness_weighs() -> None:
    with pytest.raises(ConfigError, match=r"staleness\.policy"):
        pool(Policy.WEIGHT).aggregate(constant(1.0), rule_by_name("median"))


def test_a_vector_of_another_length_is_refused() -> None:
    with pytest.raises(ConfigError, match="10 values"):
        pool().aggregate(np.zeros(9, dtype=np.float32), MEAN)


@pytest.mark.parametrize("options", [{"behind": -1}, {"ahead": -1}, {"decay": 0.0}, {"decay": 1.1}])
def test_a_staleness_that_cannot_be_is_refused(options: Any) -> None:
    with pytest.raises(ConfigError, match=r"staleness\."):
        Staleness(**options)


def test_a_pool_that_holds_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"fragments\.max_per_range"):
        pool(max_per_range=0)


@pytest.mark.parametrize("name", ["fragfedavg", "fragkrum", "median", "trimmed_mean"])
def test_memory_grows_with_one_range_not_with_the_model(name: str) -> None:
    # A fifth of MobileNetV2's ranges with as many candidates; what is transient depends on a range alone.
    grid, candidates = Grid(24 * 18_000, 18_000), 40
    codec = codec_by_name("fit")
    encoder = FragmentEncoder(grid, codec, capacity_bytes=9_810)
    machine = Pool(FragmentDecoder(grid, capacity_bytes=9_810))
    rng = np.random.default_rng(1)
    local = rng.normal(0.0, 0.05, grid.values).astype(np.float32)
    for _ in range(candidates):
        for data in encoder.encode(local, round_number=0, rng=rng):
            assert machine.receive(data)

    tracemalloc.start()
    result = machine.aggregate(local, rule_by_name(name, byzantine=3))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    slice_bytes = 18_000 * 4
    assert result.candidates == (candidates + 1,) * 24
    assert peak < local.nbytes + 4 * (candidates + 1) * slice_bytes
