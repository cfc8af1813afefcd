"""The deployments of the board: the published ablation and sweeps, and the preset `strong`."""

from dataclasses import dataclass, replace
from math import ceil

from unlinkabledfl.experiment.expectations import traffic_of
from unlinkabledfl.experiment.graphs import build_topology
from unlinkabledfl.experiment.linking.deployment import Deployment
from unlinkabledfl.experiment.scenario import Scenario, preset
from unlinkabledfl.experiment.translation import mixer_settings
from unlinkabledfl.mixnet.delay_law import make_delay_law
from unlinkabledfl.mixnet.mixers import MixerSettings, OffSettings, OutboxSettings, PoissonSettings
from unlinkabledfl.simulation import LinkSettings

TARGETS = 4_000
"""At least so many for every row."""

_SHARES = (0.0, 0.05, 0.10, 0.15, 0.20, 0.25)
_HONEST_LEAST = 1.0 - max(_SHARES)
_ROUNDS = 6
_TARGETS_A_ROUND = 600
_Q8_FRAGMENTS = 7
_ROUND_LEAST_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A deployment, and the shares of compromised nodes under which it is attacked."""

    deployment: Deployment
    sweep: str
    """What it belongs to: `ablation`, or the name of what a sweep varies."""
    shares: tuple[float, ...] = (0.0,)
    targets: int = TARGETS
    """How many to attack at least, before those are left out that compromised nodes sent."""


def row_name(configuration: str, share: float) -> str:
    """Return what the board calls a deployment of which this share of nodes is compromised."""
    return f"{configuration}, c={share:g}" if share else configuration


def entries(*, targets: int = TARGETS) -> list[Entry]:
    """Return the whole board, rows of the published ablation first."""
    found = [
        _ablation(planned("direct", "direct", 2, OffSettings(), targets=targets)),
        _ablation(planned("K=1", "walk", 1, OutboxSettings(), targets=targets)),
        _ablation(planned("no cover", "walk", 2, OutboxSettings(cover=False), targets=targets)),
        _ablation(planned("no delay", "walk", 2, _without_delay(), targets=targets)),
        _owned(planned("paper", "walk", 2, OutboxSettings(), targets=ceil(targets / _HONEST_LEAST))),
        _owned(deployment_of(preset("strong"), name="strong", targets=ceil(targets / _HONEST_LEAST))),
        Entry(
            deployment=_with_churn(deployment_of(preset("strong"), name="strong, churn", targets=targets)),
            sweep="churn",
        ),
    ]
    found += [
        Entry(deployment=planned(f"K={hops}", "walk", hops, OutboxSettings(), targets=targets), sweep="K")
        for hops in (3, 4, 5)
    ]
    found += [
        Entry(deployment=planned(f"O={size}", "walk", 2, OutboxSettings(outbox_size=size), targets=targets), sweep="O")
        for size in (10, 25, 50, 200)
    ]
    return [replace(entry, targets=ceil(targets / (1.0 - max(entry.shares)))) for entry in found]


def _ablation(deployment: Deployment) -> Entry:
    return Entry(deployment=deployment, sweep="ablation")


def _owned(deployment: Deployment) -> Entry:
    return Entry(deployment=deployment, sweep="c", shares=_SHARES)


def deployment_of(scenario: Scenario, *, name: str, targets: int) -> Deployment:
    """Return what is attacked when this scenario is: its graph, its mixnet, and as many fragments as its model has."""
    mixnet, links = scenario.mixnet, scenario.links
    graph = build_topology(scenario)
    deployment = planned(
        name,
        mixnet.route,
        mixnet.path_length,
        mixer_settings(mixnet),
        targets=targets,
        fragments=traffic_of(scenario, graph).fragments_sent or _Q8_FRAGMENTS,
        nodes=scenario.topology.nodes,
        degree=scenario.topology.degree,
    )
    behave = LinkSettings(
        latency_s=links.latency_s,
        jitter_s=links.jitter_s,
        bandwidth_bytes_per_s=links.bandwidth_bytes_per_s or None,
        loss=links.loss,
    )
    return replace(deployment, links=behave)


def _with_churn(deployment: Deployment) -> Deployment:
    """Return the deployment with a quarter of its nodes away for a while, and links that lose a packet in a hundred."""
    return replace(deployment, crashes=deployment.nodes // 4, links=replace(deployment.links, loss=0.01))


def _without_delay() -> OutboxSettings:
    """Return the published ablation: release at a near-zero interval, which floods the network with cover."""
    return OutboxSettings(delay_mean_s=0.002, delay_deviation_s=0.0, transit_capacity=20_000)


def planned(
    name: str,
    route: str,
    path_length: int,
    mixer: MixerSettings,
    *,
    targets: int,
    fragments: int = _Q8_FRAGMENTS,
    nodes: int = 32,
    degree: int = 4,
) -> Deployment:
    """Return a deployment whose rounds are long enough to end, and enough for the targets wanted."""
    probe = Deployment(
        name=name,
        route=route,
        path_length=path_length,
        mixer=mixer,
        fragments=fragments,
        rounds=1,
        round_s=1.0,
        nodes=nodes,
        degree=degree,
    )
    messages = sum(len(partners) for partners in probe.destinations()) * fragments
    stage_s = make_delay_law(mixer).stage_mean_s
    flooding = isinstance(mixer, OutboxSettings) and stage_s < 1.0 and mixer.cover
    least_s = 1.0 if flooding else _ROUND_LEAST_S
    return replace(
        probe,
        # Targets of one moment share what happened then: several rounds say more than as many targets of one.
        rounds=max(min(_ROUNDS, ceil(targets / _TARGETS_A_ROUND)), ceil(targets / messages)),
        round_s=max(least_s, 1.5 * (path_length + 1) * stage_s + _emptying_s(probe, round(messages / probe.nodes))),
        warm_up_s=max(least_s, 3.0 * (path_length + 1) * stage_s),
        spread_s=0.2 if flooding else 2.0,
    )


def _emptying_s(deployment: Deployment, messages: int) -> float:
    """Return how long a node needs until the last of a round's messages may leave."""
    if isinstance(deployment.mixer, PoissonSettings):
        return messages / deployment.mixer.emission_rate_per_s
    return deployment.handed_over_s(messages - 1)
