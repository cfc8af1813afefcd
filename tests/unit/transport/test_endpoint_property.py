"""Whatever two nodes and the network do: links alternate, and packets arrive once, in order, or not at all."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.transport.virtual import Place, Relay, packet, pair, quiet, run

ACTIONS = ("dial", "send", "send many", "hang up", "want", "release", "wait", "wait long", "cut", "heal")


@dataclass
class Story:
    """Two nodes, each of which reaches the other through a relay, and what each has accepted to send."""

    places: tuple[Place, Place]
    relays: tuple[Relay, Relay]
    sent: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))
    number: int = 0

    @classmethod
    async def begin(cls) -> "Story":
        one, other = await pair(linked=False)
        relays = (Relay(other), Relay(one))
        one.knows(other, relays[0].address)
        other.knows(one, relays[1].address)
        return cls(places=(one, other), relays=relays)

    async def act(self, action: str, side: int) -> None:
        place, peer = self.places[side], self.places[1 - side]
        match action:
            case "dial":
                place.endpoint.dial(peer.id)
            case "send" | "send many":
                for _ in range(1 if action == "send" else 40):
                    self.number += 1
                    if place.endpoint.send_packet(peer.id, packet(self.number)):
                        self.sent[side].append(self.number)
            case "hang up":
                place.endpoint.hang_up(peer.id)
            case "want":
                place.endpoint.want(peer.id)
            case "release":
                place.endpoint.release(peer.id)
            case "wait":
                await quiet(0.05)
            case "wait long":
                await quiet(35.0)
            case "cut" | "heal":
                self.relays[side].passes = (lambda _: False) if action == "cut" else (lambda _: True)

    async def end(self) -> None:
        """Let everything come to rest with both sides wanting a link."""
        for relay in self.relays:
            relay.passes = lambda _: True
        for side in (0, 1):
            await self.act("want", side)
        await quiet(100.0)

    def check(self, *, broken: bool) -> None:
        for side, (place, peer) in enumerate((self.places, self.places[::-1])):
            turns = [what for what, _ in place.heard if what != "failed"]
            assert turns == ["up", "down"] * (len(turns) // 2) + ["up"]
            received = [int.from_bytes(data[:4]) for _, data in peer.packets]
            assert all(data == packet(number) for (_, data), number in zip(peer.packets, received, strict=True))
            assert received == sorted(set(received))
            assert set(received) <= set(self.sent[side])
            if not broken:
                counters = place.endpoint.counters
                assert len(received) == len(self.sent[side]) - counters["lost_in_dial"]


steps = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 1)), max_size=25)
gentle = st.lists(
    st.tuples(st.sampled_from(("dial", "send", "send many", "want", "release", "wait")), st.integers(0, 1)), max_size=25
)


async def tell(story_steps: list[tuple[str, int]], *, broken: bool) -> None:
    story = await Story.begin()
    for action, side in story_steps:
        await story.act(action, side)
    await story.end()
    story.check(broken=broken)


@settings(max_examples=40, deadline=None)
@given(steps)
def test_links_alternate_and_no_packet_comes_twice_or_out_of_order(told: list[tuple[str, int]]) -> None:
    run(tell(told, broken=True))


@settings(max_examples=25, deadline=None)
@given(gentle)
def test_while_nobody_hangs_up_and_nothing_is_cut_everything_that_was_accepted_arrives(
    told: list[tuple[str, int]],
) -> None:
    run(tell(told, broken=False))
