"""One QUIC connection with a peer, from its first datagram to its last, without a socket.

    new --dialled---------------------------> greeting
    greeting --challenge, over TLS----------> greeting
    greeting --welcome----------------------> Opened, open
    greeting --too late, refused, broken----> Closed, closed
    new --accepted--------------------------> waiting
    waiting --proof, good-------------------> Proved, proved
    waiting --too late, proof not good------> Closed, closed
    proved --welcome------------------------> open
    proved --too late, broken---------------> Closed, closed
    open --cells----------------------------> open
    open --broken, idle, closed-------------> Closed, closed

Invariant: cells are read in state open only, and a link that is closed stays closed: `Closed` is its last event, and
nothing is sent after it but the word that it is closed. Whatever a peer's bytes do to the QUIC library ends this link
and nothing else.
"""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeAlias

from qh3.quic import events as quic_events
from qh3.quic.connection import QuicConnection

from unlinkabledfl.errors import ControlError, LocalProtocolError
from unlinkabledfl.sphinx import NodeId
from unlinkabledfl.transport.cells import Cell, CellFormat, CellReader
from unlinkabledfl.transport.handshake import Dialling, Listening, Proved, Welcomed
from unlinkabledfl.transport.quic import alpn_fits
from unlinkabledfl.transport.settings import EndpointSettings
from unlinkabledfl.transport.udp import Address

__all__ = ["LINK_TIMEOUT", "CloseCode", "Closed", "Link", "LinkEvent", "Opened"]

LINK_TIMEOUT: Final = "link_timeout"
"""The cause with which a link closes whose peer fell silent before it was open."""

_RENEWAL_RETRIES: Final = 16
_DIALLERS_STREAM: Final = 2
_LISTENERS_STREAM: Final = 3


class CloseCode(Enum):
    """What we tell the peer when we close. It learns no more of why it was refused than that it was."""

    BYE = 0
    REFUSED = 1
    SUPERSEDED = 2
    """Another connection with this peer is the link."""
    VIOLATION = 3


class _State(Enum):
    GREETING = auto()
    PROVED = auto()
    OPEN = auto()
    CLOSED = auto()


@dataclass(frozen=True, slots=True)
class Opened:
    """The listener took us: cells may flow."""


@dataclass(frozen=True, slots=True)
class Closed:
    """It is over. `cause` is one of a fixed set; `unsent` packets were accepted and never left."""

    cause: str
    unsent: int = 0


LinkEvent: TypeAlias = Proved | Opened | Closed


