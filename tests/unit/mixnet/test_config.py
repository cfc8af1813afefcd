from typing import Any

import pytest

from tests.unit.mixnet.networks import name
from tests.unit.mixnet.nodes import PACKETS, drain, entropy
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.mixnet.config import MixSettings, build_mix_node, longest_pursuit_s, longest_round_trip_s
from unlinkabledfl.mixnet.delay_law import make_delay_law
from unlinkabledfl.mixnet.destinations import ReachDestinations
from unlinkabledfl.mixnet.mix_node import MixNode, NeighbourLimits
from unlinkabledfl.mixnet.mixers import MixerSettings, OffSettings, OutboxSettings, PoissonSettings
from unlinkabledfl.mixnet.peers import Directory, PeerSettings, PeerView
from unlinkabledfl.mixnet.routes import OverlayRoutes


def build(
    settings: MixSettings | None = None, *, path_length: int = 2, others: int = 3, complete: bool = False
) -> MixNode:
    directory = Directory((name(number), bytes([number]) * 32) for number in range(1, others + 1))
    peers = PeerView(own_id=name(0), settings=PeerSettings(), directory=directory)
    routes = OverlayRoutes(peers=peers, path_length=path_length)
    return build_mix_node(
        settings or MixSettings(),
        node_id=name(0),
        packets=PACKETS,
        peers=peers,
        routes=routes,
        destinations=ReachDestinations(source=name(0), routes=routes),
        entropy=entropy(1),
        view_is_complete=complete,
    )


@pytest.mark.parametrize(
    "mixer", [OffSettings(), OutboxSettings(), PoissonSettings()], ids=lambda each: type(each).__name__
)
def test_a_built_node_has_not_started(mixer: MixerSettings) -> None:
    node = build(MixSettings(mixer=mixer))

    assert (drain(node), node.next_timer_s(), node.waiting) == ([], None, 0)


def refusal(act: Any) -> tuple[str, object, str]:
    with pytest.raises(ConfigError) as caught:
        act()
    return caught.value.key, caught.value.got, caught.value.takes


def test_routes_longer_than_the_packets_are_refused() -> None:
    key, got, takes = refusal(lambda: build(path_length=4, others=9))

    assert (key, got) == ("packet.max_hops", 3)
    assert takes.startswith("at least 4,")


@pytest.mark.parametrize("others", [0, 1])
def test_a_complete_view_that_is_too_small_is_refused_and_one_that_may_grow_is_not(others: int) -> None:
    build(others=others)

    assert refusal(lambda: build(others=others, complete=True))[:2] == ("mixnet.path_length", 2)
    build(others=2, complete=True)


@pytest.mark.parametrize("overlap_s", [0.0, 150.4])
def test_keys_that_rotate_need_an_overlap_of_the_longest_round_trip(overlap_s: float) -> None:
    """Four stages of ten times 3.7 s, and five links of half a second."""
    key, got, takes = refusal(lambda: build(MixSettings(epoch_length_s=900.0, key_overlap_s=overlap_s)))

    assert key == "mixnet.key_overlap_s"
    assert got is overlap_s
    assert takes == "at least 151 s when keys rotate: the longest round trip of 2 hops each way"


def test_an_overlap_that_is_long_enough_is_taken() -> None:
    build(MixSettings(epoch_length_s=900.0, key_overlap_s=151.0))
    build(MixSettings(epoch_length_s=None, key_overlap_s=0.0))
    build(MixSettings())


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda: MixSettings(max_attempts=0), "mixnet.max_attempts"),
        (lambda: build(MixSettings(no_route_patience_s=-1.0)), "mixnet.no_route_patience_s"),
        (lambda: build(MixSettings(link_allowance_s=-1.0)), "mixnet.link_allowance_s"),
        (lambda: build(MixSettings(replay_capacity=0)), "mixnet.replay_capacity"),
        (lambda: build(MixSettings(delivered_capacity=0)), "mixnet.delivered_capacity"),
        (lambda: build(MixSettings(epoch_length_s=0.0)), "mixnet.epoch_length_s"),
        (lambda: build(MixSettings(epoch_length_s=200.0, key_overlap_s=201.0)), "mixnet.epoch_length_s"),
        (lambda: build(path_length=0), "mixnet.path_length"),
        (lambda: OutboxSettings(outbox_size=0), "mixnet.outbox_size"),
        (lambda: OutboxSettings(delay_mean_s=-0.1), "mixnet.delay_mean_s"),
        (lambda: PoissonSettings(delay_mean_s=-0.1), "mixnet.delay_mean_s"),
        (lambda: NeighbourLimits(packets_per_s=0.0), "mixnet.limits.packets_per_s"),
        (lambda: NeighbourLimits(news_per_s=0.0), "mixnet.limits.news_per_s"),
        (lambda: NeighbourLimits(news_burst=0.5), "mixnet.limits.news_burst"),
        (lambda: NeighbourLimits(links_max=0), "mixnet.limits.links_max"),
        (lambda: NeighbourLimits(transit_share=0.0), "mixnet.limits.transit_share"),
    ],
)
def test_what_cannot_work_is_refused_by_its_key(make: Any, key: str) -> None:
    assert refusal(make)[0] == key


def test_a_destination_remembers_for_longer_than_a_sender_tries() -> None:
    settings = MixSettings(mixer=OutboxSettings(outbox_size=10), max_attempts=3, no_route_patience_s=60.0)
    law = make_delay_law(settings.mixer)
    timeouts_s = [law.round_trip_timeout_s(stages=4, known_delays_s=0.0, attempt=attempt) for attempt in (1, 2, 3)]

    assert longest_round_trip_s(settings, law, hops=2) == timeouts_s[0]
    assert longest_pursuit_s(settings, law, hops=2) == sum(timeouts_s) + 3 * law.stage_mean_s + 60.0
