"""Laws are tested at a significance of 0.001 with a fixed seed."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.statistics_chi_square import chi_square_p_value, uniform_law
from tests.unit.mixnet.networks import name, named
from tests.unit.mixnet.nodes import PACKETS, make_planner
from unlinkabledfl.errors import NoRouteError
from unlinkabledfl.mixnet.draw import Draw
from unlinkabledfl.mixnet.itinerary import Itinerary, Planner
from unlinkabledfl.mixnet.peers import Directory, PeerSettings, PeerView
from unlinkabledfl.sphinx import MAX_DELAY_US, NodeId

SIGNIFICANCE = 0.001
ME, *OTHERS = named(range(6))


def plan(*, others: int = 5, path_length: int = 2, delay_s: float = 0.25) -> Planner:
    directory = Directory((peer, peer) for peer in OTHERS[:others])
    view = PeerView(own_id=ME, settings=PeerSettings(), directory=directory)

    def hop_delay_s(_: Draw) -> float:
        return delay_s

    return make_planner(ME, view, generate=PACKETS.generate_key, path_length=path_length, hop_delay_s=hop_delay_s)


@given(path_length=st.integers(1, 4), destination=st.sampled_from(OTHERS))
def test_a_round_trip_ends_where_it_should_and_depends_on_everybody_else_in_it(
    path_length: int, destination: bytes
) -> None:
    trip = plan(path_length=path_length).to(name(int.from_bytes(destination)), attempt=1)

    assert (trip.path[-1].node_id, trip.back[-1].node_id) == (destination, ME)
    assert (len(trip.path), len(trip.back)) == (path_length, path_length)
    assert trip.peers == tuple(hop.node_id for hop in trip.path + trip.back[:-1])
    assert all(hop.public_key == hop.node_id for hop in trip.path + trip.back[:-1])
    # All hold the packet, the destination its acknowledgement; nobody waits for us.
    assert [hop.delay_us for hop in trip.path + trip.back] == [250_000] * (2 * path_length - 1) + [0]


def test_the_timeout_knows_the_delays_and_grows_with_the_attempt() -> None:
    planner = plan()

    first, second = (planner.to(OTHERS[0], attempt=attempt).timeout_s for attempt in (1, 2))

    # Three stages of 0.25 s, four links of 0.5 s.
    assert (first, second) == (2.75, 3.75)


def test_a_loop_comes_back_to_us_over_others() -> None:
    loop = plan(path_length=3).loop()

    assert loop.path[-1].node_id == ME
    assert (loop.back, len(loop.path), len(set(loop.peers))) == ((), 3, 2)
    assert ME not in loop.peers


def test_a_delay_beyond_what_a_header_holds_is_cut() -> None:
    assert plan(delay_s=1e6).loop().path[0].delay_us == MAX_DELAY_US


@pytest.mark.parametrize("others", [0, 1])
def test_too_few_peers_carry_no_route(others: int) -> None:
    with pytest.raises(NoRouteError):
        plan(others=others).to_anybody()


def test_a_destination_that_nobody_has_described_has_no_route() -> None:
    with pytest.raises(NoRouteError, match="no descriptor"):
        plan().to(name(99), attempt=1)


def relays(trip: Itinerary) -> tuple[NodeId, NodeId]:
    return trip.path[0].node_id, trip.back[0].node_id


def test_cover_goes_uniformly_to_everybody_whom_a_message_may_go_to() -> None:
    planner = plan()

    counts = Counter(planner.to_anybody().path[-1].node_id for _ in range(2000))

    assert chi_square_p_value(counts, uniform_law(OTHERS)) > SIGNIFICANCE


def test_the_way_back_is_independent_of_the_way_there_for_messages_and_cover_alike() -> None:
    planner = plan()
    pairs = [(there, back) for there in OTHERS[1:] for back in OTHERS[1:]]

    messages = Counter(relays(planner.to(OTHERS[0], attempt=1)) for _ in range(2000))
    cover = Counter(
        relays(trip) for trip in (planner.to_anybody() for _ in range(10_000)) if trip.path[-1].node_id == OTHERS[0]
    )

    for counts in (messages, cover):
        assert chi_square_p_value(counts, uniform_law(pairs)) > SIGNIFICANCE
