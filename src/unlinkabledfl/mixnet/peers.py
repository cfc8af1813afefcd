"""Whom this node knows, and whom its routes may use now.

Each peer, by its own:

    unknown --new descriptor---------> PeerAdded, SendDescriptor, routable
    routable --newer descriptor------> PeerUpdated, SendDescriptor, routable
    routable --suspicion reaches bound--> PeerRemoved, quarantined
    routable --dial failed-----------> PeerRemoved, quarantined
    quarantined --timer--------------> PeerRestored, probation
    quarantined --newer descriptor---> PeerUpdated, SendDescriptor, PeerRestored, probation
    quarantined --ack on its route---> PeerRestored, probation
    quarantined --link up, was unreachable--> PeerRestored, probation
    probation --ack on its route-----> routable
    probation --missing ack----------> PeerRemoved, quarantined
    probation --dial failed----------> PeerRemoved, quarantined
    routable --descriptor expired----> PeerRemoved, unknown
    probation --descriptor expired---> PeerRemoved, unknown
    quarantined --descriptor expired-> PeerRemoved, unknown
    routable --another key, same serial-> PeerRemoved, SendDescriptor, banned
    probation --another key, same serial-> PeerRemoved, SendDescriptor, banned
    quarantined --another key, same serial-> PeerRemoved, SendDescriptor, banned
    banned --newer descriptor--------> banned
    banned --descriptor expired------> PeerRemoved, unknown

There is no registry. A descriptor that is news goes on to every linked peer but the one it came from and the one it is
of; echoes are recognised by their bytes and cost no signature check. A new link is offered our own descriptor and all
we know, `offer_batch` at once and as many again every `offer_interval_s` (stay below the neighbour's budget for
descriptors). Those of quarantined peers go too: what we hold against a peer is nobody else's business.

Who signs two keys under one epoch and serial tells some peers another key than others, and would know by the key of a
packet who made it. Two such descriptors are proof: the peer is banned for as long as the first one is valid, whatever
it signs from then on, and the second one goes to all neighbours, who then have both too.

A missing ack casts suspicion on every peer of its routes, since nobody can tell which one failed; an ack clears all of
its own. Honest peers are cleared all the time, one that swallows packets never is. On probation only packets count that
left after it began: those that were lost before are still timing out when a restarted peer comes back. Quarantine
doubles from `quarantine_s` to `quarantine_max_s` with each relapse, and one ack ends the series.

Invariant: `at` over `range(len(view))` names each routable peer exactly once (with a directory also peers that
`is_routable` then denies), so that uniform indices give uniform relays. And suspicion never takes out more than half of
the known peers: if that many seem dead, our own uplink is, and an adversary who drops packets must not be able
to herd our routes to the few relays that it likes.
"""

from collections import deque
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from types import MappingProxyType
from typing import TypeAlias

from unlinkabledfl.errors import ConfigError, DescriptorError, LocalProtocolError
from unlinkabledfl.mixnet.descriptor import SIGNATURE_BYTES, Descriptor, parse, peek
from unlinkabledfl.mixnet.limits import Deadlines
from unlinkabledfl.sphinx import NodeId, accepts_x25519

_STRIKES_MAX = 32


class RemovalReason(StrEnum):
    """Why routes do not use a peer any more."""

    SUSPECTED = "suspected"
    UNREACHABLE = "unreachable"
    EXPIRED = "expired"
    EQUIVOCATED = "equivocated"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerAdded:
    """A peer was not known before."""

    node_id: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerUpdated:
    """A known peer has a newer descriptor: another key, or other addresses."""

    node_id: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerRemoved:
    """Routes do not use this peer any more."""

    node_id: NodeId
    reason: RemovalReason


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerRestored:
    """Routes use this peer again, on probation."""

    node_id: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class SendDescriptor:
    """Send this descriptor to a linked peer, as a control message."""

    to: NodeId
    data: bytes


