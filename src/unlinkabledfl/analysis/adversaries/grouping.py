"""`grouping`: a curious destination that can tell which fragments belong to one model, and multiplies their evidence.

What a destination decrypts may show which fragments of a round come from the same training: they continue each other,
or resemble each other. It is granted that knowledge in full here, as a grouping of targets, and nothing of who anybody
is. Posteriors of a group are multiplied, as they would be if the fragments had travelled independently, which their
routes and delays do.
"""

import numpy as np

from unlinkabledfl.analysis.adversaries.protocol import Adversary, Posteriors, normalized
from unlinkabledfl.analysis.trace import Indices, Trace

_LEAST = 1e-12


class GroupingAdversary:
    """Another adversary's posteriors, multiplied within each group of targets."""

    name = "grouping"

    def __init__(self, single: Adversary, groups: Indices) -> None:
        """`groups` gives every target of the trace the number of its group."""
        self._single = single
        self._groups = groups

    def posteriors(self, trace: Trace) -> Posteriors:
        evidence = self._single.posteriors(trace)
        prior = _sender_prior(trace)
        # Each posterior holds the prior once; their product shall not hold it as often as there are fragments.
        logarithms = np.log(np.maximum(evidence, _LEAST)) - np.log(np.maximum(prior, _LEAST))
        count = int(self._groups.max(initial=-1)) + 1
        sums = np.zeros((count, trace.nodes))
        np.add.at(sums, self._groups, logarithms)
        joint = sums[self._groups] + np.log(np.maximum(prior, _LEAST))
        joint -= joint.max(axis=1, keepdims=True)
        weights = np.exp(joint)
        weights[prior <= 0.0] = 0.0
        return normalized(weights)


def _sender_prior(trace: Trace) -> Posteriors:
    """Return who may have written to the destination of each target, before anything of it is seen."""
    writes = np.zeros((trace.nodes, trace.nodes))
    for sender, destinations in enumerate(trace.settings.destinations):
        writes[sender, list(destinations)] = 1.0 / max(len(destinations), 1)
    writes[list(trace.compromised)] = 0.0
    return normalized(writes[:, trace.crossings.target[trace.targets]].T)
