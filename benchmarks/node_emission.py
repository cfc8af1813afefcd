"""Whether the instants at which a node emits tell when it trains: gaps during training against gaps while idle.

A mix in a process of its own emits cover by a Poisson process; beside it a learner worker trains, or waits. The two
states alternate, so that whatever else changes on the machine falls on both. The two-sample Kolmogorov-Smirnov test
asks whether their gaps follow one law.
"""

import asyncio
import math
import os
import signal
import socket
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from nacl.bindings import crypto_sign_seed_keypair

from benchmarks.link_contenders import Book
from benchmarks.node_relays import DATAGRAM_BYTES, HOST, Wire
from unlinkabledfl.experiment.assembly import describe_with
from unlinkabledfl.experiment.backends.process.forkserver import ForkRequest, ForkServer
from unlinkabledfl.learning.worker import LearnerWorker
from unlinkabledfl.mixnet.config import MixSettings, build_mix_node
from unlinkabledfl.mixnet.destinations import ReachDestinations
from unlinkabledfl.mixnet.mixers import PoissonSettings
from unlinkabledfl.mixnet.peers import PeerSettings, PeerView
from unlinkabledfl.mixnet.routes import OverlayRoutes
from unlinkabledfl.mixnet.sphinx_packets import SphinxPackets
from unlinkabledfl.sphinx import Geometry, NodeId, Sphinx
from unlinkabledfl.transport.book import Contact
from unlinkabledfl.transport.certificates import LinkIdentity
from unlinkabledfl.transport.driver import NodeDriver
from unlinkabledfl.transport.endpoint import Endpoint
from unlinkabledfl.transport.settings import EndpointSettings

RATE_PER_S = 50.0
_SAMPLES = 1_000
_WARM_UP_S = 3.0


class _Recording(Endpoint):
    """An endpoint that notes when a packet is handed to it."""

    instants_s: list[float]

    def send_packet(self, peer: NodeId, packet: bytes) -> bool:
        self.instants_s.append(asyncio.get_running_loop().time())
        return super().send_packet(peer, packet)


class _Mix:
    """A mix on an endpoint, which emits cover at this rate, or nothing."""

    def __init__(self, contacts: dict[NodeId, Contact], *, rate_per_s: float) -> None:
        seed = os.urandom(32)
        self.node_id = NodeId(crypto_sign_seed_keypair(seed)[0])
        self.identity = LinkIdentity.generate()
        packets = SphinxPackets(Sphinx(Geometry()))
        view = PeerView(own_id=self.node_id, settings=PeerSettings(allow_loopback=True))
        routes = OverlayRoutes(peers=view, path_length=2)
        mixer = PoissonSettings(
            delay_mean_s=0.05, emission_rate_per_s=rate_per_s or 1e-3, loop_rate_per_s=0.0, cover=rate_per_s > 0.0
        )
        mix = build_mix_node(
            MixSettings(mixer=mixer, epoch_length_s=None),
            node_id=self.node_id,
            packets=packets,
            peers=view,
            routes=routes,
            destinations=ReachDestinations(source=self.node_id, routes=routes),
            entropy=os.urandom,
            describe=describe_with(
                seed,
                fingerprint=self.identity.fingerprint,
                addresses=lambda: (self.address,),
                allow_loopback=True,
            ),
        )
        self.endpoint = _Recording(
            node_id=self.node_id,
            identity=self.identity,
            book=Book(contacts),
            settings=EndpointSettings(
                packet_bytes=packets.packet_bytes, datagram_bytes=DATAGRAM_BYTES, allow_loopback=True
            ),
            entropy=os.urandom,
        )
        self.endpoint.instants_s = []
        self.driver = NodeDriver(node=mix, endpoint=self.endpoint)

    @property
    def address(self) -> str:
        return f"{HOST}:{self.driver.address[1]}"

    def contact(self) -> dict[str, str]:
        return {"id": self.node_id.hex(), "fingerprint": self.identity.fingerprint.hex(), "address": self.address}


def _add(contacts: dict[NodeId, Contact], told: dict[str, str]) -> NodeId:
    peer = NodeId(bytes.fromhex(told["id"]))
    contacts[peer] = Contact(fingerprint=bytes.fromhex(told["fingerprint"]), addresses=(told["address"],))
    return peer


