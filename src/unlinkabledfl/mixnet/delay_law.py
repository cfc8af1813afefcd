"""How long a round trip takes under each mixing strategy, and so how long to wait for an acknowledgement.

A stage is the time a packet spends in one mixer, so a round trip whose clock starts when the packet leaves
its sender crosses one link more than it passes stages. With h hops to the destination and b hops back that is
h + b - 1 stages: the relays of both routes, and the destination, whose acknowledgement goes through its mixer
too.

A timeout below the law resends what is still on its way; one far above it finds out late about a loss. So the
timeout follows the law of the delays, instead of being a constant that is right for one configuration. It
covers all but one in a thousand round trips of packets that were not lost, as long as queues are no longer
than what one refill takes.

Each further attempt waits longer, by a factor on all that the sender did not choose itself. The law assumes
short queues; when they are long, a missing acknowledgement says little about loss, and resending at the same
pace would make them longer. The factor is bounded, because whoever drops packets on purpose could otherwise
postpone a resend further with every drop.
"""

import math
from dataclasses import dataclass
from typing import Protocol, assert_never

from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.mixnet.draw import inverse_normal
from unlinkabledfl.mixnet.mixers import MixerSettings, OffSettings, OutboxSettings, PoissonSettings

LINK_ALLOWANCE_S = 0.5
"""Default for what one link and the work at its end may add: latency, transmission, a retry, a busy CPU."""

_COVERED = 0.999
_DEVIATIONS = inverse_normal(_COVERED)
_GROWTH = 1.5
_GROWTH_STEPS = 3


class DelayLaw(Protocol):
    """What a mixing strategy does to the time a packet takes."""

    @property
    def stage_mean_s(self) -> float:
        """Mean of the time in one mixer."""

    @property
    def stage_variance_s2(self) -> float:
        """Variance of the time in one mixer."""

    def round_trip_timeout_s(self, *, stages: int, known_delays_s: float, attempt: int) -> float:
        """Return how long to wait for an acknowledgement, counted from the instant the packet leaves.

        `known_delays_s` is the sum of the delays that the sender wrote into the headers of this round trip,
        reply block included. The first attempt is 1.
        """


class OutboxLaw:
    """Delays of the outbox mixer.

    A packet that comes at any moment waits for the end of the cycle under way, and then for its place in the
    next outbox, which is uniform. With O places, gaps of mean m, and a refill when the outbox is empty, both
    are about uniform over a cycle of O·m: the mean is (O + 1/2)·m, the variance about (O·m)² / 6, and the
    longest possible time is 2·O·m when gaps do not vary. The formulas below are exact, also for gaps that
    vary and for an earlier refill; then a packet may stay for several cycles, and only the mean stays the
    same.

    They hold while the queue is shorter than what a refill takes, and with cover on. Without cover an outbox
    may be filled with less, so that times are shorter, never longer.
    """

    __slots__ = (
        "_bounded",
        "_link_allowance_s",
        "_longest_mean_s",
        "_longest_variance_s2",
        "stage_mean_s",
        "stage_variance_s2",
    )

    def __init__(self, *, settings: OutboxSettings, link_allowance_s: float = LINK_ALLOWANCE_S) -> None:
        size = settings.outbox_size
        left = settings.refill_at
        cycle = size - left
        gap = truncated_normal_moments(settings.delay_mean_s, settings.delay_deviation_s)
        wait_mean_s, wait_variance_s2 = _wait_for_cycle_end(cycle, gap)
        # The place at which it leaves, counted in gaps: uniform over the cycle, after `left / cycle` cycles
        # in which it was left over (on average; their number is geometric).
        places = (cycle + 1) / 2 + left
        places_variance = (cycle * cycle - 1) / 12 + size * left
        self.stage_mean_s = wait_mean_s + places * gap.mean
        self.stage_variance_s2 = wait_variance_s2 + places * gap.variance + places_variance * gap.mean**2
        # The longest stage is a whole cycle and the last place in the next: where a packet is never left over.
        self._bounded = left == 0
        self._longest_mean_s = 2 * size * gap.mean
        self._longest_variance_s2 = 2 * size * gap.variance
        self._link_allowance_s = link_allowance_s

    def round_trip_timeout_s(self, *, stages: int, known_delays_s: float, attempt: int) -> float:
        """Return a quantile of the sum of that many stages, and the allowance for its links."""
        allowance_s = _links(stages) * self._link_allowance_s
        mixing_s = _quantile(stages * self.stage_mean_s, stages * self.stage_variance_s2)
        if self._bounded:
            longest_s = _quantile(stages * self._longest_mean_s, stages * self._longest_variance_s2)
            mixing_s = min(mixing_s, longest_s)
        return known_delays_s + (mixing_s + allowance_s) * _growth(attempt)


