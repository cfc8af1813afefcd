from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.mixnet.mixing import Ledger, drain, own, run_until, seeded, steps, transit
from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.mixnet.items import Cover, CoverKind, Transit
from unlinkabledfl.mixnet.mixers import RETRY_PAUSE_S, Outbox, OutboxSettings, Released, Scheduled


def make(**settings: Any) -> Outbox:
    """An outbox with gaps of exactly one second, unless told otherwise."""
    defaults: dict[str, Any] = {"outbox_size": 2, "delay_mean_s": 1.0, "delay_deviation_s": 0.0}
    return Outbox(settings=OutboxSettings(**(defaults | settings)), draw=seeded(1))


def drop(serial: int) -> Cover:
    return Cover(CoverKind.DROP, serial)


def test_nothing_leaves_before_the_start() -> None:
    mixer = make()

    assert mixer.submit_own(own(1), now_s=0.0)
    assert mixer.submit_transit(transit(2), delay_s=0.0, now_s=0.0)
    mixer.handle_timer(now_s=100.0)

    assert mixer.next_timer_s() is None
    assert drain(mixer) == []
    assert (mixer.own_waiting, mixer.transit_waiting) == (1, 1)


def test_an_empty_outbox_sends_cover_at_every_gap() -> None:
    mixer = make()

    mixer.start(now_s=10.0)
    started = drain(mixer)
    mixer.handle_timer(now_s=11.0)

    assert started == [Scheduled(item=drop(0), release_at_s=11.0)]
    assert drain(mixer) == [Released(item=drop(0)), Scheduled(item=drop(1), release_at_s=12.0)]


def test_a_message_waits_for_the_refill_even_if_only_cover_is_in_the_outbox() -> None:
    mixer = make(outbox_size=2)
    mixer.start(now_s=0.0)
    mixer.submit_own(own(1), now_s=0.0)

    first_cycle = run_until(mixer, 1.0)
    assert mixer.own_waiting == 1
    second_cycle = run_until(mixer, 4.0)

    assert first_cycle == [(1.0, drop(0))]
    assert {at_s: item for at_s, item in second_cycle if item == own(1)}.keys() <= {3.0, 4.0}
    assert [item for _, item in second_cycle].count(own(1)) == 1
    assert mixer.own_waiting == 0


def test_a_transit_is_never_scheduled_and_its_wish_for_a_delay_is_not_heard() -> None:
    mixer = make(outbox_size=1, cover=False)
    mixer.start(now_s=0.0)

    mixer.submit_transit(transit(1), delay_s=30.0, now_s=5.0)
    mixer.handle_timer(now_s=6.0)

    assert drain(mixer) == [Released(item=transit(1))]


def test_a_refill_takes_the_oldest_from_one_queue() -> None:
    mixer = make(outbox_size=3)
    mixer.submit_own(own(1), now_s=0.0)
    mixer.submit_transit(transit(2), delay_s=0.0, now_s=0.0)
    mixer.submit_own(own(3), now_s=0.0)
    mixer.submit_transit(transit(4), delay_s=0.0, now_s=0.0)

    mixer.start(now_s=0.0)

    assert {item for _, item in run_until(mixer, 3.0)} == {own(1), transit(2), own(3)}


def test_without_cover_the_mixer_is_idle_until_something_comes() -> None:
    mixer = make(cover=False)
    mixer.start(now_s=0.0)
    idle = mixer.next_timer_s()

    mixer.submit_own(own(1), now_s=7.0)
    scheduled = drain(mixer)
    mixer.handle_timer(now_s=8.0)

    assert idle is None
    assert scheduled == [Scheduled(item=own(1), release_at_s=8.0)]
    assert drain(mixer) == [Released(item=own(1))]
    assert mixer.next_timer_s() is None


