"""What carries packets from one end of this process to the other in `bench link`: ours, and what it is compared with.

Each contender keeps one connection over loopback. `carry` sends packets with at most `WINDOW` of them under way, until
all have arrived. Whoever receives counts bytes and nothing more, below the stream API of its library where it has one:
that is in favour of the others.
"""

import asyncio
import os
import ssl
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from unlinkabledfl.sphinx import NodeId
from unlinkabledfl.transport.book import Contact, Contacts
from unlinkabledfl.transport.certificates import LinkIdentity
from unlinkabledfl.transport.endpoint import Endpoint
from unlinkabledfl.transport.settings import EndpointSettings

PACKET_BYTES = 10_700
WINDOW = 64
HOST = "127.0.0.1"
PATIENCE_S = 60.0


class Contender(Protocol):
    """One connection."""

    async def start(self) -> None:
        """Connect."""

    async def carry(self, packets: int) -> None:
        """Send so many packets, and return when all have arrived."""

    async def stop(self) -> None:
        """Disconnect."""


class Tally:
    """What has arrived, and somebody who waits for more."""

    def __init__(self) -> None:
        self.received_bytes = 0
        self._moved = asyncio.Event()

    def add(self, length: int) -> None:
        self.received_bytes += length
        self._moved.set()

    async def pump(self, packets: int, send: Callable[[], bool]) -> None:
        """Keep at most `WINDOW` packets under way until all have arrived."""
        start = self.received_bytes
        sent = 0
        async with asyncio.timeout(PATIENCE_S):
            while (arrived := (self.received_bytes - start) // PACKET_BYTES) < packets:
                while sent < packets and sent - arrived < WINDOW and send():
                    sent += 1
                self._moved.clear()
                await self._moved.wait()


class Ours:
    """Two endpoints and the link between them."""

    def __init__(self, datagram_bytes: int) -> None:
        self._settings = EndpointSettings(
            packet_bytes=PACKET_BYTES,
            datagram_bytes=datagram_bytes,
            send_window_packets=2 * WINDOW,
            allow_loopback=True,
        )
        self._ids = (NodeId(bytes(32)), NodeId(b"\x01" * 32))
        self._packet = os.urandom(PACKET_BYTES)

    async def start(self) -> None:
        identities = [LinkIdentity.generate() for _ in self._ids]
        contacts: dict[NodeId, Contact] = {}
        self._ends = [
            Endpoint(
                node_id=node_id,
                identity=identity,
                book=Book(contacts),
                settings=self._settings,
                entropy=os.urandom,
            )
            for node_id, identity in zip(self._ids, identities, strict=True)
        ]
        self._sink = Sink()
        for node_id, identity, end in zip(self._ids, identities, self._ends, strict=True):
            host, port = await end.open(self._sink)
            contacts[node_id] = Contact(fingerprint=identity.fingerprint, addresses=(f"{host}:{port}",))
        self._ends[0].want(self._ids[1])
        await self._sink.linked.wait()

    async def carry(self, packets: int) -> None:
        dialler, listener = self._ends[0], self._ids[1]
        await self._sink.tally.pump(packets, lambda: dialler.send_packet(listener, self._packet))

    async def stop(self) -> None:
        for end in self._ends:
            await end.close()


class Book(Contacts):
    """Contacts that are filled in as sockets get their ports."""

    def __init__(self, contacts: dict[NodeId, Contact]) -> None:
        super().__init__({})
        self._filled = contacts

    def contact(self, peer: NodeId) -> Contact | None:
        return self._filled.get(peer)


class Sink:
    """Counts packets."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.linked = asyncio.Event()

    def link_up(self, peer: NodeId) -> bool:
        self.linked.set()
        return True

    def link_down(self, peer: NodeId) -> None:
        pass

    def dial_failed(self, peer: NodeId) -> None:
        raise RuntimeError("a link over loopback could not be made")

    def packets_received(self, packets: Sequence[tuple[NodeId, bytes]]) -> None:
        self.tally.add(sum(len(packet) for _, packet in packets))

    def control_received(self, peer: NodeId, data: bytes) -> None:
        pass


class StockQuic:
    """A library's own asyncio server and client; `library` is `qh3` or `aioquic`, whose interfaces are alike.

    With `stream_a_packet`, as the published prototype does it; otherwise one stream for all, which is also what qh3
    needs: with a stream a packet it loses data.
    """

    def __init__(self, library: str, datagram_bytes: int, *, stream_a_packet: bool) -> None:
        self._library = library
        self._datagram_bytes = datagram_bytes
        self._stream_a_packet = stream_a_packet
        self._packet = os.urandom(PACKET_BYTES)
        self._open = AsyncExitStack()

    async def start(self) -> None:
        self._tally = Tally()
        connect, serve, configure, protocol = _parts(self._library, self._tally)
        size = {"max_datagram_size": self._datagram_bytes, "alpn_protocols": ["bench"]}
        if self._library == "qh3":
            size["probe_datagram_size"] = False
        listening = configure(is_client=False, **size)
        with tempfile.TemporaryDirectory() as folder:
            listening.load_cert_chain(*_certificate_files(Path(folder), self._library))
        server = await serve(HOST, 0, configuration=listening, create_protocol=protocol)
        port = server._transport.get_extra_info("sockname")[1]  # noqa: SLF001 -- neither library says it otherwise
        self._open.callback(server.close)
        dialling = configure(is_client=True, verify_mode=ssl.CERT_NONE, **size)
        self._client: Any = await self._open.enter_async_context(
            connect(HOST, port, configuration=dialling, create_protocol=protocol)
        )
        self._stream = self._client.next_stream()

    async def carry(self, packets: int) -> None:
        await self._tally.pump(packets, self._send)

    async def stop(self) -> None:
        await self._open.aclose()

    def _send(self) -> bool:
        if self._stream_a_packet:
            self._client.send(self._client.next_stream(), self._packet, end=True)
        else:
            self._client.send(self._stream, self._packet, end=False)
        return True


def _parts(library: str, tally: Tally) -> tuple[Any, Any, Any, Any]:
    """Return the library's connect, serve and configuration, and its protocol class with the counting built in."""
    base: Any = import_module(f"{library}.asyncio.protocol").QuicConnectionProtocol
    received: Any = import_module(f"{library}.quic.events").StreamDataReceived

    class Counting(base):  # type: ignore[misc]
        """Counts what arrives, and sends without a writer in between."""

        def quic_event_received(self, event: object) -> None:
            if isinstance(event, received):
                tally.add(len(event.data))

        def next_stream(self) -> int:
            stream: int = self._quic.get_next_available_stream_id(is_unidirectional=True)
            return stream

        def send(self, stream: int, data: bytes, *, end: bool) -> None:
            self._quic.send_stream_data(stream, data, end)
            self.transmit()

    return (
        import_module(f"{library}.asyncio.client").connect,
        import_module(f"{library}.asyncio.server").serve,
        import_module(f"{library}.quic.configuration").QuicConfiguration,
        Counting,
    )


def _certificate_files(folder: Path, library: str) -> tuple[Path, Path]:
    certificate, key = folder / "crt", folder / "key"
    if library == "qh3":
        # Its clients do not offer Ed25519 unless told so.
        from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

        _self_signed(generate_private_key(SECP256R1()), certificate, key)
    else:
        LinkIdentity.generate().save(certificate_file=certificate, key_file=key)
    return certificate, key


def _self_signed(private_key: Any, certificate_file: Path, key_file: Path) -> None:  # noqa: ANN401 -- any kind of key
    from datetime import UTC, datetime

    from cryptography import x509
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "bench")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private_key.public_key())
        .serial_number(1)
        .not_valid_before(datetime(2000, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2100, 1, 1, tzinfo=UTC))
        .sign(private_key, SHA256())
    )
    certificate_file.write_bytes(certificate.public_bytes(Encoding.PEM))
    key_file.write_bytes(private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


class TcpTls:
    """A TCP connection with TLS 1.3: what the same bytes cost where datagrams are the kernel's affair."""

    def __init__(self) -> None:
        self._packet = os.urandom(PACKET_BYTES)

    async def start(self) -> None:
        self._tally = Tally()
        listening = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        with tempfile.TemporaryDirectory() as folder:
            listening.load_cert_chain(*_certificate_files(Path(folder), "tls"))
        self._server = await asyncio.start_server(self._count, HOST, 0, ssl=listening)
        dialling = ssl.create_default_context()
        dialling.check_hostname = False
        dialling.verify_mode = ssl.CERT_NONE
        port = self._server.sockets[0].getsockname()[1]
        _, self._writer = await asyncio.open_connection(HOST, port, ssl=dialling)

    async def carry(self, packets: int) -> None:
        await self._tally.pump(packets, self._send)

    async def stop(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()
        self._server.close()
        await self._server.wait_closed()

    def _send(self) -> bool:
        self._writer.write(self._packet)
        return True

    async def _count(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 18):
            self._tally.add(len(data))
        writer.close()