class PoissonLaw:
    """Delays of the Poisson mixer: the sender drew every one of them, so only the links are uncertain."""

    __slots__ = ("_link_allowance_s", "stage_mean_s", "stage_variance_s2")

    def __init__(self, *, settings: PoissonSettings, link_allowance_s: float = LINK_ALLOWANCE_S) -> None:
        self.stage_mean_s = settings.delay_mean_s
        self.stage_variance_s2 = settings.delay_mean_s**2
        self._link_allowance_s = link_allowance_s

    def round_trip_timeout_s(self, *, stages: int, known_delays_s: float, attempt: int) -> float:
        """Return what the headers ask for, and the allowance for the links."""
        return known_delays_s + _links(stages) * self._link_allowance_s * _growth(attempt)


class OffLaw:
    """No delays but those of the links."""

    __slots__ = ("_link_allowance_s", "stage_mean_s", "stage_variance_s2")

    def __init__(self, *, link_allowance_s: float = LINK_ALLOWANCE_S) -> None:
        self.stage_mean_s = 0.0
        self.stage_variance_s2 = 0.0
        self._link_allowance_s = link_allowance_s

    def round_trip_timeout_s(self, *, stages: int, known_delays_s: float, attempt: int) -> float:
        """Return the allowance for the links; headers ask for no delay here, but are heard if they do."""
        return known_delays_s + _links(stages) * self._link_allowance_s * _growth(attempt)


def make_delay_law(settings: MixerSettings, *, link_allowance_s: float = LINK_ALLOWANCE_S) -> DelayLaw:
    """Return the delay law of the mixer with these settings."""
    if not 0.0 <= link_allowance_s < math.inf:
        raise ConfigError(key="mixnet.link_allowance_s", got=link_allowance_s, takes="a number of seconds, 0 or more")
    match settings:
        case OutboxSettings():
            return OutboxLaw(settings=settings, link_allowance_s=link_allowance_s)
        case PoissonSettings():
            return PoissonLaw(settings=settings, link_allowance_s=link_allowance_s)
        case OffSettings():
            return OffLaw(link_allowance_s=link_allowance_s)
        case _:
            assert_never(settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Mean, variance and third central moment of a law."""

    mean: float
    variance: float
    third: float


def truncated_normal_moments(mean: float, deviation: float) -> Moments:
    """Return the moments of a normal law conditioned on being at least zero."""
    if deviation == 0.0:
        return Moments(mean=mean, variance=0.0, third=0.0)
    ratio = mean / deviation
    kept = 0.5 * math.erfc(-ratio * math.sqrt(0.5))
    # Integration by parts, in units of the deviation: what the cut at zero adds to each moment.
    shift = math.exp(-0.5 * ratio * ratio) / (math.sqrt(2.0 * math.pi) * kept)
    variance = 1.0 - shift * (ratio + shift)
    third = shift * ((ratio + shift) * (ratio + 2.0 * shift) - 1.0)
    return Moments(mean=mean + deviation * shift, variance=deviation**2 * variance, third=deviation**3 * third)


def _wait_for_cycle_end(cycle: int, gap: Moments) -> tuple[float, float]:
    """Return mean and variance of the time from a random instant to the end of its cycle of gaps."""
    if gap.mean == 0.0:
        return 0.0, 0.0
    # A random instant falls into a long cycle more often than into a short one: hence the higher moments.
    length = cycle * gap.mean
    second = cycle * gap.variance + length**2
    third = cycle * gap.third + 3.0 * length * cycle * gap.variance + length**3
    mean = second / (2.0 * length)
    return mean, third / (3.0 * length) - mean**2


def _quantile(mean_s: float, variance_s2: float) -> float:
    return mean_s + _DEVIATIONS * math.sqrt(variance_s2)


def _links(stages: int) -> int:
    if stages < 0:
        raise LocalProtocolError(f"a round trip passes {stages} mixers")
    return stages + 1


def _growth(attempt: int) -> float:
    if attempt < 1:
        raise LocalProtocolError(f"attempts count from 1; this one is {attempt}")
    return _GROWTH ** min(attempt - 1, _GROWTH_STEPS)
