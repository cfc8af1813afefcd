"""From a node's configuration to the participant that a driver runs: the same code in both worlds.

`build_participant` makes one node on its own host, which learns of others by their descriptors. `VirtualNodes` makes
the nodes of a virtual world; they share what is the same for all: packet format, graph, routes, and a directory of
everybody's first key, so that a thousand nodes need not spread a million descriptors to begin.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from unlinkabledfl.errors import LocalProtocolError
from unlinkabledfl.experiment.graphs import ExchangeSets
from unlinkabledfl.experiment.node_config import FullNodeConfig, Graph, named
from unlinkabledfl.experiment.planning import ExperimentPlan
from unlinkabledfl.experiment.scenario import Scenario
from unlinkabledfl.experiment.translation import fragments_ahead, geometry_of, graph_routes, mix_settings
from unlinkabledfl.fragments import Policy
from unlinkabledfl.fragments.pool import MAX_PER_RANGE
from unlinkabledfl.mixnet.config import build_mix_node
from unlinkabledfl.mixnet.descriptor import FINGERPRINT_BYTES, LIFETIME_MAX_S, Descriptor, sign
from unlinkabledfl.mixnet.destinations import ListedDestinations
from unlinkabledfl.mixnet.journal import Journal, JournaledPackets
from unlinkabledfl.mixnet.keys import KeyRotated
from unlinkabledfl.mixnet.mix_node import MixNode
from unlinkabledfl.mixnet.packets import PacketFormat
from unlinkabledfl.mixnet.peers import Directory, PeerSettings, PeerView
from unlinkabledfl.mixnet.routes import OverlayRoutes, RouteStrategy, TransportGraph
from unlinkabledfl.mixnet.routes.known import KnownRoutes
from unlinkabledfl.mixnet.sphinx_packets import SphinxPackets
from unlinkabledfl.mixnet.topology import Topology
from unlinkabledfl.node.learner import State
from unlinkabledfl.node.masks import Masking
from unlinkabledfl.node.pair_secrets import PairSecrets
from unlinkabledfl.node.participant import Participant
from unlinkabledfl.node.settings import (
    AggregationSettings,
    Completion,
    Exchange,
    ParticipantSettings,
    PayloadSettings,
    RoundSettings,
)
from unlinkabledfl.simulation.entropy import node_entropy
from unlinkabledfl.simulation.sealed import SealedPackets
from unlinkabledfl.sphinx import Entropy, NodeId, Sphinx

__all__ = [
    "Describe",
    "NodeParts",
    "VirtualNodes",
    "build_participant",
    "describe_with",
    "masking_of",
    "participant_settings",
]

Describe = Callable[[KeyRotated, float], Descriptor]

_PEERS_MIN = 4_096
_NO_FINGERPRINT = bytes(FINGERPRINT_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeParts:
    """What the nodes of one process may share."""

    packets: PacketFormat
    graph: TransportGraph | None = None
    graph_routes: RouteStrategy | None = None
    """For routes over the graph; overlay routes are each node's own, over its own view."""
    exchange: ExchangeSets | None = None
    """Who sends to whom, where masks are to cancel over them."""
    directory: Directory = field(default_factory=Directory)
    everybody_known: bool = False
    """Whether the directory names every node there will be."""

    @classmethod
    def of(cls, config: FullNodeConfig) -> "NodeParts":
        """Return the parts of one node on its own host."""
        graph = None if config.graph is None else _transport_graph(config.graph)
        routes = None if graph is None or config.mixnet.route == "overlay" else graph_routes(config.mixnet, graph)
        packets = SphinxPackets(Sphinx(geometry_of(config.mixnet, routes)))
        exchange = None if graph is None else ExchangeSets(graph.topology, config.mixnet)
        return cls(packets=packets, graph=graph, graph_routes=routes, exchange=exchange)

    def journaled(self, journal: Journal) -> "NodeParts":
        """Return the parts of a node that is watched; it does the same as one that is not."""
        return replace(self, packets=JournaledPackets(self.packets, journal))


