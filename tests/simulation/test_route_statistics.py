"""Routes and destinations follow their laws, and what the last hop tells about the sender.

Every test of a law is Pearson's, at significance 0.001 with the stated degrees of freedom (df), on fixed seeds.
"""

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import permutations

import pytest

from tests.statistics_chi_square import chi_square_p_value, uniform_law
from tests.unit.mixnet.mixing import seeded
from tests.unit.mixnet.networks import ListedPeers, graph, name, named, numbers, simple_paths
from unlinkabledfl.mixnet import topology
from unlinkabledfl.mixnet.destinations import Destinations, NeighbourDestinations, ReachDestinations
from unlinkabledfl.mixnet.draw import Draw
from unlinkabledfl.mixnet.routes import OverlayRoutes, RouteStrategy, ValiantRoutes, WalkRoutes
from unlinkabledfl.mixnet.topology import Topology
from unlinkabledfl.sphinx import Entropy

SIGNIFICANCE = 1e-3
DEFAULT = topology.circulant(32, 4)


def counted(
    routes: RouteStrategy, samples: int, *, end: int = 1, avoid: tuple[int, ...] = ()
) -> Counter[tuple[int, ...]]:
    """Draw routes from node 0, and count each."""
    draw = seeded(5)
    avoided = frozenset(named(avoid))
    return Counter(
        numbers(routes.route(source=name(0), destination=name(end), draw=draw, avoid=avoided)) for _ in range(samples)
    )


# -- walk --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "path_length", "up_to", "end", "avoid", "outcomes"),
    [
        (DEFAULT, 7, False, 1, (), 28),  # listed; df 27
        (DEFAULT, 7, False, 1, (31,), 16),  # listed, around a peer; df 15
        (topology.full(6), 4, True, 1, (), 41),  # listed; df 40
        (topology.full(32), 3, False, 1, (), 870),  # sampled; df 869
        (topology.full(32), 3, False, 1, (5, 9), 756),  # sampled, around peers; df 755
        (topology.full(12), 4, True, 1, (), 821),  # sampled, lengths mixed; df 820
        (topology.full(30), 3, False, 0, (), 812),  # sampled loops; df 811
    ],
)
def test_walks_are_uniform_over_all_simple_paths(  # noqa: PLR0917 -- parameters of pytest come by name
    shape: Topology, path_length: int, up_to: bool, end: int, avoid: tuple[int, ...], outcomes: int
) -> None:
    support = {
        path
        for length in (range(1, path_length + 1) if up_to else [path_length])
        for path in simple_paths(shape, 0, end, length)
        if not set(avoid).intersection(path)
    }
    assert len(support) == outcomes
    routes = WalkRoutes(graph=graph(shape), path_length=path_length, up_to=up_to)

    counts = counted(routes, 20 * outcomes, end=end, avoid=avoid)

    assert chi_square_p_value(counts, uniform_law(support)) > SIGNIFICANCE


def test_sampled_walks_are_uniform_where_degrees_differ() -> None:
    """On a small world, where paths differ in how many ways lead on from their nodes; df 1000."""
    shape = topology.small_world(14, 8, 0.5, seeded(2))
    routes = WalkRoutes(graph=graph(shape), path_length=5)
    assert routes.paths(name(0), name(1)) is None
    support = simple_paths(shape, 0, 1, 5)

    counts = counted(routes, 10 * len(support))

    assert chi_square_p_value(counts, uniform_law(support)) > SIGNIFICANCE


# -- overlay -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "down", "avoid"),
    [
        (8, (), ()),  # df 29
        (10, (6,), (3,)),  # df 29
        (200, tuple(range(6, 200)), ()),  # most are down, so relays come from the exact list; df 11
    ],
)
def test_overlay_relays_are_uniform(count: int, down: tuple[int, ...], avoid: tuple[int, ...]) -> None:
    relays = set(range(2, count)) - set(down) - set(avoid)
    support: set[tuple[int, ...]] = {(one, other, 1) for one, other in permutations(relays, 2)}
    routes = OverlayRoutes(peers=ListedPeers(count, down=down), path_length=3)

    counts = counted(routes, 4000, avoid=avoid)

    assert chi_square_p_value(counts, uniform_law(support)) > SIGNIFICANCE


@pytest.mark.parametrize("path_length", [2, 3, 5])
def test_the_last_hop_of_overlay_routes_is_independent_of_the_sender(path_length: int) -> None:
    """Pairs (sender, last hop) at one destination are uniform over all pairs of two different peers; df 109.

    Independence holds as far as it can: a sender is not its own relay, and every other peer is equally likely.
    """
    peers = range(1, 12)
    routes = OverlayRoutes(peers=ListedPeers(12), path_length=path_length)
    draw = seeded(6)
    counts: Counter[tuple[int, int]] = Counter()
    for _ in range(8000):
        sender = draw.choice(peers)
        route = numbers(routes.route(source=name(sender), destination=name(0), draw=draw))
        counts[sender, route[-2]] += 1

    assert chi_square_p_value(counts, uniform_law(list(permutations(peers, 2)))) > SIGNIFICANCE


