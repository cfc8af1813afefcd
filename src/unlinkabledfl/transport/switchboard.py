"""All connections of an endpoint on one socket: brings datagrams to links and links' datagrams to the socket.

Once woken it drains the socket, up to a bound, before anything is done with what came; and whatever was sent during one
turn of the loop leaves at its end, a few system calls a link. A connection exists as soon as somebody asks for it, so
asking is bounded: in all, by IP address, and past a few only for those who receive at the address that they claim.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from ipaddress import IPv4Address, ip_address
from typing import Final, Protocol

from unlinkabledfl.mixnet.limits import Counters
from unlinkabledfl.sphinx import Entropy, NodeId
from unlinkabledfl.transport.cells import CellFormat
from unlinkabledfl.transport.certificates import LinkIdentity
from unlinkabledfl.transport.datagrams import Initial, RetryTokens, connection_id_of, parse_initial, split
from unlinkabledfl.transport.handshake import Dialling, Knows, Listening
from unlinkabledfl.transport.link import Link
from unlinkabledfl.transport.quic import Connections
from unlinkabledfl.transport.settings import EndpointSettings
from unlinkabledfl.transport.udp import Address, Arrival, UdpSocket

__all__ = ["LinkOwner", "Switchboard"]

_READS_MAX: Final = 16
"""Reads a turn, of up to 64 kB each: more would make timers wait."""
_TIMER_EARLY_S: Final = 0.001
_TIMER_FAR_S: Final = 1.0
_TIMER_LEAST_S: Final = 0.0002
"""A timer that is due at once, again and again, must not keep the loop from everything else."""


class LinkOwner(Protocol):
    """Whom a switchboard tells what happens."""

    def link_moved(self, link: Link) -> None:
        """The link may have events or cells."""
        ...

    def turn_ends(self) -> None:
        """All that arrived has been reported; what is sent from here leaves together."""
        ...


class Switchboard:
    """The socket and every connection over it."""

    def __init__(  # noqa: PLR0913 -- what its connections are made of
        self,
        *,
        node_id: NodeId,
        identity: LinkIdentity,
        cells: CellFormat,
        knows: Knows,
        settings: EndpointSettings,
        counters: Counters,
        entropy: Entropy,
        owner: LinkOwner,
        introduction: Callable[[], bytes],
    ) -> None:
        self._node_id = node_id
        self._identity = identity
        self._cells = cells
        self._knows = knows
        self._settings = settings
        self._counters = counters
        self._entropy = entropy
        self._owner = owner
        self._introduction = introduction
        self._connections = Connections(identity, settings)
        self._tokens = RetryTokens(entropy)
        self._links: dict[Link, set[bytes]] = {}  # with the connection ids under which each is in the table
        self._table: dict[bytes, Link] = {}
        self._unproved: dict[Link, str] = {}  # accepted and short of their proof, with the address that counts
        self._sources: Counter[str] = Counter()
        self._dirty: dict[Link, None] = {}
        self._timers: dict[Link, asyncio.TimerHandle] = {}
        self._flush_is_due = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._socket: UdpSocket | None = None

    # -- life ---------------------------------------------------------------------------------------------------

    def open(self, *, host: str, port: int) -> Address:
        """Bind; ConfigError if that cannot be."""
        self._loop = asyncio.get_running_loop()
        self._socket = UdpSocket(host=host, port=port, counters=self._counters)
        self._loop.add_reader(self._socket.fileno(), self._on_readable)
        return self._socket.address

    def close(self) -> None:
        """Send what is ready, and let go of the socket."""
        if self._socket is None or self._loop is None:
            return
        self.flush()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._loop.remove_reader(self._socket.fileno())
        self._loop.remove_writer(self._socket.fileno())
        self._socket.close()
        self._socket = None
        for links in (self._links, self._table, self._unproved, self._dirty):
            links.clear()

    @property
    def family(self) -> int:
        return 0 if self._socket is None else int(self._socket.family)

    @property
    def links(self) -> tuple[Link, ...]:
        return tuple(self._links)

    @property
    def unproved(self) -> int:
        """How many accepted connections are short of their proof."""
        return len(self._unproved)

    @property
    def connection_ids(self) -> int:
        """How many connection ids lead to a link."""
        return len(self._table)

    def now_s(self) -> float:
        return 0.0 if self._loop is None else self._loop.time()

    # -- links --------------------------------------------------------------------------------------------------

    def dial(self, peer: NodeId, address: Address, *, fingerprint: bytes, datagram_bytes: int) -> Link:
        """Begin a connection; the owner hears of it through `link_moved`."""
        now_s = self.now_s()
        greeting = Dialling(
            node_id=self._node_id,
            identity=self._identity,
            listener_fingerprint=fingerprint,
            cell_bytes=self._cells.cell_bytes,
            entropy=self._entropy,
            introduction=self._introduction(),
            padded_bytes=datagram_bytes,
        )
        quic = self._connections.dial(address, fingerprint=fingerprint, datagram_bytes=datagram_bytes, now_s=now_s)
        link = Link(
            quic,
            greeting=greeting,
            cells=self._cells,
            settings=self._settings,
            address=address,
            now_s=now_s,
            peer=peer,
        )
        self._links[link] = set()
        self._enter(link)
        self.touch(link)
        return link

    def touch(self, link: Link) -> None:
        """Something was sent on the link, or it was closed: it is served when this turn ends."""
        self._dirty[link] = None
        if not self._flush_is_due and self._loop is not None:
            self._flush_is_due = True
            self._loop.call_soon(self.flush)

    def hold(self) -> None:
        """Do not arrange for a flush: the caller is about to."""
        self._flush_is_due = True

    def flush(self) -> None:
        """Serve every link that was touched."""
        self._flush_is_due = False
        udp = self._socket
        while self._dirty and udp is not None:
            if udp.has_backlog:
                udp.flush()
            if udp.has_backlog:
                break
            link = next(iter(self._dirty))
            del self._dirty[link]
            self._serve(link, udp)
        if udp is not None and udp.has_backlog and self._loop is not None:
            self._loop.add_writer(udp.fileno(), self._on_writable)

    def _serve(self, link: Link, udp: UdpSocket) -> None:
        datagrams = link.datagrams(now_s=self.now_s())
        if datagrams:
            udp.send(datagrams, link.address)
        self._report(link)

    def _report(self, link: Link) -> None:
        """Tell the owner, then see to what the link needs from here: its ids, its timer, its end."""
        self._owner.link_moved(link)
        if link in self._unproved and (link.peer is not None or link.is_closed):
            self._sources[self._unproved.pop(link)] -= 1
            self._sources += Counter()  # drops what fell to zero
        if link.is_over:
            self._forget(link)
            return
        self._enter(link)
        self._arm(link)

    def _enter(self, link: Link) -> None:
        """Bring the table up to date with the connection ids of a link; a peer may exchange them for ever."""
        known = self._links.get(link)
        if known is None or known == link.connection_ids:
            return
        for connection_id in link.connection_ids - known:
            self._table[connection_id] = link
        for connection_id in known - link.connection_ids:
            self._table.pop(connection_id, None)
        self._links[link] = set(link.connection_ids)

    def _forget(self, link: Link) -> None:
        for connection_id in self._links.pop(link, ()):
            if self._table.get(connection_id) is link:
                del self._table[connection_id]
        self._dirty.pop(link, None)
        timer = self._timers.pop(link, None)
        if timer is not None:
            timer.cancel()

    # -- time ---------------------------------------------------------------------------------------------------

    def _arm(self, link: Link) -> None:
        due_s = link.next_timer_s()
        if due_s is None or self._loop is None:
            return
        now_s = self.now_s()
        timer = self._timers.get(link)
        if timer is not None:
            # A timer that was put off fires for nothing, and a wake-up costs more than setting it anew. But one that is
            # far off, as of an idle link, would be put off with every packet: that one looks again when it fires.
            early_s = due_s - timer.when()
            if 0.0 <= early_s and (early_s < _TIMER_EARLY_S or timer.when() > now_s + _TIMER_FAR_S):
                return
            timer.cancel()
        self._timers[link] = self._loop.call_at(max(due_s, now_s + _TIMER_LEAST_S), self._on_timer, link)

    def _on_timer(self, link: Link) -> None:
        del self._timers[link]
        due_s = link.next_timer_s()
        now_s = self.now_s()
        if due_s is None or due_s > now_s:
            self._arm(link)
            return
        self.hold()
        try:
            link.handle_timer(now_s=now_s)
            self.touch(link)
            self._owner.link_moved(link)
            self._owner.turn_ends()
        finally:
            self.flush()

    # -- arrivals -----------------------------------------------------------------------------------------------

    def _on_writable(self) -> None:
        if self._socket is not None and self._loop is not None:
            self._socket.flush()
            if not self._socket.has_backlog:
                self._loop.remove_writer(self._socket.fileno())
                self.flush()

    def _on_readable(self) -> None:
        udp = self._socket
        if udp is None:
            return
        now_s = self.now_s()
        moved: dict[Link, None] = {}
        self.hold()
        try:
            for arrival in udp.receive(_READS_MAX):
                self._take(arrival, now_s, moved)
            for link in moved:
                self.touch(link)
                self._owner.link_moved(link)  # the rest of its report follows when it is served, once
            self._owner.turn_ends()
        finally:
            self.flush()

    def _take(self, arrival: Arrival, now_s: float, moved: dict[Link, None]) -> None:
        data, segment_bytes, sender = arrival
        datagrams = split(data, segment_bytes)
        if datagrams is None:
            self._bring(data, segment_bytes, sender, now_s, moved)
            return
        for datagram in datagrams:
            self._bring(datagram, len(datagram), sender, now_s, moved)

    def _bring(self, data: bytes, segment_bytes: int, sender: Address, now_s: float, moved: dict[Link, None]) -> None:
        connection_id = connection_id_of(data)
        link = None if connection_id is None else self._table.get(connection_id)
        if link is None:
            initial = parse_initial(data)
            if initial is None:
                self._counters.add("udp_unknown_connection")
                return
            link = self._accept(initial, len(data), sender, now_s)
            if link is None:
                return
        elif link.address != sender:
            # Whoever moves to another address dials again. Following it would let anybody who can copy a datagram
            # and forge a sender bend the link away; and the library trips over the change.
            self._counters.add("udp_other_address")
            return
        link.receive(data, segment_bytes, now_s=now_s)
        moved[link] = None
        self._enter(link)  # the next datagram of this turn may carry an id that is new

    # -- new connections ----------------------------------------------------------------------------------------

    def _accept(self, initial: Initial, datagram_bytes: int, sender: Address, now_s: float) -> Link | None:
        settings = self._settings
        original, retried = initial.destination, None
        if initial.token or len(self._unproved) >= settings.handshakes_unchecked:
            checked = self._tokens.check(initial, sender, now_s=now_s) if initial.token else None
            if checked is None:
                self._counters.add("link_address_checked")
                if self._socket is not None and not self._socket.has_backlog:
                    self._socket.send([self._tokens.retry(initial, sender, now_s=now_s)], sender)
                return None
            original, retried = checked, initial.destination
        source = _source(sender)
        if len(self._unproved) >= settings.handshakes_max or len(self._links) >= 2 * settings.links_max:
            self._counters.add("link_too_many_handshakes")
            return None
        if self._sources[source] >= settings.handshakes_per_source:
            self._counters.add("link_too_many_from_one_source")
            return None
        quic = self._connections.accept(
            original_connection_id=original, retry_connection_id=retried, first_datagram_bytes=datagram_bytes
        )
        greeting = Listening(
            identity=self._identity, cell_bytes=self._cells.cell_bytes, knows=self._knows, entropy=self._entropy
        )
        link = Link(quic, greeting=greeting, cells=self._cells, settings=settings, address=sender, now_s=now_s)
        link.connection_ids.add(initial.destination)
        self._links[link] = set()
        self._enter(link)
        self._unproved[link] = source
        self._sources[source] += 1
        return link


def _source(address: Address) -> str:
    """Return what counts as one source: an IPv4 address, or the half of an IPv6 address that names its network."""
    ip = ip_address(address[0].removeprefix("::ffff:"))
    return str(ip) if isinstance(ip, IPv4Address) else ip.packed[:8].hex()
