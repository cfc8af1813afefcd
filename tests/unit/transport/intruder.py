"""A dialler that does QUIC right and everything after it wrong."""

import asyncio
from typing import Any

from qh3.quic import events

from tests.unit.transport.virtual import Place, closed_at_the_end, entropy
from unlinkabledfl.mixnet.limits import Counters
from unlinkabledfl.sphinx import NodeId
from unlinkabledfl.transport.cells import CellFormat
from unlinkabledfl.transport.certificates import LinkIdentity
from unlinkabledfl.transport.handshake import Dialling
from unlinkabledfl.transport.quic import Connections
from unlinkabledfl.transport.settings import EndpointSettings
from unlinkabledfl.transport.udp import UdpSocket

STREAM = 2
PACKET_BYTES = 4_000


class Intruder:
    """Speaks QUIC with a place, by hand. `heard` is what came on the place's stream."""

    def __init__(self, target: Place, *, identity: LinkIdentity, fingerprint: bytes | None = None) -> None:
        self.target = target
        self.identity = identity
        self.heard = b""
        self.closed: int | None = None
        self.secured = False
        self._loop = asyncio.get_running_loop()
        self.socket = UdpSocket(host="127.0.0.1", port=0, counters=Counters())
        settings = EndpointSettings(packet_bytes=PACKET_BYTES)
        self.quic = Connections(identity, settings).dial(
            target.address,
            fingerprint=fingerprint or target.identity.fingerprint,
            datagram_bytes=1_280,
            now_s=self._loop.time(),
        )
        self._timer: asyncio.TimerHandle | None = None
        self._loop.add_reader(self.socket.fileno(), self._read)
        closed_at_the_end(self)
        self.flush()

    def send(self, data: bytes, *, stream: int = STREAM, end: bool = False) -> None:
        self.quic.send_stream_data(stream, data, end)
        self.flush()

    def flush(self) -> None:
        now_s = self._loop.time()
        while (event := self.quic.next_event()) is not None:
            self._follow(event)
        datagrams = [data for data, _ in self.quic.datagrams_to_send(now_s)]
        if datagrams:
            self.socket.send(datagrams, self.target.address)
        due_s = self.quic.get_timer()
        if self._timer is not None:
            self._timer.cancel()
        if due_s is not None:
            self._timer = self._loop.call_at(max(due_s, now_s + 0.001), self._wake)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self.socket.fileno())
        self.socket.close()

    def greeting(self, node_id: NodeId, **changed: Any) -> Dialling:
        """The honest machine, to be led astray."""
        arguments: dict[str, Any] = {
            "node_id": node_id,
            "identity": self.identity,
            "listener_fingerprint": self.target.identity.fingerprint,
            "cell_bytes": CellFormat(PACKET_BYTES).cell_bytes,
            "entropy": entropy(99),
        }
        return Dialling(**(arguments | changed))

    def proof(self, node_id: NodeId, **changed: Any) -> bytes:
        """Answer the challenge that was heard."""
        proof = self.greeting(node_id, **changed).receive(self.heard)
        assert isinstance(proof, bytes)
        return proof

    def _wake(self) -> None:
        self.quic.handle_timer(self._loop.time())
        self.flush()

    def _read(self) -> None:
        for arrival in self.socket.receive(16):
            self.quic.receive_gro_buffer(arrival.data, arrival.segment_bytes, self.target.address, self._loop.time())
        self.flush()

    def _follow(self, event: events.QuicEvent) -> None:
        if isinstance(event, events.StreamDataReceived):
            self.heard += event.data
        elif isinstance(event, events.HandshakeCompleted):
            self.secured = True
        elif isinstance(event, events.ConnectionTerminated):
            self.closed = event.error_code