def build_participant(
    config: FullNodeConfig,
    *,
    state: State,
    entropy: Entropy,
    describe: Describe | None = None,
    parts: NodeParts | None = None,
    first_serial: int = 0,
    first_round: int | None = None,
) -> Participant:
    """Return the node's participant, not started, with the model that it begins with.

    `describe` signs its descriptors; it is None only where everybody is in the directory and keys stay. `first_serial`
    is higher than any of a former life. `first_round` is where a run that is taken up goes on.
    """
    parts = parts or NodeParts.of(config)
    mix = _build_mix(config, parts, entropy=entropy, describe=describe, first_serial=first_serial)
    return Participant(
        mix=mix,
        packets=parts.packets,
        settings=participant_settings(config, hops=_longest_route(config, parts), first_round=first_round),
        exchange=Exchange(
            destinations=named(config.destinations),
            expected_from=named(config.expected_from),
            absent=named(config.absent),
        ),
        state=state,
        entropy=entropy,
        masking=None if config.payload.obfuscation == "none" else masking_of(config, parts),
    )


def describe_with(
    signing_seed: bytes,
    *,
    fingerprint: bytes,
    addresses: Callable[[], Sequence[str]],
    allow_loopback: bool = False,
) -> Describe:
    """Return what signs a node's descriptors. Addresses are asked for each time: a port is known once it is bound."""

    def describe(key: KeyRotated, now_s: float) -> Descriptor:
        return sign(
            signing_seed,
            serial=key.serial,
            epoch=key.epoch,
            public_key=key.public_key,
            fingerprint=fingerprint,
            valid_until_s=int(now_s) + LIFETIME_MAX_S,
            addresses=addresses(),
            allow_loopback=allow_loopback,
        )

    return describe


class VirtualNodes:
    """Makes the participants of a virtual world. `first_round` is where a run that is taken up goes on.

    `journal` gives where the packets of the node at an index are taken down, if they are.
    """

    def __init__(
        self, plan: ExperimentPlan, *, first_round: int = 1, journal: Callable[[int], Journal] | None = None
    ) -> None:
        scenario = plan.scenario
        self._journal = journal
        self._plan = plan
        self._first_round = first_round
        graph = TransportGraph(topology=plan.topology, node_ids=plan.node_ids)
        routes = None if scenario.mixnet.route == "overlay" else graph_routes(scenario.mixnet, graph)
        geometry = geometry_of(scenario.mixnet, routes)
        sealed = scenario.simulation.packets == "sealed"
        self.packets: PacketFormat = SealedPackets(geometry) if sealed else SphinxPackets(Sphinx(geometry))
        # Whoever joins later tells its key then, as it would on a real network.
        there = [index for index in range(plan.nodes) if plan.first_round(index) <= first_round]
        keys = ((plan.node_ids[index], self._first_key(index)) for index in there)
        self._there = frozenset(there)
        self._parts = NodeParts(
            packets=self.packets,
            graph=graph,
            graph_routes=routes,
            exchange=ExchangeSets(plan.topology, scenario.mixnet),
            directory=Directory(keys),
            everybody_known=len(there) == plan.nodes,
        )
        self._keys_stay = _keys_stay(scenario, deadline_s=plan.deadline_s)

    def make(
        self, index: int, *, state: State, entropy: Entropy, first_round: int | None = None, serial: int = 0
    ) -> Participant:
        """Return the participant at this index, in its life of this number, which begins with that round."""
        config = self._plan.node(index)
        if self._keys_stay:
            config = config.model_copy(update={"mixnet": config.mixnet.model_copy(update={"epoch_length_s": 0.0})})
        untold = self._keys_stay and serial == 0 and index in self._there
        describe = describe_with(
            config.signing_seed, fingerprint=_NO_FINGERPRINT, addresses=lambda: (_virtual_address(index),)
        )
        return build_participant(
            config,
            state=state,
            entropy=entropy,
            describe=None if untold else describe,
            parts=self._parts if self._journal is None else self._parts.journaled(self._journal(index)),
            first_serial=serial << 32,
            first_round=max(first_round or 1, self._first_round),
        )

    def _first_key(self, index: int) -> bytes:
        # The first thing that a node's ring draws is its key, so a second copy of its entropy gives the same one.
        key = self.packets.generate_key(node_entropy(self._plan.scenario.run.seed, index=index, serial=0))
        public: bytes = key.public_bytes
        return public


# ------------------------------------------------------------------------------------------------------------- settings


