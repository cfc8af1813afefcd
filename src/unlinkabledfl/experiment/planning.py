"""From a scenario to what each of its nodes is told: identities, graph, partners, schedule, attackers.

In an experiment everything follows from the seed, also who the nodes are: two runs of one scenario have the same node
ids and the same partition. Link certificates are the exception, because nothing is drawn from them; they are made by
whoever launches real nodes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address

from nacl.bindings import crypto_sign_seed_keypair
from pydantic import SecretStr

from unlinkabledfl.errors import LocalProtocolError
from unlinkabledfl.experiment.data import check_data
from unlinkabledfl.experiment.expectations import default_deadline_s
from unlinkabledfl.experiment.graphs import ExchangeSets, build_topology, check_exchange
from unlinkabledfl.experiment.node_config import Contact, FullNodeConfig, Graph, LearnerConfig, LinkConfig, Schedule
from unlinkabledfl.experiment.scenario import Scenario
from unlinkabledfl.experiment.tasks import every_node_settings, learner_settings
from unlinkabledfl.experiment.translation import geometry_on
from unlinkabledfl.mixnet.draw import Draw
from unlinkabledfl.simulation.entropy import SeededEntropy, derive_key
from unlinkabledfl.sphinx import NodeId
from unlinkabledfl.transport.certificates import LinkIdentity

__all__ = ["ExperimentPlan", "Hosting", "local_hosting", "plan_experiment"]

_LOOPBACK_DATAGRAM_BYTES = 16_384
_DATAGRAM_BYTES = 1_280


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosting:
    """Where the nodes of a real run are, and by which certificates they are known; all by index."""

    identities: Sequence[LinkIdentity]
    listen: Sequence[tuple[str, int]]
    """Host and port that each node binds."""
    addresses: Sequence[tuple[str, ...]]
    """How others reach it, as `host:port`."""


class ExperimentPlan:
    """A scenario with all its draws made. Nodes are made on demand: a thousand of them share what they can.

    `begins` is the round with which the run begins, or goes on.
    """

    def __init__(self, scenario: Scenario, *, run_id: str, hosting: Hosting | None = None, begins: int = 1) -> None:
        self.scenario = scenario
        self.begins = begins
        self.run_id = run_id
        check_data(scenario)
        self.topology = build_topology(scenario)
        check_exchange(self.topology, scenario)
        self.geometry = geometry_on(scenario.mixnet, self.topology)
        nodes = self.topology.nodes
        self._seeds = [derive_key(scenario.run.seed, f"identity/{index}") for index in range(nodes)]
        self.node_ids = tuple(NodeId(crypto_sign_seed_keypair(seed)[0]) for seed in self._seeds)
        self.attackers = _attackers(scenario)
        self._joins = {event.node: event.round for event in scenario.topology.join}
        self._exits = {event.node: event.round for event in scenario.topology.exit}
        self._exchange = ExchangeSets(self.topology, scenario.mixnet)
        self._hosting = hosting
        if (
            hosting is not None
            and not len(hosting.identities) == len(hosting.listen) == len(hosting.addresses) == nodes
        ):
            raise LocalProtocolError(f"hosting of {nodes} nodes names as many of everything")

    @property
    def nodes(self) -> int:
        """How many there are."""
        return self.topology.nodes

    @property
    def absent(self) -> tuple[int, ...]:
        """Those who are not there when the run begins, sorted: they join later, or have left before it was taken up."""
        later = {node for node, first in self._joins.items() if first > self.begins}
        return tuple(sorted(later | {node for node, last in self._exits.items() if last < self.begins}))

    def first_round(self, index: int) -> int:
        """Return the first round that a node takes part in."""
        return self._joins.get(index, 1)

    def last_round(self, index: int) -> int | None:
        """Return the round after which it leaves; none: it stays."""
        return self._exits.get(index)

    def joins_in(self, round_number: int) -> tuple[int, ...]:
        """Return who is to be there with this round."""
        return tuple(sorted(node for node, first in self._joins.items() if first == round_number > 1))

    def partners(self, index: int) -> tuple[int, ...]:
        """Return with whom a node exchanges fragments, by index."""
        return self._exchange.of(index)

    @cached_property
    def deadline_s(self) -> float:
        """How long an exchange lasts at most: as the scenario says, or what its delays allow three times over."""
        return self.scenario.aggregation.deadline_s or default_deadline_s(self.scenario, self.topology)

    @property
    def every_node_learners(self) -> dict[str, object]:
        """Settings for `tasks.EVERY_NODE`."""
        return every_node_settings(self.scenario, attackers=self.attackers)

    def node(self, index: int) -> FullNodeConfig:
        """Return all that one node is told."""
        scenario, hosting = self.scenario, self._hosting
        partners = tuple([self.node_ids[other].hex() for other in self.partners(index)])
        near = self.topology.neighbours(index)
        attacks = index in self.attackers
        masked = scenario.payload.obfuscation != "none"
        return FullNodeConfig(
            run_id=self.run_id,
            index=index,
            nodes=self.nodes,
            node_id=self.node_ids[index].hex(),
            identity_seed=SecretStr(self._seeds[index].hex()),
            link=None if hosting is None else _link(scenario, hosting, index),
            contacts=() if hosting is None else tuple([self._contact(hosting, other) for other in near]),
            neighbours=tuple([self.node_ids[other].hex() for other in near]),
            destinations=partners,
            expected_from=partners,
            absent=tuple([self.node_ids[other].hex() for other in self._absent_partners(index)]),
            graph=None if scenario.mixnet.route == "overlay" and not masked else self._graph,
            mixnet=scenario.mixnet,
            payload=scenario.payload,
            aggregation=scenario.aggregation,
            schedule=Schedule(
                rounds=scenario.run.rounds,
                first_round=self.first_round(index),
                last_round=self.last_round(index),
                deadline_s=self.deadline_s,
                evaluate_every=scenario.monitoring.evaluate_every,
            ),
            learner=LearnerConfig(
                factory=scenario.learning.factory,
                settings=learner_settings(scenario, index=index, attacks=attacks),
            ),
            attack=scenario.attack.kind if attacks else "none",
            gauges_interval_s=scenario.monitoring.gauges_interval_s,
            trace=scenario.monitoring.trace,
        )

    def __iter__(self) -> Iterator[FullNodeConfig]:
        """Make every node's, in order."""
        return (self.node(index) for index in range(self.nodes))

    @cached_property
    def _graph(self) -> Graph:
        return Graph(
            node_ids=tuple([node_id.hex() for node_id in self.node_ids]),
            neighbours=tuple([self.topology.neighbours(node) for node in range(self.nodes)]),
            circulant=self.topology.is_circulant,
        )

    def _absent_partners(self, index: int) -> tuple[int, ...]:
        """Return those partners that are not there when a node begins."""
        begins = max(self.first_round(index), self.begins)
        return tuple(
            other
            for other in self.partners(index)
            if self.first_round(other) > begins or (self.last_round(other) or begins) < begins
        )

    def _contact(self, hosting: Hosting, index: int) -> Contact:
        return Contact(
            node_id=self.node_ids[index].hex(),
            addresses=hosting.addresses[index],
            fingerprint=hosting.identities[index].fingerprint.hex(),
        )


