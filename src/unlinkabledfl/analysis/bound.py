"""Theorem 1 for a design: how many trajectories a sender has, how well routes are hidden, and what that bounds.

The observer sees the last hop and the destination of a packet; it knows graph, routes and who writes to whom. Of a
sender there are then some routes that are possible, and on each every hidden shuffle multiplies the trajectories by O.
So with H hidden shuffles on all of them

    γ_T = (routes of one sender) · O^H,        H∞(Π | T) ≥ H∞(R_K | T) + h·log2 O,

and where h = H the two powers of O cancel: the bound is γ_R · 2^−H∞(R_K | T), with γ_R the routes alone, whatever O is.
Once relays are compromised, h counts the shuffles of the least hidden trajectory and γ_T those of the most hidden: each
shuffle between them costs a factor O, and the bound soon says nothing.

Invariant: routes are enumerated or counted, not sampled.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log2, perm
from typing import Final, TypeAlias

from unlinkabledfl.analysis.entropy import LinkingBound
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.mixnet.routes import TransportGraph, WalkRoutes
from unlinkabledfl.mixnet.topology import Topology
from unlinkabledfl.sphinx import NodeId

__all__ = ["RouteView", "bound_of", "overlay_paths", "relays_owned", "route_view", "walk_paths"]

Ends: TypeAlias = Sequence[Sequence[int]]
"""To whom each node writes."""

Routes: TypeAlias = Mapping[int, int]
"""Of one sender and destination: how many of the equally likely routes end in each last hop."""

RoutesOf: TypeAlias = Callable[[int, int], Routes]

_NAME_BYTES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteView:
    """What last hop and destination tell of routes: means over all that can be seen, as often as it is."""

    senders: float
    """|U|: how many senders are possible."""
    routes: int
    """γ_R: the most routes that any one of them has."""
    route_bits: float
    """H∞(R_K | T): the mean of minus the logarithm of the likeliest route."""
    guess: float
    """The best guess of the sender: what the bound is about."""
    bound: float
    """The mean of min(1, γ_R · 2^−H∞(R_K | T)), each with its own γ_R."""


def walk_paths(topology: Topology, *, path_length: int) -> RoutesOf:
    """Return the routes of uniform simple paths of K edges, by last hop."""
    listed = _listed(topology, path_length)

    def routes(sender: int, destination: int) -> Routes:
        found: defaultdict[int, int] = defaultdict(int)
        for path in listed(sender, destination):
            found[path[-2] if len(path) > 1 else sender] += 1
        return found

    return routes


def overlay_paths(nodes: int, *, path_length: int) -> RoutesOf:
    """Return the routes over relays that are drawn from everybody but the two ends, by last hop."""

    def routes(sender: int, destination: int) -> Routes:
        if path_length == 1:
            return {sender: 1}
        # One relay is the last hop, the others are any of those that are left, in any order.
        each = perm(nodes - 3, path_length - 2)
        return {hop: each for hop in range(nodes) if hop not in {sender, destination}}

    return routes


def route_view(routes_of: RoutesOf, ends: Ends, *, destinations: Sequence[int]) -> RouteView:
    """Return what can be seen of the routes of all who write to these destinations; one may stand for all."""
    senders = bits = guess = bound = total = 0.0
    most = 0
    for destination in destinations:
        for seen in _by_last_hop(routes_of, ends, destination):
            weight = sum(count * each for count, each in seen)
            likeliest = max(each for _, each in seen) / weight
            routes = max(count for count, _ in seen)
            most = max(most, routes)
            total += weight
            senders += weight * len(seen)
            bits -= weight * log2(likeliest)
            guess += max(count * each for count, each in seen)
            bound += weight * min(1.0, routes * likeliest)
    if not total > 0.0:
        raise ConfigError(key="mixnet.path_length", got="no route", takes="a design in which somebody reaches another")
    return RouteView(
        senders=senders / total, routes=most, route_bits=bits / total, guess=guess / total, bound=bound / total
    )


def bound_of(view: RouteView, *, outbox_size: int, hidden_most: int, hidden_least: int) -> LinkingBound:
    """Return the theorem's bound with everything counted: routes of one sender, and matchings on each."""
    return LinkingBound(
        multiplicity=view.routes * outbox_size**hidden_most,
        route_bits=view.route_bits,
        hidden_shuffles=hidden_least,
        outbox_size=outbox_size,
    )


def relays_owned(topology: Topology, ends: Ends, *, path_length: int, owned: Sequence[int]) -> float:
    """Return how often every relay of a walk of K edges is owned, for honest senders: exactly, on this graph."""
    listed = _listed(topology, path_length)
    mine = frozenset(owned)
    shares = [
        sum(mine.issuperset(path[:-1]) for path in paths) / len(paths)
        for sender, destinations in enumerate(ends)
        if sender not in mine
        for destination in destinations
        if (paths := listed(sender, destination))
    ]
    return sum(shares) / len(shares) if shares else 0.0


def _by_last_hop(routes_of: RoutesOf, ends: Ends, destination: int) -> Iterator[list[tuple[int, float]]]:
    """Yield, for each last hop that can be seen, every possible sender's number of routes and the weight of each."""
    seen: defaultdict[int, list[tuple[int, float]]] = defaultdict(list)
    for sender, destinations in enumerate(ends):
        if destination not in destinations:
            continue
        routes = routes_of(sender, destination)
        all_routes = sum(routes.values())
        for hop, count in routes.items():
            seen[hop].append((count, 1.0 / (len(destinations) * all_routes)))
    yield from seen.values()


def _listed(topology: Topology, path_length: int) -> Callable[[int, int], Sequence[tuple[int, ...]]]:
    names = tuple(NodeId(index.to_bytes(_NAME_BYTES)) for index in range(topology.nodes))
    graph = TransportGraph(topology=topology, node_ids=names)
    routes = WalkRoutes(graph=graph, path_length=path_length)

    def listed(sender: int, destination: int) -> Sequence[tuple[int, ...]]:
        paths = routes.paths(names[sender], names[destination])
        if paths is None:
            takes = "a path length at which the paths of a pair can be listed"
            raise ConfigError(key="mixnet.path_length", got=path_length, takes=takes)
        return [tuple(graph.index_of(name) for name in path) for path in paths]

    return listed
