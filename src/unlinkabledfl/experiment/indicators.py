"""What a scenario promises before it runs: reach, payload, traffic, time, entropy, linkability, robustness, resources.

Every figure is computed from the scenario; none is measured here. Where one rests on a measurement or on an
approximation, its `basis` says on which.
"""

import math
import os
from typing import Any, Final, get_args

from unlinkabledfl.analysis.entropy import krum_budget, local_relay_entropy_bits, path_entropy_bits
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment import expectations, figures
from unlinkabledfl.experiment.cautions import cautions_of
from unlinkabledfl.experiment.data import check_data
from unlinkabledfl.experiment.expectations import Traffic
from unlinkabledfl.experiment.figures import Figures, Indicators
from unlinkabledfl.experiment.graphs import ExchangeSets, build_topology, check_exchange, reach
from unlinkabledfl.experiment.linkability import last_hop_linkability
from unlinkabledfl.experiment.model_sizes import layout_of
from unlinkabledfl.experiment.scenario import Scenario
from unlinkabledfl.experiment.scenario.learning import BUILT_IN_LEARNER, CodecName
from unlinkabledfl.experiment.scenario.network import RouteName
from unlinkabledfl.experiment.theory.design import theory_of
from unlinkabledfl.experiment.translation import geometry_on, mixer_settings
from unlinkabledfl.fragments import rule_by_name
from unlinkabledfl.mixnet.delay_law import make_delay_law
from unlinkabledfl.mixnet.envelope import EnvelopeCodec
from unlinkabledfl.mixnet.topology import Topology

__all__ = ["indicators"]

_CODECS: Final[tuple[CodecName, ...]] = ("fit", "q4", "q5", "q6", "q7", "q8", "f32")
_SAMPLED_NODES: Final = 64

# What resources are reckoned from; docs/decisions and `unlinkabledfl bench` have the measurements.
_NODE_MIB: Final = {"process": 45.0, "container": 300.0}
"""In containers nothing is forked: each has an interpreter, and a PyTorch, of its own."""
_LAUNCHER_MIB: Final = {"process": 350.0, "container": 120.0}
"""That of containers is estimated, not measured; it weighs less than half a node."""
_WORLD_MIB: Final = 250.0
_WORKER_MIB: Final = 300.0
_WORLD_NODE_MIB: Final = 0.3
_STATES: Final = 5.0
_HOP_US: Final = 350.0
_WAKE_UP_US: Final = 5_500.0
_VIRTUAL_HOP_US: Final = {"sphinx": 130.0, "sealed": 35.0}


def indicators(scenario: Scenario) -> Indicators:
    """Return all indicators; ConfigError where the scenario cannot work at all."""
    check_data(scenario)
    graph = build_topology(scenario)
    check_exchange(graph, scenario)
    traffic = expectations.traffic_of(scenario, graph)
    found = _figures(scenario, graph, traffic)
    return Indicators(
        **{name: getattr(found, name) for name in Figures.model_fields}, cautions=cautions_of(scenario, graph, found)
    )


def _figures(scenario: Scenario, graph: Topology, traffic: Traffic) -> Figures:
    timing = _timing(scenario, graph, traffic)
    sent = _sent(scenario, traffic, timing)
    entropy = _entropies(scenario, traffic)
    return Figures(
        scenario=scenario.run.name,
        backend=scenario.run.backend,
        rounds=scenario.run.rounds,
        graph=_graph(scenario, graph),
        exchange=_exchange(scenario, graph),
        fragments=_fragments(scenario, traffic),
        traffic=sent,
        time=timing,
        entropy=entropy,
        linkability=_linkability(scenario, graph),
        theory=theory_of(scenario, graph, outbox_size=max(1, round(entropy.outbox_size))),
        robustness=_robustness(scenario, graph),
        resources=_resources(scenario, traffic, sent, timing),
    )


