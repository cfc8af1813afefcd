"""Where a packet goes and how it comes back: hops with their keys and delays, and how long to wait.

Invariant: the way back is drawn independently of the way there, and a drop cover's itinerary by the same law as a
message's, from its destination to its delays.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from unlinkabledfl.errors import NoRouteError
from unlinkabledfl.mixnet.delay_law import DelayLaw
from unlinkabledfl.mixnet.destinations import Destinations
from unlinkabledfl.mixnet.draw import Draw
from unlinkabledfl.mixnet.keys import KeyRing
from unlinkabledfl.mixnet.peers import PeerView
from unlinkabledfl.mixnet.routes import RouteStrategy
from unlinkabledfl.sphinx import MAX_DELAY_US, Hop, NodeId


@dataclass(frozen=True, slots=True)
class Itinerary:
    """One way there and, unless it is a loop, one way back. `peers` are all others that it depends on."""

    path: tuple[Hop, ...]
    back: tuple[Hop, ...]
    timeout_s: float
    peers: tuple[NodeId, ...]


class Planner:
    """Draws the itineraries of one node; NoRouteError when the peers known now do not carry one."""

    __slots__ = ("_destinations", "_draw", "_hop_delay_s", "_keys", "_law", "_node_id", "_peers", "_routes")

    def __init__(
        self,
        *,
        node_id: NodeId,
        peers: PeerView,
        routes: RouteStrategy,
        destinations: Destinations,
        keys: KeyRing[Any],
        hop_delay_s: Callable[[Draw], float],
        law: DelayLaw,
        draw: Draw,
    ) -> None:
        self._node_id = node_id
        self._peers = peers
        self._routes = routes
        self._destinations = destinations
        self._keys = keys
        self._hop_delay_s = hop_delay_s
        self._law = law
        self._draw = draw

    def to(self, destination: NodeId, *, attempt: int) -> Itinerary:
        """A round trip for this attempt at a message."""
        path, there_s = self._path(self._node_id, destination, last_waits=True)
        back, back_s = self._path(destination, self._node_id, last_waits=False)
        return self._itinerary(path, back, there_s + back_s, attempt)

    def to_anybody(self) -> Itinerary:
        """A round trip for cover."""
        return self.to(self._destinations.choose(self._draw, avoid=self._peers.avoided), attempt=1)

    def loop(self) -> Itinerary:
        """A way from us to us."""
        path, known_s = self._path(self._node_id, self._node_id, last_waits=False)
        return self._itinerary(path, (), known_s, 1)

    def _itinerary(
        self, path: tuple[Hop, ...], back: tuple[Hop, ...], known_delays_s: float, attempt: int
    ) -> Itinerary:
        timeout_s = self._law.round_trip_timeout_s(
            stages=len(path) + len(back) - 1, known_delays_s=known_delays_s, attempt=attempt
        )
        peers = tuple([hop.node_id for hop in path + back if hop.node_id != self._node_id])
        return Itinerary(path, back, timeout_s, peers)

    def _path(self, source: NodeId, destination: NodeId, *, last_waits: bool) -> tuple[tuple[Hop, ...], float]:
        """Hops and the sum of their delays. A destination holds its acknowledgement as a relay holds a packet."""
        nodes = self._routes.route(source=source, destination=destination, draw=self._draw, avoid=self._peers.avoided)
        hops, total_s = [], 0.0
        last = len(nodes) - 1
        for index, node_id in enumerate(nodes):
            delay_s = self._hop_delay_s(self._draw) if index < last or last_waits else 0.0
            total_s += delay_s
            hops.append(Hop(node_id, self._public_key(node_id), min(round(delay_s * 1e6), MAX_DELAY_US)))
        return tuple(hops), total_s

    def _public_key(self, node_id: NodeId) -> bytes:
        if node_id == self._node_id:
            own: bytes = self._keys.current.pair.public_bytes
            return own
        if not self._peers.knows(node_id):
            raise NoRouteError(f"no descriptor of {node_id.hex()[:16]} has arrived yet")
        return self._peers.public_key(node_id)
