"""Relays for `bench node`: ours and a reference, each a process of its own that takes packets in and passes them on.

Ours is what a node runs: endpoint, driver, mix. The reference is what systems of this kind are usually built on:
aioquic's asyncio server and client, one stream a direction, and sphinxmix; it looks replays up in a set and forwards at
once, without a mixer, limits or counters. Both are told to start over a socket, and tell their CPU time when asked.
"""

import asyncio
import json
import os
import socket
import ssl
import struct
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.link_contenders import Book
from unlinkabledfl.mixnet.config import MixSettings, build_mix_node
from unlinkabledfl.mixnet.destinations import ListedDestinations
from unlinkabledfl.mixnet.mix_node import NeighbourLimits
from unlinkabledfl.mixnet.mixers import PoissonSettings
from unlinkabledfl.mixnet.peers import PeerSettings, PeerView
from unlinkabledfl.mixnet.routes import OverlayRoutes
from unlinkabledfl.mixnet.sphinx_packets import SphinxPackets
from unlinkabledfl.sphinx import Geometry, NodeId, Sphinx
from unlinkabledfl.transport.book import Contact
from unlinkabledfl.transport.certificates import LinkIdentity
from unlinkabledfl.transport.driver import NodeDriver
from unlinkabledfl.transport.endpoint import Endpoint
from unlinkabledfl.transport.settings import EndpointSettings

DATAGRAM_BYTES = 1_280
HOST = "127.0.0.1"
_LENGTH = struct.Struct(">I")


