"""`paper`: the published adversary, as its appendix states it.

Candidates are the nodes within K hops upstream of the destination. Each gets three scores, of which the product is
normalized:

- predecessor: raised for the visible last hop where one hop cannot hide the origin (K = 1, or no mixnet), and for whom
  a compromised relay reports as its predecessor within [t − K·μ, t];
- timing: packets that the candidate sent near t − h·μ, for h = 1 … K, over what its mean rate lets expect;
- volume: packets that it sent within [t − K·μ, t], over its mean rate.

The appendix gives no constants. The boost is a factor of `BOOST`, "near" is within half a μ, and counts are smoothed by
one packet, so that silence never rules anybody out. Under mixers without μ its place is taken by the mean delay of a
hop.

It knows neither the routing strategy nor how a mixer delays: that is why it fails where stronger ones do not.
"""

import numpy as np

from unlinkabledfl.analysis.adversaries.protocol import Posteriors, normalized
from unlinkabledfl.analysis.trace import UNKNOWN, Times, Trace
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.mixnet.mixers import MixerSettings, OffSettings

BOOST = 100.0
_LEAST_S = 1e-3


class PaperAdversary:
    """Three channels, multiplied."""

    name = "paper"

    def posteriors(self, trace: Trace) -> Posteriors:
        if trace.settings.route == "valiant":
            raise ConfigError(
                key="attack.route",
                got="valiant",
                takes="routes with a largest number of hops K: direct, walk, walk_up_to or overlay",
                hint="its candidates and windows are stated in K; `route` handles valiant exactly",
            )
        weights = np.zeros((len(trace.targets), trace.nodes))
        view = _View(trace)
        for row, crossing in enumerate(trace.targets):
            weights[row] = view.scores(int(crossing))
        return normalized(weights)


class _View:
    """What is computed once for all targets."""

    def __init__(self, trace: Trace) -> None:
        settings, crossings = trace.settings, trace.crossings
        self._trace = trace
        self._single_hop = settings.route == "direct" or settings.path_length == 1
        self._hops = 1 if self._single_hop else settings.path_length
        self._mean_s = max(_mean_gap_s(settings.mixer), _LEAST_S)
        reach = [set(settings.topology.reach_within(node, max(settings.path_length, 1))) for node in range(trace.nodes)]
        self._candidates = [sorted(_candidates(trace, node, reach[node])) for node in range(trace.nodes)]
        self._sent = [crossings.left_at_s[crossings.source == node] for node in range(trace.nodes)]
        duration_s = float(crossings.left_at_s[-1] - crossings.left_at_s[0]) if len(crossings) else 0.0
        self._rates = [len(times) / duration_s if duration_s else 0.0 for times in self._sent]
        self._reports = _reports(trace)

    def scores(self, crossing: int) -> Posteriors:
        crossings = self._trace.crossings
        destination, last_hop = int(crossings.target[crossing]), int(crossings.source[crossing])
        arrived_s = float(crossings.arrived_at_s[crossing])
        found = np.zeros(self._trace.nodes)
        for node in self._candidates[destination]:
            found[node] = (
                self._predecessor(node, last_hop, arrived_s)
                * self._timing(node, arrived_s)
                * self._volume(node, arrived_s)
            )
        return found

    def _predecessor(self, node: int, last_hop: int, arrived_s: float) -> float:
        if node == last_hop and self._single_hop:
            return BOOST
        times = self._reports.get(node)
        if times is not None and _count(times, arrived_s - self._hops * self._mean_s, arrived_s):
            return BOOST
        return 1.0

    def _timing(self, node: int, arrived_s: float) -> float:
        half_s = self._mean_s / 2
        counts = [
            _count(self._sent[node], arrived_s - hop * self._mean_s - half_s, arrived_s - hop * self._mean_s + half_s)
            for hop in range(1, self._hops + 1)
        ]
        return (1.0 + sum(counts)) / (1.0 + self._rates[node] * self._mean_s * self._hops)

    def _volume(self, node: int, arrived_s: float) -> float:
        window_s = self._hops * self._mean_s
        return (1.0 + _count(self._sent[node], arrived_s - window_s, arrived_s)) / (1.0 + self._rates[node] * window_s)


def _candidates(trace: Trace, destination: int, reach: set[int]) -> set[int]:
    """Nodes within K hops; all of the others where links are dialled on demand and the graph bounds nothing."""
    if trace.settings.route == "overlay":
        return set(range(trace.nodes)) - {destination}
    return reach


def _mean_gap_s(mixer: MixerSettings) -> float:
    return 0.0 if isinstance(mixer, OffSettings) else mixer.delay_mean_s


def _reports(trace: Trace) -> dict[int, Times]:
    """Whom compromised relays name as the predecessor of something they passed on, and when it came to them."""
    if not trace.compromised:
        return {}
    linked = trace.before[trace.before != UNKNOWN]
    crossings = trace.crossings
    return {
        int(node): np.sort(crossings.arrived_at_s[linked[crossings.source[linked] == node]])
        for node in np.unique(crossings.source[linked])
    }


def _count(times: Times, from_s: float, until_s: float) -> int:
    return int(np.searchsorted(times, until_s, side="right") - np.searchsorted(times, from_s, side="left"))
