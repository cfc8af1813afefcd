from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.mixnet.draw import Entropy
from unlinkabledfl.mixnet.keys import EpochKey, KeyEvent, KeyRetired, KeyRing, KeyRotated


@dataclass(frozen=True)
class Pair:
    public_bytes: bytes


def generate(entropy: Entropy) -> Pair:
    return Pair(entropy(2))


def counting_entropy() -> Callable[[int], bytes]:
    numbers = count(1)
    return lambda size: next(numbers).to_bytes(size)


def make(*, epoch_length_s: float | None = 100.0, overlap_s: float = 20.0, first_serial: int = 50) -> KeyRing[Pair]:
    return KeyRing(
        generate=generate,
        entropy=counting_entropy(),
        epoch_length_s=epoch_length_s,
        overlap_s=overlap_s,
        replay_capacity=8,
        first_serial=first_serial,
    )


def drain(ring: KeyRing[Pair]) -> list[KeyEvent]:
    return list(iter(ring.next_event, None))


def epochs(ring: KeyRing[Pair]) -> list[int]:
    return [key.epoch for key in ring.keys]


def rotated(epoch: int, serial: int, key: bytes) -> KeyRotated:
    return KeyRotated(epoch=epoch, serial=serial, public_key=key)


def test_a_renewed_key_is_the_same_key_and_window_under_a_higher_serial() -> None:
    ring = make()
    ring.start(now_s=0.0)
    drain(ring)
    before = ring.current

    ring.renew()

    assert drain(ring) == [rotated(0, 51, before.pair.public_bytes)]
    assert (ring.current.pair, ring.current.serial) == (before.pair, 51)
    assert ring.current.replays is before.replays
    ring.handle_timer(now_s=100.0)
    assert [key.serial for key in ring.keys] == [52, 51]


def test_nothing_happens_before_the_start() -> None:
    ring = make()

    ring.handle_timer(now_s=1000.0)

    assert (ring.keys, ring.next_timer_s(), drain(ring)) == ((), None, [])
    with pytest.raises(LocalProtocolError):
        _ = ring.current


def test_a_start_makes_the_key_of_the_epoch_it_falls_into() -> None:
    ring = make()

    ring.start(now_s=730.0)

    assert drain(ring) == [rotated(7, 50, b"\0\1")]
    assert (epochs(ring), ring.current.pair, ring.next_timer_s()) == ([7], Pair(b"\0\1"), 800.0)


def test_the_previous_key_lives_through_the_overlap_with_its_own_window() -> None:
    ring = make()
    ring.start(now_s=730.0)
    old = ring.current
    drain(ring)

    ring.handle_timer(now_s=800.0)

    assert drain(ring) == [rotated(8, 51, b"\0\2")]
    assert (epochs(ring), ring.keys[1], ring.next_timer_s()) == ([8, 7], old, 820.0)
    assert ring.current.replays is not old.replays

    ring.handle_timer(now_s=820.0)

    assert drain(ring) == [KeyRetired(epoch=7)]
    assert (epochs(ring), ring.next_timer_s()) == ([8], 900.0)


def test_a_timer_that_comes_epochs_late_makes_one_key_and_retires_the_old_one() -> None:
    ring = make()
    ring.start(now_s=730.0)
    drain(ring)

    ring.handle_timer(now_s=1234.0)

    assert drain(ring) == [rotated(12, 51, b"\0\2"), KeyRetired(epoch=7)]
    assert epochs(ring) == [12]


def test_a_timer_that_misses_the_overlaps_end_retires_before_it_rotates() -> None:
    ring = make()
    ring.start(now_s=730.0)
    ring.handle_timer(now_s=800.0)
    drain(ring)

    ring.handle_timer(now_s=905.0)

    assert drain(ring) == [KeyRetired(epoch=7), rotated(9, 52, b"\0\3")]
    assert epochs(ring) == [9, 8]


def test_an_overlap_as_long_as_an_epoch_still_leaves_two_keys_at_most() -> None:
    ring = make(overlap_s=100.0)
    ring.start(now_s=0.0)
    ring.handle_timer(now_s=100.0)
    ring.handle_timer(now_s=200.0)

    assert epochs(ring) == [2, 1]


def test_without_overlap_the_old_key_goes_when_the_new_one_comes() -> None:
    ring = make(overlap_s=0.0)
    ring.start(now_s=0.0)
    drain(ring)

    ring.handle_timer(now_s=100.0)

    assert drain(ring) == [rotated(1, 51, b"\0\2"), KeyRetired(epoch=0)]


def test_a_ring_without_epochs_keeps_its_first_key() -> None:
    ring = make(epoch_length_s=None)
    ring.start(now_s=1e12)
    ring.handle_timer(now_s=1e15)

    assert drain(ring) == [rotated(0, 50, b"\0\1")]
    assert ring.next_timer_s() is None


def test_a_second_start_is_a_bug() -> None:
    ring = make()
    ring.start(now_s=0.0)

    with pytest.raises(LocalProtocolError):
        ring.start(now_s=1.0)


@pytest.mark.parametrize("now_s", [-0.5, 2.0**32 * 100.0])
def test_an_instant_that_has_no_epoch_is_a_bug(now_s: float) -> None:
    with pytest.raises(LocalProtocolError):
        make().start(now_s=now_s)


@pytest.mark.parametrize(
    ("epoch_length_s", "overlap_s"), [(0.0, 0.0), (-1.0, 0.0), (float("nan"), 0.0), (10.0, -1.0), (10.0, 10.1)]
)
def test_epochs_that_cannot_work_are_refused(epoch_length_s: float, overlap_s: float) -> None:
    with pytest.raises(ConfigError):
        make(epoch_length_s=epoch_length_s, overlap_s=overlap_s)


@given(
    epoch_length_s=st.floats(0.1, 50.0),
    overlap_share=st.floats(0.0, 1.0),
    start_s=st.floats(0.0, 1e6),
    steps_s=st.lists(st.one_of(st.none(), st.floats(0.0, 120.0)), max_size=40),
)
def test_a_key_and_its_window_live_together_and_only_in_their_time(
    epoch_length_s: float, overlap_share: float, start_s: float, steps_s: list[float | None]
) -> None:
    """A step of None goes exactly to the next timer: that is where rounding would show."""
    overlap_s = epoch_length_s * overlap_share
    ring = make(epoch_length_s=epoch_length_s, overlap_s=overlap_s)
    ring.start(now_s=start_s)
    now_s = start_s
    known: dict[int, EpochKey[Pair]] = {}
    announced: list[tuple[int, int]] = []
    retired: list[int] = []
    for step_s in [*steps_s, 0.0]:
        for key in ring.keys:
            known[id(key.replays)] = key
            assert now_s < (key.epoch + 1) * epoch_length_s + overlap_s
            assert key.epoch not in retired
        assert now_s < (ring.current.epoch + 1) * epoch_length_s
        assert len(ring.keys) <= 2
        for event in drain(ring):
            if isinstance(event, KeyRetired):
                retired.append(event.epoch)
            else:
                announced.append((event.epoch, event.serial))
        timer_s = ring.next_timer_s()
        assert timer_s is not None
        assert timer_s > now_s
        now_s = timer_s if step_s is None else now_s + step_s
        ring.handle_timer(now_s=now_s)

    assert len({key.pair for key in known.values()}) == len(known)
    assert announced == sorted(set(announced))
    assert len({epoch for epoch, _ in announced}) == len(announced)
    assert retired == sorted(set(retired))
