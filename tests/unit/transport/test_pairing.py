"""One link a pair of nodes: whoever dials, whenever, however messages overtake each other."""

from collections import deque
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unlinkabledfl.errors import LocalProtocolError
from unlinkabledfl.transport.pairing import (
    Dial,
    Down,
    Failed,
    Pairing,
    PairingEvent,
    Reject,
    StopDial,
    Up,
    Welcome,
)

FIRST_S, MAX_S = 0.25, 30.0


def pairing(*, ours_counts: bool = True, chance: float = 0.5) -> Pairing[str]:
    return Pairing(ours_counts=ours_counts, backoff_first_s=FIRST_S, backoff_max_s=MAX_S, chance=lambda: chance)


def drain(machine: Pairing[str]) -> list[PairingEvent[str]]:
    return list(iter(machine.next_event, None))


def up(*, at_s: float = 0.0, ours_counts: bool = True) -> Pairing[str]:
    machine = pairing(ours_counts=ours_counts)
    machine.dial(now_s=at_s)
    machine.opened("ours", now_s=at_s)
    assert drain(machine) == [Dial(), Up()]
    return machine


def test_a_dial_that_is_answered_is_the_link() -> None:
    machine = pairing()

    machine.dial(now_s=0.0)
    machine.dial(now_s=0.1)
    machine.opened("ours", now_s=0.2)
    machine.dial(now_s=0.3)

    assert drain(machine) == [Dial(), Up()]
    assert machine.link == "ours"


def test_a_peer_that_dials_is_welcome() -> None:
    machine = pairing()

    machine.proved("theirs", now_s=0.0)

    assert drain(machine) == [Welcome("theirs"), Up()]
    assert machine.link == "theirs"


def test_the_smaller_node_holds_the_others_connection_back_until_its_own_is_up() -> None:
    machine = pairing(ours_counts=True)
    machine.dial(now_s=0.0)

    machine.proved("theirs", now_s=0.1)
    assert drain(machine) == [Dial()]
    machine.opened("ours", now_s=0.2)

    assert drain(machine) == [Up(), Reject("theirs")]


def test_the_smaller_node_takes_the_others_connection_if_its_own_fails_and_nobody_hears_of_the_failure() -> None:
    machine = pairing(ours_counts=True)
    machine.dial(now_s=0.0)
    machine.proved("theirs", now_s=0.1)

    machine.failed(now_s=5.0)

    assert drain(machine) == [Dial(), Welcome("theirs"), Up()]


def test_the_larger_node_drops_its_own_dial_for_the_others() -> None:
    machine = pairing(ours_counts=False)
    machine.dial(now_s=0.0)

    machine.proved("theirs", now_s=0.1)

    assert drain(machine) == [Dial(), StopDial(), Welcome("theirs"), Up()]


def test_a_held_connection_that_goes_away_is_forgotten() -> None:
    machine = pairing(ours_counts=True)
    machine.dial(now_s=0.0)
    machine.proved("theirs", now_s=0.1)

    machine.closed("theirs", now_s=0.2)
    machine.failed(now_s=5.0)

    assert drain(machine) == [Dial(), Failed()]


def test_a_newer_proof_takes_the_place_of_a_held_one() -> None:
    machine = pairing(ours_counts=True)
    machine.dial(now_s=0.0)
    machine.proved("first", now_s=0.1)

    machine.proved("second", now_s=0.2)
    machine.failed(now_s=5.0)

    assert drain(machine) == [Dial(), Reject("first"), Welcome("second"), Up()]


def test_a_peer_that_started_anew_replaces_an_old_link() -> None:
    machine = up(at_s=0.0)

    machine.proved("anew", now_s=10.0)

    assert drain(machine) == [Reject("ours"), Down(), Welcome("anew"), Up()]


def test_a_proof_that_comes_late_in_a_race_does_not_break_the_young_link() -> None:
    machine = up(at_s=0.0)

    machine.proved("late", now_s=0.5)
    machine.closed("late", now_s=0.6)

    assert drain(machine) == []
    assert (machine.link, machine.next_timer_s()) == ("ours", None)


def test_a_proof_on_a_young_link_counts_if_it_is_still_there_when_the_link_is_no_longer_young() -> None:
    machine = up(at_s=0.0)
    machine.proved("anew", now_s=0.5)

    due_s = machine.next_timer_s()
    assert due_s == 3.0
    machine.handle_timer(now_s=due_s)

    assert drain(machine) == [Reject("ours"), Down(), Welcome("anew"), Up()]