def plan_experiment(
    scenario: Scenario, *, run_id: str | None = None, hosting: Hosting | None = None, begins: int = 1
) -> ExperimentPlan:
    """Return the plan of a scenario; ConfigError where its graph does not carry what it asks for."""
    return ExperimentPlan(scenario, run_id=run_id or scenario.run.name, hosting=hosting, begins=begins)


def local_hosting(scenario: Scenario, *, make_identity: Callable[[], LinkIdentity] = LinkIdentity.generate) -> Hosting:
    """Return the hosting of a run on this host.

    Without `process.base_port` the system chooses ports, and addresses are known when nodes have bound theirs.
    """
    host, first = scenario.process.host, scenario.process.base_port
    name = f"[{host}]" if ":" in host else host
    nodes = range(scenario.topology.nodes)
    ports = [first + index if first else 0 for index in nodes]
    return Hosting(
        identities=[make_identity() for _ in nodes],
        listen=[(host, port) for port in ports],
        addresses=[(f"{name}:{port}",) if port else () for port in ports],
    )


def _link(scenario: Scenario, hosting: Hosting, index: int) -> LinkConfig:
    host, port = hosting.listen[index]
    local = _is_loopback(host)
    return LinkConfig.of(
        hosting.identities[index],
        host=host,
        port=port,
        addresses=hosting.addresses[index],
        datagram_bytes=scenario.process.datagram_bytes or (_LOOPBACK_DATAGRAM_BYTES if local else _DATAGRAM_BYTES),
        allow_loopback=local,
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _attackers(scenario: Scenario) -> tuple[int, ...]:
    attack = scenario.attack
    if attack.kind == "none":
        return ()
    if attack.chosen:
        return tuple(sorted(attack.chosen))
    draw = Draw(SeededEntropy(scenario.run.seed, "attackers"))
    return tuple(sorted(draw.sample(range(scenario.topology.nodes), attack.nodes)))
