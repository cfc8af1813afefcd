"""The laws that the mixers promise, measured on the machines themselves.

Every test here has a fixed seed, so it gives the same answer in every run. The significance says how likely a
correct mixer was to fail when the seed was chosen: 0.1 % for each test by p-value, and 6e-5 for each by
standard errors.
"""

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from tests.statistics_chi_square import chi_square_p_value, uniform_law
from tests.statistics_ks import exponential_law, ks_p_value, truncated_normal_law
from tests.unit.mixnet.mixing import drain, own, run_until, seeded, transit
from unlinkabledfl.mixnet.delay_law import OutboxLaw
from unlinkabledfl.mixnet.items import Cover, Item, OwnMessage, Transit
from unlinkabledfl.mixnet.mixers import Outbox, OutboxSettings, Poisson, PoissonSettings

SIGNIFICANCE = 0.001
STANDARD_ERRORS = 4.0  # two-sided 6e-5


def orders_p_value(orders: Iterable[list[int]], items: list[int]) -> float:
    """Return the p-value of the hypothesis that every order of the items is equally likely."""
    law = uniform_law(list(itertools.permutations(items)))
    return chi_square_p_value(Counter(tuple(order) for order in orders), law)


def numbers(released: list[tuple[float, Item]]) -> list[int]:
    return [item.packet for _, item in released if isinstance(item, Transit) and isinstance(item.packet, int)]


def test_every_order_of_an_outbox_is_equally_likely() -> None:
    mixer = Outbox(settings=OutboxSettings(outbox_size=4, cover=False), draw=seeded(11))
    mixer.start(now_s=0.0)
    orders = []

    for cycle in range(12_000):
        # The first one starts a cycle of its own; the four behind it wait for its end and are permuted
        # together.
        for number in (9, 0, 1, 2, 3):
            mixer.submit_transit(transit(number), delay_s=0.0, now_s=100.0 * cycle)
        orders.append(numbers(run_until(mixer, 100.0 * cycle + 99.0))[1:])

    assert orders_p_value(orders, [0, 1, 2, 3]) > SIGNIFICANCE


def test_items_given_back_are_permuted_uniformly_among_later_ones() -> None:
    mixer = Outbox(settings=OutboxSettings(outbox_size=4, cover=False), draw=seeded(12))
    mixer.start(now_s=0.0)
    orders = []

    for cycle in range(12_000):
        start_s = 100.0 * cycle
        mixer.submit_transit(transit(9), delay_s=0.0, now_s=start_s)
        mixer.requeue(transit(0), now_s=start_s)
        mixer.submit_transit(transit(1), delay_s=0.0, now_s=start_s)
        mixer.requeue(transit(2), now_s=start_s)
        mixer.submit_transit(transit(3), delay_s=0.0, now_s=start_s)
        orders.append(numbers(run_until(mixer, start_s + 99.0))[1:])

    assert orders_p_value(orders, [0, 1, 2, 3]) > SIGNIFICANCE


def test_leftovers_of_an_early_refill_are_permuted_with_the_rest() -> None:
    """Where each of the four places is refilled at once, a leftover is as likely to go next as a newcomer."""
    mixer = Outbox(
        settings=OutboxSettings(outbox_size=4, refill_at=3, cover=False, transit_capacity=20_000), draw=seeded(13)
    )
    for number in range(12_000):
        mixer.submit_transit(transit(number), delay_s=0.0, now_s=0.0)
    mixer.start(now_s=0.0)

    stays = Counter[int]()
    for place, number in enumerate(numbers(run_until(mixer, 1e6))[:-4]):
        # Number n enters when n - 3 have left, and the first four enter together.
        stays[min(place - max(number - 3, 0), 12)] += 1

    # The number of rounds in which it was not chosen is geometric; twelve and more are one outcome.
    law = {rounds: 0.75**rounds * 0.25 for rounds in range(12)} | {12: 0.75**12}
    assert chi_square_p_value(stays, law) > SIGNIFICANCE