class Link:
    """A connection and what is known of its other side. `connection_ids` are those that datagrams for it may carry."""

    __slots__ = (
        "_backlog_bytes",
        "_cells",
        "_control",
        "_deadline_s",
        "_events",
        "_greeting",
        "_heard_at_s",
        "_inbox",
        "_key_datagrams",
        "_our_stream",
        "_probed_at_s",
        "_quic",
        "_reader",
        "_settings",
        "_state",
        "_their_stream",
        "_window_bytes",
        "address",
        "connection_ids",
        "datagram_bytes",
        "is_over",
        "peer",
        "renewals",
        "used_at_s",
        "was_secured",
    )

    def __init__(
        self,
        quic: QuicConnection,
        *,
        greeting: Dialling | Listening,
        cells: CellFormat,
        settings: EndpointSettings,
        address: Address,
        now_s: float,
        peer: NodeId | None = None,
    ) -> None:
        self.address = address
        self.peer = peer
        """Whom we dialled, or who has proved to be there."""
        self.connection_ids = {bytes(quic.host_cid)}
        self.datagram_bytes: int = quic.configuration.max_datagram_size
        self.is_over = False
        """QUIC too is done with it: no datagram belongs here any more."""
        self.was_secured = False
        """TLS got through."""
        self.used_at_s = now_s
        self._quic = quic
        self._greeting = greeting
        self._cells = cells
        self._settings = settings
        self._reader = CellReader(cells)
        self._inbox: list[Cell] = []
        self._control: deque[bytes] = deque()
        self._events: deque[LinkEvent] = deque()
        self._state = _State.GREETING
        self._deadline_s = now_s + settings.handshake_timeout_s
        self._heard_at_s = self._probed_at_s = now_s
        self._window_bytes = settings.send_window_packets * cells.cell_bytes
        self._backlog_bytes = 0
        self._key_datagrams = 0
        self.renewals = 0
        """How often we have asked for new keys."""
        dialled = isinstance(greeting, Dialling)
        self._our_stream = _DIALLERS_STREAM if dialled else _LISTENERS_STREAM
        self._their_stream = _LISTENERS_STREAM if dialled else _DIALLERS_STREAM

    # -- facts --------------------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        return self._state is _State.OPEN

    @property
    def is_closed(self) -> bool:
        return self._state is _State.CLOSED

    @property
    def is_dialled(self) -> bool:
        return isinstance(self._greeting, Dialling)

    @property
    def backlog_bytes(self) -> int:
        """What is accepted and has not left, as of the last `datagrams`."""
        return self._backlog_bytes

    @property
    def waits_to_send(self) -> bool:
        return self._state is _State.OPEN and (self._backlog_bytes > 0 or bool(self._control))

    # -- from the network ---------------------------------------------------------------------------------------

    def receive(self, data: bytes, segment_bytes: int, *, now_s: float) -> None:
        """Take datagrams that arrived from `address`, of `segment_bytes` each but perhaps for the last."""
        self._heard_at_s = now_s
        if segment_bytes < len(data):
            self._call(lambda: self._quic.receive_gro_buffer(data, segment_bytes, self.address, now_s), now_s)
        else:
            self._call(lambda: self._quic.receive_datagram(data, self.address, now_s), now_s)

    def next_event(self) -> LinkEvent | None:
        return self._events.popleft() if self._events else None

    def take_cells(self) -> Sequence[Cell]:
        """Return the cells that have arrived since the last time."""
        cells, self._inbox = self._inbox, []
        return cells

    # -- to the network -----------------------------------------------------------------------------------------

    def welcome(self, *, now_s: float) -> None:
        """Take the dialler that has proved who it is."""
        if self._state is not _State.PROVED or not isinstance(self._greeting, Listening):
            raise LocalProtocolError("only a proved link is welcomed")
        self._state = _State.OPEN
        self.used_at_s = now_s
        self._write(self._greeting.welcome())

    def send_packet(self, packet: bytes, *, now_s: float) -> bool:
        """Queue a packet; false if the window is full, or the link no longer open."""
        if self._state is not _State.OPEN or self._backlog_bytes >= self._window_bytes:
            return False
        self.used_at_s = now_s
        return self._write(self._cells.packet(packet))

    def send_control(self, data: bytes) -> bool:
        """Queue a control message; false if too many wait."""
        if self._state is not _State.OPEN or len(self._control) >= self._settings.control_queue_messages:
            return False
        self._control.append(data)
        return True

    def close(self, code: CloseCode, *, cause: str) -> None:
        """Close; `Closed` follows, and one more datagram that says so."""
        if self._state is _State.CLOSED:
            return
        unsent = math.ceil(self._backlog_bytes / self._cells.cell_bytes) if self._state is _State.OPEN else 0
        self._state = _State.CLOSED
        self._control.clear()
        self._events.append(Closed(cause, unsent))
        try:
            self._quic.close(error_code=code.value)
        except Exception:  # noqa: BLE001 -- whatever it is, there is nothing left to close
            self.is_over = True

    def datagrams(self, *, now_s: float) -> list[bytes]:
        """Return what to send to `address` now."""
        self._write_control()
        produced: list[tuple[bytes, Address]] = []
        self._call(lambda: produced.extend(self._quic.datagrams_to_send(now_s)), now_s)
        if self._state is _State.OPEN:
            self._backlog_bytes = self._quic.get_send_buffer_size(self._our_stream)
            self._key_datagrams += len(produced)
            if self._key_datagrams >= self._settings.key_datagrams:
                self._renew_keys()
        return [datagram for datagram, _ in produced]

    # -- time ---------------------------------------------------------------------------------------------------

    def next_timer_s(self) -> float | None:
        if self.is_over:
            return None
        timer_s: float | None = self._quic.get_timer()
        own_s = self._own_timer_s()
        if timer_s is None or own_s is None:
            return own_s if timer_s is None else timer_s
        return min(timer_s, own_s)

    def handle_timer(self, *, now_s: float) -> None:
        own_s = self._own_timer_s()
        if own_s is not None and now_s >= own_s:
            if self._state is _State.OPEN:
                self._probed_at_s = now_s
                self._call(lambda: self._quic.send_ping(0), now_s)
            else:
                self.close(CloseCode.REFUSED, cause=LINK_TIMEOUT)
        timer_s = self._quic.get_timer()
        if timer_s is not None and now_s >= timer_s:
            self._call(lambda: self._quic.handle_timer(now_s), now_s)

    def _own_timer_s(self) -> float | None:
        if self._state is _State.CLOSED:
            return None
        if self._state is not _State.OPEN:
            return self._deadline_s
        # The dialler probes for both: its probe is heard there, and the acknowledgement here.
        return max(self._heard_at_s, self._probed_at_s) + self._settings.keep_alive_s if self.is_dialled else None

    # -- inside -------------------------------------------------------------------------------------------------

    def _call(self, operation: Callable[[], None], now_s: float) -> None:
        """Call the library, and follow its events; an exception of its is the end of this link."""
        if self.is_over:
            return
        try:
            operation()
            while (event := self._quic.next_event()) is not None:
                self._follow(event, now_s)
        except ControlError as refusal:
            self.close(CloseCode.VIOLATION, cause=refusal.cause)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # noqa: BLE001 -- the library parses a peer's bytes; a panic of its core is no Exception
            self.close(CloseCode.VIOLATION, cause="link_quic_error")

    def _follow(self, event: quic_events.QuicEvent, now_s: float) -> None:
        match event:
            case quic_events.StreamDataReceived():
                if event.stream_id != self._their_stream or event.end_stream:
                    raise ControlError("link_other_stream")
                if self._state is not _State.CLOSED:
                    self._read(event.data, now_s)
            case quic_events.ProtocolNegotiated() if not alpn_fits(event.alpn_protocol):
                raise ControlError("link_other_protocol")
            case quic_events.HandshakeCompleted():
                self.was_secured = True
                if isinstance(self._greeting, Listening):
                    self._write(self._greeting.challenge())
            case quic_events.ConnectionIdIssued():
                self.connection_ids.add(bytes(event.connection_id))
            case quic_events.ConnectionIdRetired():
                self.connection_ids.discard(bytes(event.connection_id))
            case quic_events.ConnectionTerminated():
                self.close(CloseCode.BYE, cause=_cause_of(event))
                self.is_over = True
            case quic_events.DatagramFrameReceived() | quic_events.StreamReset() | quic_events.StopSendingReceived():
                raise ControlError("link_other_frame")
            case _:
                pass

    def _read(self, data: bytes, now_s: float) -> None:
        if self._state is _State.OPEN:
            self._inbox += self._reader.feed(data)
            return
        match self._greeting:
            case Listening() as listening:
                proved = listening.receive(data)
                if proved is not None:
                    self.peer = proved.peer
                    self._state = _State.PROVED
                    self._deadline_s = now_s + self._settings.handshake_timeout_s
                    self._events.append(proved)
            case Dialling() as dialling:
                answer = dialling.receive(data)
                if isinstance(answer, bytes):
                    self._write(answer)
                elif isinstance(answer, Welcomed):
                    self._state = _State.OPEN
                    self.used_at_s = now_s
                    self._events.append(Opened())
                    self._inbox += self._reader.feed(dialling.rest())

    def _write(self, data: bytes) -> bool:
        try:
            self._quic.send_stream_data(self._our_stream, data)
        except Exception:  # noqa: BLE001 -- the peer has closed: the library says so here before it says so in an event
            self.close(CloseCode.BYE, cause="link_closed_by_peer")
            return False
        self._backlog_bytes += len(data)
        return True

    def _renew_keys(self) -> None:
        # AES-GCM keeps its promises for 2^23 datagrams a key, and a link stays up for longer than that.
        try:
            self._quic.request_key_update()
        except Exception:  # noqa: BLE001 -- the last renewal, or the peer's, is not acknowledged yet: again in a while
            self._key_datagrams -= self._settings.key_datagrams // _RENEWAL_RETRIES
        else:
            self._key_datagrams = 0
            self.renewals += 1

    def _write_control(self) -> None:
        control = self._control
        while control and self._state is _State.OPEN and self._backlog_bytes < self._window_bytes:
            cell, count = self._cells.control(control)
            for _ in range(count):
                control.popleft()
            self._write(cell)


def _cause_of(event: quic_events.ConnectionTerminated) -> str:
    if event.frame_type is None:
        return "link_closed_by_peer"
    return "link_idle" if "idle" in event.reason_phrase.lower() else "link_quic_error"
