"""Who is linked to this node, and how much each of them may put on it.

Invariant: what one neighbour can use up is bounded by its own budgets: so many packets, descriptors and news a second,
a share of the mixer with what it hands us, a share of the mixer with what it does not take from us, and a share of each
replay window. Budgets outlive a link for a while, or hanging up and dialling again would refill them; the table never
holds more than `links_max` linked peers and as many former ones.
"""

from dataclasses import dataclass

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.mixnet.limits import TokenBucket
from unlinkabledfl.sphinx import NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourLimits:
    """What one neighbour may put on us: packets and descriptors a second, how many at once, and its share of the mixer.

    The share keeps a neighbour that hands us long-delayed packets, or that reads nothing of what we send it, from
    crowding out everybody else's: a mixer that holds one honest packet at a time mixes nothing. It holds for replay
    windows too: a full one refuses everybody.

    News are descriptors that go on to all other neighbours, so a few of them cost the whole network a lot. The burst is
    for a node that meets the others for the first time, and for the instant at which all keys rotate.
    """

    packets_per_s: float = 500.0
    packets_burst: float = 1_000.0
    descriptors_per_s: float = 50.0
    descriptors_burst: float = 5_000.0
    news_per_s: float = 2.0
    news_burst: float = 5_000.0
    transit_share: float = 0.25
    links_max: int = 512
    unsent_max: int = 1_000

    def __post_init__(self) -> None:
        for name in ("packets_per_s", "packets_burst", "descriptors_per_s", "descriptors_burst", "news_burst"):
            if not getattr(self, name) >= 1.0:
                raise ConfigError(key=f"mixnet.limits.{name}", got=getattr(self, name), takes="a number of at least 1")
        if not self.news_per_s > 0.0:
            raise ConfigError(key="mixnet.limits.news_per_s", got=self.news_per_s, takes="a number above 0")
        if not 0.0 < self.transit_share <= 1.0:
            raise ConfigError(
                key="mixnet.limits.transit_share", got=self.transit_share, takes="a share above 0 and up to 1"
            )
        for name in ("links_max", "unsent_max"):
            if getattr(self, name) < 1:
                raise ConfigError(
                    key=f"mixnet.limits.{name}", got=getattr(self, name), takes="a whole number of at least 1"
                )


class _Neighbour:
    """The budgets of one link."""

    __slots__ = ("admitted", "descriptors", "doubtful", "held", "linked", "news", "packets")

    def __init__(self, limits: NeighbourLimits) -> None:
        self.linked = False
        self.doubtful = False  # its last packet was forged, or for somebody else
        self.held = 0  # packets of its that wait in our mixer
        self.admitted = 0  # packets of its since the current key, each of which may take a place in a replay window
        self.packets = TokenBucket(rate_per_s=limits.packets_per_s, burst=limits.packets_burst)
        self.descriptors = TokenBucket(rate_per_s=limits.descriptors_per_s, burst=limits.descriptors_burst)
        self.news = TokenBucket(rate_per_s=limits.news_per_s, burst=limits.news_burst)