@pytest.mark.parametrize(
    ("mean_s", "deviation_s"),
    [(0.1, 0.001), (0.1, 0.1), (0.001, 1.0), (1e-6, 0.5)],
    ids=["published", "as wide as its mean", "wide", "half a normal law"],
)
def test_gaps_of_an_outbox_follow_the_truncated_normal_law(mean_s: float, deviation_s: float) -> None:
    settings = OutboxSettings(outbox_size=10, delay_mean_s=mean_s, delay_deviation_s=deviation_s)
    mixer = Outbox(settings=settings, draw=seeded(14))

    gaps_s = emission_gaps_s(mixer, 10_000)

    assert ks_p_value(gaps_s, truncated_normal_law(mean_s, deviation_s)) > SIGNIFICANCE


def test_gaps_of_an_outbox_are_the_same_to_the_digit_whatever_is_sent() -> None:
    idle = Outbox(settings=OutboxSettings(outbox_size=10), draw=seeded(15))
    busy = Outbox(settings=OutboxSettings(outbox_size=10), draw=seeded(15))

    def feed(at_s: float) -> None:
        busy.submit_own(own(int(at_s * 1e3)), now_s=at_s)
        busy.submit_transit(transit(int(at_s * 1e3)), delay_s=0.0, now_s=at_s)

    assert emission_gaps_s(busy, 2_000, feed=feed) == emission_gaps_s(idle, 2_000)
    assert busy.own_waiting > 500


def test_hop_delays_of_poisson_senders_are_exponential() -> None:
    mixer = Poisson(settings=PoissonSettings(delay_mean_s=3.7), draw=seeded(16))
    draw = seeded(17)

    delays_s = [mixer.hop_delay_s(draw) for _ in range(20_000)]

    assert ks_p_value(delays_s, exponential_law(3.7)) > SIGNIFICANCE


def idle(_mixer: Poisson) -> Callable[[float], None]:
    return lambda _at_s: None


def saturated(mixer: Poisson) -> Callable[[float], None]:
    def feed(at_s: float) -> None:
        mixer.submit_own(own(int(at_s * 1e6)), now_s=at_s)

    return feed


def bursts(mixer: Poisson) -> Callable[[float], None]:
    def feed(at_s: float) -> None:
        if at_s % 60.0 < 1.0:
            for number in range(40):
                mixer.submit_own(own(int(at_s * 1e6) + number), now_s=at_s)

    return feed


@pytest.mark.parametrize("traffic", [idle, saturated, bursts])
def test_emission_of_poisson_is_one_poisson_process_whatever_waits(
    traffic: Callable[[Poisson], Callable[[float], None]],
) -> None:
    settings = PoissonSettings(emission_rate_per_s=2.0, loop_rate_per_s=1.0)
    mixer = Poisson(settings=settings, draw=seeded(18))

    gaps_s = emission_gaps_s(mixer, 12_000, feed=traffic(mixer))

    # Exponential gaps at the sum of the rates, and no gap that tells anything about the next one.
    assert ks_p_value(gaps_s, exponential_law(1.0 / 3.0)) > SIGNIFICANCE
    correlation = statistics.correlation(gaps_s[:-1], gaps_s[1:])
    assert abs(correlation) < STANDARD_ERRORS / math.sqrt(len(gaps_s))


def test_gaps_before_messages_and_before_cover_have_the_same_law() -> None:
    mixer = Poisson(settings=PoissonSettings(loop_rate_per_s=0.0), draw=seeded(19))
    mixer.start(now_s=0.0)
    feed = bursts(mixer)
    gaps_s: dict[type[Item], list[float]] = {OwnMessage: [], Cover: []}
    previous_s = 0.0

    while len(gaps_s[OwnMessage]) < 3_000 or len(gaps_s[Cover]) < 3_000:
        [(at_s, item)] = run_until(mixer, mixer.next_timer_s() or 0.0)
        gaps_s[type(item)].append(at_s - previous_s)
        previous_s = at_s
        feed(at_s)

    assert ks_p_value(gaps_s[OwnMessage], exponential_law(0.5)) > SIGNIFICANCE
    assert ks_p_value(gaps_s[Cover], exponential_law(0.5)) > SIGNIFICANCE


