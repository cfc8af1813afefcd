"""All links of a node over one UDP socket: the real world's counterpart of `simulation.network`.

The endpoint dials, accepts, authenticates and keeps links; it moves packets and control messages over them, and tells
its sink what happens. Which connection with a peer is the link, a `Pairing` decides; what happens on a connection, a
`Link`; and datagrams are the `Switchboard`'s.

Invariant: of every peer the sink hears `link_up` and `link_down` in turn, and packets only in between. Nothing that was
accepted is lost in silence: packets that waited for a dial that failed count as `lost_in_dial`, packets that had not
left when their link broke as `lost_on_link`. Those under way at that moment nobody can count.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, assert_never

from unlinkabledfl.mixnet.limits import Counters
from unlinkabledfl.sphinx import Entropy, NodeId
from unlinkabledfl.transport.addresses import Resolver, resolve_by_system
from unlinkabledfl.transport.attempt import Attempt
from unlinkabledfl.transport.book import PeerBook
from unlinkabledfl.transport.cells import CellFormat, ControlCell, PacketCell
from unlinkabledfl.transport.certificates import LinkIdentity
from unlinkabledfl.transport.handshake import Proved
from unlinkabledfl.transport.link import LINK_TIMEOUT, CloseCode, Closed, Link, Opened
from unlinkabledfl.transport.pairing import Dial, Down, Failed, Pairing, PairingEvent, Reject, StopDial, Up, Welcome
from unlinkabledfl.transport.settings import EndpointSettings
from unlinkabledfl.transport.sink import EndpointSink, LinkTap
from unlinkabledfl.transport.switchboard import Switchboard

__all__ = ["Endpoint", "EndpointSink"]

_DRAIN_LOOK_S: Final = 0.005


class _Peer:
    """What the endpoint holds for one peer."""

    __slots__ = ("attempt", "id", "pairing", "timer", "waiting")

    def __init__(self, peer_id: NodeId, pairing: Pairing[Link]) -> None:
        self.id = peer_id
        self.pairing = pairing
        self.attempt: Attempt | None = None
        self.waiting: deque[bytes] = deque()
        self.timer: asyncio.TimerHandle | None = None


class Endpoint:
    """A node's place in the network. The constructor opens nothing; `open` binds the socket, `close` gives it back.

    `introduction` returns our descriptor, for listeners who do not know us yet; or nothing. `tap` is told what crosses
    our links.
    """

    def __init__(
        self,
        *,
        node_id: NodeId,
        identity: LinkIdentity,
        book: PeerBook,
        settings: EndpointSettings,
        entropy: Entropy,
        introduction: Callable[[], bytes] = bytes,
        resolve: Resolver = resolve_by_system,
        tap: LinkTap | None = None,
    ) -> None:
        self.counters = Counters()
        self._tap = tap
        self._node_id = node_id
        self._book = book
        self._settings = settings
        self._entropy = entropy
        self._resolve = resolve
        self._sink: EndpointSink | None = None
        self._peers: dict[NodeId, _Peer] = {}
        self._batch: list[tuple[NodeId, bytes]] = []
        self._switchboard = Switchboard(
            node_id=node_id,
            identity=identity,
            cells=CellFormat(settings.packet_bytes),
            knows=self._knows,
            settings=settings,
            counters=self.counters,
            entropy=entropy,
            owner=self,
            introduction=introduction,
        )

    # -- life ---------------------------------------------------------------------------------------------------

    async def open(self, sink: EndpointSink, *, host: str = "127.0.0.1", port: int = 0) -> tuple[str, int]:
        """Bind; return the address, whose port is chosen by the system if 0 was asked for.

        ConfigError `process.base_port` if the port is taken.
        """
        self._sink = sink
        address = self._switchboard.open(host=host, port=port)
        return address[0], address[1]

    async def close(self) -> None:
        """Let go of all links in order, within `close_timeout_s`, then of the socket. `link_down` follows for each."""
        for peer in self._peers.values():
            peer.pairing.release()
        self._switchboard.flush()
        looks = int(self._settings.close_timeout_s / _DRAIN_LOOK_S)
        while looks and any(link.waits_to_send for link in self._switchboard.links):
            looks -= 1
            await asyncio.sleep(_DRAIN_LOOK_S)
        for link in self._switchboard.links:
            link.close(CloseCode.BYE, cause="closed_by_us")
            self._switchboard.touch(link)
        for peer in list(self._peers.values()):
            peer.pairing.hang_up(now_s=self.now_s())
            self._settle(peer)
        self._switchboard.close()

    # -- links --------------------------------------------------------------------------------------------------

    def want(self, peer: NodeId) -> None:
        """Keep a link to this peer from now on: dial it, and dial it again whenever it is gone."""
        entry = self._entry(peer)
        entry.pairing.want(now_s=self.now_s())
        self._settle(entry)

    def release(self, peer: NodeId) -> None:
        """Want it no longer; a link that stands stays until it is closed or idle."""
        entry = self._peers.get(peer)
        if entry is not None:
            entry.pairing.release()
            self._settle(entry)

    def dial(self, peer: NodeId) -> None:
        """Make a link to this peer if there is none: `link_up` or `dial_failed` follows, never before this returns."""
        entry = self._entry(peer)
        entry.pairing.dial(now_s=self.now_s())
        self._settle(entry)

    def hang_up(self, peer: NodeId) -> None:
        """Close the link to this peer, or stop dialling it."""
        entry = self._peers.get(peer)
        if entry is not None:
            entry.pairing.hang_up(now_s=self.now_s())
            self._lose_waiting(entry)
            self._settle(entry)

    def is_linked(self, peer: NodeId) -> bool:
        entry = self._peers.get(peer)
        return entry is not None and entry.pairing.link is not None

    # -- sending ------------------------------------------------------------------------------------------------

    def send_packet(self, peer: NodeId, packet: bytes) -> bool:
        """Put a packet on the link, dialling it first if there is none. False: not writable now, keep the packet."""
        entry = self._peers.get(peer) or self._entry(peer)
        link = entry.pairing.link
        if link is not None:
            taken = link.send_packet(packet, now_s=self.now_s())
            if taken and self._tap is not None:
                self._tap.left(peer, packet)
            self._switchboard.touch(link)
            return taken
        if len(entry.waiting) >= self._settings.dial_queue_packets:
            return False
        entry.waiting.append(packet)
        self.dial(peer)
        return True

    def send_control(self, peer: NodeId, data: bytes) -> bool:
        """Put a control message on a link that stands. False: no such link, or too many wait for it."""
        entry = self._peers.get(peer)
        link = None if entry is None else entry.pairing.link
        if link is None or not link.send_control(data):
            self.counters.add("control_unlinked" if link is None else "control_queue_full")
            return False
        if self._tap is not None:
            self._tap.left(peer, data)
        self._switchboard.touch(link)
        return True

    def hold(self) -> None:
        """Say that `flush` will be called in this turn of the loop: saves it from arranging for that itself."""
        self._switchboard.hold()

    def flush(self) -> None:
        """Write what was sent since the last time. It happens by itself before the loop sleeps; calling it is cheap."""
        self._switchboard.flush()

    def gauges(self) -> dict[str, float]:
        """Return how many links stand, are dialled or accepted, and what they hold."""
        up = [entry.pairing.link for entry in self._peers.values() if entry.pairing.link is not None]
        return {
            "links_up": float(len(up)),
            "links_dialling": float(sum(entry.pairing.is_dialling for entry in self._peers.values())),
            "links_unproved": float(self._switchboard.unproved),
            "links_connection_ids": float(self._switchboard.connection_ids),
            "links_waiting_packets": float(sum(len(entry.waiting) for entry in self._peers.values())),
            "links_backlog_bytes": float(sum(link.backlog_bytes for link in up)),
            "links_renewals": float(sum(link.renewals for link in up)),
        }

    # -- what the switchboard tells -----------------------------------------------------------------------------

    def link_moved(self, link: Link) -> None:
        """Follow what happened on a connection."""
        while (event := link.next_event()) is not None:
            match event:
                case Proved(peer=peer):
                    self._proved(peer, link)
                case Opened():
                    self._opened(link)
                case Closed(cause=cause, unsent=unsent):
                    self._take_cells(link)
                    self._closed(link, cause, unsent)
                case _:
                    assert_never(event)
        self._take_cells(link)

    def turn_ends(self) -> None:
        """Hand over what arrived in this turn, all together."""
        if self._batch and self._sink is not None:
            batch, self._batch = self._batch, []
            self._sink.packets_received(batch)

    def _proved(self, peer: NodeId, link: Link) -> None:
        entry = self._entry(peer)
        up = sum(other.pairing.link is not None for other in self._peers.values())
        if entry.pairing.link is None and up >= self._settings.links_max:
            link.close(CloseCode.REFUSED, cause="link_too_many")
            self._switchboard.touch(link)
        else:
            entry.pairing.proved(link, now_s=self.now_s())
        self._settle(entry)

    def _opened(self, link: Link) -> None:
        entry = self._dialling(link)
        if entry is None:
            return
        entry.attempt = None
        entry.pairing.opened(link, now_s=self.now_s())
        self._settle(entry)

    def _closed(self, link: Link, cause: str, unsent: int) -> None:
        self.counters.add(cause)
        if unsent:
            self.counters.add("lost_on_link", unsent)
        entry = self._dialling(link)
        if entry is not None and entry.attempt is not None:
            entry.attempt.closed(in_silence=cause == LINK_TIMEOUT)
        elif link.peer is not None and link.peer in self._peers:
            entry = self._peers[link.peer]
            entry.pairing.closed(link, now_s=self.now_s())
            self._settle(entry)

    def _dialling(self, link: Link) -> _Peer | None:
        entry = None if link.peer is None else self._peers.get(link.peer)
        return entry if entry is not None and entry.attempt is not None and entry.attempt.link is link else None

    def _take_cells(self, link: Link) -> None:
        peer = link.peer
        cells = link.take_cells()
        if not cells or peer is None or self._sink is None or not self._is_link(peer, link):
            return
        link.used_at_s = self.now_s()
        for cell in cells:
            match cell:
                case PacketCell(packet=packet):
                    if self._tap is not None:
                        self._tap.arrived(peer, packet)
                    self._batch.append((peer, packet))
                case ControlCell(messages=messages):
                    for message in messages:
                        if self._tap is not None:
                            self._tap.arrived(peer, message)
                        self._sink.control_received(peer, message)

    def _is_link(self, peer: NodeId, link: Link) -> bool:
        entry = self._peers.get(peer)
        return entry is not None and entry.pairing.link is link

    # -- peers --------------------------------------------------------------------------------------------------

    def _entry(self, peer: NodeId) -> _Peer:
        entry = self._peers.get(peer)
        if entry is None:
            pairing: Pairing[Link] = Pairing(
                ours_counts=self._node_id < peer,
                backoff_first_s=self._settings.backoff_first_s,
                backoff_max_s=self._settings.backoff_max_s,
                chance=self._chance,
            )
            entry = self._peers[peer] = _Peer(peer, pairing)
        return entry

    def _settle(self, entry: _Peer) -> None:
        """Carry out what a pairing asks for, then see to its timer, and to whether it is still needed."""
        while (event := entry.pairing.next_event()) is not None:
            self._follow(entry, event)
        if entry.timer is not None:
            entry.timer.cancel()
            entry.timer = None
        timer_s = entry.pairing.next_timer_s()
        if timer_s is not None:
            entry.timer = asyncio.get_running_loop().call_at(timer_s, self._on_timer, entry)
        elif entry.pairing.is_idle and not entry.waiting:
            self._peers.pop(entry.id, None)

    def _on_timer(self, entry: _Peer) -> None:
        entry.timer = None
        entry.pairing.handle_timer(now_s=self.now_s())
        self._settle(entry)

    def _follow(self, entry: _Peer, event: PairingEvent[Link]) -> None:
        match event:
            case Dial():
                self._begin_dial(entry)
            case StopDial():
                self._stop_dial(entry)
            case Welcome(connection=link):
                link.welcome(now_s=self.now_s())
                self._switchboard.touch(link)
            case Reject(connection=link):
                self._take_cells(link)
                link.close(CloseCode.SUPERSEDED, cause="link_superseded")
                self._switchboard.touch(link)
            case Up():
                self._link_up(entry)
            case Down():
                self.turn_ends()  # what came before the end
                if self._sink is not None:
                    self._sink.link_down(entry.id)
            case Failed():
                self._lose_waiting(entry)
                if self._sink is not None:
                    self._sink.dial_failed(entry.id)
            case _:
                assert_never(event)

    def _link_up(self, entry: _Peer) -> None:
        link = entry.pairing.link
        if self._sink is None or link is None:
            return
        if not self._sink.link_up(entry.id):
            entry.pairing.hang_up(now_s=self.now_s())
            self._lose_waiting(entry)
            return
        while entry.waiting and link.send_packet(entry.waiting[0], now_s=self.now_s()):
            packet = entry.waiting.popleft()
            if self._tap is not None:
                self._tap.left(entry.id, packet)
        self._lose_waiting(entry)
        self._switchboard.touch(link)

    def _lose_waiting(self, entry: _Peer) -> None:
        if entry.waiting:
            self.counters.add("lost_in_dial", len(entry.waiting))
            entry.waiting.clear()

    # -- dialling -----------------------------------------------------------------------------------------------

    def _begin_dial(self, entry: _Peer) -> None:
        if not entry.pairing.wanted:
            self._make_room()
        contact = self._book.contact(entry.id)
        if contact is None or not contact.addresses:
            self.counters.add("dial_without_address")
        entry.attempt = Attempt(
            contact,
            settings=self._settings,
            family=self._switchboard.family,
            resolve=self._resolve,
            connect=partial(self._switchboard.dial, entry.id),
            failed=partial(self._dial_failed, entry),
        )
        entry.attempt.start()

    def _dial_failed(self, entry: _Peer) -> None:
        entry.attempt = None
        entry.pairing.failed(now_s=self.now_s())
        self._settle(entry)

    def _stop_dial(self, entry: _Peer) -> None:
        attempt, entry.attempt = entry.attempt, None
        link = None if attempt is None else attempt.stop()
        if link is not None:
            link.close(CloseCode.SUPERSEDED, cause="link_superseded")
            self._switchboard.touch(link)

    def _make_room(self) -> None:
        """Close the link that was dialled on demand and unused for longest, if there are as many as may be."""
        spare = [
            (entry.pairing.link.used_at_s, entry)
            for entry in self._peers.values()
            if entry.pairing.link is not None and entry.pairing.link.is_dialled and not entry.pairing.wanted
        ]
        if len(spare) < self._settings.dialled_max:
            return
        _, longest = min(spare, key=lambda pair: pair[0])
        self.counters.add("link_made_room")
        longest.pairing.hang_up(now_s=self.now_s())
        self._settle(longest)

    def _knows(self, peer: NodeId, fingerprint: bytes, introduction: bytes) -> bool:
        if peer == self._node_id:
            return False
        contact = self._book.contact(peer)
        if contact is not None:
            return contact.fingerprint == fingerprint
        return self._book.admit(peer, fingerprint=fingerprint, introduction=introduction)

    def now_s(self) -> float:
        """The clock of its links: the loop's."""
        return self._switchboard.now_s()

    def _chance(self) -> float:
        return int.from_bytes(self._entropy(4)) / 2**32
