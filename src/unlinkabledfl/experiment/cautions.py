"""What to say about a scenario before it runs: what will not work, and what may not be what was meant.

A `ConfigError` stops what cannot run at all. Everything here can run.
"""

from collections.abc import Iterator

from unlinkabledfl.experiment.figures import Caution, Figures
from unlinkabledfl.experiment.scenario import Scenario
from unlinkabledfl.experiment.scenario.learning import BUILT_IN_LEARNER
from unlinkabledfl.learning.datasets import state
from unlinkabledfl.mixnet.topology import Topology

__all__ = ["cautions_of"]

_TELLING = 1.5
_SMALL_MIX = 10.0
_LONG_EXCHANGE_S = 600.0
_QUEUE_AHEAD = 256
_FULL_TRANSIT = 0.5


def cautions_of(scenario: Scenario, graph: Topology, figures: Figures) -> tuple[Caution, ...]:
    """Return them, serious ones first."""
    found = [
        *_of_anonymity(scenario, figures),
        *_of_time(scenario, figures),
        *_of_queues(scenario, figures),
        *_of_learning(scenario, figures),
        *_of_masks(scenario, figures),
        *_of_churn(scenario, graph),
        *_of_resources(scenario, figures),
    ]
    return tuple(sorted(found, key=lambda caution: not caution.serious))


def _of_anonymity(scenario: Scenario, figures: Figures) -> Iterator[Caution]:
    mixnet, linkability = scenario.mixnet, figures.linkability
    if mixnet.mixer == "off":
        yield _note("mixnet.mixer", "Nothing is mixed: whoever watches links sees who sends to whom.")
        return
    if mixnet.path_length == 1 and mixnet.route != "valiant":
        yield _serious("mixnet.path_length", "With one hop the last hop is the sender: every packet names it.")
    elif linkability.last_hop is not None and linkability.last_hop > _TELLING * linkability.guess:
        yield _serious(
            "mixnet.route",
            f"The last hop names the sender with probability {linkability.last_hop:.2f}; guessing among those who may"
            f" write has {linkability.guess:.2f}. No delay and no cover changes that; overlay routes do.",
        )
    if mixnet.path_length == 2 and mixnet.route in {"walk", "overlay"}:  # noqa: PLR2004 -- one relay
        yield _note(
            "mixnet.path_length",
            "With two hops there is one relay, and a malicious one sees both ends; three hops hide that.",
        )
    if not mixnet.cover:
        yield _serious("mixnet.cover", "Without cover, silence shows when a node has nothing to send.")
    held = figures.entropy.held_packets
    if mixnet.mixer == "poisson" and held < _SMALL_MIX:
        yield _note(
            "mixnet.delay_mean_s",
            f"A relay holds {held:.1f} packets on average, so there is little to mix with: longer delays or a higher"
            " emission rate help.",
        )
    if figures.exchange.partners_min < 4:  # noqa: PLR2004 -- a handful
        yield _note(
            "mixnet.exchange",
            f"Some node has {figures.exchange.partners_min} partners: that few can have sent what it receives.",
        )


def _of_time(scenario: Scenario, figures: Figures) -> Iterator[Caution]:
    aggregation, time = scenario.aggregation, figures.time
    if time.exchange_s is None:
        return
    waits = aggregation.completion in {"completeness", "deadline"}
    if waits and time.deadline_s < time.round_trip_s:
        yield _serious(
            "aggregation.deadline_s",
            f"The deadline of {time.deadline_s:g} s is shorter than one round trip of {time.round_trip_s:.1f} s: hardly"
            " a fragment is acknowledged in time.",
        )
    elif waits and time.deadline_s < time.exchange_s:
        yield _serious(
            "aggregation.deadline_s",
            f"The deadline of {time.deadline_s:g} s ends exchanges that take about {time.exchange_s:.0f} s: rounds will"
            " be incomplete.",
        )
    if aggregation.completion == "cadence" and aggregation.cadence_s < time.exchange_s + (time.training_s or 0.0):
        yield _serious(
            "aggregation.cadence_s",
            f"Training and exchange take about {time.exchange_s + (time.training_s or 0.0):.0f} s, a round"
            f" {aggregation.cadence_s:g} s: fragments will come late.",
        )
    messages = figures.fragments.per_round
    if scenario.mixnet.mixer == "poisson" and messages is not None:
        rate_per_s = scenario.mixnet.emission_rate_per_s
        if messages / rate_per_s > _LONG_EXCHANGE_S:
            yield _serious(
                "mixnet.emission_rate_per_s",
                f"{messages:.0f} fragments a round at {rate_per_s:g} a second take {messages / rate_per_s / 60:.0f}"
                " minutes to leave.",
            )