class Wire:
    """JSON messages over a socket, question and answer in turns."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._end = end
        self._loop = asyncio.get_running_loop()

    async def say(self, **message: Any) -> None:  # noqa: ANN401 -- JSON
        await self._loop.sock_sendall(self._end, json.dumps(message).encode())

    async def hear(self) -> dict[str, Any]:
        data = await self._loop.sock_recv(self._end, 1 << 16)
        return json.loads(data) if data else {"do": "stop"}

    async def say_long(self, numbers: list[float]) -> None:
        """Send numbers, however many there are, as the last that is said."""
        data = struct.pack(f"={len(numbers)}d", *numbers)
        await self._loop.sock_sendall(self._end, _LENGTH.pack(len(data)) + data)

    async def hear_long(self) -> list[float]:
        """Receive what `say_long` sent."""
        data = b""
        while len(data) < _LENGTH.size or len(data) < _LENGTH.size + _LENGTH.unpack_from(data)[0]:
            data += await self._loop.sock_recv(self._end, 1 << 16)
        return list(struct.unpack(f"={(len(data) - _LENGTH.size) // 8}d", data[_LENGTH.size :]))


async def _answer(wire: Wire) -> None:
    """Tell CPU time as often as asked, until told to stop."""
    while (await wire.hear())["do"] == "cpu":
        await wire.say(cpu_s=time.process_time())


def ours(connection: socket.socket) -> int:
    """Run our relay; the main function of a forked process."""
    return asyncio.run(_ours(connection))


async def _ours(connection: socket.socket) -> int:
    wire = Wire(connection)
    order = await wire.hear()
    identity = LinkIdentity.generate()
    node_id = NodeId(os.urandom(32))
    packets = SphinxPackets(Sphinx(Geometry()))
    view = PeerView(own_id=node_id, settings=PeerSettings(allow_loopback=True))
    routes = OverlayRoutes(peers=view, path_length=2)
    mix = build_mix_node(
        MixSettings(
            # It emits nothing of its own, so all that it does is for the packets that it is fed.
            mixer=PoissonSettings(emission_rate_per_s=1e-3, loop_rate_per_s=0.0, cover=False, transit_capacity=10_000),
            limits=NeighbourLimits(packets_per_s=1e6, packets_burst=1e6, transit_share=1.0),
        ),
        node_id=node_id,
        packets=packets,
        peers=view,
        routes=routes,
        destinations=ListedDestinations(source=node_id, routes=routes, listed=(), knows=view.knows),
        entropy=os.urandom,
    )
    contacts = {
        NodeId(bytes.fromhex(peer)): Contact(fingerprint=bytes.fromhex(fingerprint))
        for peer, fingerprint in order["contacts"].items()
    }
    endpoint = Endpoint(
        node_id=node_id,
        identity=identity,
        book=Book(contacts),
        settings=EndpointSettings(
            packet_bytes=packets.packet_bytes,
            datagram_bytes=DATAGRAM_BYTES,
            send_window_packets=256,
            allow_loopback=True,
        ),
        entropy=os.urandom,
    )
    driver = NodeDriver(node=mix, endpoint=endpoint)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(driver.run(host=HOST))
        await driver.ready.wait()
        await wire.say(
            node_id=node_id.hex(),
            public_key=mix.public_key.hex(),
            fingerprint=identity.fingerprint.hex(),
            address=f"{HOST}:{driver.address[1]}",
        )
        await _answer(wire)
        driver.stop()
    return 0


def reference(connection: socket.socket) -> int:
    """Run the reference relay; the main function of a forked process."""
    return asyncio.run(_reference(connection))


async def _reference(connection: socket.socket) -> int:
    wire = Wire(connection)
    order = await wire.hear()
    relay = ReferenceRelay(body_bytes=order["body_bytes"])
    forward, close = await connect(order["sink_port"])
    server, port = await serve(lambda data: forward(relay.peel(data)))
    await wire.say(port=port, public_key=relay.public_key.hex())
    await _answer(wire)
    server.close()
    await close()
    return 0


class ReferenceRelay:
    """One hop by sphinxmix."""

    def __init__(self, *, body_bytes: int) -> None:
        from sphinxmix.SphinxClient import pack_message, unpack_message
        from sphinxmix.SphinxNode import sphinx_process
        from sphinxmix.SphinxParams import SphinxParams

        self._parameters = SphinxParams(body_len=body_bytes)
        group = self._parameters.group
        self._secret = group.gensecret()
        self._key = group.expon(group.g, [self._secret])
        self.public_key: bytes = self._key.export()
        self._lengths = {(self._parameters.max_len, self._parameters.m): self._parameters}
        self._seen: set[bytes] = set()
        self._process, self._pack, self._unpack = sphinx_process, pack_message, unpack_message

    def peel(self, data: bytes) -> bytes:
        _, (header, body) = self._unpack(self._lengths, data)
        tag, _, (header, body), _ = self._process(self._parameters, self._secret, header, body)
        if tag in self._seen:
            raise RuntimeError("a benchmark packet was replayed")
        self._seen.add(tag)
        packed: bytes = self._pack(self._parameters, (header, body))
        return packed


def make_reference_packets(public_key: bytes, *, body_bytes: int, count: int) -> list[bytes]:
    """Packets for the reference relay, and one hop more."""
    from petlib.ec import EcPt
    from sphinxmix.SphinxClient import Nenc, create_forward_message, pack_message
    from sphinxmix.SphinxParams import SphinxParams

    parameters = SphinxParams(body_len=body_bytes)
    group = parameters.group
    key = EcPt.from_binary(public_key, group.G)
    sink = group.expon(group.g, [group.gensecret()])
    names = [Nenc(b"r"), Nenc(b"s")]
    message = bytes(body_bytes - 64)
    return [
        pack_message(parameters, create_forward_message(parameters, names, [key, sink], b"d", message))
        for _ in range(count)
    ]


# --------------------------------------------------------------------------- aioquic's own server and client


async def serve(take: Callable[[bytes], object]) -> tuple[Any, int]:
    """Listen; hand over each message, which is its length and its bytes on one long stream. Returns server and port."""
    from aioquic.asyncio.protocol import QuicConnectionProtocol
    from aioquic.asyncio.server import serve as listen
    from aioquic.quic.configuration import QuicConfiguration
    from aioquic.quic.events import StreamDataReceived

    class Receiver(QuicConnectionProtocol):
        def __init__(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 -- its parent's
            super().__init__(*arguments, **named)
            self._buffer = bytearray()

        def quic_event_received(self, event: object) -> None:
            if not isinstance(event, StreamDataReceived):
                return
            buffer = self._buffer
            buffer += event.data
            while len(buffer) >= _LENGTH.size:
                end = _LENGTH.size + _LENGTH.unpack_from(buffer)[0]
                if len(buffer) < end:
                    break
                take(bytes(buffer[_LENGTH.size : end]))
                del buffer[:end]

    configuration = QuicConfiguration(is_client=False, alpn_protocols=["bench"], max_datagram_size=DATAGRAM_BYTES)
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder) / "crt", Path(folder) / "key"
        LinkIdentity.generate().save(certificate_file=certificate, key_file=key)
        configuration.load_cert_chain(certificate, key)
    server = await listen(HOST, 0, configuration=configuration, create_protocol=Receiver)
    transport: Any = server._transport  # noqa: SLF001 -- it does not say its port otherwise
    port: int = transport.get_extra_info("sockname")[1]
    return server, port


async def connect(port: int) -> tuple[Callable[[bytes], None], Callable[[], Any]]:
    """Connect; return what sends a message, and what hangs up."""
    from contextlib import AsyncExitStack

    from aioquic.asyncio.client import connect as dial
    from aioquic.quic.configuration import QuicConfiguration

    configuration = QuicConfiguration(
        is_client=True, alpn_protocols=["bench"], max_datagram_size=DATAGRAM_BYTES, verify_mode=ssl.CERT_NONE
    )
    stack = AsyncExitStack()
    client: Any = await stack.enter_async_context(dial(HOST, port, configuration=configuration))
    stream = client._quic.get_next_available_stream_id(is_unidirectional=True)  # noqa: SLF001 -- it has no other way

    def send(message: bytes) -> None:
        client._quic.send_stream_data(stream, _LENGTH.pack(len(message)) + message, False)  # noqa: SLF001
        client.transmit()

    async def close() -> None:
        with suppress(ConnectionError):
            await stack.aclose()

    return send, close