def test_when_the_link_breaks_a_held_connection_takes_over_at_once() -> None:
    machine = up(at_s=0.0)
    machine.proved("anew", now_s=0.5)

    machine.closed("ours", now_s=0.7)

    assert drain(machine) == [Down(), Welcome("anew"), Up()]


def test_a_wanted_peer_is_dialled_again_after_pauses_that_double_up_to_a_bound() -> None:
    machine = pairing(chance=0.5)
    machine.want(now_s=0.0)
    now_s, pauses = 0.0, []
    for _ in range(9):
        assert drain(machine)[-1] == Dial()
        machine.failed(now_s=now_s)
        due_s = machine.next_timer_s()
        assert due_s is not None
        pauses.append(due_s - now_s)
        now_s = due_s
        machine.handle_timer(now_s=now_s)

    assert pauses == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


@pytest.mark.parametrize(("chance", "pause_s"), [(0.0, 0.125), (0.999, 0.37475)])
def test_pauses_are_spread_around_their_mean(chance: float, pause_s: float) -> None:
    machine = pairing(chance=chance)
    machine.want(now_s=0.0)

    machine.failed(now_s=0.0)

    assert machine.next_timer_s() == pytest.approx(pause_s)


def test_a_link_that_lasted_starts_the_pauses_over_and_one_that_did_not_goes_on() -> None:
    machine = pairing()
    machine.want(now_s=0.0)
    for _ in range(4):
        machine.failed(now_s=0.0)
        machine.dial(now_s=0.0)
    machine.opened("short", now_s=0.0)
    machine.closed("short", now_s=1.0)
    assert machine.next_timer_s() == 1.0 + 4.0
    machine.dial(now_s=5.0)
    machine.opened("long", now_s=5.0)

    machine.closed("long", now_s=60.0)

    assert machine.next_timer_s() == 60.0 + FIRST_S


def test_a_packet_for_a_peer_ends_its_pause() -> None:
    machine = pairing()
    machine.want(now_s=0.0)
    machine.failed(now_s=0.0)
    drain(machine)

    machine.dial(now_s=0.01)

    assert (drain(machine), machine.next_timer_s()) == ([Dial()], None)


def test_a_peer_that_is_no_longer_wanted_is_not_dialled_again() -> None:
    machine = up()
    machine.want(now_s=0.0)

    machine.release()
    machine.closed("ours", now_s=50.0)

    assert (drain(machine), machine.next_timer_s(), machine.is_idle) == ([Down()], None, True)


def test_hanging_up_ends_whatever_there_is() -> None:
    dialling, linked = pairing(), up()
    dialling.dial(now_s=0.0)
    dialling.proved("theirs", now_s=0.1)
    linked.proved("late", now_s=0.1)

    dialling.hang_up(now_s=1.0)
    linked.hang_up(now_s=1.0)

    assert drain(dialling) == [Dial(), StopDial(), Reject("theirs")]
    assert drain(linked) == [Reject("late"), Reject("ours"), Down()]
    assert dialling.is_idle
    assert linked.is_idle


def test_an_answer_without_a_dial_is_our_own_mistake() -> None:
    with pytest.raises(LocalProtocolError):
        pairing().opened("ours", now_s=0.0)
    with pytest.raises(LocalProtocolError):
        pairing().failed(now_s=0.0)


# -- two of them, and a network that delays --------------------------------------------------------------------------


@dataclass(eq=False)
class Wire:
    """A connection: messages to each side, in order."""

    dialler: int
    to: tuple[deque[str], deque[str]] = field(default_factory=lambda: (deque(), deque()))
    alive: list[bool] = field(default_factory=lambda: [True, True])


