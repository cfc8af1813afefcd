"""Relays drawn from everybody: the route says nothing about where its sender stands in the network.

The relays are K - 1 distinct peers, uniform over the view without sender and destination, so the last hop that a
destination sees is independent of the sender. That needs K >= 2: with one hop the last hop is the sender. Every route
has exactly K hops; to let some be shorter would bring direct deliveries back.
"""

from collections.abc import Set as AbstractSet
from itertools import islice

from unlinkabledfl.errors import ConfigError, NoRouteError
from unlinkabledfl.mixnet.draw import Draw
from unlinkabledfl.mixnet.routes.protocol import NOBODY, Peers, check_path_length
from unlinkabledfl.sphinx import NodeId


class OverlayRoutes:
    """Exactly `path_length` hops over relays that are chosen without regard to links; links are dialled on demand."""

    __slots__ = ("_path_length", "_peers")

    def __init__(self, *, peers: Peers, path_length: int) -> None:
        check_path_length(path_length)
        self._peers = peers
        self._path_length = path_length

    @property
    def hops_min(self) -> int:
        """The fewest hops that a route has."""
        return self._path_length

    @property
    def hops_max(self) -> int:
        """The most hops that a route has: a loop passes at least one other node, whatever the path length."""
        return max(self._path_length, 2)

    def route(
        self, *, source: NodeId, destination: NodeId, draw: Draw, avoid: AbstractSet[NodeId] = NOBODY
    ) -> tuple[NodeId, ...]:
        """Return K - 1 distinct relays, uniform and in uniform order, then the destination.

        Only relays must be routable in the view. The destination of a reply is the viewing peer itself, and whether to
        write to some other peer was decided when it was chosen.
        """
        if destination == source:
            wanted = self.hops_max - 1
        elif destination in avoid:
            raise NoRouteError(f"the destination {destination.hex()[:16]} is to be avoided")
        else:
            wanted = self._path_length - 1
        if wanted == 0:
            return (destination,)
        peers = self._peers
        size = len(peers)
        relays: list[NodeId] = []
        # Taking the first acceptable draws is uniform; only a view that is mostly unusable needs the exact list.
        for _ in range(8 + 4 * wanted if size else 0):
            relay = peers.at(draw.below(size))
            if (
                relay not in (destination, source)
                and relay not in relays
                and relay not in avoid
                and peers.is_routable(relay)
            ):
                relays.append(relay)
                if len(relays) == wanted:
                    relays.append(destination)
                    return tuple(relays)
        usable = self._usable(avoid, source, destination)
        if len(usable) < wanted:
            raise NoRouteError(f"a route of {wanted + 1} hops needs {wanted} relays and {len(usable)} peers are usable")
        return (*draw.sample(usable, wanted), destination)

    def destination(self, *, source: NodeId, draw: Draw, avoid: AbstractSet[NodeId] = NOBODY) -> NodeId:
        """Return a destination, uniform over all other routable peers."""
        peers = self._peers
        size = len(peers)
        for _ in range(8 if size else 0):
            peer = peers.at(draw.below(size))
            if peer != source and peer not in avoid and peers.is_routable(peer):
                return peer
        usable = self._usable(avoid, source, source)
        if not usable:
            raise NoRouteError("no other peer is usable as a destination")
        return draw.choice(usable)

    def reach(self, source: NodeId) -> tuple[NodeId, ...]:
        """Return all other routable peers."""
        return tuple(self._usable(NOBODY, source, source))

    def reaches(self, source: NodeId, destination: NodeId) -> bool:
        """Return whether the destination is another routable peer."""
        return source != destination and self._peers.is_routable(destination)

    def check(self) -> None:
        """Raise `ConfigError` when there are too few peers for distinct relays between two ends."""
        peers = self._peers
        routable = (True for index in range(len(peers)) if peers.is_routable(peers.at(index)))
        # Of ten thousand peers only as many are asked as the route needs.
        others = sum(islice(routable, self._path_length))
        if others < self._path_length:
            raise ConfigError(
                key="mixnet.path_length",
                got=self._path_length,
                takes=f"at most {others} with {others} other peers" if others else "a network of at least two peers",
                hint=f"{self._path_length} hops need as many other peers: distinct relays and the destination",
            )

    def _usable(self, avoid: AbstractSet[NodeId], *ends: NodeId) -> list[NodeId]:
        peers = self._peers
        everybody = [peers.at(index) for index in range(len(peers))]
        return [peer for peer in everybody if peer not in ends and peer not in avoid and peers.is_routable(peer)]
