"""The strongest curious recipient we know: what sets a peer apart, and stays, decides.

It differs from the published one in four ways, each of which made it better (docs/content-boundary.md):

- what peers' updates have in common is taken out, for it says nothing of anybody: the mean over the fragments of a
  range, the recipient's own included, steadied by the mean of the rounds before where few fragments came;
- the fragments of a range and round are assigned together, each to a different peer, as they must be;
- a fragment is compared with all of a peer's earlier ones, not with the last one only, so that an error is outvoted;
- when all rounds are in, each is decided again in the light of all others.
"""

from dataclasses import dataclass

import numpy as np

from unlinkabledfl.analysis.content.assignment import best_assignment
from unlinkabledfl.analysis.content.views import Buckets, Indices, Matrix, RoundView, View, unit_rows

_STEADIED = 3.0
"""For how many fragments the mean of earlier rounds counts."""
_PASSES = 2


@dataclass(slots=True)
class _Common:
    """What the updates of one range have in common, as far as is known."""

    mean: Matrix | float = 0.0
    weight: float = 0.0

    def taken_out(self, updates: Matrix, own: Matrix) -> Matrix:
        """Return unit rows without it, and know it better afterwards."""
        total = updates.sum(axis=0) + own + self.weight * self.mean
        self.mean = np.asarray(total / (len(updates) + 1 + self.weight), dtype=np.float32)
        self.weight = _STEADIED
        return unit_rows(updates - self.mean)


def persistent_attack(view: View) -> Buckets:
    """Put every fragment into a bucket."""
    by_range = [_follow(view, index) for index in range(len(view.ranges))]
    return [[found[number] for found in by_range] for number in range(len(view.later))]


def _follow(view: View, index: int) -> list[Indices]:
    """Decide one range: ranges are assigned apart, as nothing says which fragments of a round belong together."""
    common = _Common()
    reference = _apart(view, view.first, index, common)
    rows = [_apart(view, seen, index, common) for seen in view.later]
    known = reference.copy()
    found: list[Indices] = []
    for row in rows:
        buckets = best_assignment(row @ unit_rows(known).T)
        known[buckets] += row
        found.append(buckets)
    for _ in range(_PASSES):
        for number, row in enumerate(rows):
            known[found[number]] -= row
            found[number] = best_assignment(row @ unit_rows(known).T)
            known[found[number]] += row
    return found


def _apart(view: View, seen: RoundView, index: int, common: _Common) -> Matrix:
    place = view.ranges[index]
    before = seen.before[place]
    return common.taken_out(seen.fragments[index] - before, seen.own[place] - before)
