"""What a scenario will send and how long that will take, from the laws of its parts, before anything runs.

An exchange sends M messages a node: the fragments that it sends of its model, to each partner. With H hops to a
destination:

- `poisson`: message i leaves at about i/λ, on the slowest of all partners a little later, and its acknowledgement is
  back after 2H − 1 exponential delays; the exchange is over at the maximum of M such times, whose mean is computed.
- `outbox`: fragments go into the outbox by so many a cycle (`fragments_ahead`); the last of them, and its
  acknowledgement, pass 2H mixers, each about normal with the mean and variance of the delay law.
- `off`: a round trip over the links, and the time that a link needs for its packets.

Figures are means over nodes. What computing takes comes from a table of measurements, and is no law.
"""

import math
import os
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from unlinkabledfl.experiment.graphs import ExchangeSets
from unlinkabledfl.experiment.model_sizes import TEST_SAMPLES, TRAIN_SAMPLES, layout_of, training_samples_per_s
from unlinkabledfl.experiment.scenario import Scenario
from unlinkabledfl.experiment.scenario.learning import BUILT_IN_LEARNER, CodecName
from unlinkabledfl.experiment.translation import fragments_ahead, geometry_on, mixer_settings
from unlinkabledfl.fragments import codec_by_name, plan_grid
from unlinkabledfl.mixnet.delay_law import make_delay_law
from unlinkabledfl.mixnet.draw import inverse_normal
from unlinkabledfl.mixnet.envelope import EnvelopeCodec
from unlinkabledfl.mixnet.topology import Topology
from unlinkabledfl.sphinx import Geometry

__all__ = [
    "Traffic", "cores", "cpu_share", "default_deadline_s", "evaluation_s", "exchange_s", "fragments", "mean_partners",
    "packets_per_s", "round_trip_s", "traffic_of", "training_s",
]  # fmt: skip

_LEAST_DEADLINE_S: Final = 60.0
_UNKNOWN_DEADLINE_S: Final = 600.0
_DEADLINE_FACTOR: Final = 3.0
_FORWARD_SHARE: Final = 1 / 3
_SAMPLED_NODES: Final = 32
_STEPS: Final = 2_000
_LARGE_BATCH: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What one node sends in a round, on average."""

    geometry: Geometry
    partners: float
    fragments: int | None
    """Of a whole model; None for a learner that is not ours."""
    fragments_sent: int | None
    """To each partner, in one round."""
    hops: float
    """To a destination, and as many back."""
    loop_hops: float

    @property
    def messages(self) -> float | None:
        """Fragments times partners."""
        return None if self.fragments_sent is None else self.fragments_sent * self.partners


def traffic_of(scenario: Scenario, graph: Topology) -> Traffic:
    """Return what a node sends; ConfigError where routes do not fit the graph or the packet."""
    geometry = geometry_on(scenario.mixnet, graph)
    whole = fragments(scenario, scenario.payload.codec, geometry)
    return Traffic(
        geometry=geometry,
        partners=mean_partners(scenario, graph),
        fragments=whole,
        fragments_sent=whole and max(1, math.ceil(scenario.payload.ratio * whole - 1e-9)),
        hops=_hops(scenario, graph),
        loop_hops=_loop_hops(scenario, graph),
    )


def fragments(scenario: Scenario, codec: CodecName, geometry: Geometry) -> int | None:
    """Return how many fragments the model has under this codec; None for a learner that is not ours."""
    if scenario.learning.factory != BUILT_IN_LEARNER:
        return None
    layout = layout_of(scenario.learning.model, scenario.learning.dataset)
    capacity_bytes = EnvelopeCodec(geometry).data_bytes
    return len(plan_grid(layout, codec_by_name(codec, bits=scenario.payload.bits), capacity_bytes=capacity_bytes))


def mean_partners(scenario: Scenario, graph: Topology) -> float:
    """Return with how many peers a node exchanges."""
    sets = ExchangeSets(graph, scenario.mixnet)
    nodes = _sample(graph)
    return sum(sets.count(node) for node in nodes) / len(nodes)


def exchange_s(scenario: Scenario, traffic: Traffic) -> float | None:
    """Return how long an exchange takes on average, from its first packet to its last acknowledgement."""
    messages = traffic.messages
    if messages is None:
        return None
    mixnet, hops = scenario.mixnet, traffic.hops
    links_s = 2.0 * hops * _link_s(scenario, traffic.geometry.packet_bytes)
    match mixnet.mixer:
        case "off":
            bandwidth = scenario.links.bandwidth_bytes_per_s
            wire_s = 0.0 if _is_real(scenario) or not bandwidth else traffic.geometry.packet_bytes / bandwidth
            return links_s + messages * wire_s
        case "poisson":
            # A round is complete when the slowest partner's stream has passed, too: streams end apart.
            streams = traffic.partners + 1.0
            last_tick_s = messages + math.sqrt(messages) * inverse_normal(streams / (streams + 1.0))
            tick_s = (1.0 + last_tick_s) / messages / mixnet.emission_rate_per_s
            slowest_s = _slowest(round(messages), every_s=tick_s, stages=2.0 * hops - 1.0, mean_s=mixnet.delay_mean_s)
            return tick_s + slowest_s + links_s
        case "outbox":
            law = make_delay_law(mixer_settings(mixnet))
            stages = 2.0 * hops
            ahead = fragments_ahead(mixnet, hops=max(1, round(hops)))
            cycles = math.ceil(messages / ahead) - 1
            slowest = inverse_normal(1.0 - 1.0 / (min(messages, ahead) + 1.0))
            spread_s = math.sqrt(stages * law.stage_variance_s2) * slowest
            cycle_s = (mixnet.outbox_size - mixnet.refill_at) * mixnet.delay_mean_s
            return cycles * cycle_s + stages * law.stage_mean_s + spread_s + links_s


def round_trip_s(scenario: Scenario, traffic: Traffic) -> float:
    """Return the mean time from a packet's departure until its acknowledgement is back."""
    law = make_delay_law(mixer_settings(scenario.mixnet))
    stages = 2.0 * traffic.hops - 1.0
    return stages * law.stage_mean_s + 2.0 * traffic.hops * _link_s(scenario, traffic.geometry.packet_bytes)


