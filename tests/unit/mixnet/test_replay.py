import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlinkabledfl.errors import ConfigError, PacketError
from unlinkabledfl.mixnet.replay import ReplayWindow


def tag(number: int) -> bytes:
    return number.to_bytes(16)


def test_a_tag_is_fresh_once() -> None:
    window = ReplayWindow(capacity=10)

    assert [window.test_and_set(tag(number)) for number in (1, 2, 1, 2, 3)] == [True, True, False, False, True]
    assert len(window) == 3


def test_a_full_window_refuses_what_is_new_and_still_knows_what_is_old() -> None:
    window = ReplayWindow(capacity=2)
    window.test_and_set(tag(1))
    window.test_and_set(tag(2))

    with pytest.raises(PacketError) as caught:
        window.test_and_set(tag(3))

    assert caught.value.cause == "replay_window_full"
    assert [window.test_and_set(tag(1)), window.test_and_set(tag(2)), len(window)] == [False, False, 2]


def test_a_window_without_room_is_refused() -> None:
    with pytest.raises(ConfigError):
        ReplayWindow(capacity=0)


@given(capacity=st.integers(1, 8), numbers=st.lists(st.integers(0, 12), max_size=80))
def test_no_tag_is_fresh_twice_and_the_bound_holds(capacity: int, numbers: list[int]) -> None:
    window = ReplayWindow(capacity=capacity)
    seen: set[int] = set()
    for number in numbers:
        try:
            fresh = window.test_and_set(tag(number))
        except PacketError:
            assert number not in seen
            assert len(seen) == capacity
        else:
            assert fresh is (number not in seen)
            seen.add(number)
        assert len(window) == len(seen) <= capacity
