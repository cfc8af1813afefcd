import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.statistics_ks import exponential_law, ks_p_value
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.simulation.entropy import chances
from unlinkabledfl.simulation.links import LOST, Channel, LinkPlan, LinkSettings


def channel(packet_bytes: int = 1000, **settings: Any) -> Channel:
    return Channel(LinkSettings(**settings), packet_bytes=packet_bytes)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("loss", -0.1),
        ("loss", 1.1),
        ("loss", math.nan),
        ("duplication", 2.0),
        ("reordering", -1.0),
        ("latency_s", -0.001),
        ("latency_s", math.inf),
        ("jitter_s", math.nan),
        ("reordering_delay_s", -1.0),
        ("detection_s", -1.0),
        ("bandwidth_bytes_per_s", 0.0),
        ("bandwidth_bytes_per_s", math.inf),
        ("queue_packets", 0),
        ("dial_timeout_s", 0.05),
    ],
)
def test_a_setting_that_cannot_work_is_named(setting: str, value: float) -> None:
    with pytest.raises(ConfigError) as caught:
        LinkSettings(**{setting: value})  # type: ignore[arg-type]

    assert caught.value.key == f"links.{setting}"


def test_a_node_that_may_dial_nobody_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"links\.dialled_max: got 0"):
        LinkPlan(dialled_max=0)


def test_a_plain_link_delays_by_its_latency() -> None:
    assert channel(latency_s=0.05).arrival_s(1.0, chances(1, "t")) == 1.05


def test_a_narrow_link_carries_one_packet_after_another() -> None:
    narrow = channel(latency_s=0.5, bandwidth_bytes_per_s=1000.0)
    luck = chances(1, "t")

    assert [narrow.arrival_s(at_s, luck) for at_s in (0.0, 0.0, 0.5, 10.0)] == [1.5, 2.5, 3.5, 11.5]


def test_a_narrow_link_is_not_writable_while_its_queue_is_full() -> None:
    narrow = channel(bandwidth_bytes_per_s=1000.0, queue_packets=2)
    luck = chances(1, "t")

    writable = []
    for _ in range(3):
        writable.append(narrow.is_writable(0.0))
        narrow.arrival_s(0.0, luck)

    assert writable == [True, True, False]
    assert narrow.is_writable(1.5)


def test_jitter_never_makes_a_packet_overtake_another() -> None:
    jittery = channel(latency_s=0.05, jitter_s=0.5)
    luck = chances(3, "t")

    arrivals = [jittery.arrival_s(0.01 * number, luck) for number in range(500)]

    assert arrivals == sorted(arrivals)
    assert min(arrival - 0.01 * number for number, arrival in enumerate(arrivals)) >= 0.05


def test_jitter_is_exponential_with_the_mean_it_is_given() -> None:
    luck = chances(4, "t")
    delays = [channel(latency_s=0.05, jitter_s=0.2).arrival_s(0.0, luck) - 0.05 for _ in range(5_000)]

    assert ks_p_value(delays, exponential_law(0.2)) > 1e-4


def test_a_packet_held_back_is_overtaken() -> None:
    unruly = channel(latency_s=0.05, reordering=0.5, reordering_delay_s=1.0)
    luck = chances(5, "t")

    arrivals = [unruly.arrival_s(0.0, luck) for _ in range(1000)]

    assert set(arrivals) == {0.05, 1.05}
    # Binomial(1000, 1/2): four deviations are 63.
    assert abs(arrivals.count(1.05) - 500) < 64


@pytest.mark.parametrize("probability", [0.0, 0.01, 0.3, 1.0])
def test_losses_and_duplicates_are_as_likely_as_they_are_set(probability: float) -> None:
    luck = chances(6, "t")
    count = 20_000
    lossy = channel(loss=probability)
    copying = channel(duplication=probability)

    lost = sum(lossy.arrival_s(0.0, luck) == LOST for _ in range(count))
    copied = sum(copying.copy_arrival_s(0.05, luck) != LOST for _ in range(count))

    # Four deviations of the binomial law: a significance of 6e-5 a case.
    tolerance = 4 * math.sqrt(count * probability * (1 - probability))
    assert abs(lost - count * probability) <= tolerance
    assert abs(copied - count * probability) <= tolerance


@given(
    settings=st.builds(
        LinkSettings,
        latency_s=st.floats(0.0, 1.0),
        jitter_s=st.floats(0.0, 1.0),
        bandwidth_bytes_per_s=st.none() | st.floats(100.0, 1e6),
        loss=st.floats(0.0, 1.0),
        duplication=st.floats(0.0, 1.0),
        reordering=st.floats(0.0, 1.0),
    ),
    gaps=st.lists(st.floats(0.0, 2.0), min_size=1, max_size=30),
    seed=st.integers(0, 1000),
)
def test_nothing_arrives_before_it_could(settings: LinkSettings, gaps: list[float], seed: int) -> None:
    tested = Channel(settings, packet_bytes=1000)
    luck = chances(seed, "t")
    now_s = 0.0
    for gap in gaps:
        now_s += gap
        arrival_s = tested.arrival_s(now_s, luck)
        if arrival_s == LOST:
            continue
        assert arrival_s >= now_s + settings.latency_s
        copy_s = tested.copy_arrival_s(arrival_s, luck)
        assert copy_s == LOST or copy_s >= arrival_s + settings.latency_s
