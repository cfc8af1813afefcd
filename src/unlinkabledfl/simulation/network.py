"""Who is linked to whom, and what travels between them.

One side of a link, from packet to packet:

    none --send, to anyone-------------> DialEnds, dialling
    none --restore, bootstrap peer-----> DialEnds, dialling
    dialling --send--------------------> dialling
    dialling --dial_ends, reachable----> LinkUp, up
    dialling --dial_ends, unreachable--> DialFailed, dialling
    dialling --dial_failed-------------> none
    up --send, writable----------------> Arrival, up
    up --break_links-------------------> LinkLost, up
    up --link_lost, still apart--------> LinkDown, none
    up --close-------------------------> LinkDown, none
    up --another dialled, no room------> LinkDown, none

Invariant: of every peer a node hears `link_up` and `link_down` in turn. Between a crash or a cut and its detection the
survivor goes on sending into the void, as with real links; `lost` counts by cause everything that does not arrive.

The network never calls a node. It puts what a node will notice into the heap, and the world hands it over.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from unlinkabledfl.mixnet.packets import Opaque
from unlinkabledfl.simulation.heap import EventHeap
from unlinkabledfl.simulation.host import Host, Link
from unlinkabledfl.simulation.links import LOST, LinkPlan
from unlinkabledfl.sphinx import NodeId


@dataclass(frozen=True, slots=True)
class Control:
    """A control message on its way."""

    data: bytes


@dataclass(frozen=True, slots=True)
class LinkUp:
    """The host learns that it has a link to this peer."""

    peer: NodeId


@dataclass(frozen=True, slots=True)
class LinkDown:
    """The host learns that its link to this peer is gone."""

    peer: NodeId


@dataclass(frozen=True, slots=True, eq=False)
class LinkLost:
    """The time has come to notice that this link leads nowhere, if it still does."""

    peer: NodeId
    link: Link


@dataclass(frozen=True, slots=True, eq=False)
class DialFailed:
    """The dialler stops waiting for an answer."""

    peer: NodeId
    link: Link


@dataclass(frozen=True, slots=True, eq=False)
class DialEnds:
    """The handshake that the host began is over, one way or the other."""

    peer: NodeId
    link: Link


Notice: TypeAlias = LinkUp | LinkDown | LinkLost | DialEnds | DialFailed

Departed: TypeAlias = Callable[[Host, Host, Opaque, float], None]
"""Told of every packet that is handed to a link that is up: source, target, payload, instant."""


class Network:
    """All links of a world."""

    __slots__ = (
        "_by_id",
        "_chances",
        "_departed",
        "_heap",
        "_packet_bytes",
        "_plan",
        "duplicated",
        "lost",
    )

    def __init__(
        self,
        heap: EventHeap,
        *,
        plan: LinkPlan,
        packet_bytes: int,
        chances: Random,
        departed: Departed | None = None,
    ) -> None:
        self.lost: Counter[str] = Counter()
        self.duplicated = 0
        self._heap = heap
        self._plan = plan
        self._packet_bytes = packet_bytes
        self._chances = chances
        self._departed = departed
        self._by_id: dict[NodeId, Host] = {}

    def add(self, host: Host) -> None:
        """Put a host in the place of its node id; an earlier life there is forgotten."""
        self._by_id[host.node_id] = host

    def join(self, one: Host, other: Host) -> None:
        """Give two hosts a link that has been up before the world began."""
        for source, target in ((one, other), (other, one)):
            source.links[target.node_id] = self._link(source, target)

    def is_linked(self, source: Host, to: NodeId) -> bool:
        """Return whether the host has a link to this peer that is up, as far as it knows."""
        link = source.links.get(to)
        return link is not None and link.waiting is None

    def send(self, source: Host, to: NodeId, payload: Opaque, *, now_s: float) -> bool:
        """Put a packet on the link to `to`, dialling it if there is none; False if the link is not writable."""
        link = source.links.get(to)
        if link is None:
            link = self._dial(source, to, now_s=now_s)
        if link.waiting is not None:
            if len(link.waiting) >= link.settings.queue_packets:
                return False
            link.waiting.append(payload)
            return True
        if not link.is_writable(now_s):
            return False
        self._carry(source, link, payload, now_s)
        return True

    def restore(self, host: Host, *, now_s: float) -> None:
        """Dial every bootstrap peer that the host has no living link to."""
        for peer in host.bootstrap:
            link = host.links.get(peer)
            if link is None:
                self._dial(host, peer, now_s=now_s)

    def break_links(self, host: Host, *, now_s: float) -> None:
        """Let both ends of every link to where this host no longer reaches notice it in a while."""
        for peer, link in host.links.items():
            target = link.target
            if target is None or link.waiting is not None or reaches(host, target):
                continue
            at_s = now_s + link.settings.detection_s
            if host.alive:
                self._heap.push(at_s, host, None, LinkLost(peer, link))
            back = target.links.get(host.node_id)
            if target.alive and back is not None and back.target is host:
                self._heap.push(at_s, target, None, LinkLost(host.node_id, back))

    def link_lost(self, host: Host, notice: LinkLost) -> bool:
        """Take the link away if it is still the one, and still leads nowhere; return whether it did."""
        link = host.links.get(notice.peer)
        if link is None or link is not notice.link or reaches(host, link.target):
            return False  # replaced meanwhile, or a partition that was over before anybody noticed
        del host.links[notice.peer]
        return True

    def dial_failed(self, host: Host, notice: DialFailed) -> bool:
        """Take away a link that could not be dialled, with what waited for it; false if the peer dialled us instead."""
        link = host.links.get(notice.peer)
        if link is None or link is not notice.link or link.waiting is None:
            return False
        self.lost["dial_failed"] += len(link.waiting)
        del host.links[notice.peer]
        return True

    def close(self, host: Host, peer: NodeId, *, now_s: float) -> None:
        """Close a link that is up, at both ends at once."""
        link = host.links.pop(peer)
        self._heap.push(now_s, host, None, LinkDown(peer))
        target = link.target
        back = target.links.get(host.node_id)
        if back is not None and back.waiting is None and back.target is host:
            del target.links[host.node_id]
            self._heap.push(now_s, target, None, LinkDown(host.node_id))

    def dial_ends(self, host: Host, notice: DialEnds, *, now_s: float) -> None:
        """Bring both sides up, or let the dialler give up at its timeout."""
        link = host.links.get(notice.peer)
        if link is None or link is not notice.link or link.waiting is None:
            return
        target = self._by_id.get(notice.peer)
        if target is None or not reaches(host, target):
            settings = link.settings
            at_s = now_s + settings.dial_timeout_s - settings.handshake_s
            self._heap.push(at_s, host, None, DialFailed(notice.peer, link))
            return
        back = target.links.get(host.node_id)
        if back is None or (back.waiting is None and back.target is not host):
            if back is not None:
                # The target still holds a link to an earlier life of this host: now it knows better.
                self._heap.push(now_s, target, None, LinkDown(host.node_id))
            back = self._link(target, host)
            back.waiting = []
            self._make_room(target, now_s=now_s)
            target.links[host.node_id] = back
        self._come_up(host, target, link, back, now_s=now_s)

    def _dial(self, source: Host, to: NodeId, *, now_s: float) -> Link:
        link = self._link(source, self._by_id.get(to))
        link.waiting = []
        self._make_room(source, now_s=now_s)
        source.links[to] = link
        self._heap.push(now_s + link.settings.handshake_s, source, None, DialEnds(to, link))
        return link

    def _come_up(self, host: Host, target: Host, link: Link, back: Link, *, now_s: float) -> None:
        sides = [(host, target, link)] if back.waiting is None else [(host, target, link), (target, host, back)]
        for source, peer, _ in sides:
            self._heap.push(now_s, source, None, LinkUp(peer.node_id))
        for source, peer, side in sides:
            side.target = peer
            waiting = side.waiting or ()
            side.waiting = None
            for payload in waiting:
                self._carry(source, side, payload, now_s)

    def _carry(self, source: Host, link: Link, payload: Opaque, now_s: float) -> None:
        if self._departed is not None:
            self._departed(source, link.target, payload, now_s)
        arrival_s = link.arrival_s(now_s, self._chances)
        if arrival_s == LOST:
            self.lost["on_link"] += 1
            return
        self._heap.push(arrival_s, link.target, source, payload)
        if link.settings.duplication:
            copy_s = link.copy_arrival_s(arrival_s, self._chances)
            if copy_s != LOST:
                self.duplicated += 1
                self._heap.push(copy_s, link.target, source, payload)

    def _make_room(self, host: Host, *, now_s: float) -> None:
        links = host.links
        if len(links) - len(host.bootstrap) < self._plan.dialled_max:
            return
        for peer, link in links.items():
            if link.waiting is None and peer not in host.bootstrap:
                break
        else:
            return
        self.close(host, peer, now_s=now_s)

    def _link(self, source: Host, target: Host | None) -> Link:
        settings = self._plan.default
        if self._plan.between and target is not None:
            settings = self._plan.between.get((source.index, target.index), settings)
        return Link(settings, packet_bytes=self._packet_bytes, target=target)


def reaches(source: Host, target: Host) -> bool:
    """Return whether what one sends can arrive at the other."""
    return source.alive and target.alive and source.group == target.group
