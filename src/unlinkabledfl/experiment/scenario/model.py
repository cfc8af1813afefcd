"""A scenario: everything that decides a run, as one frozen object.

Invariant: a `Scenario` that exists is consistent in itself. What only its graph or its data can tell is checked where
these are made.
"""

from typing import Self

from pydantic import Field, model_validator

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.scenario.base import Section
from unlinkabledfl.experiment.scenario.learning import BUILT_IN_LEARNER, Aggregation, Attack, Learning, Payload
from unlinkabledfl.experiment.scenario.network import Churn, Links, Mixnet, Topology
from unlinkabledfl.experiment.scenario.running import Container, Monitoring, Process, Run, Simulation
from unlinkabledfl.node.settings import check_masks_cancel

__all__ = ["Scenario"]


class Scenario(Section):
    """A complete scenario. Keys are written `section.key`."""

    run: Run = Field(default_factory=Run, description="The run itself.")
    learning: Learning = Field(default_factory=Learning, description="The learning task of every node.")
    topology: Topology = Field(default_factory=Topology, description="Who has a link with whom, and when.")
    mixnet: Mixnet = Field(default_factory=Mixnet, description="How packets travel.")
    payload: Payload = Field(default_factory=Payload, description="How a model becomes fragments.")
    aggregation: Aggregation = Field(default_factory=Aggregation, description="What becomes of them.")
    attack: Attack = Field(default_factory=Attack, description="Malicious learners.")
    links: Links = Field(default_factory=Links, description="Links of the virtual world.")
    simulation: Simulation = Field(default_factory=Simulation, description="The virtual world.")
    process: Process = Field(default_factory=Process, description="The real world on this host.")
    container: Container = Field(default_factory=Container, description="Real nodes in containers on this host.")
    monitoring: Monitoring = Field(default_factory=Monitoring, description="What is recorded.")

    @model_validator(mode="after")
    def check(self) -> Self:
        """ConfigError for keys that are good each by itself and not together."""
        _check_training(self.learning, rounds=self.run.rounds)
        _check_topology(self)
        _check_mixnet(self.mixnet)
        _check_aggregation(self)
        _check_obfuscation(self)
        _check_attack(self)
        _check_process(self)
        return self


def _check_training(learning: Learning, *, rounds: int) -> None:
    if learning.steps and learning.seconds:
        raise ConfigError(
            key="learning.seconds",
            got=learning.seconds,
            takes="0 beside learning.steps",
            hint="a round of training ends by epochs, by steps or by seconds",
        )
    if learning.nesterov and (learning.momentum == 0.0 or learning.optimizer != "sgd"):
        raise ConfigError(key="learning.nesterov", got=True, takes="true only with sgd and momentum")
    if learning.steady_rounds >= rounds:
        takes = f"less than run.rounds, which is {rounds}"
        raise ConfigError(key="learning.steady_rounds", got=learning.steady_rounds, takes=takes)
    for key in ("seconds", "flip", "shift_pixels", "centralize") if learning.dp_noise else ():
        if got := getattr(learning, key):
            takes = "nothing beside learning.dp_noise"
            hint = "how much privacy is lost would not be known"
            raise ConfigError(key=f"learning.{key}", got=got, takes=takes, hint=hint)


def _check_topology(scenario: Scenario) -> None:
    topology, rounds = scenario.topology, scenario.run.rounds
    if (topology.family == "file") != bool(topology.file):
        takes = "a file of links" if topology.family == "file" else 'nothing, unless topology.family is "file"'
        raise ConfigError(key="topology.file", got=topology.file, takes=takes)
    for key, events in (("topology.join", topology.join), ("topology.exit", topology.exit)):
        _check_churn(key, events, nodes=topology.nodes, rounds=rounds)
    joins = {event.node: event.round for event in topology.join}
    for event in topology.exit:
        if joins.get(event.node, 1) > event.round:
            raise ConfigError(
                key="topology.exit",
                got={"node": event.node, "round": event.round},
                takes=f"a round from {joins[event.node]} on: node {event.node} joins only then",
            )
    present = topology.nodes - len(joins)
    if present < 2:  # noqa: PLR2004 -- an exchange has two sides
        raise ConfigError(
            key="topology.join", got=f"{len(joins)} nodes", takes="at least two nodes that are there from the start"
        )


def _check_churn(key: str, events: tuple[Churn, ...], *, nodes: int, rounds: int) -> None:
    seen: set[int] = set()
    for event in events:
        got = {"node": event.node, "round": event.round}
        if event.node >= nodes:
            raise ConfigError(key=f"{key}.node", got=event.node, takes=f"a node from 0 to {nodes - 1}")
        if event.round > rounds:
            raise ConfigError(key=f"{key}.round", got=event.round, takes=f"a round from 1 to run.rounds, {rounds}")
        if event.node in seen:
            raise ConfigError(key=key, got=got, takes="each node once")
        seen.add(event.node)