def _graph(scenario: Scenario, graph: Topology) -> figures.Graph:
    degrees = [len(graph.neighbours(node)) for node in range(graph.nodes)]
    return figures.Graph(
        family=scenario.topology.family,
        nodes=graph.nodes,
        links=graph.edges,
        degree_min=min(degrees),
        degree_max=max(degrees),
        diameter=graph.diameter(),
    )


def _exchange(scenario: Scenario, graph: Topology) -> figures.Exchanged:
    nodes = _sample(graph)
    reachable = [len(reach(graph, scenario.mixnet, node)) for node in nodes]
    partners = partner_counts(scenario, graph)
    return figures.Exchanged(
        reachable_min=min(reachable),
        reachable_mean=_mean(reachable),
        partners_min=min(partners),
        partners_mean=_mean(partners),
        partners_max=max(partners),
        joining=len(scenario.topology.join),
        leaving=len(scenario.topology.exit),
    )


def partner_counts(scenario: Scenario, graph: Topology) -> list[int]:
    """Return how many partners nodes have."""
    sets = ExchangeSets(graph, scenario.mixnet)
    return [sets.count(node) for node in _sample(graph)]


def _fragments(scenario: Scenario, traffic: Traffic) -> figures.Fragmented:
    learning = scenario.learning
    ours = learning.factory == BUILT_IN_LEARNER
    counted = {codec: expectations.fragments(scenario, codec, traffic.geometry) for codec in _CODECS} if ours else {}
    return figures.Fragmented(
        model=learning.model if ours else learning.factory,
        values=layout_of(learning.model, learning.dataset).values if ours else None,
        codec=scenario.payload.codec,
        capacity_bytes=EnvelopeCodec(traffic.geometry).data_bytes,
        by_codec={codec: many for codec, many in counted.items() if many is not None},
        per_model=traffic.fragments,
        per_partner=traffic.fragments_sent,
        per_round=traffic.messages,
    )


def _timing(scenario: Scenario, graph: Topology, traffic: Traffic) -> figures.Timing:
    training_s = expectations.training_s(scenario)
    evaluation_s = expectations.evaluation_s(scenario)
    exchange_s = expectations.exchange_s(scenario, traffic)
    aggregation = scenario.aggregation
    deadline_s = aggregation.deadline_s or expectations.default_deadline_s(scenario, graph)
    waited_s = exchange_s
    match aggregation.completion:
        case "deadline":
            waited_s = deadline_s
        case "immediate":
            waited_s = 0.0
        case "completeness" if exchange_s is not None:
            waited_s = min(exchange_s, deadline_s)
        case _:
            pass
    round_s = None
    if aggregation.completion == "cadence":
        round_s = aggregation.cadence_s
    elif training_s is not None and evaluation_s is not None and waited_s is not None:
        share = expectations.cpu_share(scenario)
        every = scenario.monitoring.evaluate_every
        round_s = (training_s + (evaluation_s / every if every else 0.0)) * share + waited_s
    return figures.Timing(
        training_s=training_s,
        exchange_s=exchange_s,
        evaluation_s=evaluation_s,
        round_s=round_s,
        run_s=None if round_s is None else round_s * scenario.run.rounds,
        round_trip_s=expectations.round_trip_s(scenario, traffic),
        deadline_s=deadline_s,
        basis=_timing_basis(scenario),
    )


def _timing_basis(scenario: Scenario) -> str:
    exchange = {
        "poisson": "exchange: mean of the slowest of all messages under exponential delays",
        "outbox": "exchange: slowest message of the last outbox, stages taken as normal",
        "off": "exchange: round trip of the links",
    }[scenario.mixnet.mixer]
    if scenario.learning.training_time_s and scenario.run.backend == "simulation":
        return f"{exchange}; training: as stated"
    return f"{exchange}; training: samples a second measured on one core of another machine, good to a factor of two"


