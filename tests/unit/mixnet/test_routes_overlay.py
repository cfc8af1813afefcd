import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.mixnet.mixing import seeded
from tests.unit.mixnet.networks import ListedPeers, name, named, numbers
from unlinkabledfl.errors import ConfigError, NoRouteError
from unlinkabledfl.mixnet.routes import OverlayRoutes


@given(
    seed=st.integers(0, 2**32),
    count=st.integers(2, 12),
    path_length=st.integers(1, 10),
    down=st.sets(st.integers(0, 11), max_size=6),
    avoided=st.sets(st.integers(0, 11), max_size=6),
    loop=st.booleans(),
)
def test_a_route_has_k_hops_over_distinct_usable_relays_or_there_are_too_few(  # noqa: PLR0917 -- named by hypothesis
    seed: int, count: int, path_length: int, down: set[int], avoided: set[int], loop: bool
) -> None:
    draw = seeded(seed)
    source, destination = draw.sample(range(count), 2)
    if loop:
        destination = source
    usable = set(range(count)) - down - avoided - {source, destination}
    routes = OverlayRoutes(peers=ListedPeers(count, down=down), path_length=path_length)
    relays_needed = max(path_length, 2) - 1 if loop else path_length - 1

    try:
        route = numbers(
            routes.route(source=name(source), destination=name(destination), draw=draw, avoid=frozenset(named(avoided)))
        )
    except NoRouteError:
        assert len(usable) < relays_needed or (destination in avoided and not loop)
    else:
        assert len(route) == relays_needed + 1
        assert route[-1] == destination
        assert set(route[:-1]) <= usable
        assert len(set(route)) == len(route)
        assert routes.hops_min <= len(route) <= routes.hops_max


def test_few_usable_among_many_peers_are_found() -> None:
    routes = OverlayRoutes(peers=ListedPeers(1000, down=range(4, 1000)), path_length=3)

    seen = {routes.route(source=name(0), destination=name(1), draw=seeded(seed)) for seed in range(40)}

    assert {numbers(route) for route in seen} == {(2, 3, 1), (3, 2, 1)}
    assert {numbers([routes.destination(source=name(0), draw=seeded(seed))])[0] for seed in range(40)} == {1, 2, 3}


def test_a_reply_leads_back_to_a_peer_that_its_own_view_does_not_route_over() -> None:
    routes = OverlayRoutes(peers=ListedPeers(4, down=[0]), path_length=3)

    route = numbers(routes.route(source=name(3), destination=name(0), draw=seeded(1)))

    assert sorted(route) == [0, 1, 2]
    assert route[-1] == 0


def test_one_hop_is_direct_delivery_but_a_loop_always_has_a_relay() -> None:
    routes = OverlayRoutes(peers=ListedPeers(2), path_length=1)

    assert routes.route(source=name(0), destination=name(1), draw=seeded(1)) == (name(1),)
    assert routes.route(source=name(0), destination=name(0), draw=seeded(1)) == (name(1), name(0))
    assert (routes.hops_min, routes.hops_max) == (1, 2)


def test_destinations_are_all_other_routable_peers() -> None:
    routes = OverlayRoutes(peers=ListedPeers(6, down=[4]), path_length=2)
    draw = seeded(1)

    assert numbers(routes.reach(name(0))) == (1, 2, 3, 5)
    assert {routes.destination(source=name(0), draw=draw) for _ in range(200)} == set(routes.reach(name(0)))
    assert [routes.reaches(name(0), name(other)) for other in (0, 1, 4)] == [False, True, False]
    avoid = frozenset(named([1, 2, 3]))
    assert routes.destination(source=name(0), draw=draw, avoid=avoid) == name(5)
    with pytest.raises(NoRouteError, match="no other peer"):
        routes.destination(source=name(0), draw=draw, avoid=avoid | {name(5)})


def test_an_empty_view_has_no_routes() -> None:
    routes = OverlayRoutes(peers=ListedPeers(0), path_length=3)

    with pytest.raises(NoRouteError, match="3 hops needs 2 relays and 0 peers are usable"):
        routes.route(source=name(0), destination=name(1), draw=seeded(1))
    with pytest.raises(NoRouteError, match="no other peer"):
        routes.destination(source=name(0), draw=seeded(1))


def test_check_wants_as_many_other_peers_as_hops() -> None:
    OverlayRoutes(peers=ListedPeers(5, down=[0]), path_length=4).check()
    OverlayRoutes(peers=ListedPeers(4), path_length=4).check()

    with pytest.raises(ConfigError, match="got 4, takes at most 3 with 3 other peers") as caught:
        OverlayRoutes(peers=ListedPeers(4, down=[0]), path_length=4).check()
    assert caught.value.key == "mixnet.path_length"
    with pytest.raises(ConfigError, match="takes a network of at least two peers"):
        OverlayRoutes(peers=ListedPeers(1, down=[0]), path_length=2).check()


@pytest.mark.parametrize("path_length", [0, 11])
def test_a_length_that_no_packet_carries_is_refused(path_length: int) -> None:
    with pytest.raises(ConfigError, match="takes a whole number from 1 to 10"):
        OverlayRoutes(peers=ListedPeers(30), path_length=path_length)