# -- valiant -----------------------------------------------------------------------------------------------------------


def shortest_paths(shape: Topology, start: int, end: int) -> set[tuple[int, ...]]:
    return simple_paths(shape, start, end, shape.distances_from(start)[end])


@pytest.mark.parametrize("avoid", [(), (5,)])  # df 66 and df 48
def test_valiant_routes_follow_their_law(avoid: tuple[int, ...]) -> None:
    """A uniform middle and uniform shortest legs, given that they miss whom to avoid."""
    shape = topology.circulant(12, 4)
    weights: defaultdict[tuple[int, ...], float] = defaultdict(float)
    for middle in (node for node in range(12) if node not in (0, 1)):
        first, second = shortest_paths(shape, 0, middle), shortest_paths(shape, middle, 1)
        for leg in first:
            for other in second:
                if not set(avoid).intersection((*leg, *other)):
                    weights[*leg, *other] += 1.0 / (len(first) * len(second))
    total = sum(weights.values())

    counts = counted(ValiantRoutes(graph=graph(shape)), 10_000, avoid=avoid)

    assert chi_square_p_value(counts, {route: w / total for route, w in weights.items()}) > SIGNIFICANCE


# -- destinations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "destinations",
    [
        ReachDestinations(source=name(0), routes=WalkRoutes(graph=graph(DEFAULT), path_length=2)),  # df 7
        ReachDestinations(source=name(0), routes=OverlayRoutes(peers=ListedPeers(32), path_length=2)),  # df 30
        ReachDestinations(source=name(0), routes=ValiantRoutes(graph=graph(DEFAULT))),  # df 30
        NeighbourDestinations(  # df 3
            source=name(0),
            routes=OverlayRoutes(peers=ListedPeers(32), path_length=2),
            learning_graph=graph(DEFAULT),
        ),
    ],
)
def test_destinations_are_uniform(destinations: Destinations) -> None:
    draw = seeded(7)

    counts = Counter(destinations.choose(draw) for _ in range(3000))

    assert chi_square_p_value(counts, uniform_law(list(destinations.all()))) > SIGNIFICANCE


# -- what the last hop tells: exact, without sampling ------------------------------------------------------------------


def scripted(block: bytes) -> Entropy:
    return lambda _: block


def success_of_naming_the_sender(joint: dict[tuple[int, int, int], Fraction]) -> Fraction:
    """How often the best guess is right, given the law of (sender, destination, last hop) and the last two of them."""
    best: defaultdict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for (_, destination, last), probability in joint.items():
        best[destination, last] = max(best[destination, last], probability)
    assert sum(joint.values()) == 1
    return sum(best.values(), Fraction())


@pytest.mark.parametrize(
    ("path_length", "success"),
    [(1, Fraction(1)), (2, Fraction(1, 2)), (3, Fraction(1, 4)), (4, Fraction(1, 6)), (5, Fraction(18, 155))],
)
def test_the_last_hop_of_a_walk_tells_much_about_the_sender(path_length: int, success: Fraction) -> None:
    """By exact enumeration on the default circulant: destination uniform in reach, route uniform over simple paths."""
    network = graph(DEFAULT)
    routes = WalkRoutes(graph=network, path_length=path_length)
    joint: defaultdict[tuple[int, int, int], Fraction] = defaultdict(Fraction)
    for source in network.node_ids:
        reach = routes.reach(source)
        for destination in reach:
            paths = routes.paths(source, destination)
            assert paths is not None
            for path in paths:
                sender, *hops = numbers((source, *path))
                last = hops[-2] if path_length > 1 else sender
                joint[sender, hops[-1], last] += Fraction(1, 32 * len(reach) * len(paths))

    assert success_of_naming_the_sender(joint) == success


def test_the_last_hop_of_an_overlay_route_tells_only_that_it_is_not_the_sender() -> None:
    """By exact enumeration, K = 2, 32 peers: every entropy word chooses a relay, or is drawn again."""
    peers = 32
    routes = OverlayRoutes(peers=ListedPeers(peers), path_length=2)
    joint: dict[tuple[int, int, int], Fraction] = {}
    for sender, destination in permutations(range(peers), 2):
        # Two words lead to the ends themselves and are followed by a word that leads to the first free relay.
        free = min({0, 1, 2} - {sender, destination})
        relays: Counter[int] = Counter()
        for word in range(peers):
            script = b"".join(choice.to_bytes(8, "little") for choice in [free] * 31 + [word])
            draw = Draw(scripted(script))
            relay, _ = numbers(routes.route(source=name(sender), destination=name(destination), draw=draw))
            relays[relay] += 1
        assert relays.pop(free) == 3
        assert set(relays.values()) == {1}
        for relay in (free, *relays):
            joint[sender, destination, relay] = Fraction(1, peers * (peers - 1) * (peers - 2))

    assert success_of_naming_the_sender(joint) == Fraction(1, peers - 2)
