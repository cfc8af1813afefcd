"""Where messages go, cover included.

One object draws the destinations of a node's fragments and of its cover packets. That is its purpose: with two laws,
whoever knows the destination could tell which is which.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.mixnet.draw import Draw
from unlinkabledfl.mixnet.routes.protocol import NOBODY, RouteStrategy, TransportGraph, draw_open
from unlinkabledfl.sphinx import NodeId


class Destinations(Protocol):
    """Draws to whom one node writes."""

    def choose(self, draw: Draw, *, avoid: AbstractSet[NodeId] = NOBODY) -> NodeId:
        """Return a destination, uniform over those that are not in `avoid`; NoRouteError when that is none."""

    def all(self) -> Sequence[NodeId]:
        """Return every destination. For planning and analysis: it may take time linear in the network."""

    def check(self) -> None:
        """Raise `ConfigError` when the routes in use cannot deliver to some destination."""


class ReachDestinations:
    """Every peer that the routes can deliver to, uniformly."""

    __slots__ = ("_routes", "_source")

    def __init__(self, *, source: NodeId, routes: RouteStrategy) -> None:
        self._source = source
        self._routes = routes

    def choose(self, draw: Draw, *, avoid: AbstractSet[NodeId] = NOBODY) -> NodeId:
        """Return a peer in reach."""
        return self._routes.destination(source=self._source, draw=draw, avoid=avoid)

    def all(self) -> Sequence[NodeId]:
        """Return the peers in reach."""
        return self._routes.reach(self._source)

    def check(self) -> None:
        """Raise what the routes raise: where they work, so does this."""
        self._routes.check()


class NeighbourDestinations:
    """The source's neighbours in a learning graph, uniformly; routes lead there over other nodes."""

    __slots__ = ("_learning_graph", "_routes", "_source")

    def __init__(self, *, source: NodeId, routes: RouteStrategy, learning_graph: TransportGraph) -> None:
        self._source = source
        self._routes = routes
        self._learning_graph = learning_graph

    def choose(self, draw: Draw, *, avoid: AbstractSet[NodeId] = NOBODY) -> NodeId:
        """Return a learning neighbour."""
        return draw_open(self.all(), draw, avoid)

    def all(self) -> Sequence[NodeId]:
        """Return the learning neighbours."""
        return self._learning_graph.neighbours_of(self._source)

    def check(self) -> None:
        """Raise `ConfigError` when the routes do not lead to some learning neighbour."""
        self._routes.check()
        for destination in self.all():
            if not self._routes.reaches(self._source, destination):
                raise ConfigError(
                    key="mixnet.destinations",
                    got="neighbours",
                    takes="routes that lead to every learning neighbour",
                    hint=f"no route leads from {self._source.hex()[:16]} to {destination.hex()[:16]};"
                    " `reach` uses only what the routes can deliver to",
                )


class ListedDestinations:
    """Exactly these peers, uniformly over those whom `knows` says that we can write to by now."""

    __slots__ = ("_knows", "_listed", "_routes", "_source")

    def __init__(
        self, *, source: NodeId, routes: RouteStrategy, listed: Sequence[NodeId], knows: Callable[[NodeId], bool]
    ) -> None:
        self._source = source
        self._routes = routes
        self._listed = tuple(listed)
        self._knows = knows

    def choose(self, draw: Draw, *, avoid: AbstractSet[NodeId] = NOBODY) -> NodeId:
        """Return one of them."""
        listed, knows = self._listed, self._knows
        # A first draw is nearly always good; whatever is done with a bad one, the law stays uniform over the good.
        if listed:
            chosen = listed[draw.below(len(listed))]
            if chosen not in avoid and knows(chosen):
                return chosen
        return draw_open([peer for peer in listed if knows(peer)], draw, avoid)

    def all(self) -> Sequence[NodeId]:
        """Return all of them, known or not."""
        return self._listed

    def check(self) -> None:
        """Raise `ConfigError` when the routes do not lead to one of them."""
        self._routes.check()
        for destination in self._listed:
            if not self._routes.reaches(self._source, destination):
                raise ConfigError(
                    key="mixnet.exchange",
                    got=destination.hex()[:16],
                    takes="peers to whom the routes lead",
                    hint=f"none leads there from {self._source.hex()[:16]}",
                )
