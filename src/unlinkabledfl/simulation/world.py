"""Many nodes in one process, in a time that passes only when something happens.

A `World` puts the node that a factory makes at each place of a topology, carries packets between them over links with
their latencies and faults, and wakes each node at the time it asked for. The nodes are the machines that run in the
real world: nothing in them knows which clock they are shown.

    world = World(node_ids=ids, factory=factory, topology=circulant(32, 4), packet_bytes=10_553, seed=1)
    world.send(0, 2, b"hello", at_s=1.0)
    result = world.run_until(60.0)

Invariant: equal arguments give equal worlds, to the byte of the event log. Everything random comes from the seed,
everything that happens comes off one heap, and nothing depends on the order of a set or on a clock.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from unlinkabledfl.errors import ConfigError, LocalProtocolError, NoRouteError, QueueFullError
from unlinkabledfl.mixnet.events import (
    MessageAcknowledged,
    MessageGivenUp,
    MessageReceived,
    MixEvent,
    PeerChanged,
    SendControl,
    SendPacket,
)
from unlinkabledfl.mixnet.packets import Opaque
from unlinkabledfl.mixnet.topology import Topology
from unlinkabledfl.node.events import (
    Ending,
    Finished,
    ModelReady,
    NodeEvent,
    PhaseChanged,
    RoundFinished,
    TrainRequested,
)
from unlinkabledfl.simulation.entropy import chances
from unlinkabledfl.simulation.faults import Crash, Fault, Partition, Restart, check_faults
from unlinkabledfl.simulation.heap import EventHeap, check_instant
from unlinkabledfl.simulation.host import NO_TIMER, Host, NodeFactory, Sender
from unlinkabledfl.simulation.learners import Begin, Lessons, Training, WorkEnds
from unlinkabledfl.simulation.links import LinkPlan
from unlinkabledfl.simulation.log import EventLog, Observer, Tracer
from unlinkabledfl.simulation.network import (
    Control,
    DialEnds,
    DialFailed,
    LinkDown,
    LinkLost,
    LinkUp,
    Network,
    Notice,
)
from unlinkabledfl.simulation.population import Population
from unlinkabledfl.simulation.records import MessageRecord, Records, Result
from unlinkabledfl.sphinx import NodeId

_IDLE_TIMERS_MAX = 1000
_RETRY_S = 1.0

QueueProbe: TypeAlias = Callable[[Opaque], Iterable[tuple[str, int, int]]]
"""Reads the queues of a node: name, length and bound of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Who looks on: a log of all events, an adversary on the wires, a probe called after all that a node does."""

    log: EventLog | None = None
    observer: Observer | None = None
    probe: QueueProbe | None = None


_NOBODY = Watch()


@dataclass(frozen=True, slots=True)
class _Post:
    """The application at a node has a message."""

    source: int
    destination: int
    data: bytes


@dataclass(frozen=True, slots=True)
class _Heal:
    """A partition ends."""


@dataclass(frozen=True, slots=True)
class _Leave:
    """A node has done its part, and takes its leave."""


class World:
    """N nodes, their links, and the time."""

    __slots__ = (
        "_cpu_s",
        "_events",
        "_heap",
        "_lessons",
        "_network",
        "_packet_hops",
        "_population",
        "_probe",
        "_records",
        "_traced",
        "_tracer",
        "now_s",
    )

    def __init__(  # noqa: PLR0913 -- the parts of a world
        self,
        *,
        node_ids: Sequence[NodeId],
        factory: NodeFactory,
        topology: Topology,
        packet_bytes: int,
        seed: int,
        links: LinkPlan | None = None,
        faults: Sequence[Fault] = (),
        watch: Watch = _NOBODY,
        training: Training | None = None,
    ) -> None:
        if len(node_ids) != topology.nodes:
            raise ConfigError(
                key="topology.nodes", got=topology.nodes, takes=f"as many nodes as there are ids: {len(node_ids)}"
            )
        check_faults(faults, nodes=len(node_ids))
        self.now_s = 0.0
        self._tracer = Tracer(log=watch.log, observer=watch.observer, packet_bytes=packet_bytes)
        self._traced = self._tracer.on_wires
        self._probe = watch.probe
        self._records = Records()
        self._heap = EventHeap()
        self._network = Network(
            self._heap,
            plan=links or LinkPlan(),
            packet_bytes=packet_bytes,
            chances=chances(seed, "links"),
            departed=self._departed if self._traced else None,
        )
        self._cpu_s = 0.0
        self._events = 0
        self._packet_hops = 0
        self._lessons = None if training is None else Lessons(self._heap, training)
        self._population = Population(
            node_ids=node_ids,
            factory=factory,
            topology=topology,
            network=self._network,
            tracer=self._tracer,
            seed=seed,
            absent=() if training is None else training.absent,
        )
        self._begin(faults)

    def node(self, index: int) -> Opaque:
        """Return the node that runs at this index now."""
        return self._population.hosts[index].node

    def is_running(self, index: int) -> bool:
        """Return whether a node runs at this index."""
        return self._population.hosts[index].alive

    def enter(self, index: int) -> None:
        """Bring in, at this instant, a node that was absent; it dials its neighbours and begins its first round."""
        if not self._population.is_empty(index):
            raise LocalProtocolError(f"node {index} is no newcomer")
        self._heap.push(self.now_s, None, None, Restart(node=index, at_s=self.now_s))

    def send(self, source: int, destination: int, data: bytes, *, at_s: float) -> None:
        """Have the application at `source` send a message at that time; while its queue is full it tries again."""
        check_instant(at_s, not_before_s=self.now_s)
        nodes = len(self._population.hosts)
        if not (0 <= source < nodes and 0 <= destination < nodes):
            raise LocalProtocolError(f"no message from {source} to {destination}: nodes are 0 to {nodes - 1}")
        self._heap.push(at_s, None, None, _Post(source, destination, data))

    def run_for(self, duration_s: float) -> Result:
        """Let that much time pass."""
        return self.run_until(self.now_s + duration_s)

    def run_until(self, until_s: float) -> Result:
        """Let time pass until this instant, with everything that happens at it, and tell what has been seen so far."""
        self.advance(until_s)
        return self.result()

    def advance(self, until_s: float) -> None:
        """Let time pass until this instant, with everything that happens at it."""
        check_instant(until_s, not_before_s=self.now_s)
        started = time.process_time()
        pop_until = self._heap.pop_until
        while (entry := pop_until(until_s)) is not None:
            at_s, sequence, host, source, payload = entry
            self.now_s = at_s
            self._events += 1
            if source is not None:
                self._arrive(host, source, payload, at_s)
            elif payload is None:
                if sequence == host.timer_sequence and host.alive:
                    self._wake(host, at_s)
            else:
                self._happen(host, payload, at_s)
        self.now_s = until_s
        self._cpu_s += time.process_time() - started

    def result(self) -> Result:
        """Return what has been seen so far."""
        records, hosts = self._records, self._population.hosts
        return Result(
            virtual_s=self.now_s,
            cpu_s=self._cpu_s,
            events=self._events,
            packet_hops=self._packet_hops,
            messages=records.messages,
            serials=tuple(host.serial for host in hosts),
            alive=tuple(host.alive for host in hosts),
            counters={str(cause): count for cause, count in sorted(self._population.counters().items())},
            lost=dict(sorted(self._network.lost.items())),
            duplicated=self._network.duplicated,
            refused=records.refused,
            unsent=records.unsent,
            misdelivered=records.misdelivered,
            queues=dict(records.queues),
        )

    # ---------------------------------------------------------------------------------------------- what happens

    def _arrive(self, host: Host, source: Host, payload: Opaque, at_s: float) -> None:
        if not host.alive or host.group != source.group:
            self._network.lost["peer_down" if not host.alive else "partitioned"] += 1
            return
        if type(payload) is Control:
            if self._traced:
                self._tracer.arrived(at_s, "control", source.index, host.index, payload.data)
            host.node.receive_control(payload.data, from_peer=source.node_id, now_s=at_s)
        else:
            self._packet_hops += 1
            if self._traced:
                self._tracer.arrived(at_s, "packet", source.index, host.index, payload)
            host.node.receive_packet(payload, from_peer=source.node_id, now_s=at_s)
        self._settle(host, at_s)

    def _wake(self, host: Host, at_s: float) -> None:
        host.timer_s = NO_TIMER
        node = host.node
        due_s = node.next_timer_s()
        # The node may have put its timer off since this wake-up was asked for; then `_settle` asks for a later one.
        if due_s is not None and due_s <= at_s:
            if self._traced:
                self._tracer.note(at_s, "timer", host.index)
            node.handle_timer(now_s=at_s)
        self._settle(host, at_s)

    def _settle(self, host: Host, at_s: float) -> None:
        """Carry out what follows from the last input, and ask to be woken for the node's next timer."""
        node = host.node
        next_event = node.next_event
        network = self._network
        while (event := next_event()) is not None:
            if type(event) is SendPacket:
                if not network.send(host, event.to, event.packet, now_s=at_s):
                    node.packet_unsent(event, now_s=at_s)
            else:
                self._carry_out(host, event, at_s)
        due_s = node.next_timer_s()
        if due_s is not None and due_s < host.timer_s:
            if due_s <= at_s:
                self._check_progress(host, at_s)
                due_s = at_s
            else:
                host.idle_timers = 0
            host.timer_s = due_s
            host.timer_sequence = self._heap.push(due_s, host, None, None)
        if self._probe is not None:
            for name, length, bound in self._probe(node):
                self._records.queue_length(name, length, bound)

    def _carry_out(self, host: Host, event: MixEvent | NodeEvent, at_s: float) -> None:
        """Do what a node asks for, or note what it tells; packets to send are dealt with before."""
        records = self._records
        index = host.index
        match event:
            case SendControl():
                if not self._network.is_linked(host, event.to):
                    self._network.lost["control_unlinked"] += 1
                elif not self._network.send(host, event.to, Control(event.data), now_s=at_s):
                    host.node.control_unsent(event, now_s=at_s)
            case MessageReceived():
                records.delivered(event.message_id, node=index, serial=host.serial, now_s=at_s)
                self._tracer.note(at_s, "message_received", index, event.message_id)
            case MessageAcknowledged():
                records.acknowledged(
                    event.message_id, attempts=event.attempts, round_trip_s=event.round_trip_s, now_s=at_s
                )
                self._tracer.note(at_s, "message_acknowledged", index, event.message_id)
            case MessageGivenUp():
                records.given_up(event.message_id, attempts=event.attempts, now_s=at_s)
                self._tracer.note(at_s, "message_given_up", index, event.message_id)
            case PeerChanged():
                self._tracer.note(at_s, "peer_routable" if event.routable else "peer_unroutable", index, event.peer)
            case TrainRequested() | ModelReady() | PhaseChanged() | RoundFinished() | Finished():
                if self._lessons is None:
                    raise LocalProtocolError("a world of participants is given somebody who trains them")
                self._lessons.take(host, event, at_s)
                if isinstance(event, Finished) and event.ending is Ending.EXIT:
                    self._heap.push(at_s, host, None, _Leave())
            case SendPacket():
                raise LocalProtocolError("packets are sent where events are drained")
            case _:
                assert_never(event)

    def _happen(self, host: Host, payload: Opaque, at_s: float) -> None:
        """Everything rarer than packets and timers."""
        match payload:
            case _Post():
                self._post(payload, at_s)
            case DialEnds() | DialFailed() | LinkUp() | LinkDown() | LinkLost():
                self._notice(host, payload, at_s)
            case WorkEnds():
                self._work_ends(host, payload, at_s)
            case Begin():
                if host.alive:
                    host.node.begin(now_s=at_s)
                    self._settle(host, at_s)
            case _Leave():
                if host.alive:
                    self._population.leave(host, now_s=at_s)
            case Crash():
                self._population.crash(self._population.hosts[payload.node], now_s=at_s)
            case Restart():
                self._restart(payload.node, at_s)
            case Partition():
                self._population.cut(payload, now_s=at_s)
                self._heap.push(payload.until_s, None, None, _Heal())
            case _Heal():
                self._population.heal(now_s=at_s)
            case _:
                raise LocalProtocolError(f"{payload!r} cannot happen")

    def _notice(self, host: Host, notice: Notice, at_s: float) -> None:
        """A host learns something about a link, if it lives to learn it and it is still so."""
        if not host.alive:
            return
        peer = notice.peer
        match notice:
            case DialEnds():
                self._network.dial_ends(host, notice, now_s=at_s)
            case LinkUp():
                self._tracer.note(at_s, "link_up", host.index, peer)
                wanted = host.node.link_up(peer, now_s=at_s)
                self._settle(host, at_s)
                if not wanted and self._network.is_linked(host, peer):
                    self._network.close(host, peer, now_s=at_s)
            case DialFailed():
                if self._network.dial_failed(host, notice):
                    self._tracer.note(at_s, "dial_failed", host.index, peer)
                    host.node.dial_failed(peer, now_s=at_s)
                    self._settle(host, at_s)
            case LinkDown():
                self._link_down(host, peer, at_s)
            case LinkLost():
                if self._network.link_lost(host, notice):
                    self._link_down(host, peer, at_s)
            case _:
                assert_never(notice)

    def _work_ends(self, host: Host, end: WorkEnds, at_s: float) -> None:
        if self._lessons is not None:
            self._lessons.arrive(host, end, at_s)
        if host.alive:
            self._settle(host, at_s)

    def _link_down(self, host: Host, peer: NodeId, at_s: float) -> None:
        self._tracer.note(at_s, "link_down", host.index, peer)
        host.node.link_down(peer, now_s=at_s)
        self._settle(host, at_s)

    def _post(self, post: _Post, at_s: float) -> None:
        hosts = self._population.hosts
        host = hosts[post.source]
        if not host.alive:
            self._records.unsent += 1
            return
        node = host.node
        if not isinstance(node, Sender):
            raise LocalProtocolError("these nodes take no messages from an application")
        try:
            message_id = node.send_message(self._population.node_ids[post.destination], post.data, now_s=at_s)
        except (QueueFullError, NoRouteError):
            self._records.refused += 1
            self._heap.push(at_s + _RETRY_S, None, None, post)
            return
        record = MessageRecord(
            source=post.source,
            source_serial=host.serial,
            destination=post.destination,
            destination_serial=hosts[post.destination].serial,
            sent_at_s=at_s,
        )
        self._records.sent(message_id, record)
        self._tracer.note(at_s, "message_sent", post.source, message_id)
        self._settle(host, at_s)

    # ------------------------------------------------------------------------------------------------ who is there

    def _restart(self, index: int, at_s: float) -> None:
        host = self._population.restart(index, now_s=at_s)
        self._settle(host, at_s)
        if self._lessons is not None:
            self._heap.push(at_s, host, None, Begin())

    def _begin(self, faults: Sequence[Fault]) -> None:
        for fault in faults:
            self._heap.push(fault.at_s, None, None, fault)
        self._population.link_all()
        for host in self._population.living():
            host.node.start(now_s=0.0)
            for peer in host.bootstrap:
                if peer in host.links:
                    self._heap.push(0.0, host, None, LinkUp(peer))
            self._settle(host, 0.0)
        if self._lessons is not None:
            for host in self._population.living():
                self._heap.push(0.0, host, None, Begin())

    def _check_progress(self, host: Host, at_s: float) -> None:
        host.idle_timers += 1
        if host.idle_timers > _IDLE_TIMERS_MAX:
            raise LocalProtocolError(f"node {host.index} asks for timer after timer at {at_s} s, and time stands still")

    def _departed(self, source: Host, target: Host, payload: Opaque, at_s: float) -> None:
        if type(payload) is Control:
            self._tracer.left(at_s, "control", source.index, target.index, payload.data)
        else:
            self._tracer.left(at_s, "packet", source.index, target.index, payload)
