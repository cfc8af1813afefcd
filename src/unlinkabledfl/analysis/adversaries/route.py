"""`route`: the exact posterior given destination, last hop, topology and the routing strategy. No clock is read.

This is what delay and cover cannot help against. `last_hop` does the enumeration.
"""

import numpy as np

from unlinkabledfl.analysis.adversaries.protocol import Posteriors, normalized
from unlinkabledfl.analysis.last_hop import LastHop, LastHopLaw, direct_law, overlay_law, valiant_law, walk_law
from unlinkabledfl.analysis.trace import PublicSettings, Trace
from unlinkabledfl.errors import ConfigError

NAMES = ("direct", "overlay", "walk", "walk_up_to", "valiant")


class RouteAdversary:
    """Guesses by the last hop alone."""

    name = "route"

    def posteriors(self, trace: Trace) -> Posteriors:
        return route_prior(trace)


def route_prior(trace: Trace) -> Posteriors:
    """Return the exact posterior of every target from its last crossing."""
    settings, crossings = trace.settings, trace.crossings
    exact = LastHop(last_hop_law(settings), settings.destinations)
    known: dict[tuple[int, int], Posteriors] = {}
    found = np.empty((len(trace.targets), trace.nodes))
    for row, crossing in enumerate(trace.targets):
        edge = int(crossings.target[crossing]), int(crossings.source[crossing])
        if edge not in known:
            known[edge] = exact.posterior(*edge)
        found[row] = known[edge]
    found[:, list(trace.compromised)] = 0.0
    return normalized(found)


def last_hop_law(settings: PublicSettings) -> LastHopLaw:
    """Return the law of the last hop under the strategy in force."""
    nodes = settings.topology.nodes
    match settings.route:
        case "direct":
            return direct_law(nodes)
        case "overlay":
            return overlay_law(nodes, path_length=settings.path_length)
        case "walk" | "walk_up_to":
            up_to = settings.route == "walk_up_to"
            return walk_law(settings.topology, path_length=settings.path_length, up_to=up_to)
        case "valiant":
            return valiant_law(settings.topology)
        case _:
            raise ConfigError(
                key="attack.route",
                got=settings.route,
                takes=", ".join(NAMES),
                hint="the law of another strategy has to be written down before it can be inverted",
            )
