"""`disclosure`: statistical disclosure by least squares, over many windows of time.

For every destination it explains how many packets came in a window by how many each node sent just before: a node
that writes to it makes it receive more. The weights are ridge regression's, drawn together as far as their differences
are no larger than noise makes them. The posterior of a target is the weight of each possible sender at its destination,
times what the last hop tells, among those who sent anything at all in the time before: who has left, or has not joined
yet, wrote nothing.

Under constant cover what a node sends does not depend on what it has to say, so there is nothing to explain; joins,
leaves and retransmissions are what still varies it. The deployment `strong, churn` of the board has them.
"""

import numpy as np
import numpy.typing as npt

from unlinkabledfl.analysis.adversaries.protocol import Posteriors, normalized
from unlinkabledfl.analysis.adversaries.route import route_prior
from unlinkabledfl.analysis.trace import Trace
from unlinkabledfl.mixnet.mixers import OffSettings

_LEAST_WINDOW_S = 0.5
_RIDGE = 1.0
_WRITERS_LEAST = 3
_WEIGHT_LEAST = 0.05


class DisclosureAdversary:
    """Regresses what is received on what was sent."""

    name = "disclosure"

    def posteriors(self, trace: Trace) -> Posteriors:
        prior = route_prior(trace)
        weights = _weights(trace)
        destinations = trace.crossings.target[trace.targets]
        return normalized(prior * weights[destinations] * _was_there(trace))


def _was_there(trace: Trace) -> Posteriors:
    """Return for every target who sent anything while it was under way; all, if it came before anybody could."""
    crossings = trace.crossings
    until_s = crossings.left_at_s[trace.targets]
    # Nearly every packet is under way for less than that.
    from_s = until_s - 3.0 * _window_s(trace)
    found = np.empty((len(trace.targets), trace.nodes))
    for node in range(trace.nodes):
        sent = crossings.left_at_s[crossings.source == node]
        found[:, node] = np.searchsorted(sent, until_s, side="right") > np.searchsorted(sent, from_s)
    return found


def _weights(trace: Trace) -> Posteriors:
    """Return for every destination how much of what it receives each node explains; at least a little of each."""
    crossings = trace.crossings
    window_s = _window_s(trace)
    arrived = ~np.isnan(crossings.arrived_at_s)
    begin = float(crossings.left_at_s[0])
    windows = int((float(crossings.left_at_s[-1]) - begin) // window_s)
    if windows <= trace.nodes + 1:
        return np.ones((trace.nodes, trace.nodes))
    # What was received in a window is held against what was sent in the window before it.
    sent = _counts(crossings.source, crossings.left_at_s - begin, window_s, windows, trace.nodes)[:-1]
    received = _counts(
        crossings.target[arrived], crossings.arrived_at_s[arrived] - begin, window_s, windows, trace.nodes
    )[1:]
    sent -= sent.mean(axis=0)
    received -= received.mean(axis=0)
    scale = float((sent**2).mean()) or 1.0
    gram = sent.T @ sent + _RIDGE * scale * len(sent) ** 0.5 * np.eye(trace.nodes)
    inverse = np.linalg.inv(gram)
    explained = (inverse @ sent.T @ received).T
    residuals = ((received - sent @ explained.T) ** 2).sum(axis=0) / (len(sent) - trace.nodes)
    return _drawn_together(explained, residuals[:, None] * np.diag(inverse)[None, :], trace)


def _drawn_together(explained: Posteriors, noise: Posteriors, trace: Trace) -> Posteriors:
    """Return weights of those who write to each destination, as far from their mean as more than noise explains."""
    found = np.ones((trace.nodes, trace.nodes))
    writes = np.zeros((trace.nodes, trace.nodes), dtype=bool)
    for sender, destinations in enumerate(trace.settings.destinations):
        writes[list(destinations), sender] = True
    for destination, who in enumerate(writes):
        mine = explained[destination, who]
        if len(mine) < _WRITERS_LEAST or not mine.mean() > 0.0:
            continue
        signal = max(float(mine.var() - noise[destination, who].mean()), 0.0)
        share = signal / (signal + noise[destination, who])
        found[destination, who] = np.maximum(1.0 + share * (mine / mine.mean() - 1.0), _WEIGHT_LEAST)
    return found


def _window_s(trace: Trace) -> float:
    """Return about how long a packet is under way."""
    settings = trace.settings
    match settings.mixer:
        case OffSettings():
            return _LEAST_WINDOW_S
        case mixer:
            places = getattr(mixer, "outbox_size", 1)
            return max(_LEAST_WINDOW_S, settings.path_length * places * mixer.delay_mean_s)


def _counts(
    owners: npt.NDArray[np.int32], times: npt.NDArray[np.float64], window_s: float, windows: int, nodes: int
) -> Posteriors:
    which = (times // window_s).astype(np.int64)
    inside = (which >= 0) & (which < windows)
    flat = np.bincount(which[inside] * nodes + owners[inside], minlength=windows * nodes)
    return flat.reshape(windows, nodes).astype(np.float64)