def test_an_early_timer_does_nothing() -> None:
    mixer = make()
    mixer.start(now_s=0.0)
    drain(mixer)

    mixer.handle_timer(now_s=0.999)

    assert drain(mixer) == []
    assert mixer.next_timer_s() == 1.0


def test_a_timer_late_by_less_than_a_gap_does_not_shift_the_schedule() -> None:
    mixer = make()
    mixer.start(now_s=0.0)

    mixer.handle_timer(now_s=1.9)

    assert mixer.next_timer_s() == 2.0


def test_time_lost_to_a_stall_is_not_caught_up() -> None:
    mixer = make()
    mixer.start(now_s=0.0)
    drain(mixer)

    mixer.handle_timer(now_s=50.0)
    mixer.handle_timer(now_s=50.0)

    assert drain(mixer) == [Released(item=drop(0)), Scheduled(item=drop(1), release_at_s=51.0)]


def test_a_packet_given_back_takes_part_in_the_next_permutation() -> None:
    mixer = make(outbox_size=1)
    mixer.start(now_s=0.0)
    mixer.handle_timer(now_s=1.0)
    drain(mixer)

    mixer.requeue(transit(0), now_s=1.0)
    waiting = mixer.transit_waiting
    mixer.handle_timer(now_s=2.0)
    mixer.handle_timer(now_s=3.0)

    assert waiting == 1
    assert drain(mixer) == [
        Released(item=drop(1)),
        Released(item=transit(0)),
        Scheduled(item=drop(2), release_at_s=4.0),
    ]


def test_more_packets_given_back_than_fit_go_before_the_queue_at_the_next_refills() -> None:
    mixer = make(outbox_size=2)
    mixer.start(now_s=0.0)
    run_until(mixer, 1.0)
    mixer.submit_own(own(1), now_s=1.0)
    for number in range(3):
        mixer.requeue(transit(number), now_s=1.0)

    first_cycle = [item for _, item in run_until(mixer, 4.0)][1:]
    second_cycle = [item for _, item in run_until(mixer, 6.0)]

    assert set(first_cycle) == {transit(0), transit(1)}
    assert set(second_cycle) == {transit(2), own(1)}


def test_packets_given_back_take_the_room_of_new_ones() -> None:
    mixer = make(transit_capacity=1)
    mixer.start(now_s=0.0)

    mixer.requeue(transit(0), now_s=0.0)

    assert not mixer.submit_transit(transit(1), delay_s=0.0, now_s=0.0)


def test_a_packet_given_back_to_an_idle_mixer_wakes_it() -> None:
    mixer = make(cover=False)
    mixer.start(now_s=0.0)
    mixer.submit_transit(transit(1), delay_s=0.0, now_s=0.0)
    run_until(mixer, 1.0)

    mixer.requeue(transit(1), now_s=1.0)

    assert run_until(mixer, 2.0) == [(2.0, transit(1))]


def test_a_mixer_without_gaps_pauses_before_it_tries_a_refused_link_again() -> None:
    mixer = make(cover=False, delay_mean_s=0.0)
    mixer.start(now_s=0.0)
    for number in (1, 2):
        mixer.submit_transit(transit(number), delay_s=0.0, now_s=0.0)

    attempts = 0
    while (due_s := mixer.next_timer_s()) is not None and due_s < 1.0:
        mixer.handle_timer(now_s=due_s)
        for event in drain(mixer):
            assert isinstance(event.item, Transit)
            mixer.requeue(event.item, now_s=due_s)
            attempts += 1

    assert 2 < attempts <= 2 * (1.0 / RETRY_PAUSE_S + 2)


def test_leftovers_are_permuted_again_with_what_comes_later() -> None:
    mixer = make(outbox_size=4, refill_at=3, cover=False)
    for number in range(100):
        mixer.submit_transit(transit(number), delay_s=0.0, now_s=0.0)

    mixer.start(now_s=0.0)
    places = {item.packet: at_s for at_s, item in run_until(mixer, 200.0) if isinstance(item, Transit)}

    stayed = [place - packet for packet, place in places.items() if isinstance(packet, int)]
    assert len(stayed) == 100
    assert max(stayed) > 4, "an item stays for more than one outbox"
    assert mixer.in_outbox == 0