def _sent(scenario: Scenario, traffic: Traffic, timing: figures.Timing) -> figures.Sent:
    mixnet, packet_bytes = scenario.mixnet, traffic.geometry.packet_bytes
    per_s = expectations.packets_per_s(scenario, traffic)
    messages = traffic.messages
    fragment_packets = None if messages is None else messages * 2.0 * traffic.hops
    packets = fragment_packets
    cover_share: float | None = 0.0
    if per_s:
        packets = None if timing.round_s is None else per_s * timing.round_s
        cover_share = None
        if packets and fragment_packets is not None and messages is not None:
            packets = max(packets, fragment_packets)
            made = (packets - fragment_packets) / (2.0 * traffic.hops)
            if mixnet.mixer == "poisson" and timing.round_s is not None:
                made = timing.round_s * (mixnet.emission_rate_per_s + mixnet.loop_rate_per_s) - messages
            cover_share = max(0.0, made) / (max(0.0, made) + messages)
    return figures.Sent(
        packet_bytes=packet_bytes,
        hops=traffic.hops,
        packets_per_message=2.0 * traffic.hops,
        packets_per_s=per_s,
        packets_per_round=packets,
        bytes_per_round=None if packets is None else packets * packet_bytes,
        cover_share=cover_share,
    )


def _entropies(scenario: Scenario, traffic: Traffic) -> figures.Entropies:
    mixnet = scenario.mixnet
    held, outbox, basis = 0.0, 1.0, "no mixing"
    match mixnet.mixer:
        case "outbox":
            outbox, basis = float(mixnet.outbox_size), "uniform shuffle of O packets"
            law = make_delay_law(mixer_settings(mixnet))
            held = law.stage_mean_s / mixnet.delay_mean_s if mixnet.delay_mean_s else 0.0
        case "poisson":
            # Every message and cover packet is held 2H − 1 times on its way, a loop once less than it has hops.
            arrivals_per_s = mixnet.emission_rate_per_s * (2.0 * traffic.hops - 1.0)
            if mixnet.cover:
                arrivals_per_s += mixnet.loop_rate_per_s * (traffic.loop_hops - 1.0)
            held = arrivals_per_s * mixnet.delay_mean_s
            outbox, basis = max(1.0, math.e * held), "outbox of equal Shannon entropy: e times the packets held"
        case "off":
            pass
    size, stages = max(1, round(outbox)), max(1, round(traffic.hops))
    return figures.Entropies(
        path_bits=path_entropy_bits(stages, size),
        local_relay_bits=max(0.0, local_relay_entropy_bits(stages, size)),
        outbox_size=outbox,
        held_packets=held,
        basis=basis,
    )


def _linkability(scenario: Scenario, graph: Topology) -> figures.Linkability:
    found = last_hop_linkability(graph, scenario.mixnet)
    return figures.Linkability(
        last_hop=found.accuracy,
        guess=found.guess,
        basis=found.basis,
        by_route=tuple(_route_linkability(scenario, graph, route) for route in get_args(RouteName)),
    )


def _route_linkability(scenario: Scenario, graph: Topology, route: RouteName) -> figures.RouteLinkability:
    other = scenario.model_copy(update={"mixnet": scenario.mixnet.model_copy(update={"route": route})})
    try:
        check_exchange(graph, other)
        geometry_on(other.mixnet, graph)
        found = last_hop_linkability(graph, other.mixnet)
    except ConfigError as error:
        return figures.RouteLinkability(route=route, last_hop=None, guess=None, basis=f"cannot be: {error}")
    return figures.RouteLinkability(route=route, last_hop=found.accuracy, guess=found.guess, basis=found.basis)


def _robustness(scenario: Scenario, graph: Topology) -> figures.Robustness:
    aggregation, attack = scenario.aggregation, scenario.attack
    rule = rule_by_name(aggregation.rule, byzantine=aggregation.byzantine)
    # Which ranges a partner sends is drawn afresh, so of a share r of partners a given range arrives.
    candidates = 1.0 + min(partner_counts(scenario, graph)) * scenario.payload.ratio
    return figures.Robustness(
        rule=aggregation.rule,
        candidates=candidates,
        needed=rule.least,
        feasible=candidates >= rule.least,
        byzantine=aggregation.byzantine,
        tolerated=max(krum_budget(int(candidates)), 0),
        attackers=0 if attack.kind == "none" else len(attack.chosen) or attack.nodes,
    )


