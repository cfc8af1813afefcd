import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlinkabledfl.errors import LocalProtocolError
from unlinkabledfl.simulation.heap import EventHeap, check_instant


def drain(heap: EventHeap, until_s: float) -> list[tuple[float, object]]:
    popped = []
    while (entry := heap.pop_until(until_s)) is not None:
        popped.append((entry[0], entry[4]))
    return popped


def test_entries_come_out_by_time_and_then_in_the_order_of_pushing() -> None:
    heap = EventHeap()
    for at_s, payload in [(2.0, "c"), (1.0, "a"), (2.0, "d"), (1.0, "b"), (0.0, "first")]:
        heap.push(at_s, None, None, payload)

    assert drain(heap, 2.0) == [(0.0, "first"), (1.0, "a"), (1.0, "b"), (2.0, "c"), (2.0, "d")]


def test_nothing_comes_out_before_its_time() -> None:
    heap = EventHeap()
    heap.push(1.0, None, None, "now")
    heap.push(1.0 + 2**-52, None, None, "later")

    assert drain(heap, 1.0) == [(1.0, "now")]
    assert len(heap) == 1


def test_payloads_are_never_compared() -> None:
    heap = EventHeap()
    for payload in (1j, object(), {}):
        heap.push(1.0, None, None, payload)

    assert len(drain(heap, 1.0)) == 3


@given(
    st.lists(
        st.one_of(
            st.floats(min_value=0.0, max_value=3.0, allow_nan=False).map(lambda delay: ("push", delay)),
            st.floats(min_value=0.0, max_value=1.0, allow_nan=False).map(lambda step: ("run", step)),
        ),
        max_size=60,
    )
)
def test_the_slots_give_the_order_of_one_sorted_list(steps: list[tuple[str, float]]) -> None:
    heap = EventHeap()
    model: list[tuple[float, int]] = []
    now_s = 0.0
    for number, (what, value) in enumerate(steps):
        if what == "push":
            heap.push(now_s + value, None, None, number)
            model.append((now_s + value, number))
        else:
            now_s += value
            due = sorted(entry for entry in model if entry[0] <= now_s)
            model = [entry for entry in model if entry[0] > now_s]
            assert drain(heap, now_s) == due
    assert drain(heap, 1e6) == sorted(model)


@pytest.mark.parametrize("at_s", [0.5, float("nan"), float("inf")])
def test_an_instant_that_has_passed_or_never_comes_is_refused(at_s: float) -> None:
    with pytest.raises(LocalProtocolError, match="cannot schedule"):
        check_instant(at_s, not_before_s=1.0)
