"""What comes in of peers' models: into the pool, and onto the count of what a round is to bring.

It composes `Pool`, which keeps fragments and says how each ended, and `Collecting`, which says how much is here.

Invariant: whatever bytes come, `receive` returns; and only what the pool took, or holds already in the same bytes from
another sender, counts as having come.
"""

from unlinkabledfl.errors import FragmentError
from unlinkabledfl.fragments import Aggregation, FragmentDecoder, Pool, Tally, Vector
from unlinkabledfl.fragments.selection import chosen_count
from unlinkabledfl.node.collecting import Collecting
from unlinkabledfl.node.settings import ParticipantSettings

_DUPLICATE = "duplicate"


class Intake:
    """The receiving half of one participant's exchange."""

    __slots__ = ("_decoder", "_pool", "_rule", "collecting")

    def __init__(self, *, settings: ParticipantSettings, decoder: FragmentDecoder, partners: int) -> None:
        aggregation, first_round = settings.aggregation, settings.rounds.first_round
        self._decoder = decoder
        self._pool = Pool(
            decoder,
            staleness=aggregation.make_staleness(),
            max_per_range=aggregation.max_per_range,
            first_round=first_round,
        )
        self._rule = aggregation.make_rule()
        self.collecting = Collecting(
            partners=partners,
            ranges=len(decoder.grid),
            per_partner=chosen_count(decoder.grid, settings.payload.ratio),
            first_round=first_round,
        )

    def receive(self, data: bytes) -> None:
        """Take a fragment from anybody."""
        counts = self._pool.counts
        duplicates = counts[_DUPLICATE]
        accepted = self._pool.receive(data)
        try:
            header, index = self._decoder.inspect(data)
        except FragmentError:
            return
        # Peers with equal models send equal bytes; the pool takes one of them, but both have sent theirs.
        if accepted or counts[_DUPLICATE] > duplicates:
            self.collecting.receive(header.round, index)
        else:
            self.collecting.note(header.round)

    def advance(self, round_number: int) -> None:
        """A round begins."""
        self._pool.advance(round_number)
        self.collecting.advance(round_number)

    def aggregation(self, own: Vector) -> Aggregation:
        """Begin to combine our own vector with what is here."""
        return self._pool.aggregation(own, self._rule)

    def tally(self) -> Tally:
        """Return how all that was received has ended so far."""
        return self._pool.tally()
