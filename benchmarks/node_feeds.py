"""Who feeds the relays of `bench node`, and counts what comes out of them."""

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from benchmarks import node_relays
from benchmarks.link_contenders import Book
from benchmarks.node_relays import DATAGRAM_BYTES, HOST, Wire
from unlinkabledfl.experiment.backends.process.forkserver import ForkRequest, ForkServer
from unlinkabledfl.mixnet.draw import Draw
from unlinkabledfl.mixnet.items import MessageId
from unlinkabledfl.mixnet.packets import Loop
from unlinkabledfl.mixnet.sphinx_packets import SphinxPackets
from unlinkabledfl.sphinx import Geometry, Hop, NodeId, Sphinx
from unlinkabledfl.transport.book import Contact
from unlinkabledfl.transport.certificates import LinkIdentity
from unlinkabledfl.transport.endpoint import Endpoint
from unlinkabledfl.transport.settings import EndpointSettings

WINDOW = 128
DELAY_MEAN_S = 0.005
PATIENCE_S = 60.0


class Feed(Protocol):
    """A relay, and both its neighbours."""

    async def start(self, server: ForkServer) -> None:
        """Start the relay, and link with it."""

    def make(self, count: int) -> list[bytes]:
        """Make so many packets, to be passed on once each."""

    def send(self, packet: bytes) -> bool:
        """Hand it to the relay; false: not now."""

    async def cpu_s(self) -> float:
        """Ask the relay for its CPU time so far."""

    async def stop(self) -> None:
        """End the relay."""

    @property
    def counter(self) -> "Counter":
        """Counts what has come out."""


class Counter:
    """How many packets have come out, and somebody who waits for more."""

    def __init__(self) -> None:
        self.count = 0
        self._moved = asyncio.Event()

    def add(self, packets: int) -> None:
        self.count += packets
        self._moved.set()

    async def wait(self) -> None:
        self._moved.clear()
        await self._moved.wait()


async def saturate(feed: Feed, packets: Sequence[bytes]) -> float:
    """Feed the relay as fast as it goes; return its CPU µs a packet."""
    before_s, start, sent = await feed.cpu_s(), feed.counter.count, 0
    async with asyncio.timeout(PATIENCE_S):
        while (done := feed.counter.count - start) < len(packets):
            while sent < len(packets) and sent - done < WINDOW and feed.send(packets[sent]):
                sent += 1
            await feed.counter.wait()
    return (await feed.cpu_s() - before_s) / len(packets) * 1e6


async def trickle(feed: Feed, packets: Sequence[bytes], *, rate_per_s: float) -> float:
    """Feed the relay at this rate; return its CPU µs a packet."""
    before_s, start = await feed.cpu_s(), feed.counter.count
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    for number, packet in enumerate(packets):
        await asyncio.sleep(max(0.0, began_s + number / rate_per_s - loop.time()))
        feed.send(packet)
    async with asyncio.timeout(PATIENCE_S):
        while feed.counter.count - start < len(packets):
            await feed.counter.wait()
    return (await feed.cpu_s() - before_s) / len(packets) * 1e6


class _Forked:
    """The relay's process."""

    def __init__(self, main: Callable[[socket.socket], int]) -> None:
        self._main = f"{main.__module__}:{main.__name__}"
        self._end = socket.socketpair()
        self.wire = Wire(self._end[0])

    async def start(self, server: ForkServer, order: dict[str, Any]) -> dict[str, Any]:
        request = ForkRequest(main=self._main, name="bench-relay", death_signal=signal.SIGTERM)
        with self._end[1]:
            await server.fork(request, self._end[1], on_exit=lambda *_: None)
        await self.wire.say(**order)
        return await self.wire.hear()

    async def cpu_s(self) -> float:
        await self.wire.say(do="cpu")
        answer: float = (await self.wire.hear())["cpu_s"]
        return answer

    async def stop(self) -> None:
        await self.wire.say(do="stop")
        self._end[0].close()


