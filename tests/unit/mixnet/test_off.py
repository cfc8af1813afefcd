from typing import Any

import pytest
from hypothesis import given

from tests.unit.mixnet.mixing import Ledger, drain, own, seeded, steps, transit
from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.mixnet.mixers import (
    RETRY_PAUSE_S,
    MixerSettings,
    Off,
    OffSettings,
    Outbox,
    OutboxSettings,
    Poisson,
    PoissonSettings,
    Released,
    Scheduled,
    make_mixer,
)


def make(**settings: Any) -> Off:
    return Off(settings=OffSettings(**settings))


def test_everything_leaves_at_once() -> None:
    mixer = make()
    mixer.start(now_s=0.0)

    mixer.submit_own(own(1), now_s=1.0)
    mixer.submit_transit(transit(2), delay_s=9.0, now_s=2.0)

    assert drain(mixer) == [
        Scheduled(item=own(1), release_at_s=1.0),
        Released(item=own(1)),
        Released(item=transit(2)),
    ]
    assert mixer.next_timer_s() is None


def test_what_came_before_the_start_leaves_right_after_it() -> None:
    mixer = make()
    mixer.submit_own(own(1), now_s=1.0)
    mixer.submit_transit(transit(2), delay_s=0.0, now_s=2.0)
    mixer.handle_timer(now_s=4.0)
    before = (drain(mixer), mixer.next_timer_s())

    mixer.start(now_s=5.0)
    mixer.handle_timer(now_s=5.0)

    assert before == ([], None)
    assert drain(mixer) == [
        Scheduled(item=own(1), release_at_s=5.0),
        Released(item=own(1)),
        Released(item=transit(2)),
    ]


def test_a_packet_given_back_is_tried_again_after_a_pause() -> None:
    mixer = make()
    mixer.start(now_s=0.0)

    mixer.requeue(transit(1), now_s=1.0)
    mixer.handle_timer(now_s=1.0)
    early = drain(mixer)
    mixer.handle_timer(now_s=1.0 + RETRY_PAUSE_S)

    assert early == []
    assert drain(mixer) == [Released(item=transit(1))]


def test_full_queues_refuse_each_for_itself() -> None:
    mixer = make(own_capacity=1, transit_capacity=2)

    own_answers = [mixer.submit_own(own(number), now_s=0.0) for number in range(2)]
    transit_answers = [mixer.submit_transit(transit(n), delay_s=1.0, now_s=0.0) for n in range(3)]

    assert own_answers == [True, False]
    assert transit_answers == [True, True, False]
    assert (mixer.own_waiting, mixer.own_capacity, mixer.transit_waiting) == (1, 1, 2)


def test_refused_packets_take_the_room_of_new_ones() -> None:
    mixer = make(own_capacity=1, transit_capacity=1)
    mixer.start(now_s=0.0)

    mixer.requeue(transit(0), now_s=0.0)

    assert not mixer.submit_transit(transit(1), delay_s=0.0, now_s=0.0)
    assert mixer.submit_own(own(2), now_s=0.0)


def test_senders_ask_relays_for_no_delay() -> None:
    assert make().hop_delay_s(seeded(1)) == 0.0


def test_a_mixer_starts_once() -> None:
    mixer = make()
    mixer.start(now_s=0.0)

    with pytest.raises(LocalProtocolError, match="starts once"):
        mixer.start(now_s=0.0)


@pytest.mark.parametrize("key", ["transit_capacity", "own_capacity"])
def test_a_queue_that_holds_nothing_is_refused_by_key(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OffSettings(**{key: 0})

    assert str(caught.value) == f"mixnet.{key}: got 0, takes a whole number, 1 or more"


@pytest.mark.parametrize(
    ("settings", "kind"), [(OutboxSettings(), Outbox), (PoissonSettings(), Poisson), (OffSettings(), Off)]
)
def test_settings_say_which_mixer_they_are_for(settings: MixerSettings, kind: type) -> None:
    assert type(make_mixer(settings, draw=seeded(1))) is kind


@given(actions=steps)
def test_everything_accepted_leaves_once_in_time_and_within_bounds(actions: list[tuple[str, float]]) -> None:
    mixer = make(own_capacity=3, transit_capacity=4)
    ledger = Ledger(mixer=mixer, transit_capacity=4, cover=False)

    for action, pause_s in actions[:5]:
        ledger.act(action, pause_s)
    mixer.start(now_s=ledger.now_s)
    for action, pause_s in actions[5:]:
        ledger.act(action, pause_s)
        assert mixer.own_waiting + mixer.transit_waiting == len(ledger.inside)
    ledger.finish()
