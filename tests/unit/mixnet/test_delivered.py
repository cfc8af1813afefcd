import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlinkabledfl.errors import ConfigError, PacketError
from unlinkabledfl.mixnet.delivered import DeliveredWindow
from unlinkabledfl.mixnet.items import MessageId


def message(number: int) -> MessageId:
    return MessageId(number.to_bytes(16))


def test_a_message_is_delivered_once_however_often_it_arrives() -> None:
    window = DeliveredWindow(horizon_s=10.0, capacity=8)

    answers = [window.first_time(message(number), now_s=5.0) for number in (1, 1, 2, 1, 2)]

    assert answers == [True, False, True, False, False]


def test_an_id_lives_for_a_horizon_at_least_and_two_at_most() -> None:
    window = DeliveredWindow(horizon_s=10.0, capacity=8)
    window.first_time(message(1), now_s=0.0)
    window.first_time(message(2), now_s=9.0)

    assert [window.first_time(message(number), now_s=19.0) for number in (1, 2)] == [False, False]
    assert [window.first_time(message(number), now_s=20.0) for number in (1, 2)] == [True, True]


def test_a_full_window_refuses_without_remembering_until_a_generation_has_gone() -> None:
    window = DeliveredWindow(horizon_s=10.0, capacity=2)
    window.first_time(message(1), now_s=0.0)
    window.first_time(message(2), now_s=0.0)

    with pytest.raises(PacketError) as caught:
        window.first_time(message(3), now_s=1.0)

    assert caught.value.cause == "delivered_window_full"
    assert window.first_time(message(1), now_s=1.0) is False
    assert window.first_time(message(3), now_s=20.0) is True


def test_the_timer_empties_a_window_to_which_nothing_comes() -> None:
    window = DeliveredWindow(horizon_s=10.0, capacity=8)
    assert window.next_timer_s() is None
    window.first_time(message(1), now_s=3.0)
    assert window.next_timer_s() == 13.0

    window.handle_timer(now_s=13.0)
    assert (len(window), window.next_timer_s()) == (1, 23.0)

    window.handle_timer(now_s=23.0)
    assert (len(window), window.next_timer_s()) == (0, None)


@pytest.mark.parametrize(("horizon_s", "capacity"), [(0.0, 1), (-1.0, 1), (float("nan"), 1), (1.0, 0)])
def test_a_window_that_remembers_nothing_is_refused(horizon_s: float, capacity: int) -> None:
    with pytest.raises(ConfigError):
        DeliveredWindow(horizon_s=horizon_s, capacity=capacity)


@given(
    horizon_s=st.integers(1, 10),
    capacity=st.integers(1, 12),
    arrivals=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 9)), max_size=120),
)
def test_exactly_once_within_the_horizon_and_never_more_than_the_bound(
    horizon_s: int, capacity: int, arrivals: list[tuple[int, int]]
) -> None:
    window = DeliveredWindow(horizon_s=horizon_s, capacity=capacity)
    now_s = 0
    delivered_at_s: dict[int, int] = {}
    for step_s, number in arrivals:
        now_s += step_s
        age_s = now_s - delivered_at_s[number] if number in delivered_at_s else None
        try:
            first = window.first_time(message(number), now_s=now_s)
        except PacketError:
            assert age_s is None or age_s > horizon_s
            assert len(window) == capacity
        else:
            if first:
                assert age_s is None or age_s > horizon_s
                delivered_at_s[number] = now_s
            else:
                assert age_s is not None
                assert age_s < 2 * horizon_s
        assert len(window) <= capacity

    window.handle_timer(now_s=now_s + 2 * horizon_s)
    assert (len(window), window.next_timer_s()) == (0, None)
