"""What the forkserver of mix processes does once, so that all of them share it. Importing this module has effects.

A process that sets something up after the fork has a copy of its own: tables of cryptographic libraries, parsers, the
interpreter's notes on code that has run for a while. So three nodes live through one round here, over loopback, before
anything is forked. In a mix process of a run that saves a fifth of its private memory.

Nothing that these nodes knew is used afterwards. They stop after half a minute, should they not have finished.
"""

import asyncio
import logging
import secrets
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import numpy as np
import numpy.ma

from unlinkabledfl.experiment import node_main
from unlinkabledfl.experiment.assembly import NodeParts, build_participant, describe_with
from unlinkabledfl.experiment.node_config import FullNodeConfig
from unlinkabledfl.experiment.planning import local_hosting, plan_experiment
from unlinkabledfl.experiment.scenario import preset
from unlinkabledfl.mixnet.replay import ReplayWindow
from unlinkabledfl.node.events import Finished
from unlinkabledfl.node.learner import Metrics, State
from unlinkabledfl.sphinx import Geometry, Hop, NodeId, Sphinx
from unlinkabledfl.transport.book import Contact
from unlinkabledfl.transport.driver import DrivenEvent, NodeDriver
from unlinkabledfl.transport.endpoint import Endpoint
from unlinkabledfl.transport.settings import EndpointSettings

__all__ = ["rehearse"]

_NODES: Final = 3
_LANES: Final = 8
_PATIENCE_S: Final = 30.0
"""On a free core it takes a second. On a busy machine what it saves, in every node, is worth waiting for."""
_SCENARIO: Final = (
    "run.rounds=1",
    f"topology.nodes={_NODES}",
    "topology.degree=2",
    "mixnet.path_length=2",
    "mixnet.delay_mean_s=0.01",
    "mixnet.emission_rate_per_s=100",
    "process.host=127.0.0.1",
)


def rehearse() -> None:
    """Do for a moment what a node does all the time."""
    node_main.quieten_quic()
    log = logging.getLogger("unlinkabledfl")
    level, log.level = log.level, logging.CRITICAL
    try:
        _rehearse_packets()
        with suppress(OSError, TimeoutError):
            asyncio.run(_rehearse_round())
    finally:
        log.level = level


def _rehearse_packets() -> None:
    sphinx = Sphinx(Geometry())
    key = sphinx.generate_key(secrets.token_bytes)
    path = [Hop(NodeId(secrets.token_bytes(32)), key.public_bytes)]
    payload = bytes(sphinx.geometry.payload_bytes)
    packets = [sphinx.wrap(path, payload, entropy=secrets.token_bytes) for _ in range(_LANES)]
    sphinx.unwrap_batch(packets, key=key, replays=ReplayWindow(capacity=_LANES))


class _Learner:
    """Learns nothing."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def train(self, round_number: int) -> tuple[State, Metrics]:
        return self._state, {"loss": 1.0 / round_number}

    async def adopt(self, state: State, *, evaluate: bool) -> Metrics:
        self._state = state
        return {"accuracy": 0.5} if evaluate else {}

    async def state(self) -> State:
        return self._state


class _Book(dict[NodeId, Contact]):
    """Contacts that are filled in as sockets get their ports."""

    def contact(self, peer: NodeId) -> Contact | None:
        return self.get(peer)

    def admit(self, peer: NodeId, *, fingerprint: bytes, introduction: bytes) -> bool:
        return False


class _Node:
    """One of the three."""

    def __init__(self, config: FullNodeConfig, book: _Book) -> None:
        # As it comes to a node, and back.
        config = FullNodeConfig.from_json(config.to_json())
        link = config.link
        if link is None:
            raise OSError("a node without a link")
        identity = link.identity()
        generator = np.random.default_rng(1)
        state = {"weight": generator.standard_normal(30_000).astype(np.float32)}
        parts = NodeParts.of(config)
        self.node_id = config.own_id
        self.fingerprint = identity.fingerprint
        self.finished = asyncio.Event()
        self.endpoint = Endpoint(
            node_id=config.own_id,
            identity=identity,
            book=book,
            settings=EndpointSettings(
                packet_bytes=parts.packets.packet_bytes, datagram_bytes=link.datagram_bytes, allow_loopback=True
            ),
            entropy=secrets.token_bytes,
        )
        self.participant = build_participant(
            config,
            state=state,
            entropy=secrets.token_bytes,
            describe=describe_with(
                config.signing_seed,
                fingerprint=identity.fingerprint,
                addresses=lambda: (self.address,),
                allow_loopback=True,
            ),
            parts=parts,
        )
        self.driver = NodeDriver(
            node=self.participant,
            endpoint=self.endpoint,
            learner=_Learner(state),
            on_event=self._follow,
            begin_when_ready=False,
        )

    @property
    def address(self) -> str:
        host, port = self.driver.address
        return f"{host}:{port}"

    def _follow(self, event: DrivenEvent, _now_s: float) -> None:
        if isinstance(event, Finished):
            self.finished.set()


async def _rehearse_round() -> None:
    scenario = preset("demo", _SCENARIO)
    book = _Book()
    nodes = [_Node(config, book) for config in plan_experiment(scenario, hosting=local_hosting(scenario))]
    async with asyncio.timeout(_PATIENCE_S), asyncio.TaskGroup() as tasks:
        for node in nodes:
            tasks.create_task(node.driver.run(host="127.0.0.1"))
            await node.driver.ready.wait()
            book[node.node_id] = Contact(fingerprint=node.fingerprint, addresses=(node.address,))
        for one in nodes:
            for other in nodes:
                if other is not one:
                    one.endpoint.want(other.node_id)
        for node in nodes:
            node.driver.begin()
        for node in nodes:
            await node.finished.wait()
        _report(nodes)
        for node in nodes:
            node.driver.stop()


def _report(nodes: list[_Node]) -> Mapping[str, float]:
    gauges: dict[str, float] = {}
    for node in nodes:
        gauges |= {**node.participant.gauges(), **node.endpoint.gauges()}
    return gauges


rehearse()
