"""The curious recipient as it was published.

From the second round on the recipient subtracts each fragment from its local model, and compares this difference by
cosine distance with what it has of the same range: first the reference of each peer, later what it put into that peer's
bucket last. The fragment joins the nearest bucket. Each fragment is decided by itself, in the order of its coming.
"""

import numpy as np

from unlinkabledfl.analysis.content.views import Buckets, Indices, View, unit_rows


def published_attack(view: View) -> Buckets:
    """Put every fragment into a bucket."""
    latest = [
        unit_rows(view.first.own[place] - rows) for place, rows in zip(view.ranges, view.first.fragments, strict=True)
    ]
    found: list[list[Indices]] = []
    for seen in view.later:
        found.append([])
        for index, (place, rows) in enumerate(zip(view.ranges, seen.fragments, strict=True)):
            differences = unit_rows(seen.own[place] - rows)
            buckets = np.argmax(differences @ latest[index].T, axis=1).astype(np.int64)
            latest[index][buckets] = differences
            found[-1].append(buckets)
    return found