OUTBOXES = {
    "published": OutboxSettings(outbox_size=20, delay_mean_s=0.1, delay_deviation_s=0.001),
    "wide gaps": OutboxSettings(outbox_size=5, delay_mean_s=0.1, delay_deviation_s=0.5),
    "early refill": OutboxSettings(outbox_size=20, delay_mean_s=0.1, delay_deviation_s=0.05, refill_at=15),
    "one place": OutboxSettings(outbox_size=1, delay_mean_s=1e-6, delay_deviation_s=0.5),
}


@pytest.mark.parametrize("settings", OUTBOXES.values(), ids=OUTBOXES.keys())
def test_delays_in_an_outbox_have_the_mean_and_the_variance_of_the_delay_law(settings: OutboxSettings) -> None:
    law = OutboxLaw(settings=settings)

    delays_s = stage_delays_s(settings, law, count=4_000)

    squares_s2 = [(delay_s - law.stage_mean_s) ** 2 for delay_s in delays_s]
    error_of_mean_s = math.sqrt(law.stage_variance_s2 / len(delays_s))
    error_of_variance_s2 = statistics.stdev(squares_s2) / math.sqrt(len(delays_s))
    assert abs(statistics.fmean(delays_s) - law.stage_mean_s) < STANDARD_ERRORS * error_of_mean_s
    assert abs(statistics.fmean(squares_s2) - law.stage_variance_s2) < STANDARD_ERRORS * error_of_variance_s2


def test_hardly_a_round_trip_outlasts_its_timeout() -> None:
    settings = OUTBOXES["published"]
    law = OutboxLaw(settings=settings, link_allowance_s=0.0)

    delays_s = stage_delays_s(settings, law, count=9_000)
    round_trips_s = [sum(delays_s[start : start + 3]) for start in range(0, 9_000, 3)]

    timeout_s = law.round_trip_timeout_s(stages=3, known_delays_s=0.0, attempt=1)
    # One in a thousand of 3,000 is three; eleven or more come by chance with p = 0.0003.
    assert sum(round_trip_s > timeout_s for round_trip_s in round_trips_s) <= 10
    assert timeout_s < 1.2 * max(round_trips_s)


def emission_gaps_s(
    mixer: Outbox | Poisson, count: int, *, feed: Callable[[float], None] = lambda _at_s: None
) -> list[float]:
    """Run a mixer punctually, tell `feed` each instant of emission, and return the gaps between them."""
    mixer.start(now_s=0.0)
    gaps_s: list[float] = []
    previous_s = 0.0
    while len(gaps_s) < count:
        due_s = mixer.next_timer_s()
        assert due_s is not None
        mixer.handle_timer(now_s=due_s)
        drain(mixer)
        gaps_s.append(due_s - previous_s)
        previous_s = due_s
        feed(due_s)
    return gaps_s


def stage_delays_s(settings: OutboxSettings, law: OutboxLaw, *, count: int) -> list[float]:
    """Send packets through one outbox at random instants, one at a time, and return how long each stayed."""
    arrivals = seeded(20)
    mixer = Outbox(settings=settings, draw=seeded(21))
    mixer.start(now_s=0.0)
    delays_s: list[float] = []
    now_s = 0.0
    while len(delays_s) < count:
        # Long enough after the last one left that the phase of the cycle has nothing to do with it.
        now_s += arrivals.exponential(law.stage_mean_s)
        run_until(mixer, now_s)
        mixer.submit_transit(transit(0), delay_s=0.0, now_s=now_s)
        left_s = next(at_s for at_s in release_instants(mixer) if at_s is not None)
        delays_s.append(left_s - now_s)
        now_s = left_s
    return delays_s


def release_instants(mixer: Outbox) -> Iterable[float | None]:
    """Run an outbox gap by gap; yield the instant whenever what left was a packet in transit, else None."""
    while (due_s := mixer.next_timer_s()) is not None:
        [(at_s, item)] = run_until(mixer, due_s)
        yield at_s if isinstance(item, Transit) else None