def emitter(connection: socket.socket) -> int:
    """Emit until told to stop, then tell when; the main function of a forked process."""
    return asyncio.run(_emit(connection))


async def _emit(connection: socket.socket) -> int:
    wire = Wire(connection)
    contacts: dict[NodeId, Contact] = {}
    mix = _Mix(contacts, rate_per_s=RATE_PER_S)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(mix.driver.run(host=HOST))
        await mix.driver.ready.wait()
        await wire.say(**mix.contact())
        for told in (await wire.hear())["peers"]:
            mix.endpoint.want(_add(contacts, told))
        await wire.hear()
        await wire.say_long(mix.endpoint.instants_s)
        mix.driver.stop()
    return 0


async def measure_emission(server: ForkServer, *, phase_s: float = 4.0, pairs: int = 4) -> dict[str, Any]:
    """Alternate so many phases of waiting and training; return how their gaps compare."""
    contacts: dict[NodeId, Contact] = {}
    relays = [_Mix(contacts, rate_per_s=0.0) for _ in range(2)]
    ours, theirs = socket.socketpair()
    loop = asyncio.get_running_loop()
    intervals: dict[str, list[tuple[float, float]]] = {"idle": [], "training": []}
    async with asyncio.TaskGroup() as tasks:
        for relay in relays:
            tasks.create_task(relay.driver.run(host=HOST))
            await relay.driver.ready.wait()
        with theirs:
            request = ForkRequest(main=f"{__name__}:emitter", name="bench-emitter", death_signal=signal.SIGTERM)
            await server.fork(request, theirs, on_exit=lambda *_: None)
        wire = Wire(ours)
        _add(contacts, await wire.hear())
        for relay in relays:
            _add(contacts, relay.contact())
        relays[0].endpoint.want(relays[1].node_id)
        await wire.say(peers=[relay.contact() for relay in relays])
        learner = LearnerWorker("benchmarks.learner_memory:lenet_on_noise", {"seed": 1, "samples": _SAMPLES})
        await asyncio.to_thread(learner.start)
        try:
            await asyncio.sleep(_WARM_UP_S)
            for number in range(pairs):
                for state in ("idle", "training"):
                    began_s = loop.time()
                    while loop.time() < began_s + phase_s:
                        if state == "training":
                            await asyncio.to_thread(learner.train, number + 1)
                        else:
                            await asyncio.sleep(phase_s / 10)
                    intervals[state].append((began_s, loop.time()))
        finally:
            await asyncio.to_thread(learner.close)
        await wire.say(do="tell")
        instants_s = await wire.hear_long()
        for relay in relays:
            relay.driver.stop()
    ours.close()
    idle, training = (gaps_within(instants_s, intervals[state]) for state in ("idle", "training"))
    return {
        "emission_ks_p": two_sample_p(idle, training),
        "gaps_idle": len(idle),
        "gaps_training": len(training),
        "gap_idle_mean_ms": 1e3 * sum(idle) / len(idle),
        "gap_training_mean_ms": 1e3 * sum(training) / len(training),
        "rate_per_s": RATE_PER_S,
    }


def gaps_within(instants_s: Sequence[float], intervals: Sequence[tuple[float, float]]) -> list[float]:
    """Return the gaps both of whose ends lie in one of these intervals."""
    gaps = []
    for start_s, end_s in intervals:
        inside = [instant for instant in instants_s if start_s <= instant < end_s]
        gaps += [after - before for before, after in pairwise(inside)]
    return gaps


def two_sample_p(one: Sequence[float], other: Sequence[float]) -> float:
    """Return how likely two samples of one continuous law are to differ at least as much as these.

    The limiting law with Stephens' correction; good to a few per cent of p at the hundreds of gaps that there are here.
    """
    first, second = sorted(one), sorted(other)
    distance, i, j = 0.0, 0, 0
    while i < len(first) and j < len(second):
        if first[i] <= second[j]:
            i += 1
        else:
            j += 1
        distance = max(distance, abs(i / len(first) - j / len(second)))
    n = len(first) * len(second) / (len(first) + len(second))
    x = (math.sqrt(n) + 0.12 + 0.11 / math.sqrt(n)) * distance
    if x < 0.2:
        return 1.0
    return min(1.0, max(0.0, 2.0 * sum(math.exp(-2.0 * (k * x) ** 2) * (-1.0) ** (k - 1) for k in range(1, 101))))
