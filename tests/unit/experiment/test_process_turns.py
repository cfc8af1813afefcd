from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from unlinkabledfl.experiment.backends.process.turns import Turns


def test_turns_are_granted_in_the_order_in_which_they_were_asked_for() -> None:
    turns = Turns(count=2)

    assert [turns.want(node) for node in (5, 3, 8, 1)] == [[5], [3], [], []]
    assert turns.give_back(3) == [8]
    assert turns.give_back(5) == [1]
    assert turns.computing == {1, 8}


def test_a_node_that_is_gone_neither_keeps_a_turn_nor_gets_one() -> None:
    turns = Turns(count=1)
    for node in (0, 1, 2):
        turns.want(node)

    assert turns.give_back(1) == []
    assert turns.give_back(0) == [2]


def test_asking_twice_is_asking_once() -> None:
    turns = Turns(count=1)
    for node in (0, 0, 1, 1):
        turns.want(node)

    assert turns.give_back(0) == [1]
    assert turns.give_back(1) == []


@given(
    count=st.integers(1, 4),
    steps=st.lists(st.tuples(st.booleans(), st.integers(0, 6)), max_size=60),
)
def test_whoever_asks_first_computes_first_and_no_core_idles_while_somebody_waits(
    count: int, steps: list[tuple[bool, int]]
) -> None:
    turns = Turns(count=count)
    waiting: deque[int] = deque()
    computing: set[int] = set()

    for wants, node in steps:
        granted = turns.want(node) if wants else turns.give_back(node)
        if wants and node not in computing and node not in waiting:
            waiting.append(node)
        elif not wants:
            computing.discard(node)
            if node in waiting:
                waiting.remove(node)
        expected = [waiting.popleft() for _ in range(min(len(waiting), count - len(computing)))]
        computing.update(expected)

        assert granted == expected
        assert turns.computing == computing