class Pair:
    """Two pairings whose connections deliver when the test says so."""

    def __init__(self, draws: list[int]) -> None:
        self.now_s = 0.0
        self.sides = [
            Pairing[Wire](ours_counts=ours, backoff_first_s=FIRST_S, backoff_max_s=MAX_S, chance=chance)
            for ours, chance in ((True, lambda: 0.1), (False, lambda: 0.8))
        ]
        self.dials: list[Wire | None] = [None, None]
        self.wires: list[Wire] = []
        self.heard: list[list[str]] = [[], []]
        self.welcomed: list[set[Wire]] = [set(), set()]
        self.draws = draws

    def settle(self, side: int) -> None:
        machine = self.sides[side]
        while (event := machine.next_event()) is not None:
            match event:
                case Dial():
                    wire = Wire(dialler=side)
                    self.wires.append(wire)
                    self.dials[side] = wire
                    wire.to[1 - side].append("proof")
                case StopDial():
                    wire = self.dials[side]  # type: ignore[assignment]
                    self.dials[side] = None
                    self.close(wire, side)
                case Welcome(connection=wire):
                    assert wire.alive[side]
                    self.welcomed[side].add(wire)
                    wire.to[1 - side].append("welcome")
                case Reject(connection=wire):
                    self.close(wire, side)
                case Up() | Down() | Failed():
                    self.heard[side].append(type(event).__name__)
        assert len([wire for wire in self.welcomed[side] if wire.alive[side]]) <= 1

    def close(self, wire: Wire, side: int) -> None:
        if wire.alive[side]:
            wire.alive[side] = False
            wire.to[1 - side].append("close")

    def deliver(self, wire: Wire, side: int) -> None:
        machine, message = self.sides[side], wire.to[side].popleft()
        if not wire.alive[side]:
            return
        if message == "proof":
            machine.proved(wire, now_s=self.now_s)
        elif message == "welcome" and self.dials[side] is wire:
            self.dials[side] = None
            self.welcomed[side].add(wire)
            machine.opened(wire, now_s=self.now_s)
        elif message == "close":
            wire.alive[side] = False
            if self.dials[side] is wire:
                self.dials[side] = None
                machine.failed(now_s=self.now_s)
            else:
                machine.closed(wire, now_s=self.now_s)
        self.settle(side)

    def pending(self) -> list[tuple[Wire, int]]:
        return [(wire, side) for wire in self.wires for side in (0, 1) if wire.to[side]]

    def step(self, draw: int) -> None:
        action, choice = draw % 16, draw // 16
        pending = self.pending()
        if action == 0:
            side = choice % 2
            self.sides[side].dial(now_s=self.now_s)
            self.settle(side)
        elif action == 1:
            self.now_s += (0.01, 1.0, 4.0, 40.0)[choice % 4]
        elif action == 2 and self.wires:
            wire = self.wires[choice % len(self.wires)]  # the network cuts it
            for side in (0, 1):
                wire.to[side].append("close")
        elif action == 3:
            side = choice % 2
            self.sides[side].hang_up(now_s=self.now_s)
            self.settle(side)
        elif pending:
            self.deliver(*pending[choice % len(pending)])
        self.timers()

    def timers(self) -> None:
        for side in (0, 1):
            due_s = self.sides[side].next_timer_s()
            if due_s is not None and due_s <= self.now_s:
                self.sides[side].handle_timer(now_s=self.now_s)
                self.settle(side)

    def calm_down(self) -> None:
        """Deliver everything, and let timers fire, until nothing happens any more."""
        for _ in range(1_000):
            pending = self.pending()
            if pending:
                self.deliver(*pending[0])
                continue
            dues = [due for side in (0, 1) if (due := self.sides[side].next_timer_s()) is not None]
            if not dues:
                return
            self.now_s = max(self.now_s, min(dues))
            self.timers()
        raise AssertionError("they never come to rest")


@settings(max_examples=300)
@given(
    st.lists(st.integers(0, 16 * 64 - 1), max_size=60), st.sampled_from([(True, True), (True, False), (False, True)])
)
def test_up_and_down_alternate_and_both_sides_end_on_the_same_connection(
    draws: list[int], wanted: tuple[bool, bool]
) -> None:
    pair = Pair(draws)
    for side in (0, 1):
        if wanted[side]:
            pair.sides[side].want(now_s=0.0)
            pair.settle(side)
    for draw in draws:
        pair.step(draw)
    pair.calm_down()

    for side in (0, 1):
        turns = [word for word in pair.heard[side] if word != "Failed"]
        assert turns == ["Up", "Down"] * (len(turns) // 2) + ["Up"] * (len(turns) % 2)
    one, other = pair.sides
    assert one.link is not None
    assert one.link is other.link


@settings(max_examples=300)
@given(st.lists(st.integers(0, 63), max_size=40), st.booleans(), st.booleans())
def test_a_race_ends_with_one_link_that_came_up_once_however_messages_overtake(
    draws: list[int], one_dials: bool, other_dials: bool
) -> None:
    pair = Pair(draws)
    for side, dials in enumerate((one_dials, other_dials)):
        if dials:
            pair.sides[side].dial(now_s=0.0)
            pair.settle(side)
    for draw in draws:
        if draw % 8 == 0:
            pair.sides[draw // 8 % 2].dial(now_s=0.0)
            pair.settle(draw // 8 % 2)
        elif pending := pair.pending():
            pair.deliver(*pending[draw // 8 % len(pending)])
    while pending := pair.pending():
        pair.deliver(*pending[0])

    dialled = bool(pair.wires)
    assert pair.heard == [["Up"] * dialled] * 2
    assert pair.sides[0].link is pair.sides[1].link
