"""Views with planted senders: each has a direction of its own, and all share one that changes."""

import numpy as np

from unlinkabledfl.analysis.content import RoundView, Truth, View

PEERS = 8
RANGES = (slice(0, 400), slice(400, 700))


def planted(
    *, own: float, noise: float, common: float = 0.0, rounds: int = 6, seen: float = 1.0, seed: int = 0
) -> tuple[View, Truth]:
    """Return a view in which a sender's own direction, noise and what all share have these sizes a value."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(PEERS, 700))
    truth, made = [], []
    for number in range(rounds):
        shared = rng.normal(size=700)
        before = rng.normal(size=700)
        models = before + common * shared + own * directions + noise * rng.normal(size=(PEERS, 700))
        trained = before + common * shared + noise * rng.normal(size=700)
        senders = [
            np.arange(PEERS) if number == 0 else rng.permutation(np.flatnonzero(rng.random(PEERS) < seen))
            for _ in RANGES
        ]
        truth.append([sent.astype(np.int64) for sent in senders])
        made.append(
            RoundView(
                before=before.astype(np.float32),
                own=trained.astype(np.float32),
                fragments=[models[sent, place].astype(np.float32) for sent, place in zip(senders, RANGES, strict=True)],
            )
        )
    return View(ranges=RANGES, first=made[0], later=made[1:]), truth[1:]