PeerEvent: TypeAlias = PeerAdded | PeerUpdated | PeerRemoved | PeerRestored | SendDescriptor


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSettings:
    """The settings of a peer view."""

    capacity: int = 4096
    suspicion_bound: int = 3
    quarantine_s: float = 30.0
    quarantine_max_s: float = 900.0
    offer_batch: int = 16
    offer_interval_s: float = 1.0
    allow_loopback: bool = False

    def __post_init__(self) -> None:
        """ConfigError for what cannot work."""
        for name in ("capacity", "suspicion_bound", "offer_batch"):
            got = getattr(self, name)
            if got < 1:
                raise ConfigError(key=f"mixnet.peers.{name}", got=got, takes="a whole number of at least 1")
        for name in ("quarantine_s", "offer_interval_s"):
            got = getattr(self, name)
            if not got > 0.0:
                raise ConfigError(key=f"mixnet.peers.{name}", got=got, takes="a time above 0")
        if not self.quarantine_max_s >= self.quarantine_s:
            takes = f"at least mixnet.peers.quarantine_s ({self.quarantine_s})"
            raise ConfigError(key="mixnet.peers.quarantine_max_s", got=self.quarantine_max_s, takes=takes)


class Directory:
    """Peers known from the start, immutable, and shared by all views of one process.

    Ten thousand simulated nodes that know each other need one of these, and each a view that holds its differences.
    """

    __slots__ = ("ids", "keys")

    def __init__(self, entries: Iterable[tuple[NodeId, bytes]] = ()) -> None:
        self.keys = MappingProxyType(dict(entries))
        self.ids = tuple(self.keys)


_NOBODY = Directory()


class _Peer:
    """What is known about one peer, or how it differs from its entry in the directory (then without descriptor)."""

    __slots__ = ("descriptor", "node_id", "on_probation", "out", "position", "restored_at_s", "strikes", "suspicion")

    def __init__(self, node_id: NodeId) -> None:
        self.node_id = node_id
        self.descriptor: Descriptor | None = None
        self.out: RemovalReason | None = None
        self.on_probation = False
        self.suspicion = 0
        self.strikes = 0
        self.restored_at_s = -inf
        self.position = -1  # in the list of routable peers; -1 for the directory's, which have their place there


class _Timer(StrEnum):
    RESTORE = "restore"
    EXPIRE = "expire"
    OFFER = "offer"