class _Neighbour:
    """A sink for an endpoint's news that counts packets."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self.linked = asyncio.Event()

    def link_up(self, peer: NodeId) -> bool:
        self.linked.set()
        return True

    def link_down(self, peer: NodeId) -> None:
        pass

    def dial_failed(self, peer: NodeId) -> None:
        raise RuntimeError("the relay cannot be reached over loopback")

    def packets_received(self, packets: Sequence[tuple[NodeId, bytes]]) -> None:
        self._counter.add(len(packets))

    def control_received(self, peer: NodeId, data: bytes) -> None:
        pass


class OurFeed:
    """Our relay between two endpoints of ours."""

    def __init__(self) -> None:
        self._codec = Sphinx(Geometry())
        self._packets = SphinxPackets(self._codec)
        self._ids = tuple(NodeId(os.urandom(32)) for _ in range(2))
        self._contacts: dict[NodeId, Contact] = {}
        self.counter = Counter()
        self._draw = Draw(os.urandom)

    async def start(self, server: ForkServer) -> None:
        identities = [LinkIdentity.generate() for _ in self._ids]
        settings = EndpointSettings(
            packet_bytes=self._packets.packet_bytes,
            datagram_bytes=DATAGRAM_BYTES,
            send_window_packets=2 * WINDOW,
            allow_loopback=True,
        )
        self._ends = [
            Endpoint(
                node_id=node_id, identity=identity, book=Book(self._contacts), settings=settings, entropy=os.urandom
            )
            for node_id, identity in zip(self._ids, identities, strict=True)
        ]
        neighbours = [_Neighbour(self.counter) for _ in self._ids]
        for end, neighbour in zip(self._ends, neighbours, strict=True):
            await end.open(neighbour, host=HOST)
        self._relay = _Forked(node_relays.ours)
        contacts = {
            node_id.hex(): identity.fingerprint.hex() for node_id, identity in zip(self._ids, identities, strict=True)
        }
        told = await self._relay.start(server, {"contacts": contacts})
        self._relay_id = NodeId(bytes.fromhex(told["node_id"]))
        self._relay_key = bytes.fromhex(told["public_key"])
        self._contacts[self._relay_id] = Contact(
            fingerprint=bytes.fromhex(told["fingerprint"]), addresses=(told["address"],)
        )
        for end, neighbour in zip(self._ends, neighbours, strict=True):
            end.want(self._relay_id)
            await neighbour.linked.wait()
        self._sink_key = self._codec.generate_key(os.urandom).public_bytes

    def make(self, count: int) -> list[bytes]:
        # What the last hop would find inside is of no concern here: it is counted, not opened.
        made: list[bytes] = []
        for _ in range(count):
            delay_us = round(self._draw.exponential(DELAY_MEAN_S) * 1e6)
            path = [Hop(self._relay_id, self._relay_key, delay_us), Hop(self._ids[1], self._sink_key)]
            made.append(self._packets.wrap(path, Loop(MessageId(bytes(16))), entropy=os.urandom))
        return made

    def send(self, packet: bytes) -> bool:
        return self._ends[0].send_packet(self._relay_id, packet)

    async def cpu_s(self) -> float:
        return await self._relay.cpu_s()

    async def stop(self) -> None:
        await self._relay.stop()
        for end in self._ends:
            await end.close()


class ReferenceFeed:
    """The reference relay between a client and a server of aioquic."""

    def __init__(self) -> None:
        self._body_bytes = Geometry().body_bytes
        self.counter = Counter()

    async def start(self, server: ForkServer) -> None:
        self._sink, port = await node_relays.serve(lambda _: self.counter.add(1))
        self._relay = _Forked(node_relays.reference)
        told = await self._relay.start(server, {"sink_port": port, "body_bytes": self._body_bytes})
        self._relay_key = bytes.fromhex(told["public_key"])
        self._send, self._close = await node_relays.connect(told["port"])

    def make(self, count: int) -> list[bytes]:
        return node_relays.make_reference_packets(self._relay_key, body_bytes=self._body_bytes, count=count)

    def send(self, packet: bytes) -> bool:
        self._send(packet)
        return True

    async def cpu_s(self) -> float:
        return await self._relay.cpu_s()

    async def stop(self) -> None:
        await self._close()
        await self._relay.stop()
        self._sink.close()


__all__ = ["Counter", "Feed", "OurFeed", "ReferenceFeed", "saturate", "trickle"]
