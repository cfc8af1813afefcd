"""What ordinary loss does to a peer view: the arithmetic behind the default `suspicion_bound`.

With K = 2 and the default rates a node sends two round trips a second over three peers each, four links, and one loop a
second over one peer and two links. At 1% loss a link, 3.9% of round trips fail, so three in a row about once in 17,000
judgements; a node judges 25,200 an hour. That is one or two of a hundred peers in quarantine for half a minute an hour.
"""

import random

import pytest

from tests.unit.mixnet.networks import name, named
from unlinkabledfl.mixnet.peers import Directory, PeerRemoved, PeerSettings, PeerView


def quarantines(*, loss: float, dead: int = 0) -> tuple[int, float]:
    """How often living peers are taken out in an hour, and their share of peer time spent there."""
    chance = random.Random(1)
    peers = named(range(1, 100))
    view = PeerView(own_id=name(0), settings=PeerSettings(), directory=Directory((peer, b"k" * 32) for peer in peers))
    gone = set(peers[:dead])
    taken_out, absent_s = 0, 0
    for second in range(3600):
        view.handle_timer(now_s=second)
        for relays, links in ((3, 4), (3, 4), (1, 2)):
            usable = [peer for peer in peers if view.is_routable(peer)]
            route = chance.sample(usable, relays)
            if gone.isdisjoint(route) and chance.random() < (1.0 - loss) ** links:
                view.route_succeeded(route, now_s=second)
            else:
                view.route_failed(route, now_s=second)
        while (event := view.next_event()) is not None:
            taken_out += isinstance(event, PeerRemoved) and event.node_id not in gone
        absent_s += len(view.avoided - gone)
    return taken_out, absent_s / (3600 * (len(peers) - dead))


@pytest.mark.parametrize(
    ("loss", "dead", "most_often", "largest_share"),
    [(0.01, 0, 8, 0.001), (0.05, 0, 300, 0.03), (0.01, 10, 100, 0.02)],
    ids=["1% loss", "5% loss", "1% loss, ten dead"],
)
def test_a_healthy_network_keeps_its_peers(loss: float, dead: int, most_often: int, largest_share: float) -> None:
    taken_out, share = quarantines(loss=loss, dead=dead)

    assert taken_out <= most_often
    assert share <= largest_share