def packets_per_s(scenario: Scenario, traffic: Traffic) -> float:
    """Return what a node sends while it emits cover, relayed packets included; 0 without cover."""
    mixnet = scenario.mixnet
    if not mixnet.cover or mixnet.mixer == "off":
        return 0.0
    if mixnet.mixer == "outbox":
        return 1.0 / mixnet.delay_mean_s
    return mixnet.emission_rate_per_s * 2.0 * traffic.hops + mixnet.loop_rate_per_s * traffic.loop_hops


def training_s(scenario: Scenario) -> float | None:
    """Return how long one node trains in a round on one core; None where nothing was measured."""
    learning = scenario.learning
    if learning.training_time_s and scenario.run.backend == "simulation":
        return learning.training_time_s
    if learning.seconds:
        return learning.seconds
    if learning.factory != BUILT_IN_LEARNER or learning.device != "cpu":
        return None
    samples_per_s = training_samples_per_s(learning.model, learning.batch_size)
    samples = (learning.train_samples or TRAIN_SAMPLES[learning.dataset]) / scenario.topology.nodes
    trained = learning.steps * learning.batch_size if learning.steps else learning.epochs * samples
    return trained / samples_per_s


def evaluation_s(scenario: Scenario) -> float | None:
    """Return how long one node measures its model on one core: forward passes only."""
    learning = scenario.learning
    if learning.training_time_s and scenario.run.backend == "simulation":
        return learning.training_time_s * _FORWARD_SHARE
    if learning.factory != BUILT_IN_LEARNER or learning.device != "cpu":
        return None
    samples_per_s = training_samples_per_s(learning.model, _LARGE_BATCH)
    samples = learning.test_samples or TEST_SAMPLES[learning.dataset]
    return samples / samples_per_s * _FORWARD_SHARE


def default_deadline_s(scenario: Scenario, graph: Topology) -> float:
    """Return a deadline that only trouble reaches: three times what exchange and the wait for slower nodes take."""
    expected_s = exchange_s(scenario, traffic_of(scenario, graph))
    one_s = training_s(scenario)
    if expected_s is None or one_s is None:
        return _UNKNOWN_DEADLINE_S
    # Real nodes share cores, so the last one is done with training when all are.
    return max(_LEAST_DEADLINE_S, _DEADLINE_FACTOR * (expected_s + one_s * cpu_share(scenario)))