def _resources(scenario: Scenario, traffic: Traffic, sent: figures.Sent, timing: figures.Timing) -> figures.Resources:
    nodes, cores = scenario.topology.nodes, expectations.cores()
    compute_s = _compute_s(scenario)
    memory: dict[str, Any] = {"machine_memory_mib": _machine_memory_mib(), "machine_cores": cores}
    if scenario.run.backend != "simulation":
        node_mib, launcher_mib = _NODE_MIB[scenario.run.backend], _LAUNCHER_MIB[scenario.run.backend]
        busy: float | None = None
        if timing.round_s and sent.packets_per_round is not None and compute_s is not None:
            rate_per_s = sent.packets_per_round / timing.round_s
            hops_us = _HOP_US * sent.packets_per_round + _WAKE_UP_US * timing.round_s * min(1.0, rate_per_s)
            busy = nodes * (hops_us * 1e-6 + compute_s) / timing.round_s
        wall_s = None if timing.run_s is None or busy is None else timing.run_s * max(1.0, busy / cores)
        how = " (estimated)" if scenario.run.backend == "container" else ""
        basis = (
            f"memory: {node_mib:.0f} MiB a node with its learner, {launcher_mib:.0f} MiB{how} for what starts them;"
            f" CPU: {_HOP_US:.0f} µs a packet and {_WAKE_UP_US / 1000:.1f} ms a second for wake-ups, and"
            " training at the table's rate"
        )
        return figures.Resources(
            memory_mib=launcher_mib + nodes * node_mib, cores=busy, wall_s=wall_s, basis=basis, **memory
        )
    hop_us = _VIRTUAL_HOP_US[scenario.simulation.packets]
    wall_s = None
    if sent.packets_per_round is not None and compute_s is not None:
        packets_s = nodes * sent.packets_per_round * hop_us * 1e-6
        workers = min(cores, scenario.simulation.workers or cores)
        wall_s = scenario.run.rounds * (packets_s + nodes * compute_s / workers)
    basis = (
        f"memory: {_WORLD_MIB:.0f} MiB for the world, {_WORKER_MIB:.0f} MiB a training process, and for each node"
        f" {_STATES:.0f} copies of its model and the fragments it holds; CPU: {hop_us:.0f} µs a packet and hop, and"
        " training at the table's rate"
    )
    workers = scenario.simulation.workers or cores
    return figures.Resources(
        memory_mib=_WORLD_MIB + workers * _WORKER_MIB + nodes * _virtual_node_mib(scenario, traffic),
        cores=None,
        wall_s=wall_s,
        basis=basis,
        **memory,
    )


def _compute_s(scenario: Scenario) -> float | None:
    """Return what one node computes in a round, on one core, whatever a virtual clock is told."""
    real = scenario.model_copy(update={"learning": scenario.learning.model_copy(update={"training_time_s": 0.0})})
    training_s, evaluation_s = expectations.training_s(real), expectations.evaluation_s(real)
    if training_s is None or evaluation_s is None:
        return None
    every = scenario.monitoring.evaluate_every
    return training_s + (evaluation_s / every if every else 0.0)


def _virtual_node_mib(scenario: Scenario, traffic: Traffic) -> float:
    if traffic.fragments_sent is None:
        return _WORLD_NODE_MIB
    values = layout_of(scenario.learning.model, scenario.learning.dataset).values
    held_bytes = traffic.partners * traffic.fragments_sent * traffic.geometry.body_bytes
    return _WORLD_NODE_MIB + (_STATES * 4.0 * values + held_bytes) / 2**20


def _machine_memory_mib() -> float | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**20
    except (AttributeError, ValueError, OSError):
        return None


def _sample(graph: Topology) -> list[int]:
    if graph.is_circulant:
        return [0]
    return list(range(0, graph.nodes, max(1, graph.nodes // _SAMPLED_NODES)))


def _mean(values: list[int]) -> float:
    return sum(values) / len(values)