def _of_queues(scenario: Scenario, figures: Figures) -> Iterator[Caution]:
    mixnet, traffic = scenario.mixnet, figures.traffic
    messages = figures.fragments.per_round
    if messages is not None and mixnet.own_capacity < min(messages, _QUEUE_AHEAD):
        yield _note(
            "mixnet.own_capacity",
            f"A node queues {mixnet.own_capacity} of the {messages:.0f} fragments of a round; the rest waits for room.",
        )
    held = figures.entropy.held_packets
    if mixnet.mixer == "poisson" and held > _FULL_TRANSIT * mixnet.transit_capacity:
        yield _serious(
            "mixnet.transit_capacity",
            f"A relay holds {held:.0f} packets on average and takes {mixnet.transit_capacity}: some are dropped.",
        )
    if mixnet.route == "overlay":
        return
    # Over the graph, everything comes from a few neighbours.
    neighbours = figures.graph.degree_min
    if traffic.packets_per_s / neighbours > mixnet.neighbour_packets_per_s:
        yield _serious(
            "mixnet.neighbour_packets_per_s",
            f"Each neighbour hands over {traffic.packets_per_s / neighbours:.0f} packets a second, and"
            f" {mixnet.neighbour_packets_per_s:g} are taken.",
        )
    if held / neighbours > _FULL_TRANSIT * mixnet.neighbour_share * mixnet.transit_capacity:
        yield _serious(
            "mixnet.neighbour_share",
            f"Of each of {neighbours} neighbours {held / neighbours:.0f} packets are held on average, and at most"
            f" {mixnet.neighbour_share * mixnet.transit_capacity:.0f} may be.",
        )


def _of_learning(scenario: Scenario, figures: Figures) -> Iterator[Caution]:
    aggregation, robustness = scenario.aggregation, figures.robustness
    if not robustness.feasible:
        yield _serious(
            "aggregation.rule",
            f"{robustness.rule} with B = {robustness.byzantine} needs {robustness.needed} candidates a range, and there"
            f" are {robustness.candidates:.1f}: ranges keep their local values. At most B = {robustness.tolerated}.",
        )
    if aggregation.byzantine and aggregation.rule in {"fragfedavg", "median"}:
        yield _note("aggregation.byzantine", f"{aggregation.rule} does not use it.")
    robust = aggregation.rule in {"fragkrum", "trimmed_mean"}
    if robust and robustness.attackers > aggregation.byzantine:
        yield _note(
            "aggregation.byzantine",
            f"There are {robustness.attackers} attackers, and the rule reckons with {aggregation.byzantine}.",
        )
    if scenario.learning.factory == BUILT_IN_LEARNER:
        name = scenario.learning.dataset
        if (found := state(name)) in {"absent", "damaged"}:
            yield _serious(
                "learning.dataset", f"{name} is {found} on this machine: `unlinkabledfl data get {name}` fetches it."
            )


def _of_masks(scenario: Scenario, figures: Figures) -> Iterator[Caution]:
    payload, senders = scenario.payload, figures.exchange.partners_max
    if payload.obfuscation != "masks":
        return
    yield _note(
        "payload.obfuscation",
        "A sender that colludes with a destination recognises the fragments of all with whom it shares masks: they"
        " protect from curious destinations, not from such pairs.",
    )
    if senders > payload.obfuscation_peers + 1:
        yield _serious(
            "payload.obfuscation_peers",
            f"Each of up to {senders} senders of a destination shares masks with {payload.obfuscation_peers} others"
            " only, and which ones shows in their fragments: two known senders name the rest. Let everybody share with"
            f" everybody: {senders - 1} or more.",
        )


def _of_churn(scenario: Scenario, graph: Topology) -> Iterator[Caution]:
    joining = {event.node for event in scenario.topology.join if event.round > 1}
    if not joining:
        return
    there = [node for node in range(graph.nodes) if node not in joining]
    if len(_component(graph, there[0], joining)) < len(there):
        yield _serious(
            "topology.join",
            "Without the nodes that join later the graph falls apart: the parts do not hear of each other before.",
        )


def _component(graph: Topology, start: int, without: set[int]) -> set[int]:
    seen, open_nodes = {start}, [start]
    while open_nodes:
        for near in graph.neighbours(open_nodes.pop()):
            if near not in seen and near not in without:
                seen.add(near)
                open_nodes.append(near)
    return seen


def _of_resources(scenario: Scenario, figures: Figures) -> Iterator[Caution]:
    resources = figures.resources
    if resources.machine_memory_mib is not None and resources.memory_mib > resources.machine_memory_mib:
        yield _serious(
            "topology.nodes",
            f"The run takes about {resources.memory_mib / 1024:.1f} GiB, and this machine has"
            f" {resources.machine_memory_mib / 1024:.1f}.",
        )
    if resources.cores is not None and resources.cores > resources.machine_cores:
        yield _note(
            "topology.nodes",
            f"{resources.cores:.1f} cores would be busy, and there are {resources.machine_cores}: rounds take longer.",
        )
    real = scenario.run.backend != "simulation"
    if scenario.process.pin and scenario.topology.nodes > resources.machine_cores and real:
        yield _note("process.pin", f"{scenario.topology.nodes} nodes share {resources.machine_cores} cores.")


def _serious(key: str, text: str) -> Caution:
    return Caution(key=key, serious=True, text=text)


def _note(key: str, text: str) -> Caution:
    return Caution(key=key, serious=False, text=text)
