from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.mixnet.mixing import seeded
from tests.unit.mixnet.networks import graph, name, named, numbers, simple_paths
from unlinkabledfl.errors import ConfigError, LocalProtocolError, NoRouteError
from unlinkabledfl.mixnet import topology
from unlinkabledfl.mixnet.routes import TransportGraph, WalkRoutes
from unlinkabledfl.mixnet.routes.bounded_cache import BoundedCache
from unlinkabledfl.mixnet.topology import Topology

STAR = topology.from_edges(5, [(0, 1), (0, 2), (0, 3), (0, 4)])
PATH = topology.from_edges(4, [(0, 1), (1, 2), (2, 3)])


def walk(shape: Topology, path_length: int, *, up_to: bool = False) -> WalkRoutes:
    return WalkRoutes(graph=graph(shape), path_length=path_length, up_to=up_to)


def routes_seen(routes: WalkRoutes, start: int, end: int, *, avoid: Iterable[int] = ()) -> set[tuple[int, ...]]:
    draw = seeded(1)
    avoided = frozenset(named(avoid))
    return {
        numbers(routes.route(source=name(start), destination=name(end), draw=draw, avoid=avoided)) for _ in range(300)
    }


def test_every_simple_path_of_exactly_k_edges_is_a_route_and_nothing_else() -> None:
    shape = topology.circulant(32, 4)

    assert routes_seen(walk(shape, 2), 0, 7) == {(1, 7), (6, 7)}
    for end in shape.reach_exactly(0, 4):
        assert routes_seen(walk(shape, 4), 0, end) == simple_paths(shape, 0, end, 4)


def test_up_to_k_edges_takes_shorter_paths_too() -> None:
    assert routes_seen(walk(topology.full(4), 3, up_to=True), 0, 1) == {(1,), (2, 1), (3, 1), (2, 3, 1), (3, 2, 1)}


@given(
    seed=st.integers(0, 2**32),
    nodes=st.integers(5, 14),
    path_length=st.integers(1, 6),
    up_to=st.booleans(),
    avoided=st.sets(st.integers(0, 13), max_size=4),
)
def test_a_route_is_simple_ends_at_its_destination_and_uses_links_only(
    seed: int, nodes: int, path_length: int, up_to: bool, avoided: set[int]
) -> None:
    draw = seeded(seed)
    shape = topology.small_world(nodes, 4, 0.3, draw)
    routes = walk(shape, path_length, up_to=up_to)
    start, end = draw.sample(range(nodes), 2)
    lengths = range(1, path_length + 1) if up_to else [path_length]
    open_paths = {
        path for length in lengths for path in simple_paths(shape, start, end, length) if not avoided.intersection(path)
    }

    try:
        route = numbers(
            routes.route(source=name(start), destination=name(end), draw=draw, avoid=frozenset(named(avoided)))
        )
    except NoRouteError:
        assert open_paths == set()
    else:
        assert route in open_paths
        assert routes.hops_min <= len(route) <= routes.hops_max


def test_destinations_are_the_ends_of_paths_of_exactly_k_edges() -> None:
    routes = walk(topology.circulant(32, 4), 2)
    draw = seeded(1)

    assert numbers(routes.reach(name(0))) == (2, 5, 7, 12, 20, 25, 27, 30)
    assert {routes.destination(source=name(0), draw=draw) for _ in range(300)} == set(routes.reach(name(0)))
    assert routes.reaches(name(0), name(7))
    assert not routes.reaches(name(0), name(1))


def test_avoided_destinations_are_not_chosen() -> None:
    routes = walk(topology.circulant(32, 4), 2)
    avoid = frozenset(named([2, 5, 7, 12, 20, 25, 27]))

    assert routes.destination(source=name(0), draw=seeded(1), avoid=avoid) == name(30)
    with pytest.raises(NoRouteError, match="none of 8 destinations"):
        routes.destination(source=name(0), draw=seeded(1), avoid=avoid | {name(30)})


def test_routes_lead_around_avoided_peers() -> None:
    routes = walk(topology.circulant(32, 4), 2)

    assert routes_seen(routes, 0, 7, avoid=[1]) == {(6, 7)}
    assert routes_seen(routes, 0, 7, avoid=[0, 99]) == {(1, 7), (6, 7)}
    with pytest.raises(NoRouteError, match="no open simple path of 2 edges"):
        routes_seen(routes, 0, 7, avoid=[1, 6])
    with pytest.raises(NoRouteError, match="to be avoided"):
        routes_seen(routes, 0, 7, avoid=[7])


def test_paths_too_many_to_list_are_still_found_around_avoided_peers() -> None:
    routes = walk(topology.full(32), 3)
    assert routes.paths(name(0), name(1)) is None
    avoid = set(range(4, 32))

    assert routes_seen(routes, 0, 1, avoid=avoid) == {(2, 3, 1), (3, 2, 1)}