class PeerView:
    """The peers of one node. Satisfies the routes' `Peers`; a node is no peer of its own: never routable."""

    __slots__ = (
        "_accepts_key", "_avoided", "_descriptors", "_directory", "_events", "_links", "_own",
        "_own_id", "_peers", "_routable", "_settings", "_strangers", "_timers",
    )  # fmt: skip

    def __init__(
        self,
        *,
        own_id: NodeId,
        settings: PeerSettings,
        directory: Directory = _NOBODY,
        accepts_key: Callable[[bytes], bool] = accepts_x25519,
    ) -> None:
        self._own_id = own_id
        self._accepts_key = accepts_key
        self._settings = settings
        self._directory = directory
        self._own: Descriptor | None = None
        self._peers: dict[NodeId, _Peer] = {}
        self._routable: list[NodeId] = []  # of those outside the directory
        self._strangers = 0  # all of those outside the directory
        self._descriptors = 0
        self._avoided: set[NodeId] = set()
        self._links: dict[NodeId, list[NodeId]] = {}  # what is still to be offered to whom
        self._timers: Deadlines[tuple[_Timer, NodeId]] = Deadlines()
        self._events: deque[PeerEvent] = deque()

    # What routes ask.

    def __len__(self) -> int:
        return len(self._directory.ids) + len(self._routable)

    def at(self, index: int) -> NodeId:
        """The peer at this place. With a directory it may not be routable, or be this node: ask, and draw again."""
        in_directory = len(self._directory.ids)
        return self._directory.ids[index] if index < in_directory else self._routable[index - in_directory]

    def is_routable(self, node_id: NodeId) -> bool:
        """Whether routes may use this peer now."""
        peer = self._peers.get(node_id)
        if peer is not None:
            return peer.out is None
        return node_id in self._directory.keys and node_id != self._own_id

    def knows(self, node_id: NodeId) -> bool:
        """Whether there is a key to wrap a layer with for this peer, suspect or not."""
        peer = self._peers.get(node_id)
        if peer is not None and (peer.descriptor is not None or peer.out is RemovalReason.EXPIRED):
            return peer.out is not RemovalReason.EXPIRED
        return node_id in self._directory.keys and node_id != self._own_id

    @property
    def routable_count(self) -> int:
        """How many peers routes may use now."""
        keys = self._directory.keys
        return len(self) - (self._own_id in keys) - sum(peer in keys for peer in self._avoided)

    @property
    def avoided(self) -> AbstractSet[NodeId]:
        """Those whom routes over a fixed graph must go around now."""
        return self._avoided

    def public_key(self, node_id: NodeId) -> bytes:
        """The key to wrap a layer with for this peer."""
        peer = self._peers.get(node_id)
        if peer is not None and peer.descriptor is not None:
            return peer.descriptor.public_key
        try:
            return self._directory.keys[node_id]
        except KeyError:
            raise LocalProtocolError("asked for the key of an unknown peer: routes use known ones only") from None

    def descriptor(self, node_id: NodeId) -> Descriptor | None:
        """What a known peer said of itself, with its addresses; None for the directory's."""
        peer = self._peers.get(node_id)
        return None if peer is None else peer.descriptor

    @property
    def differences(self) -> int:
        """How many peers cost this view memory of its own: all, or those that differ from the directory."""
        return len(self._peers)

    # Descriptors.

    def announce(self, descriptor: Descriptor) -> None:
        """Publish our own descriptor: to every linked peer now, and to later ones when their link comes up."""
        if descriptor.node_id != self._own_id:
            raise LocalProtocolError("a node announces no descriptor but its own")
        self._own = descriptor
        self._flood(descriptor, from_peer=self._own_id)

    def add_trusted(self, descriptor: Descriptor, *, now_s: float) -> None:
        """Take in a descriptor that the operator vouches for, an invitation's say; `capacity` does not bind it."""
        peer = self._peers.get(descriptor.node_id)
        known = None if peer is None else peer.descriptor
        if descriptor.node_id == self._own_id or (known and known.precedence >= descriptor.precedence):
            return
        self._accept(descriptor, from_peer=self._own_id, now_s=now_s)

    def receive_descriptor(self, data: bytes, *, from_peer: NodeId, now_s: float) -> bool:
        """Take in what a neighbour passed on. True if it was news; DescriptorError if it is not acceptable.

        Causes beyond those of `descriptor.parse`: `stale_epoch` (a newer one is known), `equivocated` (its node signs
        different ones under one serial) and `peer_table_full`: to make room by evicting somebody would let made-up
        peers displace real ones.
        """
        node_id, precedence = peek(data)
        if node_id == self._own_id:
            return False
        peer = self._peers.get(node_id)
        known = None if peer is None else peer.descriptor
        if known is None:
            if self._descriptors >= self._settings.capacity:
                raise DescriptorError("peer_table_full")
        elif data[:-SIGNATURE_BYTES] == known.data[:-SIGNATURE_BYTES]:
            return False
        elif precedence < known.precedence:
            raise DescriptorError("stale_epoch")
        elif peer is not None and peer.out is RemovalReason.EQUIVOCATED:
            raise DescriptorError("equivocated")
        elif peer is not None and peer.out is RemovalReason.EXPIRED and precedence == known.precedence:
            raise DescriptorError("stale_epoch")
        settings = self._settings
        descriptor = parse(data, now_s=now_s, allow_loopback=settings.allow_loopback, accepts_key=self._accepts_key)
        if peer is None or known is None or precedence > known.precedence:
            self._accept(descriptor, from_peer=from_peer, now_s=now_s)
        elif descriptor.public_key == known.public_key:
            raise DescriptorError("stale_epoch")
        else:
            self._ban(peer, descriptor, from_peer=from_peer)
        return True

    # Links and routes, as they fare.

    def link_up(self, peer_id: NodeId, *, now_s: float) -> None:
        """A link to this peer stands: offer it what we know."""
        if peer_id in self._links:
            return
        known = [node_id for node_id, peer in self._peers.items() if peer.descriptor is not None]
        self._links[peer_id] = known
        if self._own is not None:
            self._events.append(SendDescriptor(to=peer_id, data=self._own.data))
        self._offer(peer_id, now_s=now_s)
        peer = self._peers.get(peer_id)
        if peer is not None and peer.out is RemovalReason.UNREACHABLE:
            self._restore(peer, now_s=now_s)

    def link_down(self, peer_id: NodeId, *, now_s: float) -> None:
        """The link is gone. That alone says nothing against the peer: idle links are closed."""
        self._links.pop(peer_id, None)
        self._timers.cancel((_Timer.OFFER, peer_id))

    def descriptor_unsent(self, to: NodeId, data: bytes, *, now_s: float) -> None:
        """The link was not writable: whatever we know of that peer by then is offered later."""
        pending = self._links.get(to)
        if pending is None:
            return
        node_id, _ = peek(data)
        if not pending:
            self._timers.set((_Timer.OFFER, to), now_s + self._settings.offer_interval_s)
        if node_id not in pending:
            pending.append(node_id)

    def dial_failed(self, peer_id: NodeId, *, now_s: float) -> None:
        """No address of this peer answers."""
        peer = self._known(peer_id)
        if peer is not None and peer.out is None:
            self._quarantine(peer, RemovalReason.UNREACHABLE, now_s=now_s)
            self._forget_if_unremarkable(peer)

    def route_failed(self, relays: Iterable[NodeId], *, sent_at_s: float = inf, now_s: float) -> None:
        """An ack is missing. `relays` are all peers of its two routes, the destination among them."""
        for node_id in dict.fromkeys(relays):
            peer = self._known(node_id)
            if peer is None or peer.out is not None or sent_at_s < peer.restored_at_s:
                continue
            peer.suspicion = min(peer.suspicion + 1, self._settings.suspicion_bound)
            if peer.on_probation or peer.suspicion == self._settings.suspicion_bound:
                self._quarantine(peer, RemovalReason.SUSPECTED, now_s=now_s)

    def route_succeeded(self, relays: Iterable[NodeId], *, now_s: float) -> None:
        """An ack came back: all peers of its two routes work."""
        for node_id in relays:
            peer = self._peers.get(node_id)
            if peer is None or peer.out in (RemovalReason.EXPIRED, RemovalReason.EQUIVOCATED):
                continue
            if peer.out is not None:
                self._restore(peer, now_s=now_s)
                continue
            peer.on_probation = False
            peer.suspicion = peer.strikes = 0
            self._forget_if_unremarkable(peer)

    def next_timer_s(self) -> float | None:
        """When the next quarantine ends, descriptor expires or batch is due."""
        return self._timers.next_s()

    def handle_timer(self, *, now_s: float) -> None:
        """Act on all that is due."""
        while (due := self._timers.pop_due(now_s)) is not None:
            timer, node_id = due
            if timer is _Timer.OFFER:
                self._offer(node_id, now_s=now_s)
            elif timer is _Timer.RESTORE:
                self._restore(self._peers[node_id], now_s=now_s)
            else:
                self._expire(self._peers[node_id])

    def next_event(self) -> PeerEvent | None:
        """The next thing to act on."""
        return self._events.popleft() if self._events else None

    # How a peer changes.

    def _known(self, node_id: NodeId) -> _Peer | None:
        peer = self._peers.get(node_id)
        if peer is None and node_id in self._directory.keys and node_id != self._own_id:
            peer = self._peers[node_id] = _Peer(node_id)
        return peer

    def _accept(self, descriptor: Descriptor, *, from_peer: NodeId, now_s: float) -> None:
        node_id = descriptor.node_id
        peer = self._known(node_id)
        if peer is None:
            peer = self._peers[node_id] = _Peer(node_id)
            self._strangers += 1
            self._enlist(peer)
            self._events.append(PeerAdded(node_id=node_id))
        else:
            self._events.append(PeerUpdated(node_id=node_id))
        if peer.descriptor is None:
            self._descriptors += 1
        peer.descriptor = descriptor
        self._timers.set((_Timer.EXPIRE, node_id), max(now_s, float(descriptor.valid_until_s)))
        self._flood(descriptor, from_peer=from_peer)
        if peer.out is not None:
            self._restore(peer, now_s=now_s)

    def _quarantine(self, peer: _Peer, reason: RemovalReason, *, now_s: float) -> None:
        known = len(self._directory.ids) - (self._own_id in self._directory.keys) + self._strangers
        if 2 * (len(self._avoided) + 1) > known:
            return
        settings = self._settings
        time_s = min(settings.quarantine_s * 2.0**peer.strikes, settings.quarantine_max_s)
        peer.strikes = min(peer.strikes + 1, _STRIKES_MAX)
        self._timers.set((_Timer.RESTORE, peer.node_id), now_s + time_s)
        self._take_out(peer, reason)

    def _ban(self, peer: _Peer, proof: Descriptor, *, from_peer: NodeId) -> None:
        self._timers.cancel((_Timer.RESTORE, peer.node_id))
        self._take_out(peer, RemovalReason.EQUIVOCATED)
        self._flood(proof, from_peer=from_peer)

    def _restore(self, peer: _Peer, *, now_s: float) -> None:
        self._timers.cancel((_Timer.RESTORE, peer.node_id))
        peer.out = None
        peer.on_probation = True
        peer.restored_at_s = now_s
        self._avoided.discard(peer.node_id)
        if peer.node_id not in self._directory.keys:
            self._enlist(peer)
        self._events.append(PeerRestored(node_id=peer.node_id))

    def _expire(self, peer: _Peer) -> None:
        self._timers.cancel((_Timer.RESTORE, peer.node_id))
        self._take_out(peer, RemovalReason.EXPIRED)
        # One of the directory's stays in it, so its record stays too, and says that its key is obsolete.
        if peer.node_id not in self._directory.keys:
            del self._peers[peer.node_id]
            self._strangers -= 1
            self._descriptors -= 1
            self._avoided.discard(peer.node_id)

    def _take_out(self, peer: _Peer, reason: RemovalReason) -> None:
        if peer.out is None:
            self._avoided.add(peer.node_id)
            self._delist(peer)
        peer.out = reason
        peer.on_probation = False
        self._events.append(PeerRemoved(node_id=peer.node_id, reason=reason))

    def _forget_if_unremarkable(self, peer: _Peer) -> None:
        if peer.descriptor is None and peer.out is None and not (peer.suspicion or peer.on_probation):
            del self._peers[peer.node_id]

    def _enlist(self, peer: _Peer) -> None:
        peer.position = len(self._routable)
        self._routable.append(peer.node_id)

    def _delist(self, peer: _Peer) -> None:
        if peer.position < 0:
            return
        last = self._routable.pop()
        if last != peer.node_id:
            self._routable[peer.position] = last
            self._peers[last].position = peer.position
        peer.position = -1

    # What goes out.

    def _flood(self, descriptor: Descriptor, *, from_peer: NodeId) -> None:
        for peer_id in self._links:
            if peer_id not in (from_peer, descriptor.node_id):
                self._events.append(SendDescriptor(to=peer_id, data=descriptor.data))

    def _offer(self, peer_id: NodeId, *, now_s: float) -> None:
        pending = self._links[peer_id]
        sent = 0
        while pending and sent < self._settings.offer_batch:
            descriptor = self._offered(pending.pop())
            if descriptor is None or descriptor.node_id == peer_id:
                continue
            self._events.append(SendDescriptor(to=peer_id, data=descriptor.data))
            sent += 1
        if pending:
            self._timers.set((_Timer.OFFER, peer_id), now_s + self._settings.offer_interval_s)

    def _offered(self, node_id: NodeId) -> Descriptor | None:
        if node_id == self._own_id:
            return self._own
        peer = self._peers.get(node_id)
        if peer is None or peer.out in (RemovalReason.EXPIRED, RemovalReason.EQUIVOCATED):
            return None
        return peer.descriptor
