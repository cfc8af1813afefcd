from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.statistics_chi_square import chi_square_p_value, uniform_law
from tests.unit.mixnet.mixing import seeded
from unlinkabledfl.errors import LocalProtocolError
from unlinkabledfl.mixnet.items import MessageId
from unlinkabledfl.node.sending import Place, Sending
from unlinkabledfl.sphinx import NodeId

PEERS = [NodeId(bytes([number]) * 32) for number in range(3)]
ONE, OTHER, THIRD = PEERS


def sending(gone: set[NodeId] | None = None, *, seed: int = 1) -> Sending:
    return Sending(draw=seeded(seed), gone=set() if gone is None else gone)


def message(number: int) -> MessageId:
    return MessageId(number.to_bytes(16))


def send_all(machine: Sending, *, first: int = 0) -> dict[MessageId, Place]:
    """Have the mix take everything that there is."""
    taken: dict[MessageId, Place] = {}
    while machine.next_place() is not None:
        message_id = message(first + len(taken))
        taken[message_id] = machine.taken(message_id)
    return taken


def test_every_range_goes_to_every_destination_once() -> None:
    machine = sending()
    machine.share([0, 4, 7], PEERS)

    taken = send_all(machine)

    assert Counter(taken.values()) == Counter(Place(index, peer) for index in (0, 4, 7) for peer in PEERS)
    assert (machine.sent, machine.planned, len(machine)) == (9, 0, 9)


def test_every_order_over_ranges_and_destinations_is_equally_likely() -> None:
    """Pearson's test over the 24 orders of four fragments; df 23, significance 0.001."""
    machine = sending()
    orders: Counter[tuple[Place, ...]] = Counter()
    for _ in range(2_400):
        machine.share([0, 1], [ONE, OTHER])
        orders[tuple(send_all(machine, first=machine.sent).values())] += 1

    assert len(orders) == 24
    assert chi_square_p_value(orders, uniform_law(list(orders))) > 0.001


def test_what_a_full_queue_refused_stays_next() -> None:
    machine = sending()
    machine.share([0, 1, 2], PEERS)

    assert machine.next_place() is machine.next_place()
    assert machine.planned == 9


def test_a_model_is_settled_when_each_of_its_fragments_has_ended() -> None:
    machine = sending()
    machine.share([0], [ONE, OTHER])
    settled = [machine.is_settled]
    first, second = send_all(machine)
    machine.receive_acknowledgement(first)
    settled.append(machine.is_settled)
    machine.give_up(second)

    assert (*settled, machine.is_settled) == (False, False, True)
    assert (machine.sent, machine.acknowledged, machine.lost, len(machine)) == (2, 1, 1, 0)


def test_an_end_names_the_destination_and_comes_once() -> None:
    machine = sending()
    machine.share([0], [ONE])
    (message_id,) = send_all(machine)

    told = [machine.give_up(message_id), machine.receive_acknowledgement(message_id), machine.give_up(message(99))]

    assert (told, machine.acknowledged, machine.lost) == ([ONE, None, None], 0, 1)


def test_fragments_of_an_older_model_go_on_if_the_mix_has_them_and_are_withdrawn_if_not() -> None:
    machine = sending()
    machine.share([0, 1], [ONE])
    old = message(1)
    assert machine.next_place() is not None
    machine.taken(old)

    machine.share([0], [OTHER])

    assert (machine.withdrawn, machine.planned, len(machine)) == (1, 1, 1)
    (new,) = send_all(machine, first=2)
    machine.receive_acknowledgement(new)
    assert machine.is_settled
    assert (machine.receive_acknowledgement(old), machine.acknowledged) == (ONE, 2)


def test_one_fragment_still_goes_to_a_destination_that_is_gone_and_the_others_are_held() -> None:
    machine = sending({ONE})
    machine.share([0, 1, 2], [ONE, OTHER])

    taken = Counter(place.destination for place in send_all(machine).values())

    assert (taken, machine.planned) == ({ONE: 1, OTHER: 3}, 0)


def test_nobody_waits_for_fragments_to_a_destination_that_is_gone() -> None:
    machine = sending({ONE})
    machine.share([0, 1], [ONE])
    send_all(machine)

    assert machine.is_settled


def test_held_fragments_go_out_when_their_destination_is_back() -> None:
    gone = {ONE}
    machine = sending(gone)
    machine.share([0, 1, 2], [ONE])
    before = send_all(machine)
    gone.clear()
    machine.restore(ONE)
    settled = machine.is_settled

    after = send_all(machine, first=10)

    assert (len(before), len(after), settled) == (1, 2, False)
    assert sorted(place.index for place in (*before.values(), *after.values())) == [0, 1, 2]


def test_held_fragments_of_an_older_model_are_withdrawn() -> None:
    gone = {ONE}
    machine = sending(gone)
    machine.share([0, 1, 2], [ONE])
    send_all(machine)
    machine.share([0], [OTHER])
    gone.clear()
    machine.restore(ONE)

    assert (machine.withdrawn, machine.planned) == (2, 1)


def test_only_what_is_next_is_taken() -> None:
    machine = sending()

    with pytest.raises(LocalProtocolError, match="sent once"):
        machine.taken(message(0))


STEPS = st.lists(
    st.tuples(st.sampled_from(["share", "take", "ack", "give up", "gone", "back"]), st.integers(0, 30)), max_size=80
)


@given(STEPS, st.integers(0, 5))
def test_a_fragment_that_was_sent_ends_once_and_the_accounts_add_up(steps: list[tuple[str, int]], seed: int) -> None:
    gone: set[NodeId] = set()
    machine = sending(gone, seed=seed)
    planned = 0
    ends: Counter[MessageId] = Counter()
    sent_of_model: Counter[Place] = Counter()
    for what, number in steps:
        peer = PEERS[number % 3]
        if what == "share":
            ranges = range(number % 4)
            machine.share(ranges, PEERS)
            planned += len(ranges) * len(PEERS)
            sent_of_model.clear()
        elif what == "take" and machine.next_place() is not None:
            sent_of_model[machine.taken(message(machine.sent))] += 1
        elif what in ("ack", "give up"):
            end = machine.receive_acknowledgement if what == "ack" else machine.give_up
            if end(message(number)) is not None:
                ends[message(number)] += 1
        elif what == "gone":
            gone.add(peer)
        elif what == "back" and peer in gone:
            gone.remove(peer)
            machine.restore(peer)

        assert machine.sent == machine.acknowledged + machine.lost + len(machine)
        assert machine.sent + machine.withdrawn <= planned
        assert machine.acknowledged + machine.lost == ends.total()
        assert all(count == 1 for count in (*ends.values(), *sent_of_model.values()))
    machine.share([], [])
    assert machine.sent + machine.withdrawn == planned
    assert machine.is_settled