def cpu_share(scenario: Scenario) -> float:
    """Return by what computing takes longer because nodes share this machine's cores; 1 where clocks are virtual."""
    return max(1.0, scenario.topology.nodes / cores()) if _is_real(scenario) else 1.0


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _slowest(messages: int, *, every_s: float, stages: float, mean_s: float) -> float:
    """Return the mean of the maximum over i of i·every_s plus a sum of `stages` exponential delays of that mean."""
    last_s = (messages - 1) * every_s
    if mean_s == 0.0 or stages <= 0.0:
        return last_s
    whole = max(1, round(stages))
    # Far beyond what any of them takes; the integral of 1 − P(all are over by t) from there on is nothing.
    limit_s = last_s + mean_s * (whole + 10.0 * math.sqrt(whole) + 20.0 + 2.0 * math.log(messages))
    step_s = limit_s / _STEPS
    at_s = (np.arange(_STEPS) + 0.5) * step_s
    all_over = np.ones(_STEPS)
    for message in range(messages - 1, -1, -1):
        over = _erlang(np.asarray((at_s - message * every_s) / mean_s, dtype=np.float64), whole)
        all_over *= over
        # Those before it are over all the more.
        if over[all_over > 1e-9].min(initial=1.0) > 1.0 - 1e-12:
            break
    return float((1.0 - all_over).sum() * step_s)


def _erlang(times: NDArray[np.float64], stages: int) -> NDArray[np.float64]:
    """Return the probabilities that so many exponential delays of mean 1 are over."""
    times = np.maximum(times, 0.0)
    term = np.exp(-times)
    total = term.copy()
    for stage in range(1, stages):
        term = term * times / stage
        total += term
    return np.maximum(0.0, 1.0 - total)


def _link_s(scenario: Scenario, packet_bytes: int) -> float:
    if _is_real(scenario):
        return 0.0
    links = scenario.links
    wire_s = packet_bytes / links.bandwidth_bytes_per_s if links.bandwidth_bytes_per_s else 0.0
    return links.latency_s + links.jitter_s + wire_s


def _hops(scenario: Scenario, graph: Topology) -> float:
    mixnet = scenario.mixnet
    if mixnet.route == "valiant":
        return 2.0 * _mean_distance(graph)
    if mixnet.route == "walk_up_to" and mixnet.path_length > 1:
        return _mean_walk(scenario, graph)
    return float(mixnet.path_length)


def _loop_hops(scenario: Scenario, graph: Topology) -> float:
    if scenario.mixnet.route == "valiant":
        return 2.0 * _mean_distance(graph)
    # On a graph without cycles of that length an odd number of hops takes one more.
    return float(max(scenario.mixnet.path_length, 2))


def _mean_distance(graph: Topology) -> float:
    nodes = _sample(graph)
    return sum(sum(graph.distances_from(node)) for node in nodes) / (len(nodes) * (graph.nodes - 1))


def _mean_walk(scenario: Scenario, graph: Topology) -> float:
    """Return the mean length of simple paths of up to K edges, each as likely as the others, over pairs that write."""
    sets, longest = ExchangeSets(graph, scenario.mixnet), scenario.mixnet.path_length
    lengths = []
    for node in _sample(graph)[:4]:
        counts = _walks(graph, node, longest)
        for other in sets.of(node):
            ways = [row.get(other, 0) for row in counts]
            if sum(ways):
                lengths.append(sum(hops * many for hops, many in enumerate(ways)) / sum(ways))
    return sum(lengths) / len(lengths) if lengths else float(longest)


def _walks(graph: Topology, start: int, longest: int) -> list[dict[int, int]]:
    """Return for each length how many walks that do not come back to their start end where: nearly the simple paths."""
    rows: list[dict[int, int]] = [{start: 1}]
    for _ in range(longest):
        row: dict[int, int] = {}
        for near, ways in rows[-1].items():
            for far in graph.neighbours(near):
                if far != start:
                    row[far] = row.get(far, 0) + ways
        rows.append(row)
    return rows


def _sample(graph: Topology) -> list[int]:
    """Return nodes whose mean stands for all: one of a circulant, evenly spread ones of another graph."""
    if graph.is_circulant:
        return [0]
    step = max(1, graph.nodes // _SAMPLED_NODES)
    return list(range(0, graph.nodes, step))


def _is_real(scenario: Scenario) -> bool:
    return scenario.run.backend != "simulation"
