"""From a model state to packets' payloads and back, and from fragments without names to a better state.

    state → StateLayout → vector → Grid, Selection → ranges → Codec, FragmentEncoder → bytes, one packet each
    bytes → FragmentDecoder, Pool → candidates by range → Rule → vector → StateLayout → state

Pure: numpy, no clock, no network; noise comes from a `numpy.random.Generator` that the caller passes.
"""

from unlinkabledfl.fragments.arrays import Vector
from unlinkabledfl.fragments.codecs import Codec, codec_by_name, plan_grid
from unlinkabledfl.fragments.feedback import ErrorFeedback
from unlinkabledfl.fragments.framing import ContentId, Fragment
from unlinkabledfl.fragments.grid import Grid, Range
from unlinkabledfl.fragments.layout import State, StateLayout
from unlinkabledfl.fragments.masks import pair_noise
from unlinkabledfl.fragments.pool import Aggregate, Aggregation, Pool, Tally
from unlinkabledfl.fragments.rules import Rule, rule_by_name
from unlinkabledfl.fragments.selection import Selection, selection_by_name
from unlinkabledfl.fragments.staleness import Policy, Staleness
from unlinkabledfl.fragments.transcoder import DEFAULT_BOUND, FragmentDecoder, FragmentEncoder

__all__ = [
    "DEFAULT_BOUND",
    "Aggregate",
    "Aggregation",
    "Codec",
    "ContentId",
    "ErrorFeedback",
    "Fragment",
    "FragmentDecoder",
    "FragmentEncoder",
    "Grid",
    "Policy",
    "Pool",
    "Range",
    "Rule",
    "Selection",
    "Staleness",
    "State",
    "StateLayout",
    "Tally",
    "Vector",
    "codec_by_name",
    "pair_noise",
    "plan_grid",
    "rule_by_name",
    "selection_by_name",
]
