from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlinkabledfl.node.collecting import Collecting


def collecting(*, partners: int = 2, ranges: int = 3, per_partner: int = 3, first_round: int = 5) -> Collecting:
    return Collecting(partners=partners, ranges=ranges, per_partner=per_partner, first_round=first_round)


def fill(machine: Collecting, round_number: int, *indices: int) -> Collecting:
    for index in indices:
        machine.receive(round_number, index)
    return machine


def test_a_round_is_complete_when_every_partner_has_sent_every_range() -> None:
    machine = fill(collecting(), 5, 0, 1, 2, 0, 1)
    before = (machine.is_complete(absent=0), machine.completeness())

    machine.receive(5, 2)

    assert (before, machine.is_complete(absent=0), machine.completeness()) == ((False, 5 / 6), True, 1.0)


def test_surplus_fragments_of_one_range_do_not_stand_in_for_another() -> None:
    machine = fill(collecting(), 5, 0, 0, 0, 0, 1, 1, 1)

    assert (machine.received(), machine.is_complete(absent=0)) == (4, False)


def test_one_fragment_fewer_of_each_range_is_waited_for_when_a_partner_is_gone() -> None:
    machine = fill(collecting(), 5, 0, 1, 2)

    assert [machine.is_complete(absent=absent) for absent in (0, 1, 2)] == [False, True, True]


def test_completeness_is_measured_against_the_plan_whoever_is_gone() -> None:
    machine = fill(collecting(), 5, 0, 1, 2)

    assert (machine.expected, machine.completeness()) == (6, 0.5)


def test_nobody_is_waited_for_where_nobody_is_expected() -> None:
    machine = collecting(partners=0)

    assert (machine.is_complete(absent=0), machine.completeness()) == (True, 1.0)


def test_where_a_share_of_the_ranges_is_sent_their_number_counts() -> None:
    machine = fill(collecting(per_partner=2), 5, 0, 1, 0)
    before = machine.is_complete(absent=0)
    machine.receive(5, 1)

    assert (before, machine.is_complete(absent=0), machine.completeness()) == (False, True, 1.0)


def test_early_fragments_count_for_their_own_round() -> None:
    machine = fill(collecting(), 6, 0, 1)
    before = machine.received()
    machine.advance(6)

    assert (before, machine.received()) == (0, 2)


def test_late_fragments_count_for_nothing() -> None:
    machine = fill(collecting(), 4, 0, 1, 2, 0, 1, 2)

    assert (machine.received(), machine.furthest()) == (0, 5)


def test_nothing_more_comes_of_a_round_when_a_later_one_is_complete() -> None:
    machine = fill(collecting(), 7, 0, 1, 2, 0, 1)
    before = machine.is_complete(absent=0)
    machine.receive(7, 2)

    assert (before, machine.is_complete(absent=0), machine.completeness()) == (False, True, 0.0)


def test_the_furthest_round_is_one_in_which_half_of_what_is_expected_was_seen() -> None:
    machine = collecting()
    for round_number, count in ((40, 3), (41, 2)):
        for _ in range(count):
            machine.note(round_number)

    assert machine.furthest() == 40


def test_made_up_rounds_do_not_displace_the_one_that_peers_are_in() -> None:
    machine = collecting()
    for _ in range(3):
        machine.note(20)
    for made_up in range(1_000):
        machine.note(10_000 + made_up)

    assert machine.furthest() == 20


ARRIVALS = st.lists(st.tuples(st.integers(3, 8), st.integers(0, 2)), max_size=60)


@pytest.mark.parametrize("per_partner", [2, 3])
@given(arrivals=ARRIVALS, partners=st.integers(0, 3))
def test_completeness_grows_to_one_exactly_when_nothing_is_missing(
    per_partner: int, arrivals: list[tuple[int, int]], partners: int
) -> None:
    machine = collecting(partners=partners, per_partner=per_partner)
    seen: Counter[int] = Counter()
    last = machine.completeness()
    for round_number, index in arrivals:
        machine.receive(round_number, index)
        seen[index] += round_number == 5
        assert last <= machine.completeness() <= 1.0
        last = machine.completeness()
        whole = min(seen[index] for index in range(3)) >= partners
        enough = seen.total() >= 2 * partners
        assert (last == 1.0) is (whole if per_partner == 3 else enough)
        if last == 1.0:
            assert machine.is_complete(absent=0)
