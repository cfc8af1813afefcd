from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.mixnet.mixing import Ledger, drain, own, run_until, seeded, steps, transit
from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.mixnet.items import Cover, CoverKind
from unlinkabledfl.mixnet.mixers import MixerEvent, Poisson, PoissonSettings, Released, Scheduled


def make(**settings: Any) -> Poisson:
    """A mixer whose emission stream ticks about once a second, without loops, unless told otherwise."""
    defaults: dict[str, Any] = {"delay_mean_s": 1.0, "emission_rate_per_s": 1.0, "loop_rate_per_s": 0.0}
    return Poisson(settings=PoissonSettings(**(defaults | settings)), draw=seeded(1))


def drop(serial: int) -> Cover:
    return Cover(CoverKind.DROP, serial)


def loop(serial: int) -> Cover:
    return Cover(CoverKind.LOOP, serial)


def tick(mixer: Poisson) -> tuple[float, list[MixerEvent]]:
    due_s = mixer.next_timer_s()
    assert due_s is not None
    mixer.handle_timer(now_s=due_s)
    return due_s, drain(mixer)


def test_nothing_leaves_before_the_start() -> None:
    mixer = make()
    mixer.submit_own(own(1), now_s=0.0)
    mixer.submit_transit(transit(2), delay_s=1.0, now_s=0.0)

    mixer.handle_timer(now_s=50.0)

    assert mixer.next_timer_s() is None
    assert drain(mixer) == []
    assert (mixer.own_waiting, mixer.transit_waiting) == (1, 1)


def test_each_tick_sends_what_was_decided_at_the_tick_before() -> None:
    mixer = make()
    mixer.start(now_s=0.0)
    [started] = drain(mixer)
    mixer.submit_own(own(1), now_s=0.0)

    first_s, first = tick(mixer)
    second_s, second = tick(mixer)

    assert started == Scheduled(item=drop(0), release_at_s=first_s)
    assert first == [Released(item=drop(0)), Scheduled(item=own(1), release_at_s=second_s)]
    assert second[0] == Released(item=own(1))
    assert isinstance(second[1], Scheduled)
    assert second[1].item == drop(1)


def test_messages_leave_in_the_order_in_which_they_came() -> None:
    mixer = make()
    for number in range(5):
        mixer.submit_own(own(number), now_s=0.0)

    mixer.start(now_s=0.0)

    assert [item for _, item in run_until(mixer, 100.0)][:5] == [own(number) for number in range(5)]


def test_a_transit_is_held_for_exactly_the_delay_in_its_header() -> None:
    mixer = make(cover=False, emission_rate_per_s=1e-9)
    mixer.start(now_s=0.0)

    mixer.submit_transit(transit(1), delay_s=3.0, now_s=1.0)
    mixer.submit_transit(transit(2), delay_s=0.5, now_s=2.0)
    mixer.submit_transit(transit(3), delay_s=0.5, now_s=2.0)

    assert run_until(mixer, 10.0) == [(2.5, transit(2)), (2.5, transit(3)), (4.0, transit(1))]


def test_transits_do_not_touch_the_ticks() -> None:
    quiet, busy = make(), make()
    quiet.start(now_s=0.0)
    busy.start(now_s=0.0)
    for number in range(50):
        busy.submit_transit(transit(number), delay_s=number / 10, now_s=0.0)

    def covers(mixer: Poisson) -> list[float]:
        return [at_s for at_s, item in run_until(mixer, 20.0) if isinstance(item, Cover)]

    assert covers(busy) == covers(quiet)


def test_loop_cover_has_its_own_stream() -> None:
    mixer = make(loop_rate_per_s=1.0)
    mixer.start(now_s=0.0)
    started = drain(mixer)

    released = {item for _, item in run_until(mixer, 50.0)}

    assert [event.item for event in started] == [drop(0), loop(1)]
    assert len([item for item in released if isinstance(item, Cover) and item.kind is CoverKind.LOOP]) > 25
    assert len([item for item in released if isinstance(item, Cover) and item.kind is CoverKind.DROP]) > 25


def test_without_cover_ticks_go_on_but_send_only_messages() -> None:
    mixer = make(cover=False, loop_rate_per_s=5.0)
    mixer.start(now_s=0.0)

    empty = [tick(mixer)[1] for _ in range(10)]
    mixer.submit_own(own(1), now_s=mixer.next_timer_s() or 0.0)
    decided_s, decided = tick(mixer)
    released_s, released = tick(mixer)

    assert empty == [[]] * 10
    assert decided == [Scheduled(item=own(1), release_at_s=released_s)]
    assert released == [Released(item=own(1))]
    assert decided_s < released_s


