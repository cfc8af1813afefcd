import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlinkabledfl.mixnet.peers import RemovalReason
from unlinkabledfl.node.presence import Presence
from unlinkabledfl.sphinx import NodeId

PEERS = [NodeId(bytes([number]) * 32) for number in range(4)]
ONE, OTHER, STRANGER = PEERS[0], PEERS[1], PEERS[3]
PARTNERS = PEERS[:3]
SUSPECTED, UNREACHABLE, EXPIRED = RemovalReason.SUSPECTED, RemovalReason.UNREACHABLE, RemovalReason.EXPIRED


def presence(**options: list[NodeId]) -> Presence:
    return Presence(PARTNERS, **options)


@pytest.mark.parametrize("reason", [UNREACHABLE, EXPIRED])
def test_a_partner_that_cannot_be_reached_is_gone(reason: RemovalReason) -> None:
    machine = presence()

    assert (machine.unroutable(ONE, reason), set(machine.gone)) == (True, {ONE})


def test_a_partner_is_gone_after_the_second_suspicion_in_a_row() -> None:
    machine = presence()

    assert [machine.unroutable(ONE, SUSPECTED) for _ in range(3)] == [False, True, False]


def test_a_sign_of_life_between_two_suspicions_clears_a_partner() -> None:
    machine = presence()
    machine.unroutable(ONE, SUSPECTED)
    machine.alive(ONE)

    assert (machine.unroutable(ONE, SUSPECTED), set(machine.gone)) == (False, set())


def test_a_partner_to_which_a_fragment_was_given_up_is_gone() -> None:
    machine = presence()

    assert (machine.given_up(ONE), machine.given_up(ONE), set(machine.gone)) == (True, False, {ONE})


def test_who_is_no_partner_is_of_no_interest() -> None:
    machine = presence(absent=[STRANGER])

    told = [machine.unroutable(STRANGER, UNREACHABLE), machine.given_up(STRANGER), machine.alive(STRANGER)]

    assert (told, set(machine.gone)) == ([False] * 3, set())


def test_who_joins_later_is_gone_until_it_shows() -> None:
    machine = presence(absent=[OTHER])
    before = set(machine.gone)

    assert (before, machine.alive(OTHER), set(machine.gone)) == ({OTHER}, True, set())


def test_who_comes_back_during_an_exchange_is_waited_for_from_the_next_one_on() -> None:
    machine = presence()
    machine.unroutable(ONE, UNREACHABLE)
    machine.exchange_begins()
    machine.alive(ONE)
    during = machine.not_waited_for(PARTNERS)
    machine.exchange_begins()

    assert (during, machine.not_waited_for(PARTNERS)) == (1, 0)


def test_who_went_and_came_back_within_one_exchange_is_waited_for() -> None:
    machine = presence()
    machine.exchange_begins()
    machine.unroutable(ONE, UNREACHABLE)
    away = machine.not_waited_for(PARTNERS)
    machine.alive(ONE)

    assert (away, machine.not_waited_for(PARTNERS)) == (1, 0)


def test_half_of_the_partners_are_waited_for_even_if_all_seem_to_be_gone() -> None:
    machine = presence()
    for peer in PARTNERS:
        machine.unroutable(peer, UNREACHABLE)

    assert (len(machine.gone), machine.not_waited_for(PARTNERS), machine.not_waited_for(PARTNERS[:1])) == (3, 1, 0)


def test_nobody_is_waited_for_where_all_are_yet_to_join() -> None:
    machine = presence(absent=PARTNERS)
    before = machine.not_waited_for(PARTNERS)
    machine.alive(ONE)
    machine.exchange_begins()

    assert (before, machine.not_waited_for(PARTNERS)) == (3, 2)


EVIDENCE = st.lists(
    st.tuples(st.sampled_from(PEERS), st.sampled_from([SUSPECTED, UNREACHABLE, EXPIRED, "given up", "alive"])),
    max_size=40,
)


@given(EVIDENCE)
def test_a_partner_is_gone_exactly_when_the_evidence_since_its_last_sign_of_life_is_enough(
    evidence: list[tuple[NodeId, str]],
) -> None:
    machine = presence()
    since: dict[NodeId, list[str]] = {peer: [] for peer in PEERS}
    for peer, what in evidence:
        before = peer in machine.gone
        if what == "alive":
            since[peer].clear()
            changed = machine.alive(peer)
        else:
            since[peer].append(what)
            changed = machine.given_up(peer) if what == "given up" else machine.unroutable(peer, what)
        assert changed is (before is not (peer in machine.gone))

    enough = {
        peer for peer, against in since.items() if against.count(SUSPECTED) >= 2 or any(a != SUSPECTED for a in against)
    }
    assert set(machine.gone) == enough - {STRANGER}
