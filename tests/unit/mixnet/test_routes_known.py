"""Routes over a graph some of whose nodes have not told their key yet."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.statistics_chi_square import chi_square_p_value, uniform_law
from tests.unit.mixnet.mixing import seeded
from tests.unit.mixnet.networks import graph, name, named, numbers, simple_paths
from unlinkabledfl.errors import NoRouteError
from unlinkabledfl.mixnet import topology
from unlinkabledfl.mixnet.destinations import ListedDestinations
from unlinkabledfl.mixnet.routes import WalkRoutes
from unlinkabledfl.mixnet.routes.known import KnownRoutes

FULL = topology.full(7)


def routes(*, strangers: set[int], path_length: int = 3) -> KnownRoutes:
    inner = WalkRoutes(graph=graph(FULL), path_length=path_length)
    unknown = set(named(strangers))
    return KnownRoutes(inner, everybody=named(range(7)), knows=lambda peer: peer not in unknown)


@given(st.sets(st.integers(1, 5), max_size=3), st.integers())
def test_no_route_passes_a_stranger(strangers: set[int], seed: int) -> None:
    path = routes(strangers=strangers).route(source=name(0), destination=name(6), draw=seeded(seed))

    assert not strangers.intersection(numbers(path))
    assert numbers(path)[-1] == 6


def test_routes_are_uniform_over_those_of_known_nodes() -> None:
    # Significance 1%, fixed seed.
    strangers = {2, 4}
    possible = {path for path in simple_paths(FULL, 0, 6, 3) if not strangers.intersection(path)}
    known, draw = routes(strangers=strangers), seeded(7)

    counts = Counter(numbers(known.route(source=name(0), destination=name(6), draw=draw)) for _ in range(3_000))

    assert chi_square_p_value(counts, uniform_law(possible)) > 0.01


def test_a_loop_comes_back_to_its_source_though_no_node_is_its_own_peer() -> None:
    known = routes(strangers={0, 3})

    path = numbers(known.route(source=name(0), destination=name(0), draw=seeded(1)))

    assert path[-1] == 0
    assert 3 not in path


def test_with_too_few_known_nodes_there_is_no_route() -> None:
    with pytest.raises(NoRouteError):
        routes(strangers={1, 2, 3, 4}).route(source=name(0), destination=name(6), draw=seeded(1))


def test_strangers_and_peers_to_avoid_are_left_out_together() -> None:
    known, draw = routes(strangers={1, 2}), seeded(1)

    paths = {
        numbers(known.route(source=name(0), destination=name(6), draw=draw, avoid=frozenset([name(3)])))
        for _ in range(50)
    }

    assert paths == {(4, 5, 6), (5, 4, 6)}


def test_destinations_are_known_ones_in_reach() -> None:
    known, draw = routes(strangers={1, 2, 3, 4}), seeded(1)

    assert {numbers([known.destination(source=name(0), draw=draw)]) for _ in range(60)} == {(5,), (6,)}


def test_where_nobody_is_known_there_is_no_destination() -> None:
    with pytest.raises(NoRouteError, match="told its key"):
        routes(strangers={1, 2, 3, 4, 5, 6}).destination(source=name(0), draw=seeded(1))


def test_reach_and_lengths_are_those_of_the_whole_graph() -> None:
    known = routes(strangers={1, 2})

    known.check()

    assert numbers(known.reach(name(0))) == (1, 2, 3, 4, 5, 6)
    assert known.reaches(name(0), name(1))
    assert (known.hops_min, known.hops_max) == (3, 3)


# -- listed destinations ----------------------------------------------------------------------------------------------


def listed(*, strangers: set[int], peers: tuple[int, ...] = (1, 2, 3)) -> ListedDestinations:
    unknown = set(named(strangers))
    return ListedDestinations(
        source=name(0),
        routes=WalkRoutes(graph=graph(FULL), path_length=2),
        listed=named(peers),
        knows=lambda peer: peer not in unknown,
    )


def test_listed_destinations_are_drawn_uniformly_from_those_that_are_known() -> None:
    # Significance 1%, fixed seed.
    destinations, draw = listed(strangers={2}, peers=(1, 2, 3, 4)), seeded(3)

    counts = Counter(numbers([destinations.choose(draw)])[0] for _ in range(1_500))

    assert chi_square_p_value(counts, uniform_law([1, 3, 4])) > 0.01


def test_listed_destinations_leave_out_whom_to_avoid() -> None:
    destinations = listed(strangers={2})

    assert destinations.choose(seeded(1), avoid=frozenset([name(1)])) == name(3)
    with pytest.raises(NoRouteError):
        destinations.choose(seeded(1), avoid=frozenset(named([1, 3])))


def test_all_listed_destinations_are_listed_known_or_not() -> None:
    assert numbers(listed(strangers={2}).all()) == (1, 2, 3)