def test_a_pair_without_a_path_has_no_route() -> None:
    with pytest.raises(NoRouteError, match="no open simple path of 3 edges"):
        routes_seen(walk(PATH, 3), 0, 2)


def test_a_node_outside_the_graph_has_no_route() -> None:
    with pytest.raises(NoRouteError, match="no node"):
        routes_seen(walk(PATH, 3), 0, 9)


@pytest.mark.parametrize(
    ("shape", "path_length", "loops"),
    [
        (topology.full(4), 1, {(1, 0), (2, 0), (3, 0)}),
        (topology.full(4), 2, {(1, 0), (2, 0), (3, 0)}),
        (topology.full(4), 3, {(1, 2, 0), (1, 3, 0), (2, 1, 0), (2, 3, 0), (3, 1, 0), (3, 2, 0)}),
        (topology.ring(4), 3, {(1, 2, 3, 0), (3, 2, 1, 0)}),  # no triangle: one more hop
        (PATH, 3, {(1, 2, 1, 0)}),  # no cycle at all: out and back
        (topology.ring(6), 4, {(1, 2, 1, 0), (5, 4, 5, 0)}),
    ],
)
def test_a_loop_comes_home_through_others(shape: Topology, path_length: int, loops: set[tuple[int, ...]]) -> None:
    routes = walk(shape, path_length)

    assert routes_seen(routes, 0, 0) == loops
    assert routes_seen(routes, 0, 0, avoid=[0]) == loops
    assert max(map(len, loops)) <= routes.hops_max


def test_a_loop_up_to_k_hops_is_any_cycle_that_short() -> None:
    assert routes_seen(walk(topology.full(3), 3, up_to=True), 0, 0) == {(1, 0), (2, 0), (1, 2, 0), (2, 1, 0)}


@pytest.mark.parametrize(
    ("shape", "path_length", "hops_max"),
    [
        (topology.full(5), 3, 3),
        (topology.ring(9), 3, 4),
        (topology.ring(9), 4, 4),
        (topology.ring(9), 1, 2),
        (PATH, 3, 4),
    ],
)
def test_the_geometry_must_carry_the_longest_loop(shape: Topology, path_length: int, hops_max: int) -> None:
    assert walk(shape, path_length).hops_max == hops_max


@pytest.mark.parametrize(
    ("shape", "path_length", "up_to"),
    [(topology.circulant(32, 4), 10, False), (topology.ring(11), 10, False), (STAR, 1, False), (STAR, 10, True)],
)
def test_check_accepts_what_every_node_can_start(shape: Topology, path_length: int, up_to: bool) -> None:
    walk(shape, path_length, up_to=up_to).check()


@pytest.mark.parametrize(
    ("shape", "path_length", "says"),
    [
        (topology.ring(10), 10, "got 10, takes at most 9 on this topology"),
        (STAR, 2, "got 2, takes at most 1 on this topology"),  # the hub starts no path of two edges
        (PATH, 4, "got 4, takes at most 2 on this topology"),
        (topology.full(3), 5, "got 5, takes at most 2 on this topology"),
        (topology.from_edges(3, [(0, 1)]), 1, "takes a topology in which every node has a neighbour"),
    ],
)
def test_check_names_the_longest_length_that_works(shape: Topology, path_length: int, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        walk(shape, path_length).check()

    assert caught.value.key == "mixnet.path_length"


@pytest.mark.parametrize("path_length", [0, -1, 11])
def test_a_length_that_no_packet_carries_is_refused(path_length: int) -> None:
    with pytest.raises(ConfigError, match=f"mixnet.path_length: got {path_length}, takes a whole number from 1 to 10"):
        walk(topology.full(20), path_length)


def test_a_transport_graph_answers_by_name() -> None:
    names = named([7, 5, 3, 1])
    shape = TransportGraph(topology=PATH, node_ids=names)

    assert shape.neighbours_of(name(5)) == (name(7), name(3))
    assert name(3) in shape
    assert name(0) not in shape


@pytest.mark.parametrize("names", [[1, 2, 3], [1, 2, 3, 3]])
def test_every_node_of_a_transport_graph_has_one_name_of_its_own(names: list[int]) -> None:
    with pytest.raises(LocalProtocolError, match=r"names for 4 nodes|same name"):
        TransportGraph(topology=PATH, node_ids=named(names))


@given(stores=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 6))))
def test_a_bounded_cache_keeps_the_newest_up_to_its_bound(stores: list[tuple[int, int]]) -> None:
    cache: BoundedCache[int, int] = BoundedCache(bound=10)

    for key, weight in stores:
        cache.store(key, weight, weight=weight)
        assert cache.entries[key] == weight
        assert cache.weight == sum(cache.entries.values()) <= 10
