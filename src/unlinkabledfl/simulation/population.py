"""Who lives in a world: every place has a host, and a host is one life of one node.

A place:

    empty --enter--------------> running
    running --crash------------> dead
    running --leave------------> LinkDown, dead
    dead --restart-------------> running

A crash takes everything along, and its peers find out later; whoever leaves closes its links, so that they know at
once. A new life is a new host at the same place: same identity, new keys, higher serial. What was on its way to an old
one does not reach it.

Invariant: what the nodes counted is never lost: of a life that is over it is in `former_counters`.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from unlinkabledfl.mixnet.topology import Topology
from unlinkabledfl.simulation.entropy import node_entropy
from unlinkabledfl.simulation.faults import Partition
from unlinkabledfl.simulation.host import Host, NodeFactory
from unlinkabledfl.simulation.log import Tracer
from unlinkabledfl.simulation.network import Network
from unlinkabledfl.sphinx import NodeId

_NEVER = -1  # the life of a node that has not had one


class Population:
    """All hosts of a world, by place."""

    __slots__ = ("_factory", "_network", "_seed", "_topology", "_tracer", "former_counters", "hosts", "node_ids")

    def __init__(
        self,
        *,
        node_ids: Sequence[NodeId],
        factory: NodeFactory,
        topology: Topology,
        network: Network,
        tracer: Tracer,
        seed: int,
        absent: Collection[int] = (),
    ) -> None:
        self.node_ids = tuple(node_ids)
        self.former_counters: Counter[str] = Counter()
        self._factory = factory
        self._topology = topology
        self._network = network
        self._tracer = tracer
        self._seed = seed
        self.hosts = [
            self._empty(index) if index in absent else self._make(index, serial=0)
            for index in range(len(self.node_ids))
        ]

    def living(self) -> Iterator[Host]:
        """Return every host that runs."""
        return (host for host in self.hosts if host.alive)

    def is_empty(self, index: int) -> bool:
        """Return whether nobody has lived at this place yet."""
        return self.hosts[index].serial == _NEVER

    def link_all(self) -> None:
        """Give all who are there the links of the topology, as if these had been up before."""
        for host in self.living():
            for other in self._topology.neighbours(host.index):
                if host.index < other and self.hosts[other].alive:
                    self._network.join(host, self.hosts[other])

    def crash(self, host: Host, *, now_s: float) -> None:
        """Take a node and all that it knew away."""
        self._tracer.note(now_s, "crash", host.index)
        self._end(host, now_s=now_s)

    def leave(self, host: Host, *, now_s: float) -> None:
        """Close all links of a node, so that every peer knows at once, and stop it."""
        self._tracer.note(now_s, "leave", host.index)
        for peer in [peer for peer, link in host.links.items() if link.waiting is None]:
            self._network.close(host, peer, now_s=now_s)
        self._end(host, now_s=now_s)

    def restart(self, index: int, *, now_s: float) -> Host:
        """Put a fresh node in this place, start it, and have it dial its neighbours."""
        old = self.hosts[index]
        self._tracer.note(now_s, "restart", index)
        host = self.hosts[index] = self._make(index, serial=old.serial + 1)
        host.group = old.group
        host.node.start(now_s=now_s)
        self._network.restore(host, now_s=now_s)
        return host

    def cut(self, partition: Partition, *, now_s: float) -> None:
        """Separate groups of nodes from each other."""
        for number, group in enumerate(partition.groups, start=1):
            for index in group:
                self.hosts[index].group = number
                self._tracer.note(now_s, "cut", index)
        for host in self.living():
            self._network.break_links(host, now_s=now_s)

    def heal(self, *, now_s: float) -> None:
        """End the partition, and have everybody dial the neighbours that are not linked any more."""
        for host in self.hosts:
            host.group = 0
            if host.alive:
                self._tracer.note(now_s, "heal", host.index)
                self._network.restore(host, now_s=now_s)

    def counters(self) -> Counter[str]:
        """Return what all nodes have counted, those of former lives included."""
        counters = self.former_counters.copy()
        for host in self.living():
            counters.update(_counters_of(host))
        return counters

    def _end(self, host: Host, *, now_s: float) -> None:
        self.former_counters.update(_counters_of(host))
        host.alive = False
        self._network.break_links(host, now_s=now_s)
        host.links.clear()
        host.node = None

    def _make(self, index: int, *, serial: int) -> Host:
        entropy = node_entropy(self._seed, index=index, serial=serial)
        node = self._factory(index=index, serial=serial, entropy=entropy)
        host = Host(index=index, node_id=self.node_ids[index], serial=serial, node=node)
        host.bootstrap = tuple(self.node_ids[other] for other in self._topology.neighbours(index))
        self._network.add(host)
        return host

    def _empty(self, index: int) -> Host:
        """The place of a node that enters later: like one that has crashed, and the network does not know it."""
        host = Host(index=index, node_id=self.node_ids[index], serial=_NEVER, node=None)
        host.alive = False
        return host


def _counters_of(host: Host) -> Mapping[str, int]:
    """Return the counters of a mix node, or of the mix in a participant."""
    counters: Mapping[str, int] = getattr(getattr(host.node, "mix", host.node), "counters", {})
    return counters
