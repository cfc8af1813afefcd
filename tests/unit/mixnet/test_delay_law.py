import math
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.mixnet.mixing import seeded
from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.mixnet.delay_law import (
    DelayLaw,
    OffLaw,
    OutboxLaw,
    PoissonLaw,
    make_delay_law,
    truncated_normal_moments,
)
from unlinkabledfl.mixnet.mixers import MixerSettings, OffSettings, OutboxSettings, PoissonSettings


def outbox_law(*, link_allowance_s: float = 0.0, **settings: Any) -> OutboxLaw:
    defaults: dict[str, Any] = {"outbox_size": 100, "delay_mean_s": 0.1, "delay_deviation_s": 0.0}
    return OutboxLaw(settings=OutboxSettings(**(defaults | settings)), link_allowance_s=link_allowance_s)


def timeout_s(law: DelayLaw, *, stages: int = 3, known_delays_s: float = 0.0, attempt: int = 1) -> float:
    return law.round_trip_timeout_s(stages=stages, known_delays_s=known_delays_s, attempt=attempt)


def test_a_stage_of_the_published_outbox_takes_a_cycle_on_average() -> None:
    law = outbox_law()

    assert law.stage_mean_s == pytest.approx(10.05)
    assert law.stage_variance_s2 == pytest.approx(100 / 6, rel=1e-3)


def test_an_earlier_refill_keeps_the_mean_and_spreads_the_delay() -> None:
    early, published = outbox_law(refill_at=90), outbox_law()

    assert early.stage_mean_s == pytest.approx(published.stage_mean_s)
    assert early.stage_variance_s2 > 4 * published.stage_variance_s2


def test_one_stage_is_waited_for_no_longer_than_it_can_take() -> None:
    assert timeout_s(outbox_law(), stages=1) == pytest.approx(2 * 100 * 0.1)


def test_several_stages_are_waited_for_less_than_they_can_take() -> None:
    law = outbox_law()

    expected_s = 5 * law.stage_mean_s + statistics.NormalDist().inv_cdf(0.999) * math.sqrt(5 * law.stage_variance_s2)
    assert timeout_s(law, stages=5) == pytest.approx(expected_s)
    assert timeout_s(law, stages=5) < 5 * 2 * 100 * 0.1


def test_an_outbox_without_gaps_takes_no_time() -> None:
    law = outbox_law(delay_mean_s=0.0, cover=False, link_allowance_s=0.5)

    assert (law.stage_mean_s, law.stage_variance_s2) == (0.0, 0.0)
    assert timeout_s(law, stages=3) == pytest.approx(2.0)


def test_a_poisson_timeout_is_what_the_sender_drew_and_an_allowance_for_each_link() -> None:
    law = PoissonLaw(settings=PoissonSettings(delay_mean_s=3.0), link_allowance_s=0.5)

    assert (law.stage_mean_s, law.stage_variance_s2) == (3.0, 9.0)
    assert timeout_s(law, stages=3, known_delays_s=11.0) == pytest.approx(11.0 + 4 * 0.5)


def test_direct_delivery_is_waited_for_as_long_as_its_links_may_take() -> None:
    law = OffLaw(link_allowance_s=0.5)

    assert (law.stage_mean_s, law.stage_variance_s2) == (0.0, 0.0)
    assert timeout_s(law, stages=1) == pytest.approx(1.0)


def test_attempts_wait_longer_up_to_a_bound_but_known_delays_do_not_grow() -> None:
    law = PoissonLaw(settings=PoissonSettings(), link_allowance_s=1.0)

    waits_s = [timeout_s(law, stages=0, known_delays_s=100.0, attempt=attempt) for attempt in range(1, 7)]

    assert waits_s == pytest.approx([101.0, 101.5, 102.25, 103.375, 103.375, 103.375])


@pytest.mark.parametrize(
    ("settings", "kind"), [(OutboxSettings(), OutboxLaw), (PoissonSettings(), PoissonLaw), (OffSettings(), OffLaw)]
)
def test_settings_say_which_law_holds(settings: MixerSettings, kind: type) -> None:
    law = make_delay_law(settings)

    assert type(law) is kind
    assert timeout_s(law, stages=0) == pytest.approx(0.5)


@pytest.mark.parametrize("allowance_s", [-1.0, math.inf, math.nan])
def test_an_allowance_that_cannot_be_waited_for_is_refused_by_key(allowance_s: float) -> None:
    with pytest.raises(ConfigError) as caught:
        make_delay_law(OffSettings(), link_allowance_s=allowance_s)

    assert caught.value.key == "mixnet.link_allowance_s"


@pytest.mark.parametrize(("stages", "attempt"), [(-1, 1), (3, 0)])
def test_counts_that_make_no_sense_are_our_own_bug(stages: int, attempt: int) -> None:
    with pytest.raises(LocalProtocolError):
        timeout_s(outbox_law(), stages=stages, attempt=attempt)


@given(
    stages=st.integers(0, 20),
    attempt=st.integers(1, 10),
    known_delays_s=st.floats(0.0, 1e4),
    settings=st.sampled_from(
        [OutboxSettings(), OutboxSettings(refill_at=99), OutboxSettings(delay_deviation_s=5.0), PoissonSettings()]
    ),
)
def test_a_timeout_is_finite_and_never_below_what_is_known(
    stages: int, attempt: int, known_delays_s: float, settings: MixerSettings
) -> None:
    law = make_delay_law(settings)

    wait_s = timeout_s(law, stages=stages, known_delays_s=known_delays_s, attempt=attempt)

    allowance_s = 0.5 * (stages + 1)
    unknown_s = stages * law.stage_mean_s if isinstance(settings, OutboxSettings) else 0.0
    assert known_delays_s + unknown_s + allowance_s <= wait_s * (1 + 1e-12) < math.inf
    assert wait_s <= timeout_s(law, stages=stages + 1, known_delays_s=known_delays_s, attempt=attempt)
    assert wait_s <= timeout_s(law, stages=stages, known_delays_s=known_delays_s, attempt=attempt + 1)


@pytest.mark.parametrize(("mean", "deviation"), [(0.1, 0.001), (1.0, 1.0), (0.0, 2.0), (0.01, 5.0), (3.0, 1.0)])
def test_moments_of_gaps_are_those_of_the_law_they_are_drawn_from(mean: float, deviation: float) -> None:
    draw = seeded(5)
    samples = [draw.truncated_normal(mean, deviation) for _ in range(20_000)]

    moments = truncated_normal_moments(mean, deviation)

    # Four standard errors of 20,000 samples: each of the three fails by chance with p = 6e-5. The seed is
    # fixed.
    error = math.sqrt(moments.variance / len(samples))
    assert abs(statistics.fmean(samples) - moments.mean) < 4 * error
    squares = [(sample - moments.mean) ** 2 for sample in samples]
    assert abs(statistics.fmean(squares) - moments.variance) < 4 * statistics.stdev(squares) / math.sqrt(20_000)
    cubes = [(sample - moments.mean) ** 3 for sample in samples]
    assert abs(statistics.fmean(cubes) - moments.third) < 4 * statistics.stdev(cubes) / math.sqrt(20_000)
