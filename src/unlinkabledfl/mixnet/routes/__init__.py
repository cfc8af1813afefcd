"""Which peers a packet passes on its way: strategies behind one protocol.

| strategy | route | for |
|---|---|---|
| `OverlayRoutes` | relays uniform over all peers, exactly K hops | deployments whose nodes can dial each other |
| `WalkRoutes` | simple path over the transport graph, exactly or up to K edges | the paper's design |
| `ValiantRoutes` | a uniform middle relay, shortest legs | sparse graphs that cannot dial freely |
"""

from unlinkabledfl.mixnet.routes.overlay import OverlayRoutes
from unlinkabledfl.mixnet.routes.protocol import HOPS_LIMIT, Peers, RouteStrategy, TransportGraph
from unlinkabledfl.mixnet.routes.valiant import ValiantRoutes
from unlinkabledfl.mixnet.routes.walk import WalkRoutes

__all__ = [
    "HOPS_LIMIT",
    "OverlayRoutes",
    "Peers",
    "RouteStrategy",
    "TransportGraph",
    "ValiantRoutes",
    "WalkRoutes",
]
