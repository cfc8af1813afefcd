from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.mixnet.mixing import seeded
from tests.unit.mixnet.networks import graph, name, named, numbers
from unlinkabledfl.errors import ConfigError, NoRouteError
from unlinkabledfl.mixnet import topology
from unlinkabledfl.mixnet.routes import ValiantRoutes
from unlinkabledfl.mixnet.topology import Topology

PATH = topology.from_edges(4, [(0, 1), (1, 2), (2, 3)])


def is_two_shortest_legs(shape: Topology, start: int, route: tuple[int, ...]) -> bool:
    """Whether some node on the way is the middle of two shortest legs."""
    from_start, from_end = shape.distances_from(start), shape.distances_from(route[-1])
    return any(
        from_start[middle] == position and from_end[middle] == len(route) - position
        for position, middle in enumerate(route[:-1], start=1)
        if middle not in (start, route[-1])
    )


@given(seed=st.integers(0, 2**32), nodes=st.integers(3, 20), loop=st.booleans(), avoid_count=st.integers(0, 4))
def test_a_route_is_two_legs_over_links_that_miss_avoided_peers(
    seed: int, nodes: int, loop: bool, avoid_count: int
) -> None:
    draw = seeded(seed)
    shape = topology.circulant(nodes, 4 if nodes > 4 else 2)
    source, destination = draw.sample(range(nodes), 2)
    if loop:
        destination = source
    others = [node for node in range(nodes) if node not in (source, destination)]
    avoided = set(draw.sample(others, min(avoid_count, len(others))))
    routes = ValiantRoutes(graph=graph(shape))

    try:
        route = numbers(
            routes.route(source=name(source), destination=name(destination), draw=draw, avoid=frozenset(named(avoided)))
        )
    except NoRouteError:
        # Only when nobody is left to be the middle, or those left are too far away.
        assert len(avoided) == len(others) or nodes < 12
        return
    assert route[-1] == destination
    assert routes.hops_min <= len(route) <= routes.hops_max
    assert not avoided.intersection(route)
    assert all(far in shape.neighbours(near) for near, far in pairwise((source, *route)))
    if not avoided:
        assert is_two_shortest_legs(shape, source, route)


def test_the_middle_may_lie_behind_either_end() -> None:
    routes = ValiantRoutes(graph=graph(PATH))
    draw = seeded(1)

    seen = {numbers(routes.route(source=name(1), destination=name(2), draw=draw)) for _ in range(100)}

    # Middle 0: there and back over the sender. Middle 3: through the destination, and back.
    assert seen == {(0, 1, 2), (2, 3, 2)}


def test_a_loop_goes_to_a_middle_and_back() -> None:
    routes = ValiantRoutes(graph=graph(topology.ring(4)))
    draw = seeded(1)

    seen = {numbers(routes.route(source=name(0), destination=name(0), draw=draw)) for _ in range(300)}

    assert seen == {(1, 0), (3, 0), (1, 2, 1, 0), (1, 2, 3, 0), (3, 2, 1, 0), (3, 2, 3, 0)}


def test_when_every_shortest_leg_is_blocked_what_is_left_of_the_graph_serves() -> None:
    # 0 and 4 are joined by a short way over 1, and a long one over 2 and 3.
    shape = topology.from_edges(6, [(0, 1), (1, 4), (0, 2), (2, 3), (3, 4), (1, 5)])
    routes = ValiantRoutes(graph=graph(shape))
    draw = seeded(1)
    avoid = frozenset(named([1, 5]))

    seen = {numbers(routes.route(source=name(0), destination=name(4), draw=draw, avoid=avoid)) for _ in range(50)}

    assert seen == {(2, 3, 4)}


@pytest.mark.parametrize(
    ("source", "destination", "avoided", "says"),
    [
        (0, 3, [3], "to be avoided"),
        (0, 3, [1], "no open middle relay"),
        (0, 9, [], "no node"),
    ],
)
def test_without_an_open_way_there_is_no_route(source: int, destination: int, avoided: list[int], says: str) -> None:
    with pytest.raises(NoRouteError, match=says):
        ValiantRoutes(graph=graph(PATH)).route(
            source=name(source), destination=name(destination), draw=seeded(1), avoid=frozenset(named(avoided))
        )


def test_two_nodes_have_no_room_for_a_middle() -> None:
    routes = ValiantRoutes(graph=graph(topology.ring(2)))

    with pytest.raises(NoRouteError, match="besides the two ends"):
        routes.route(source=name(0), destination=name(1), draw=seeded(1))


def test_destinations_are_all_other_nodes() -> None:
    routes = ValiantRoutes(graph=graph(PATH))
    draw = seeded(1)

    assert numbers(routes.reach(name(2))) == (0, 1, 3)
    assert {routes.destination(source=name(2), draw=draw) for _ in range(100)} == set(routes.reach(name(2)))
    assert [routes.reaches(name(2), name(other)) for other in (2, 3, 9)] == [False, True, False]
    assert routes.destination(source=name(2), draw=draw, avoid=frozenset(named([0, 1]))) == name(3)
    with pytest.raises(NoRouteError, match="no other node"):
        routes.destination(source=name(2), draw=draw, avoid=frozenset(named([0, 1, 3])))


@pytest.mark.parametrize(
    ("build", "key", "says"),
    [
        (lambda: topology.ring(2), "topology.nodes", "got 2, takes at least 3 nodes"),
        (lambda: topology.from_edges(4, [(0, 1), (2, 3)]), "mixnet.routes", "takes a connected topology"),
        (lambda: topology.ring(12), "mixnet.routes", "takes a topology of diameter at most 5; this one has 6"),
    ],
)
def test_check_names_what_the_graph_lacks(build: Callable[[], Topology], key: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        ValiantRoutes(graph=graph(build())).check()

    assert caught.value.key == key


def test_check_accepts_a_graph_whose_legs_a_packet_can_carry() -> None:
    routes = ValiantRoutes(graph=graph(topology.ring(11)))

    routes.check()

    assert routes.hops_max == 10
