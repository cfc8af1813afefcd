import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.mixnet.limits import Counters, Deadlines, TokenBucket


def test_a_bucket_admits_its_burst_and_then_its_rate() -> None:
    bucket = TokenBucket(rate_per_s=2.0, burst=3)

    answers = [bucket.take(now_s) for now_s in (10.0, 10.0, 10.0, 10.0, 10.5, 10.5, 11.0)]

    assert answers == [True, True, True, False, True, False, True]


def test_a_bucket_is_never_fuller_than_its_burst() -> None:
    bucket = TokenBucket(rate_per_s=1.0, burst=2)
    bucket.take(0.0)

    assert [bucket.take(1e9) for _ in range(3)] == [True, True, False]


def test_a_price_is_paid_whole_or_not_at_all() -> None:
    bucket = TokenBucket(rate_per_s=1.0, burst=5)

    assert [bucket.take(0.0, tokens) for tokens in (4, 2, 1, 1)] == [True, False, True, False]


def test_asking_costs_nothing() -> None:
    bucket = TokenBucket(rate_per_s=1.0, burst=1)

    assert [bucket.has(0.0), bucket.has(0.0), bucket.take(0.0), bucket.has(0.5), bucket.has(1.0)] == [
        True, True, True, False, True
    ]  # fmt: skip


def test_going_back_in_time_neither_earns_nor_costs_tokens() -> None:
    bucket = TokenBucket(rate_per_s=1.0, burst=1)

    assert [bucket.take(now_s) for now_s in (5.0, 4.0, 5.0, 5.5, 6.0)] == [True, False, False, False, True]


def test_an_instant_in_the_past_leaves_the_tokens_that_are_there() -> None:
    bucket = TokenBucket(rate_per_s=1.0, burst=2)

    assert [bucket.take(now_s) for now_s in (5.0, 3.0, 5.0)] == [True, True, False]


@given(
    rate_per_s=st.floats(0.01, 100.0),
    burst=st.floats(1.0, 50.0),
    takes=st.lists(st.tuples(st.floats(-1.0, 20.0), st.floats(0.0, 5.0)), max_size=60),
)
def test_no_span_of_time_admits_more_than_burst_and_rate_allow(
    rate_per_s: float, burst: float, takes: list[tuple[float, float]]
) -> None:
    bucket = TokenBucket(rate_per_s=rate_per_s, burst=burst)
    now_s, latest_s = 100.0, 100.0
    admitted: list[tuple[float, float]] = []
    for step_s, tokens in takes:
        now_s += step_s
        latest_s = max(latest_s, now_s)
        if bucket.take(now_s, tokens):
            admitted.append((latest_s, tokens))

    for first, (start_s, _) in enumerate(admitted):
        total = 0.0
        for end_s, tokens in admitted[first:]:
            total += tokens
            assert total <= (burst + rate_per_s * (end_s - start_s)) * (1 + 1e-9)


@pytest.mark.parametrize("settings", [(0.0, 1.0), (-1.0, 1.0), (math.nan, 1.0), (1.0, 0.5), (1.0, math.nan)])
def test_a_bucket_that_would_admit_nothing_is_refused(settings: tuple[float, float]) -> None:
    with pytest.raises(ConfigError):
        TokenBucket(rate_per_s=settings[0], burst=settings[1])


def drain(deadlines: Deadlines[str], now_s: float) -> list[str]:
    return list(iter(lambda: deadlines.pop_due(now_s), None))


def test_timers_come_out_by_time_and_then_in_order_of_setting() -> None:
    deadlines: Deadlines[str] = Deadlines()
    for key, at_s in [("late", 9.0), ("first", 2.0), ("second", 2.0), ("early", 1.0)]:
        deadlines.set(key, at_s)

    assert deadlines.next_s() == 1.0
    assert drain(deadlines, 2.0) == ["early", "first", "second"]
    assert (deadlines.next_s(), len(deadlines)) == (9.0, 1)


def test_a_moved_timer_fires_once_and_a_cancelled_one_never() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("moved", 1.0)
    deadlines.set("cancelled", 1.0)
    deadlines.set("moved", 3.0)
    deadlines.cancel("cancelled")
    deadlines.cancel("never set")

    assert deadlines.next_s() == 3.0
    assert drain(deadlines, 5.0) == ["moved"]
    assert deadlines.next_s() is None


KEYS = st.sampled_from("abcdefg")
STEPS = st.one_of(
    st.tuples(st.just("set"), KEYS, st.integers(0, 50)),
    st.tuples(st.just("cancel"), KEYS, st.just(0)),
    st.tuples(st.just("pop"), st.just(""), st.integers(0, 50)),
)


@given(st.lists(STEPS, min_size=40, max_size=200))
def test_timers_agree_with_a_plain_table_and_their_memory_with_its_size(steps: list[tuple[str, str, int]]) -> None:
    deadlines: Deadlines[str] = Deadlines()
    table: dict[str, tuple[int, int]] = {}
    for order, (step, key, at_s) in enumerate(steps):
        if step == "set":
            deadlines.set(key, at_s)
            table[key] = (at_s, order)
        elif step == "cancel":
            deadlines.cancel(key)
            table.pop(key, None)
        else:
            due = sorted((entry, key) for key, entry in table.items() if entry[0] <= at_s)
            expected = due[0][1] if due else None
            assert deadlines.pop_due(at_s) == expected
            table.pop(expected or "", None)
        assert len(deadlines) == len(table)
        assert deadlines.entries <= 2 * len(table) + 8
        assert deadlines.next_s() == (min(table.values())[0] if table else None)


def test_counters_count_by_cause() -> None:
    counters = Counters()
    counters.add("stale")
    counters.add("bad_mac", 3)
    counters.add("stale")

    assert (counters["stale"], counters["bad_mac"], counters["never"]) == (2, 3, 0)
    assert list(counters.as_dict().items()) == [("bad_mac", 3), ("stale", 2)]


@pytest.mark.parametrize("name", ["", "Stale", "bad mac", "1st", "_x", "x" * 49, "bad-mac", "é", "stale\n"])
def test_a_name_that_our_code_does_not_use_is_a_bug(name: str) -> None:
    with pytest.raises(LocalProtocolError):
        Counters().add(name)


@given(st.lists(st.integers(0, 1000), max_size=400))
def test_the_table_of_counters_is_bounded_and_loses_no_count(numbers: list[int]) -> None:
    counters = Counters()
    for number in numbers:
        counters.add(f"cause_{number}")

    counts = counters.as_dict()
    assert sum(counts.values()) == len(numbers)
    assert len(counts) <= Counters.MAX_NAMES + 1
