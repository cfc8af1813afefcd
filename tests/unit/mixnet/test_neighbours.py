from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from unlinkabledfl.mixnet.neighbours import NeighbourLimits, Neighbours
from unlinkabledfl.sphinx import NodeId

A, B, C, D = (NodeId(bytes([number]) * 32) for number in range(4))


def make(*linked: NodeId, transit_capacity: int = 8, replay_capacity: int = 8, **limits: float) -> Neighbours:
    chosen = NeighbourLimits(**{"links_max": 4, **limits})  # type: ignore[arg-type]
    neighbours = Neighbours(chosen, transit_capacity=transit_capacity, replay_capacity=replay_capacity)
    for peer in linked:
        assert neighbours.link_up(peer)
    return neighbours


def test_a_neighbour_gets_a_share_of_each_replay_window_and_leaves_the_rest_to_others() -> None:
    neighbours = make(A, B)

    assert [neighbours.refuse_packet(A, 0.0) for _ in range(3)] == [None, None, "replay_share_used_up"]
    assert neighbours.refuse_packet(B, 0.0) is None
    neighbours.new_window()
    assert neighbours.refuse_packet(A, 0.0) is None


def test_a_neighbour_that_reads_nothing_holds_a_share_of_the_mixer_and_all_of_them_half_of_it() -> None:
    neighbours = make(A, B, C)

    assert [neighbours.give_back(A) for _ in range(3)] == [True, True, False]
    assert [neighbours.give_back(peer) for peer in (B, B, C)] == [True, True, False]
    neighbours.released(None, to=A)
    assert [neighbours.give_back(A), neighbours.give_back(C)] == [True, False]


def test_what_a_neighbour_handed_us_and_what_it_did_not_take_are_counted_apart() -> None:
    neighbours = make(A)
    neighbours.holds(A)
    neighbours.holds(A)
    assert neighbours.refuse_transit(A)
    assert neighbours.give_back(A)

    neighbours.released(A, to=A)

    assert not neighbours.refuse_transit(A)
    assert [neighbours.give_back(A), neighbours.give_back(A)] == [True, False]


def test_news_end_at_their_own_bucket() -> None:
    neighbours = make(A, B, news_per_s=1.0, news_burst=2.0)
    for _ in range(2):
        assert neighbours.refuse_control(A, 0.0) is None
        neighbours.brought_news(A, 0.0)

    assert [neighbours.refuse_control(A, now_s) for now_s in (0.0, 0.5, 1.0, 1.0)] == [
        "flooded_news", "flooded_news", None, None
    ]  # fmt: skip
    assert neighbours.refuse_control(B, 0.0) is None


def test_budgets_outlive_the_link() -> None:
    neighbours = make(A, packets_per_s=1.0, packets_burst=1.0)
    assert neighbours.refuse_packet(A, 0.0) is None

    neighbours.link_down(A)
    assert (A in neighbours, neighbours.refuse_packet(A, 0.0)) == (True, "unlinked")
    neighbours.link_up(A)

    assert neighbours.refuse_packet(A, 0.0) == "flooded"


PEERS = st.integers(0, 9).map(lambda number: NodeId(bytes([number]) * 32))


class Links(RuleBasedStateMachine):
    """Whatever comes and goes: tables and shares keep their bounds, and what was given back is accounted for."""

    def __init__(self) -> None:
        super().__init__()
        self.neighbours = make(links_max=3, transit_capacity=12, unsent_max=5)
        self.linked: set[NodeId] = set()
        self.unsent: Counter[NodeId] = Counter()

    @rule(peer=PEERS)
    def comes(self, peer: NodeId) -> None:
        if peer not in self.linked and self.neighbours.link_up(peer):
            self.linked.add(peer)

    @rule(peer=PEERS)
    def goes(self, peer: NodeId) -> None:
        self.neighbours.link_down(peer)
        self.linked.discard(peer)

    @rule(peer=PEERS)
    def takes_nothing(self, peer: NodeId) -> None:
        if self.neighbours.give_back(peer):
            self.unsent[peer] += 1

    @rule(peer=PEERS)
    def takes_it_later(self, peer: NodeId) -> None:
        if self.unsent[peer]:
            self.unsent[peer] -= 1
            self.neighbours.released(None, to=peer)

    @invariant()
    def bounds_hold(self) -> None:
        everybody = [NodeId(bytes([number]) * 32) for number in range(10)]
        assert {peer for peer in everybody if self.neighbours.is_linked(peer)} == self.linked
        assert len(self.linked) <= 3
        assert sum(peer in self.neighbours for peer in everybody) <= 6
        assert self.unsent.total() <= 5
        assert max(self.unsent.values(), default=0) <= 3


TestLinks = Links.TestCase
TestLinks.settings = settings(max_examples=40, stateful_step_count=30)
