"""What a route strategy offers, and the two ways in which it sees the network.

A strategy holds no state of its own except what it keeps to be fast, so all the nodes of a simulation may share one.
The network comes in one of two forms: `Peers`, a list of whom one may dial, or `TransportGraph`, which says whose
links exist. A graph never changes; when peers join or leave for good, a new graph and a new strategy replace the old
ones, and until then those that do not answer are passed in `avoid`.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final, Protocol

from unlinkabledfl.errors import ConfigError, LocalProtocolError, NoRouteError
from unlinkabledfl.mixnet.draw import Draw
from unlinkabledfl.mixnet.topology import Topology
from unlinkabledfl.sphinx import NodeId

HOPS_LIMIT: Final = 10
"""The most hops that a packet geometry carries."""

NOBODY: Final[frozenset[NodeId]] = frozenset()


class Peers(Protocol):
    """An ordered view of the other peers. The order may change between two calls.

    Positions may also name peers that are not routable, the viewing peer among them: strategies ask, and draw again.
    """

    def __len__(self) -> int: ...

    def at(self, index: int) -> NodeId:
        """Return the peer at this position."""

    def is_routable(self, node_id: NodeId) -> bool:
        """Return whether routes may use this peer at present."""


class RouteStrategy(Protocol):
    """Draws whom a packet passes."""

    @property
    def hops_min(self) -> int:
        """The fewest hops that a route has."""

    @property
    def hops_max(self) -> int:
        """The most hops that a route has, loops included: the packet geometry must carry them."""

    def route(
        self, *, source: NodeId, destination: NodeId, draw: Draw, avoid: AbstractSet[NodeId] = NOBODY
    ) -> tuple[NodeId, ...]:
        """Return the nodes after the source, destination last, relays never from `avoid`.

        Where source and destination are the same the route is a loop through other nodes. A destination in `avoid`, and
        a network that holds no such route at present, raise `NoRouteError`.
        """

    def destination(self, *, source: NodeId, draw: Draw, avoid: AbstractSet[NodeId] = NOBODY) -> NodeId:
        """Return a destination, uniform over what is in reach of the source and not in `avoid`, or `NoRouteError`."""

    def reach(self, source: NodeId) -> Sequence[NodeId]:
        """Return where the source can deliver. For planning and analysis: it may take time linear in the network."""

    def reaches(self, source: NodeId, destination: NodeId) -> bool:
        """Return whether the source can deliver to this other node."""

    def check(self) -> None:
        """Raise `ConfigError` when the network cannot carry the routes asked for, saying what it could carry."""


class TransportGraph:
    """A topology whose nodes have names."""

    __slots__ = ("_index_of", "node_ids", "topology")

    def __init__(self, *, topology: Topology, node_ids: Sequence[NodeId]) -> None:
        if len(node_ids) != topology.nodes:
            raise LocalProtocolError(f"{len(node_ids)} names for {topology.nodes} nodes")
        self.topology = topology
        self.node_ids = tuple(node_ids)
        self._index_of = {node_id: index for index, node_id in enumerate(self.node_ids)}
        if len(self._index_of) != topology.nodes:
            raise LocalProtocolError("two nodes of a transport graph have the same name")

    def __contains__(self, node_id: object) -> bool:
        return node_id in self._index_of

    def index_of(self, node_id: NodeId) -> int:
        """Return the node's position in the topology; NoRouteError when the graph does not know it."""
        try:
            return self._index_of[node_id]
        except KeyError:
            raise NoRouteError(f"the transport graph has no node {node_id.hex()[:16]}") from None

    def neighbours_of(self, node_id: NodeId) -> tuple[NodeId, ...]:
        """Return those with whom the node has a link."""
        return self.named(self.topology.neighbours(self.index_of(node_id)))

    def named(self, nodes: Sequence[int]) -> tuple[NodeId, ...]:
        """Return the names of these nodes."""
        node_ids = self.node_ids
        return tuple([node_ids[node] for node in nodes])


def check_path_length(path_length: int) -> None:
    """Raise `ConfigError` for a number of hops that no packet carries."""
    if not 1 <= path_length <= HOPS_LIMIT:
        raise ConfigError(key="mixnet.path_length", got=path_length, takes=f"a whole number from 1 to {HOPS_LIMIT}")


def draw_open(candidates: Sequence[NodeId], draw: Draw, avoid: AbstractSet[NodeId]) -> NodeId:
    """Return a candidate that is not in `avoid`, uniform over those, or raise `NoRouteError`."""
    if candidates:
        # Few are avoided as a rule; filtering everybody each time would cost more than trying again.
        for _ in range(4):
            candidate = candidates[draw.below(len(candidates))]
            if candidate not in avoid:
                return candidate
    still_open = [candidate for candidate in candidates if candidate not in avoid]
    if not still_open:
        raise NoRouteError(f"none of {len(candidates)} destinations in reach is usable")
    return draw.choice(still_open)