def participant_settings(config: FullNodeConfig, *, hops: int, first_round: int | None = None) -> ParticipantSettings:
    """Return what the participant is told of its rounds, its payload and its aggregation."""
    payload, aggregation, schedule = config.payload, config.aggregation, config.schedule
    return ParticipantSettings(
        rounds=RoundSettings(
            rounds=schedule.rounds,
            first_round=max(schedule.first_round, first_round or 1),
            last_round=schedule.last_round,
            completion=Completion(aggregation.completion),
            deadline_s=schedule.deadline_s,
            cadence_s=aggregation.cadence_s,
            trigger_change=aggregation.trigger_change,
            evaluate_every=schedule.evaluate_every,
        ),
        payload=PayloadSettings(
            codec=payload.codec,
            bits=payload.bits,
            ratio=payload.ratio,
            selection=payload.selection,
            error_feedback=payload.error_feedback,
            bound=payload.bound,
            obfuscation=payload.obfuscation,
            obfuscation_scale=payload.obfuscation_scale,
            obfuscation_peers=payload.obfuscation_peers,
        ),
        aggregation=AggregationSettings(
            rule=aggregation.rule,
            byzantine=aggregation.byzantine,
            staleness=Policy(aggregation.staleness),
            staleness_window=aggregation.staleness_window,
            staleness_decay=aggregation.staleness_decay,
            # Every partner of every round in the window may send its own.
            max_per_range=max(MAX_PER_RANGE, 2 * len(config.expected_from)),
        ),
        queue_ahead=fragments_ahead(config.mixnet, hops=hops),
    )


# -------------------------------------------------------------------------------------------------------------- parts


def _longest_route(config: FullNodeConfig, parts: NodeParts) -> int:
    return config.mixnet.path_length if parts.graph_routes is None else parts.graph_routes.hops_max


def masking_of(config: FullNodeConfig, parts: NodeParts) -> Masking:
    """Return with whom this node shares masks. They are another run's no more than its models are."""
    graph, exchange = parts.graph, parts.exchange
    if graph is None or exchange is None:
        raise LocalProtocolError("masks need the graph")

    def senders_to(destination: NodeId) -> tuple[NodeId, ...]:
        return graph.named(exchange.of(graph.index_of(destination)))

    return Masking(senders_to=senders_to, pair_secret=PairSecrets(config.signing_seed, context=config.run_id.encode()))


def _build_mix(
    config: FullNodeConfig, parts: NodeParts, *, entropy: Entropy, describe: Describe | None, first_serial: int
) -> MixNode:
    node_id = config.own_id
    view = PeerView(
        own_id=node_id,
        settings=PeerSettings(
            capacity=max(_PEERS_MIN, config.nodes),
            allow_loopback=config.link is not None and config.link.allow_loopback,
        ),
        directory=parts.directory,
        accepts_key=parts.packets.accepts_key,
    )
    routes: RouteStrategy
    if parts.graph is None or parts.graph_routes is None or config.mixnet.route == "overlay":
        routes = OverlayRoutes(peers=view, path_length=config.mixnet.path_length)
    elif parts.everybody_known:
        routes = parts.graph_routes
    else:
        routes = KnownRoutes(parts.graph_routes, everybody=parts.graph.node_ids, knows=view.knows)
    return build_mix_node(
        mix_settings(config.mixnet),
        node_id=node_id,
        packets=parts.packets,
        peers=view,
        routes=routes,
        destinations=ListedDestinations(
            source=node_id, routes=routes, listed=named(config.destinations), knows=view.knows
        ),
        entropy=entropy,
        first_serial=first_serial,
        describe=describe,
    )


def _transport_graph(graph: Graph) -> TransportGraph:
    topology = Topology(graph.neighbours, is_circulant=graph.circulant)
    return TransportGraph(topology=topology, node_ids=named(graph.node_ids))


def _keys_stay(scenario: Scenario, *, deadline_s: float) -> bool:
    """Whether no key of a virtual world changes: by its deadlines the run is over within the first epoch."""
    epoch_s = scenario.mixnet.epoch_length_s
    return epoch_s == 0.0 or scenario.run.rounds * (deadline_s + scenario.learning.training_time_s) <= epoch_s


def _virtual_address(index: int) -> str:
    return f"10.{index >> 16 & 255}.{index >> 8 & 255}.{index & 255}:4433"
