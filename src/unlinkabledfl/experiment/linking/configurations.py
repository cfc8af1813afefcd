"""The deployments of the board: the published ablation and sweeps, and the preset `strong`."""

from dataclasses import dataclass
from math import ceil

from unlinkabledfl.experiment.linking.deployment import Deployment
from unlinkabledfl.mixnet.delay_law import make_delay_law
from unlinkabledfl.mixnet.mixers import MixerSettings, OffSettings, OutboxSettings, PoissonSettings

TARGETS = 4_000
"""At least so many for every row."""

_Q8_FRAGMENTS = 7
_FIT_FRAGMENTS = 4
_ROUND_LEAST_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A deployment, and the shares of compromised nodes under which it is attacked."""

    deployment: Deployment
    shares: tuple[float, ...] = (0.0,)


def strong_mixer() -> PoissonSettings:
    """Return the mixing of the preset `strong`."""
    return PoissonSettings(delay_mean_s=1.0, emission_rate_per_s=8.0, loop_rate_per_s=1.0, transit_capacity=4_000)


def entries(*, targets: int = TARGETS) -> list[Entry]:
    """Return the whole board, rows of the published ablation first."""
    shares = (0.0, 0.05, 0.10, 0.15, 0.20, 0.25)
    found = [
        Entry(deployment=_planned("direct", "direct", 2, OffSettings(), targets=targets)),
        Entry(deployment=_planned("K=1", "walk", 1, OutboxSettings(), targets=targets)),
        Entry(deployment=_planned("no cover", "walk", 2, OutboxSettings(cover=False), targets=targets)),
        Entry(deployment=_planned("no delay", "walk", 2, _without_delay(), targets=targets)),
        Entry(deployment=_planned("paper", "walk", 2, OutboxSettings(), targets=targets), shares=shares),
        Entry(
            deployment=_planned("strong", "overlay", 4, strong_mixer(), targets=targets, fragments=_FIT_FRAGMENTS),
            shares=shares,
        ),
    ]
    found += [
        Entry(deployment=_planned(f"K={hops}", "walk", hops, OutboxSettings(), targets=targets)) for hops in (3, 4, 5)
    ]
    found += [
        Entry(deployment=_planned(f"O={size}", "walk", 2, OutboxSettings(outbox_size=size), targets=targets))
        for size in (10, 25, 50, 200)
    ]
    return found


def _without_delay() -> OutboxSettings:
    """Return the published ablation: release at a near-zero interval, which floods the network with cover."""
    return OutboxSettings(delay_mean_s=0.002, delay_deviation_s=0.0, transit_capacity=20_000)


def _planned(
    name: str, route: str, path_length: int, mixer: MixerSettings, *, targets: int, fragments: int = _Q8_FRAGMENTS
) -> Deployment:
    """Return a deployment whose rounds are long enough to end, and enough for the targets wanted."""
    probe = Deployment(
        name=name, route=route, path_length=path_length, mixer=mixer, fragments=fragments, rounds=1, round_s=1.0
    )
    messages = sum(len(partners) for partners in probe.destinations()) * fragments
    stage_s = make_delay_law(mixer).stage_mean_s
    own_s = _emptying_s(mixer, messages / probe.nodes)
    flooding = isinstance(mixer, OutboxSettings) and stage_s < 1.0 and mixer.cover
    least_s = 1.0 if flooding else _ROUND_LEAST_S
    return Deployment(
        name=name,
        route=route,
        path_length=path_length,
        mixer=mixer,
        fragments=fragments,
        rounds=max(1, ceil(targets / messages)),
        round_s=max(least_s, 1.5 * (path_length + 1) * stage_s + own_s),
        warm_up_s=max(least_s, 3.0 * (path_length + 1) * stage_s),
        spread_s=0.2 if flooding else 2.0,
    )


def _emptying_s(mixer: MixerSettings, messages: float) -> float:
    """Return how long a node needs for a round's messages at the rate that is left for its own."""
    match mixer:
        case PoissonSettings():
            return messages / mixer.emission_rate_per_s
        case OutboxSettings():
            return 2.0 * messages * mixer.delay_mean_s
        case OffSettings():
            return 0.0
