"""The curious recipient: what a destination learns of senders from the fragments that it decrypts.

    View (fragments without names) -> an attack -> Buckets -> score, the only place where the truth is looked at

| attack | what it does |
|---|---|
| `published` | the paper's: each fragment joins the bucket whose last content has the smallest cosine distance |
| `persistent` | ours: what peers have in common is taken out, a round is assigned at once, all rounds count |
"""

from unlinkabledfl.analysis.content.persistent import persistent_attack
from unlinkabledfl.analysis.content.published import published_attack
from unlinkabledfl.analysis.content.score import ContentScore, Truth, score_buckets
from unlinkabledfl.analysis.content.views import Attack, Buckets, RoundView, View

__all__ = [
    "Attack",
    "Buckets",
    "ContentScore",
    "RoundView",
    "Truth",
    "View",
    "persistent_attack",
    "published_attack",
    "score_buckets",
]