def test_full_queues_refuse_each_for_itself() -> None:
    mixer = make(own_capacity=1, transit_capacity=2)

    own_answers = [mixer.submit_own(own(number), now_s=0.0) for number in range(2)]
    transit_answers = [mixer.submit_transit(transit(n), delay_s=0.0, now_s=0.0) for n in range(3)]

    assert own_answers == [True, False]
    assert transit_answers == [True, True, False]
    assert (mixer.own_waiting, mixer.own_capacity, mixer.transit_waiting) == (1, 1, 2)


def test_senders_ask_relays_for_no_delay() -> None:
    assert make().hop_delay_s(seeded(1)) == 0.0


def test_a_mixer_starts_once() -> None:
    mixer = make()
    mixer.start(now_s=0.0)

    with pytest.raises(LocalProtocolError, match="starts once"):
        mixer.start(now_s=0.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"outbox_size": 0}, "mixnet.outbox_size: got 0, takes a whole number, 1 or more"),
        ({"outbox_size": True}, "mixnet.outbox_size: got True, takes a whole number, 1 or more"),
        ({"outbox_size": 2.5}, "mixnet.outbox_size: got 2.5, takes a whole number, 1 or more"),
        ({"delay_mean_s": -0.1}, "mixnet.delay_mean_s: got -0.1, takes a number of seconds, 0 or more"),
        ({"delay_mean_s": float("nan")}, "mixnet.delay_mean_s: got nan, takes a number of seconds, 0 or more"),
        (
            {"delay_mean_s": 0.0, "delay_deviation_s": 1.0},
            "mixnet.delay_mean_s: got 0.0, takes 0.000001 seconds or more while mixnet.cover is true "
            "(cover without gaps never ends; set mixnet.cover = false to send without delay)",
        ),
        ({"delay_deviation_s": -1.0}, "mixnet.delay_deviation_s: got -1.0, takes a number of seconds, 0 or more"),
        ({"cover": "no"}, "mixnet.cover: got 'no', takes true or false"),
        (
            {"outbox_size": 5, "refill_at": 5},
            "mixnet.refill_at: got 5, takes a whole number from 0 to 4 (less than mixnet.outbox_size)",
        ),
        ({"transit_capacity": 0}, "mixnet.transit_capacity: got 0, takes a whole number, 1 or more"),
        ({"own_capacity": -1}, "mixnet.own_capacity: got -1, takes a whole number, 1 or more"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_key(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OutboxSettings(**settings)

    assert str(caught.value) == message


@given(
    actions=steps,
    settings=st.builds(
        lambda outbox_size, left, cover, deviation_s: OutboxSettings(
            outbox_size=outbox_size,
            delay_mean_s=0.1,
            delay_deviation_s=deviation_s,
            cover=cover,
            refill_at=min(left, outbox_size - 1),
            transit_capacity=4,
            own_capacity=3,
        ),
        st.integers(1, 5),
        st.integers(0, 4),
        st.booleans(),
        st.sampled_from([0.0, 0.1]),
    ),
    seed=st.integers(0, 2**32),
)
def test_everything_accepted_leaves_once_in_time_and_within_bounds(
    actions: list[tuple[str, float]], settings: OutboxSettings, seed: int
) -> None:
    mixer = Outbox(settings=settings, draw=seeded(seed))
    ledger = Ledger(mixer=mixer, transit_capacity=4, cover=settings.cover)

    mixer.start(now_s=0.0)
    ledger.read()
    for action, pause_s in actions:
        ledger.act(action, pause_s)
        assert mixer.in_outbox <= settings.outbox_size
        assert mixer.in_outbox > settings.refill_at or not settings.cover
    ledger.finish()
