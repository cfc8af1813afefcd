"""Cover goes where messages go, over the routes on which they go, in a running node.

Pearson's test at significance 0.001 for each kind of packet and each strategy, on a fixed seed; df is the number of
routes less one.
"""

from collections import Counter
from collections.abc import Sequence

import pytest

from tests.statistics_chi_square import chi_square_p_value
from tests.unit.mixnet.networks import simple_paths
from unlinkabledfl.mixnet.config import MixSettings
from unlinkabledfl.mixnet.items import MessageId
from unlinkabledfl.mixnet.journal import DROP, MESSAGE
from unlinkabledfl.mixnet.mixers import MixerSettings, OutboxSettings, PoissonSettings
from unlinkabledfl.mixnet.packets import Opaque
from unlinkabledfl.mixnet.topology import Topology, circulant, full
from unlinkabledfl.simulation import LinkPlan, LinkSettings, SealedPackets
from unlinkabledfl.simulation.mixnet import MixnetPlan, RouteName, build_mixnet_world
from unlinkabledfl.sphinx import Geometry, NodeId

SIGNIFICANCE = 0.001
POISSON = PoissonSettings(delay_mean_s=0.05, emission_rate_per_s=25.0, loop_rate_per_s=0.0)
OUTBOX = OutboxSettings(outbox_size=10, delay_mean_s=0.01, delay_deviation_s=0.0005)


class Paths:
    """The routes of what one node sent, by kind."""

    def __init__(self) -> None:
        self.taken: dict[str, Counter[tuple[NodeId, ...]]] = {}

    def originated(self, sent: Opaque, *, kind: str, path: Sequence[NodeId], message_id: MessageId | None) -> None:
        self.taken.setdefault(kind, Counter())[tuple(path)] += 1

    def relayed(self, received: Opaque, sent: Opaque) -> None:
        pass

    def delivered(self, received: Opaque, *, message_id: MessageId, data: bytes) -> None:
        pass


def law_of(shape: Topology, route: RouteName) -> dict[tuple[int, ...], float]:
    """Routes of two hops from node 0: a uniform destination, and then a uniform route to it."""
    graph = full(shape.nodes) if route is RouteName.OVERLAY else shape
    routes = {end: simple_paths(graph, 0, end, 2) for end in range(1, shape.nodes)}
    routes = {end: paths for end, paths in routes.items() if paths}
    return {path: 1.0 / (len(routes) * len(paths)) for paths in routes.values() for path in paths}


@pytest.mark.parametrize(
    ("shape", "route", "mixer"),
    [
        (circulant(7, 4), RouteName.OVERLAY, POISSON),  # df 29
        (circulant(12, 4), RouteName.WALK, POISSON),  # df 11
        (circulant(12, 4), RouteName.WALK, OUTBOX),  # df 11
    ],
)
def test_messages_and_cover_take_the_same_routes_to_the_same_destinations(
    shape: Topology, route: RouteName, mixer: MixerSettings
) -> None:
    paths = Paths()
    plan = MixnetPlan(
        topology=shape,
        packets=SealedPackets(Geometry()),
        mix=MixSettings(mixer=mixer, epoch_length_s=None),
        route=route,
        journal=lambda index: paths if index == 0 else Paths(),
    )
    world, mixnet = build_mixnet_world(plan, seed=3, links=LinkPlan(default=LinkSettings(latency_s=0.01)))
    destinations = mixnet.destinations_of(0)
    for number in range(600):  # every destination as often as any other, as rounds have it
        world.send(0, destinations[number % len(destinations)], b"m", at_s=0.08 * number)

    world.run_until(50.0)

    law = {tuple(mixnet.node_ids[node] for node in path): p for path, p in law_of(shape, route).items()}
    assert len(law) == (30 if route is RouteName.OVERLAY else 12)
    assert min(paths.taken[kind].total() for kind in (MESSAGE, DROP)) > 400
    assert [chi_square_p_value(paths.taken[kind], law) > SIGNIFICANCE for kind in (MESSAGE, DROP)] == [True, True]