def test_a_stall_is_not_caught_up_by_the_streams() -> None:
    mixer = make(emission_rate_per_s=100.0, loop_rate_per_s=100.0)
    mixer.start(now_s=0.0)
    drain(mixer)

    mixer.handle_timer(now_s=60.0)

    events = drain(mixer)
    assert {event.item for event in events if isinstance(event, Released)} == {drop(0), loop(1)}
    assert all(event.release_at_s > 60.0 for event in events if isinstance(event, Scheduled))


def test_a_late_timer_releases_all_due_transits_in_their_order() -> None:
    mixer = make(cover=False, emission_rate_per_s=1e-9)
    mixer.start(now_s=0.0)
    for number, delay_s in enumerate([3.0, 1.0, 2.0, 9.0]):
        mixer.submit_transit(transit(number), delay_s=delay_s, now_s=0.0)

    mixer.handle_timer(now_s=5.0)

    assert drain(mixer) == [Released(item=transit(number)) for number in (1, 2, 0)]
    assert mixer.transit_waiting == 1


def test_a_transit_given_back_is_held_anew() -> None:
    mixer = make(cover=False, emission_rate_per_s=1e-9, transit_capacity=1)
    mixer.start(now_s=0.0)
    mixer.submit_transit(transit(1), delay_s=1.0, now_s=0.0)
    tick(mixer)

    mixer.requeue(transit(1), now_s=1.0)
    refused = mixer.submit_transit(transit(2), delay_s=1.0, now_s=1.0)
    again_s, again = tick(mixer)

    assert not refused
    assert again == [Released(item=transit(1))]
    assert again_s > 1.0


def test_full_queues_refuse_each_for_itself() -> None:
    mixer = make(own_capacity=1, transit_capacity=2)

    own_answers = [mixer.submit_own(own(number), now_s=0.0) for number in range(2)]
    transit_answers = [mixer.submit_transit(transit(n), delay_s=1.0, now_s=0.0) for n in range(3)]

    assert own_answers == [True, False]
    assert transit_answers == [True, True, False]
    assert (mixer.own_waiting, mixer.own_capacity, mixer.transit_waiting) == (1, 1, 2)


def test_a_mixer_starts_once() -> None:
    mixer = make()
    mixer.start(now_s=0.0)

    with pytest.raises(LocalProtocolError, match="starts once"):
        mixer.start(now_s=0.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"delay_mean_s": -1.0}, "mixnet.delay_mean_s: got -1.0, takes a number of seconds, 0 or more"),
        (
            {"delay_mean_s": 101.0},
            "mixnet.delay_mean_s: got 101.0, takes a number of seconds from 0 to 100 "
            "(a draw can be 37 times the mean, and a packet's header counts up to 4294 seconds)",
        ),
        (
            {"emission_rate_per_s": 0.0},
            "mixnet.emission_rate_per_s: got 0.0, takes a number of packets per second, more than 0 "
            "(messages leave at its ticks)",
        ),
        (
            {"loop_rate_per_s": -1.0},
            "mixnet.loop_rate_per_s: got -1.0, takes a number of packets per second, 0 or more "
            "(0 switches loop cover off)",
        ),
        ({"cover": 1}, "mixnet.cover: got 1, takes true or false"),
        ({"own_capacity": 0}, "mixnet.own_capacity: got 0, takes a whole number, 1 or more"),
        ({"transit_capacity": 1.5}, "mixnet.transit_capacity: got 1.5, takes a whole number, 1 or more"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_key(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        PoissonSettings(**settings)

    assert str(caught.value) == message


@given(
    actions=steps,
    cover=st.booleans(),
    loop_rate_per_s=st.sampled_from([0.0, 3.0]),
    seed=st.integers(0, 2**32),
)
def test_everything_accepted_leaves_once_in_time_and_within_bounds(
    actions: list[tuple[str, float]], cover: bool, loop_rate_per_s: float, seed: int
) -> None:
    settings = PoissonSettings(
        delay_mean_s=0.1,
        emission_rate_per_s=10.0,
        loop_rate_per_s=loop_rate_per_s,
        cover=cover,
        transit_capacity=4,
        own_capacity=3,
    )
    mixer = Poisson(settings=settings, draw=seeded(seed))
    ledger = Ledger(mixer=mixer, transit_capacity=4, cover=cover)

    mixer.start(now_s=0.0)
    ledger.read()
    for action, pause_s in actions:
        ledger.act(action, pause_s)
    ledger.finish()
