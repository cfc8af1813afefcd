"""How much of what peers send in a round is here.

    missing --arrives-------------> here
    missing --sender is gone------> spared
    spared --arrives--------------> here
    here --its round is over------> forgotten

Nobody knows from whom a fragment is. What is known is how many to expect: every partner sends each range once, or,
where only a share of the ranges is sent, so many fragments. Partners that are gone are spared by number: of each range
one fewer is waited for. If one of them left after its fragments had come, the round may end one fragment early; the
same anonymity that hides its sender hides that.

Nothing more comes of a round when a later one is complete already: whoever sends in that one has done with this one.
So a node that joined late, or lost time, catches up without waiting for what was sent before it came.

Completeness is measured against all partners, gone or not: the plan without churn. Of a range no more count than there
are partners, so that surplus fragments do not hide missing ones.

Invariant: completeness of a round only grows while it lasts, and is 1 if and only if nothing of the plan is missing;
whatever arrives, the memory is bounded.
"""

from collections import Counter

_ROUNDS_NOTED = 64


class Collecting:
    """The intake of one participant, by round and range."""

    __slots__ = ("_arrived", "_partners", "_per_partner", "_ranges", "_seen", "round")

    def __init__(self, *, partners: int, ranges: int, per_partner: int, first_round: int) -> None:
        self._partners = partners
        self._ranges = ranges
        self._per_partner = per_partner
        self._arrived: dict[int, list[int]] = {}
        self._seen: Counter[int] = Counter()  # also of rounds too far ahead to be taken
        self.round = first_round

    @property
    def expected(self) -> int:
        """How many fragments a round brings when nobody is missing."""
        return self._partners * self._per_partner

    def receive(self, round_number: int, index: int) -> None:
        """A fragment of this round and range was taken."""
        if round_number < self.round:
            return
        self.note(round_number)
        self._arrived.setdefault(round_number, [0] * self._ranges)[index] += 1

    def note(self, round_number: int) -> None:
        """A fragment of this round came, taken or not: some peer is there already, or says so."""
        seen = self._seen
        if round_number < self.round:
            return
        seen[round_number] += 1
        if len(seen) > _ROUNDS_NOTED:
            # The round of which least came, so that made-up rounds do not displace the one that peers are in.
            del seen[min(seen, key=lambda each: (seen[each], each))]

    def received(self) -> int:
        """Return how many of this round's expected fragments are here."""
        arrived = self._arrived.get(self.round, ())
        if self._per_partner == self._ranges:
            return sum(min(count, self._partners) for count in arrived)
        return min(sum(arrived), self.expected)

    def completeness(self) -> float:
        """Return the share of this round's expected fragments that is here."""
        return self.received() / self.expected if self.expected else 1.0

    def is_complete(self, *, absent: int) -> bool:
        """Return whether nothing more of this round is to come while so many partners are not waited for."""
        present = max(0, self._partners - absent)
        return not present or any(self._has_all_of(arrived, present) for arrived in self._arrived.values())

    def _has_all_of(self, arrived: list[int], present: int) -> bool:
        if self._per_partner == self._ranges:
            return min(arrived) >= present
        return sum(arrived) >= present * self._per_partner

    def furthest(self) -> int:
        """Return the latest round of which at least half of what is expected has been seen; at least this one."""
        least = max(1, (self.expected + 1) // 2)
        return max((each for each, count in self._seen.items() if count >= least), default=self.round)

    def advance(self, round_number: int) -> None:
        """Forget what was before this round."""
        self.round = round_number
        for table in (self._arrived, self._seen):
            for old in [old for old in table if old < round_number]:
                del table[old]