class Neighbours:
    """The links of one node and their budgets. Methods that return a cause return None where all is well."""

    __slots__ = (
        "_known", "_limits", "_links", "_share_of_mixer", "_share_of_window",
        "_unsent", "_unsent_in_all", "_unsent_max",
    )  # fmt: skip

    def __init__(self, limits: NeighbourLimits, *, transit_capacity: int, replay_capacity: int) -> None:
        self._limits = limits
        self._known: dict[NodeId, _Neighbour] = {}
        self._links = 0
        self._share_of_mixer = max(1, int(limits.transit_share * transit_capacity))
        self._share_of_window = max(1, int(limits.transit_share * replay_capacity))
        # Half of the mixer at most: the other half stays open for packets that come in.
        self._unsent_max = max(1, min(limits.unsent_max, transit_capacity // 2))
        self._unsent: dict[NodeId, int] = {}
        self._unsent_in_all = 0

    def __contains__(self, peer: NodeId) -> bool:
        """Whether it is linked, or was lately."""
        return peer in self._known

    # -- links --------------------------------------------------------------------------------------------------

    def is_linked(self, peer: NodeId) -> bool:
        """Whether a link to this peer stands."""
        neighbour = self._known.get(peer)
        return neighbour is not None and neighbour.linked

    def link_up(self, peer: NodeId) -> bool:
        """A link stands; false if there are as many as there may be."""
        if self._links >= self._limits.links_max:
            return False
        neighbour = self._known.get(peer)
        if neighbour is None:
            neighbour = self._known[peer] = _Neighbour(self._limits)
        neighbour.linked = True
        self._links += 1
        return True

    def link_down(self, peer: NodeId) -> None:
        """The link is gone; its budgets are remembered while there is room."""
        neighbour = self._known.get(peer)
        if neighbour is None or not neighbour.linked:
            return
        neighbour.linked = False
        self._links -= 1
        excess = len(self._known) - self._links - self._limits.links_max
        if excess > 0:
            former = [known for known, other in self._known.items() if not other.linked]
            for known in former[:excess]:
                del self._known[known]

    # -- what it sends us ---------------------------------------------------------------------------------------

    def refuse_packet(self, peer: NodeId, now_s: float) -> str | None:
        """The cause for which a packet of this peer is not even looked at."""
        neighbour = self._known.get(peer)
        if neighbour is None or not neighbour.linked:
            return "unlinked"
        if not neighbour.packets.take(now_s):
            return "flooded"
        if neighbour.admitted >= self._share_of_window:
            return "replay_share_used_up"
        neighbour.admitted += 1
        return None

    def is_doubtful(self, peer: NodeId) -> bool:
        """Whether its last packet was a forgery. What lanes refuse is multiplied again: a flood is cheaper without."""
        return self._known[peer].doubtful

    def opened(self, peer: NodeId, *, good: bool) -> None:
        """A packet of this peer's opened, or was a forgery."""
        self._known[peer].doubtful = not good

    def refuse_control(self, peer: NodeId, now_s: float) -> str | None:
        """The cause for which a control message of this peer is not even looked at."""
        neighbour = self._known.get(peer)
        if neighbour is None or not neighbour.linked:
            return "unlinked"
        if not neighbour.descriptors.take(now_s):
            return "flooded_descriptors"
        if not neighbour.news.has(now_s):
            return "flooded_news"
        return None

    def brought_news(self, peer: NodeId, now_s: float) -> None:
        """A descriptor of this peer's is passed on to everybody."""
        self._known[peer].news.take(now_s)

    def new_window(self) -> None:
        """A key, and with it a replay window, was replaced."""
        for neighbour in self._known.values():
            neighbour.admitted = 0

    # -- what waits in our mixer --------------------------------------------------------------------------------

    def refuse_transit(self, via: NodeId | None) -> bool:
        """Whether this neighbour's share of the mixer is used up."""
        neighbour = self._known.get(via) if via is not None else None
        return neighbour is not None and neighbour.held >= self._share_of_mixer

    def holds(self, via: NodeId | None) -> None:
        """A packet of this neighbour's entered the mixer."""
        neighbour = self._known.get(via) if via is not None else None
        if neighbour is not None:
            neighbour.held += 1

    def give_back(self, to: NodeId) -> bool:
        """A packet could not be sent to this peer and goes back to the mixer; false if too many have."""
        waiting = self._unsent.get(to, 0)
        if self._unsent_in_all >= self._unsent_max or waiting >= self._share_of_mixer:
            return False
        self._unsent[to] = waiting + 1
        self._unsent_in_all += 1
        return True

    def released(self, via: NodeId | None, *, to: NodeId) -> None:
        """A packet left the mixer: one that `via` had handed us, or one that was given back."""
        if via is not None:
            neighbour = self._known.get(via)
            if neighbour is not None and neighbour.held:
                neighbour.held -= 1
        elif (waiting := self._unsent.get(to)) is not None:
            self._unsent_in_all -= 1
            if waiting == 1:
                del self._unsent[to]
            else:
                self._unsent[to] = waiting - 1
