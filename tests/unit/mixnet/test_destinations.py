import pytest

from tests.unit.mixnet.mixing import seeded
from tests.unit.mixnet.networks import ListedPeers, graph, name, named, numbers
from unlinkabledfl.errors import ConfigError, NoRouteError
from unlinkabledfl.mixnet import topology
from unlinkabledfl.mixnet.destinations import NeighbourDestinations, ReachDestinations
from unlinkabledfl.mixnet.routes import OverlayRoutes, WalkRoutes

CIRCULANT = graph(topology.circulant(32, 4))


def test_reach_is_where_the_routes_lead() -> None:
    destinations = ReachDestinations(source=name(0), routes=WalkRoutes(graph=CIRCULANT, path_length=2))
    draw = seeded(1)

    destinations.check()

    assert numbers(destinations.all()) == (2, 5, 7, 12, 20, 25, 27, 30)
    assert {destinations.choose(draw) for _ in range(300)} == set(destinations.all())


def test_reach_leaves_out_whom_to_avoid() -> None:
    destinations = ReachDestinations(source=name(0), routes=OverlayRoutes(peers=ListedPeers(4), path_length=2))

    assert destinations.choose(seeded(1), avoid=frozenset(named([1, 2]))) == name(3)


def test_neighbours_are_those_of_the_learning_graph_whatever_the_routes() -> None:
    destinations = NeighbourDestinations(
        source=name(0), routes=OverlayRoutes(peers=ListedPeers(32), path_length=3), learning_graph=CIRCULANT
    )
    draw = seeded(1)

    destinations.check()

    assert numbers(destinations.all()) == (1, 6, 26, 31)
    assert {destinations.choose(draw) for _ in range(200)} == set(destinations.all())
    assert destinations.choose(draw, avoid=frozenset(named([1, 6, 26]))) == name(31)
    with pytest.raises(NoRouteError, match="none of 4 destinations"):
        destinations.choose(draw, avoid=frozenset(named([1, 6, 26, 31])))


def test_neighbours_that_the_routes_do_not_reach_are_a_mistake_of_the_configuration() -> None:
    # No triangle: a neighbour is never the end of a simple path of exactly two edges.
    routes = WalkRoutes(graph=CIRCULANT, path_length=2)

    with pytest.raises(ConfigError, match="got 'neighbours', takes routes that lead to every") as caught:
        NeighbourDestinations(source=name(0), routes=routes, learning_graph=CIRCULANT).check()

    assert caught.value.key == "mixnet.destinations"


def test_reach_fails_where_its_routes_fail() -> None:
    routes = WalkRoutes(graph=graph(topology.ring(4)), path_length=5)

    with pytest.raises(ConfigError, match="takes at most 3"):
        ReachDestinations(source=name(0), routes=routes).check()
