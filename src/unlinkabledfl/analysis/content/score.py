"""How well a curious recipient did: the only place where its buckets meet the truth.

- `identity`: the share of fragments in the bucket that bears their sender's name;
- `tracking`: the share of fragments that follow one of the same sender: what the bucket held of that range before.

A recipient that takes one bucket for another at the beginning, and then keeps them apart, tracks well and names badly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from unlinkabledfl.analysis.content.views import Buckets, Indices
from unlinkabledfl.errors import LocalProtocolError

Truth: TypeAlias = Sequence[Sequence[Indices]]
"""For each later round and each range: whose fragment each row is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentScore:
    """Shares from 0 to 1."""

    identity: float
    tracking: float
    fragments: int


def score_buckets(buckets: Buckets, truth: Truth, *, peers: int) -> ContentScore:
    """Compare the buckets with who sent what."""
    named = tracked = fragments = 0
    holders = [np.arange(peers) for _ in truth[0]] if truth else []
    for put_by_range, sent_by_range in zip(buckets, truth, strict=True):
        for holder, put, sent in zip(holders, put_by_range, sent_by_range, strict=True):
            if put.shape != sent.shape:
                raise LocalProtocolError(f"{put.size} guesses about {sent.size} fragments")
            named += int((put == sent).sum())
            tracked += int((holder[put] == sent).sum())
            fragments += sent.size
            holder[put] = sent
    if not fragments:
        raise LocalProtocolError("no fragment to score")
    return ContentScore(identity=named / fragments, tracking=tracked / fragments, fragments=fragments)
