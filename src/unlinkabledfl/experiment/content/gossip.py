"""Who sends what to whom, in memory: the fragments, masks and means of nodes, without the packets around them."""

from collections.abc import Sequence
from hashlib import shake_256

import numpy as np
import numpy.typing as npt

from unlinkabledfl.analysis.content.views import Matrix
from unlinkabledfl.experiment.content.candidates import Party, disguise_by_name
from unlinkabledfl.experiment.content.setting import Setting
from unlinkabledfl.experiment.graphs import ExchangeSets, build_topology
from unlinkabledfl.experiment.scenario import preset
from unlinkabledfl.experiment.translation import geometry_on
from unlinkabledfl.fragments import FragmentDecoder, FragmentEncoder, StateLayout, Vector, codec_by_name, plan_grid
from unlinkabledfl.simulation import SealedPackets
from unlinkabledfl.sphinx import NodeId

__all__ = ["Gossip"]

Arrived = npt.NDArray[np.bool_]


class Gossip:
    """The exchange of one federation, a round at a time."""

    def __init__(self, setting: Setting, layout: StateLayout) -> None:
        scenario = preset(setting.preset, [f"topology.nodes={setting.nodes}"])
        topology = build_topology(scenario)
        exchange = ExchangeSets(topology, scenario.mixnet)
        codec = codec_by_name(scenario.payload.codec, bits=scenario.payload.bits)
        capacity_bytes = SealedPackets(geometry_on(scenario.mixnet, topology)).data_bytes
        nodes = range(setting.nodes)
        self.grid = plan_grid(layout, codec, capacity_bytes=capacity_bytes)
        self.partners = [exchange.of(node) for node in nodes]
        self._setting = setting
        self._ids = [NodeId(shake_256(b"%d" % node).digest(32)) for node in nodes]
        self._decoder = FragmentDecoder(self.grid, capacity_bytes=capacity_bytes)
        self._encoders = [FragmentEncoder(self.grid, codec, capacity_bytes=capacity_bytes) for _ in nodes]
        self._disguises = [
            disguise_by_name(setting.obfuscation, setting.scale, self._party(node, layout)) for node in nodes
        ]
        self._rng = np.random.default_rng([setting.seed, 1])
        self._round = 0
        self._trained: Sequence[Vector] = ()
        self._sent: dict[int, Vector] = {}

    def begin(self, trained: Sequence[Vector], before: Sequence[Vector], *, round_number: int) -> None:
        """All nodes have trained."""
        self._round = round_number
        self._trained = trained
        self._sent.clear()
        for disguise, vector, former in zip(self._disguises, trained, before, strict=True):
            if disguise is not None:
                disguise.begin(vector, former)

    def receive(self, node: int) -> Matrix:
        """Return what this node's partners send to it, a row each."""
        return np.stack([self._sent_by(partner, node) for partner in self.partners[node]])

    def average(self, node: int, rows: Matrix) -> Vector:
        """Return the node's own model averaged with those of its partners' ranges that arrive."""
        own, arrived = self._trained[node], self._arrived(len(rows))
        mean = np.empty_like(own)
        for place, here in zip(self.grid.ranges, arrived.T, strict=True):
            here_sum = rows[here, place.slice].sum(axis=0)
            mean[place.slice] = (own[place.slice] + here_sum) / np.float32(1 + np.count_nonzero(here))
        return mean

    def _arrived(self, partners: int) -> Arrived:
        count = max(1, round(self._setting.dispersal * len(self.grid)))
        order = self._rng.permuted(np.tile(np.arange(len(self.grid)), (partners, 1)), axis=1)
        return (order < count) & (self._rng.random(order.shape) >= self._setting.lost)

    def _sent_by(self, sender: int, destination: int) -> Vector:
        disguise = self._disguises[sender]
        if disguise is not None:
            return self._coded(sender, destination)
        # All destinations get the same bytes.
        if sender not in self._sent:
            self._sent[sender] = self._coded(sender, destination)
        return self._sent[sender]

    def _coded(self, sender: int, destination: int) -> Vector:
        vector, disguise = self._trained[sender], self._disguises[sender]
        coded = np.empty_like(vector)
        for index, place in enumerate(self.grid.ranges):
            values = vector[place.slice]
            if disguise is not None:
                to = self._ids[destination]
                values = disguise(values, index=index, round_number=self._round, destination=to)
            encoder = self._encoders[sender]
            data = encoder.encode_values(values, index, round_number=self._round, rng=self._rng)
            coded[place.slice] = self._decoder.decode(data).values
        return coded

    def _party(self, node: int, layout: StateLayout) -> Party:
        destinations = [self._ids[partner] for partner in self.partners[node]]
        senders_to = {
            self._ids[partner]: tuple([self._ids[sender] for sender in self.partners[partner]])
            for partner in self.partners[node]
        }
        return Party(
            own_id=self._ids[node],
            senders_to=senders_to,
            destinations=tuple(destinations),
            grid=self.grid,
            layout=layout,
            seed=self._setting.seed,
        )
