"""Routes over a public graph whose nodes are not all there yet: only over those whose key is known.

A graph says who will have a link with whom. A node that joins later is part of it, and no packet can be made for it
before its descriptor has come. The strategy behind is asked again until its route consists of known nodes, so a route
has the same law, given that it does.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from unlinkabledfl.errors import NoRouteError
from unlinkabledfl.mixnet.draw import Draw
from unlinkabledfl.mixnet.routes.protocol import NOBODY, RouteStrategy, draw_open
from unlinkabledfl.sphinx import NodeId

_ATTEMPTS = 8


class KnownRoutes:
    """Another strategy's routes, as far as `knows` says that their nodes can be used."""

    __slots__ = ("_everybody", "_knows", "_routes")

    def __init__(self, routes: RouteStrategy, *, everybody: Sequence[NodeId], knows: Callable[[NodeId], bool]) -> None:
        self._routes = routes
        self._everybody = everybody
        self._knows = knows

    @property
    def hops_min(self) -> int:
        """The fewest hops that a route has."""
        return self._routes.hops_min

    @property
    def hops_max(self) -> int:
        """The most hops that a route has."""
        return self._routes.hops_max

    def route(
        self, *, source: NodeId, destination: NodeId, draw: Draw, avoid: AbstractSet[NodeId] = NOBODY
    ) -> tuple[NodeId, ...]:
        """Return a route of the strategy behind whose nodes are all known; its ends are the caller's affair."""
        knows, ends = self._knows, (source, destination)
        for _ in range(_ATTEMPTS):
            path = self._routes.route(source=source, destination=destination, draw=draw, avoid=avoid)
            if all(node_id in ends or knows(node_id) for node_id in path):
                return path
        strangers = frozenset(node_id for node_id in self._everybody if not knows(node_id)) - set(ends)
        return self._routes.route(source=source, destination=destination, draw=draw, avoid=avoid | strangers)

    def destination(self, *, source: NodeId, draw: Draw, avoid: AbstractSet[NodeId] = NOBODY) -> NodeId:
        """Return a known destination, uniform over those in reach."""
        for _ in range(_ATTEMPTS):
            chosen = self._routes.destination(source=source, draw=draw, avoid=avoid)
            if self._knows(chosen):
                return chosen
        known = [node_id for node_id in self._routes.reach(source) if self._knows(node_id)]
        if not known:
            raise NoRouteError("no destination in reach has told its key yet")
        return draw_open(known, draw, avoid)

    def reach(self, source: NodeId) -> Sequence[NodeId]:
        """Return where the source can deliver once everybody is there."""
        return self._routes.reach(source)

    def reaches(self, source: NodeId, destination: NodeId) -> bool:
        """Return whether the source can deliver to this node once everybody is there."""
        return self._routes.reaches(source, destination)

    def check(self) -> None:
        """Raise `ConfigError` when the network cannot carry the routes even when everybody is there."""
        self._routes.check()
