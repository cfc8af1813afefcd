"""What a whole node spends on a packet of a neighbour's: relayed, or refused for one cause or another.

A relayed packet is opened, held, and released; a refused one is dropped and counted. The node is one of four in a
virtual world, with the default geometry and no cover, so that all it does is for these packets. It gets them one by
one, and eight at a time as a driver that drained its sockets hands them over.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.rounds import Case, case
from unlinkabledfl.errors import LocalProtocolError
from unlinkabledfl.mixnet.config import MixSettings
from unlinkabledfl.mixnet.items import MessageId
from unlinkabledfl.mixnet.mix_node import MixNode, NeighbourLimits
from unlinkabledfl.mixnet.mixers import PoissonSettings
from unlinkabledfl.mixnet.packets import Loop
from unlinkabledfl.mixnet.sphinx_packets import SphinxPackets
from unlinkabledfl.mixnet.topology import full
from unlinkabledfl.simulation.entropy import SeededEntropy
from unlinkabledfl.simulation.mixnet import MixnetPlan, build_mixnet_world
from unlinkabledfl.sphinx import Geometry, Hop, NodeId, Sphinx

BATCH = 8
_SAMPLE = 32
_NODES = 4
_LATER_S = 1_000.0
_MIX = MixSettings(
    mixer=PoissonSettings(delay_mean_s=0.1, cover=False, transit_capacity=10 * _SAMPLE),
    limits=NeighbourLimits(packets_burst=10.0 * _SAMPLE, transit_share=1.0),
)


@dataclass(frozen=True, slots=True)
class _Node:
    """A fresh node, with what it has received already."""

    node: MixNode
    neighbour: NodeId


class _World:
    """Makes the same node again and again, and packets for it."""

    def __init__(self, geometry: Geometry) -> None:
        self._plan = MixnetPlan(topology=full(_NODES), packets=SphinxPackets(Sphinx(geometry)), mix=_MIX)
        world, mixnet = build_mixnet_world(self._plan, seed=1)
        world.run_until(0.0)
        self._hops = [Hop(node_id, mixnet.directory.keys[node_id], 1_000) for node_id in mixnet.node_ids]
        self._entropy = SeededEntropy(1, "packets")
        us, other = self._hops[0], self._hops[2]
        self.good = [self._wrap(us, other) for _ in range(_SAMPLE)]
        ours = [self._wrap(us) for _ in range(_SAMPLE)]
        self.bad: dict[str, list[bytes]] = {
            "bad_length": [packet[:-1] for packet in self.good],
            "bad_mac": [_flipped(packet, geometry.header_bytes - 1) for packet in self.good],
            "bad_mac_random": [self._entropy(geometry.packet_bytes) for _ in range(_SAMPLE)],
            "bad_mac_misaddressed": [self._wrap(other) for _ in range(_SAMPLE)],
            "bad_payload": [_flipped(packet, geometry.packet_bytes - 1) for packet in ours],
            "replayed": self.good,
        }

    def _wrap(self, *path: Hop) -> bytes:
        packet: bytes = self._plan.packets.wrap(path, Loop(MessageId(bytes(16))), entropy=self._entropy)
        return packet

    def node(self, received: Sequence[bytes] = ()) -> _Node:
        world, mixnet = build_mixnet_world(self._plan, seed=1)
        world.run_until(0.0)
        fresh = _Node(world.node(0), mixnet.node_ids[1])
        for packet in received:
            fresh.node.receive_packet(packet, from_peer=fresh.neighbour, now_s=0.0)
        return fresh


def _flipped(packet: bytes, position: int) -> bytes:
    return packet[:position] + bytes([packet[position] ^ 1]) + packet[position + 1 :]


def _one_by_one(packets: Sequence[bytes]) -> Callable[[_Node], None]:
    def take(fresh: _Node) -> None:
        for packet in packets:
            fresh.node.receive_packet(packet, from_peer=fresh.neighbour, now_s=1.0)
        _finish(fresh.node)

    return take


def _in_batches(packets: Sequence[bytes]) -> Callable[[_Node], None]:
    def take(fresh: _Node) -> None:
        for first in range(0, len(packets), BATCH):
            batch = [(fresh.neighbour, packet) for packet in packets[first : first + BATCH]]
            fresh.node.receive_packets(batch, now_s=1.0)
        _finish(fresh.node)

    return take


def _finish(node: MixNode) -> None:
    node.handle_timer(now_s=_LATER_S)
    while node.next_event() is not None:
        pass


def node_cases(geometry: Geometry) -> dict[str, Case]:
    """Cases by name: `node/relay`, `node/<cause>`, and the same with `_batch`."""
    world = _World(geometry)
    _check(world)
    cases: dict[str, Case] = {}
    for name, packets in {"relay": world.good, **world.bad}.items():
        before = world.good if name == "replayed" else ()

        def fresh(before: Sequence[bytes] = before) -> _Node:
            return world.node(before)

        cases[f"node/{name}"] = case(fresh, _one_by_one(packets), per=_SAMPLE)
        cases[f"node/{name}_batch"] = case(fresh, _in_batches(packets), per=_SAMPLE)
    return cases


def _check(world: _World) -> None:
    """A benchmark of refusals must be refused, and for the cause that its name begins with."""
    for name, packets in {"relayed": world.good, **world.bad}.items():
        fresh = world.node(world.good if name == "replayed" else ())
        _in_batches(packets)(fresh)
        cause = next(
            cause for cause in ("relayed", "bad_length", "bad_mac", "bad_payload", "replayed") if cause in name
        )
        if fresh.node.counters[cause] != _SAMPLE:
            raise LocalProtocolError(f"{name}: {fresh.node.counters.as_dict()}")


def node_figures(us: dict[str, float]) -> dict[str, Any]:
    """What the document says of a node, from the medians of the cases."""
    found = {name.removeprefix("node/"): value for name, value in us.items() if name.startswith("node/")}
    batched = {name.removesuffix("_batch"): value for name, value in found.items() if name.endswith("_batch")}
    single = {name: value for name, value in found.items() if not name.endswith("_batch")}
    relay, relay_batch = single.pop("relay"), batched.pop("relay")
    shares = [us / relay for us in single.values()] + [us / relay_batch for us in batched.values()]
    return {
        "relay_us": relay,
        "relay_batch_us": relay_batch,
        "refused_us": single,
        "refused_batch_us": batched,
        "dearest_refusal": max(shares),
    }