def _check_mixnet(mixnet: Mixnet) -> None:
    if mixnet.mixer == "outbox" and mixnet.refill_at >= mixnet.outbox_size:
        raise ConfigError(
            key="mixnet.refill_at", got=mixnet.refill_at, takes=f"less than mixnet.outbox_size, {mixnet.outbox_size}"
        )
    if mixnet.mixer == "outbox" and mixnet.cover and mixnet.delay_mean_s < 1e-6:
        raise ConfigError(
            key="mixnet.delay_mean_s",
            got=mixnet.delay_mean_s,
            takes="0.000001 seconds or more while mixnet.cover is true",
            hint="cover without gaps never ends",
        )
    if mixnet.max_hops and mixnet.route != "valiant" and mixnet.max_hops < mixnet.path_length:
        raise ConfigError(
            key="mixnet.max_hops",
            got=mixnet.max_hops,
            takes=f"at least mixnet.path_length, {mixnet.path_length}, or 0 for as many as the routes need",
        )


def _check_aggregation(scenario: Scenario) -> None:
    aggregation = scenario.aggregation
    if aggregation.staleness == "weight" and aggregation.rule != "fragfedavg":
        raise ConfigError(
            key="aggregation.staleness",
            got="weight",
            takes=f"keep or drop with {aggregation.rule}",
            hint=f"{aggregation.rule} chooses or sorts, it does not weigh",
        )
    if aggregation.trigger_change and aggregation.completion == "completeness":
        raise ConfigError(
            key="aggregation.trigger_change",
            got=aggregation.trigger_change,
            takes='0 with aggregation.completion = "completeness"',
            hint="peers would wait until the deadline for a model that is not sent; cadence and immediate do not",
        )
    if aggregation.completion == "deadline" and not aggregation.deadline_s:
        raise ConfigError(
            key="aggregation.deadline_s", got=0, takes="more than 0 seconds when the deadline ends every exchange"
        )


def _check_process(scenario: Scenario) -> None:
    process = scenario.process
    if 0 < process.datagram_bytes < 1_200:  # noqa: PLR2004 -- what QUIC asks of every path
        raise ConfigError(
            key="process.datagram_bytes", got=process.datagram_bytes, takes="0, or a whole number from 1200 to 16384"
        )
    if len(set(process.cores)) != len(process.cores) or any(core < 0 for core in process.cores):
        raise ConfigError(key="process.cores", got=list(process.cores), takes="different whole numbers from 0")
    last_port = process.base_port + scenario.topology.nodes - 1
    if process.base_port and last_port > 65_535:  # noqa: PLR2004 -- the last port there is
        raise ConfigError(
            key="process.base_port",
            got=process.base_port,
            takes=f"at most {65_536 - scenario.topology.nodes} with {scenario.topology.nodes} nodes",
        )


def _check_obfuscation(scenario: Scenario) -> None:
    payload, aggregation = scenario.payload, scenario.aggregation
    if payload.obfuscation == "none":
        return
    check_masks_cancel(
        ratio=payload.ratio,
        error_feedback=payload.error_feedback,
        rule=aggregation.rule,
        staleness=aggregation.staleness,
        completion=aggregation.completion,
        trigger_change=aggregation.trigger_change,
    )
    if scenario.learning.factory == BUILT_IN_LEARNER and scenario.learning.model == "mobilenet_v2":
        raise ConfigError(
            key="learning.model",
            got=scenario.learning.model,
            takes='a model without normalization statistics with payload.obfuscation = "masks"',
        )


def _check_attack(scenario: Scenario) -> None:
    attack, nodes = scenario.attack, scenario.topology.nodes
    wanted = len(attack.chosen) or attack.nodes
    if attack.kind == "none":
        if wanted:
            raise ConfigError(key="attack.kind", got="none", takes="an attack, since attack.nodes asks for attackers")
        return
    if not 1 <= wanted < nodes:
        raise ConfigError(key="attack.nodes", got=wanted, takes=f"1 to {nodes - 1} of {nodes} nodes")
    if attack.chosen and attack.nodes not in {0, len(attack.chosen)}:
        raise ConfigError(key="attack.nodes", got=attack.nodes, takes=f"{len(attack.chosen)}, as attack.chosen names")
    if len(set(attack.chosen)) != len(attack.chosen) or not all(0 <= node < nodes for node in attack.chosen):
        raise ConfigError(key="attack.chosen", got=list(attack.chosen), takes=f"different nodes from 0 to {nodes - 1}")
    if attack.kind == "label_flip" and attack.magnitude > 1:
        raise ConfigError(key="attack.magnitude", got=attack.magnitude, takes="a share of labels up to 1")
