"""What the tests of links share: a loop whose clock jumps, nodes on loopback sockets, and a sink that writes down.

Datagrams travel over real sockets: the system hands them over before the call that sends them returns. Whenever nothing
is left to read, the clock jumps to the next timer. So a test of a thirty-second timeout takes no time, and no test can
be late.
"""

import asyncio
import random
import selectors
import socket
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from unlinkabledfl.sphinx import NodeId
from unlinkabledfl.transport.addresses import Resolver
from unlinkabledfl.transport.book import Contact
from unlinkabledfl.transport.certificates import LinkIdentity
from unlinkabledfl.transport.endpoint import Endpoint
from unlinkabledfl.transport.settings import EndpointSettings

T = TypeVar("T")

PACKET_BYTES = 4_000
LIMIT_S = 600.0
_THREADS_S = 10.0
_IDENTITIES = [LinkIdentity.generate() for _ in range(8)]


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now_s = 1_000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:  # only a thread can wake us
            ready = super().select(_THREADS_S)
            if not ready:
                raise RuntimeError("nothing will ever happen any more")
            return ready
        self.now_s += max(timeout, 0.0)
        return []


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop that does not wait."""

    def __init__(self) -> None:
        self.jumping = _JumpingSelector()
        self.opened: list[Place | Closes] = []
        super().__init__(self.jumping)

    def time(self) -> float:
        return self.jumping.now_s


class Closes(Protocol):
    """Something with a socket."""

    def close(self) -> None: ...


def closed_at_the_end(opened: "Place | Closes") -> None:
    """Have `run` close it."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, JumpingLoop)
    loop.opened.append(opened)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end on a jumping loop, and close what was opened; fail if that takes ten minutes of its time."""

    async def limited() -> T:
        try:
            async with asyncio.timeout(LIMIT_S):
                return await main
        finally:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, JumpingLoop)
            for opened in loop.opened:
                if isinstance(opened, Place):
                    await opened.endpoint.close()
                else:
                    opened.close()

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(limited())


def node_id(number: int) -> NodeId:
    return NodeId(bytes([number]) * 32)


def identity(number: int) -> LinkIdentity:
    return _IDENTITIES[number]


def entropy(seed: int) -> Callable[[int], bytes]:
    return random.Random(seed).randbytes


@dataclass
class Book:
    """Contacts that tests change as they go."""

    contacts: dict[NodeId, Contact] = field(default_factory=dict)
    strangers: bool = False
    introductions: list[bytes] = field(default_factory=list)

    def contact(self, peer: NodeId) -> Contact | None:
        return self.contacts.get(peer)

    def admit(self, peer: NodeId, *, fingerprint: bytes, introduction: bytes) -> bool:
        self.introductions.append(introduction)
        return self.strangers


class Place:
    """A node's endpoint, its book, and all that its sink has heard."""

    def __init__(
        self, number: int, *, introduction: bytes = b"", resolve: Resolver | None = None, **settings: Any
    ) -> None:
        self.number = number
        self.id = node_id(number)
        self.identity = identity(number)
        self.book = Book()
        self.heard: list[tuple[str, int]] = []
        self.packets: list[tuple[int, bytes]] = []
        self.batches: list[int] = []
        self.control: list[tuple[int, bytes]] = []
        self.welcome = True
        self.reactions: deque[Callable[[], object]] = deque()
        self.address = ("", 0)
        self._introduction = introduction
        self._resolve = resolve or (lambda name: ["127.0.0.1"] if name == "here.example" else [])
        self._settings: dict[str, Any] = {"packet_bytes": PACKET_BYTES, "allow_loopback": True} | settings
        self.use(self.identity)

    def use(self, link_identity: LinkIdentity) -> None:
        """Show this certificate."""
        self.identity = link_identity
        self.endpoint = Endpoint(
            node_id=self.id,
            identity=link_identity,
            book=self.book,
            settings=EndpointSettings(**self._settings),
            entropy=entropy(self.number),
            introduction=lambda: self._introduction,
            resolve=self._resolve,
        )

    async def open(self, *, host: str = "127.0.0.1", port: int = 0) -> "Place":
        closed_at_the_end(self)
        self.address = await self.endpoint.open(self, host=host, port=port)
        return self

    def knows(self, other: "Place", *addresses: str) -> None:
        """Put the other into the book: at its true address if it is open, unless told otherwise."""
        host, port = other.address
        true = (f"{host}:{port}",) if port else ()
        self.book.contacts[other.id] = Contact(fingerprint=other.identity.fingerprint, addresses=addresses or true)

    # -- the sink ---------------------------------------------------------------------------------------------------

    def link_up(self, peer: NodeId) -> bool:
        self._hear("up", peer)
        return self.welcome

    def link_down(self, peer: NodeId) -> None:
        self._hear("down", peer)

    def dial_failed(self, peer: NodeId) -> None:
        self._hear("failed", peer)

    def packets_received(self, packets: Sequence[tuple[NodeId, bytes]]) -> None:
        self.batches.append(len(packets))
        self.packets += [(peer[0], packet) for peer, packet in packets]

    def control_received(self, peer: NodeId, data: bytes) -> None:
        self.control.append((peer[0], data))

    def _hear(self, what: str, peer: NodeId) -> None:
        self.heard.append((what, peer[0]))
        if self.reactions:
            self.reactions.popleft()()


async def until(happened: Callable[[], bool], *, look_s: float = 0.002) -> None:
    """Let time pass until this is so."""
    while not happened():  # noqa: ASYNC110 -- a jumping loop: nothing waits, and nobody would set an event
        await asyncio.sleep(look_s)


async def quiet(seconds: float = 5.0) -> None:
    """Let time pass."""
    await asyncio.sleep(seconds)


async def pair(*, linked: bool = True, **settings: Any) -> tuple[Place, Place]:
    """Two nodes that know each other; the first has dialled the second."""
    one, other = await Place(1, **settings).open(), await Place(2, **settings).open()
    one.knows(other)
    other.knows(one)
    if linked:
        one.endpoint.dial(other.id)
        await until(lambda: bool(one.heard and other.heard))
    return one, other


def packet(number: int) -> bytes:
    """One of a kind."""
    return number.to_bytes(4) * (PACKET_BYTES // 4)


class Relay:
    """A stretch of network between diallers and one place, of which the test decides what gets through.

    Each dialler gets a socket of its own at the far side, as behind a NAT.
    """

    def __init__(self, target: Place, *, passes: Callable[[bytes], bool] = lambda _: True) -> None:
        self.passes = passes
        self.carried: list[int] = []
        self._target = target
        self._near = self._socket()
        self._near.bind(("127.0.0.1", 0))
        self._far: dict[tuple[str, int], socket.socket] = {}
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._near, self._outward)
        closed_at_the_end(self)

    @property
    def address(self) -> str:
        host, port = self._near.getsockname()
        return f"{host}:{port}"

    def close(self) -> None:
        for one in (self._near, *self._far.values()):
            self._loop.remove_reader(one)
            one.close()

    def _socket(self) -> socket.socket:
        return socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)

    def _outward(self) -> None:
        with suppress(BlockingIOError):
            while True:
                data, dialler = self._near.recvfrom(65_536)
                far = self._far.get(dialler)
                if far is None:
                    far = self._far[dialler] = self._socket()
                    far.bind(("127.0.0.1", 0))
                    self._loop.add_reader(far, self._inward, far, dialler)
                if self._target.address[1] and self.passes(data):
                    self.carried.append(len(data))
                    far.sendto(data, self._target.address)

    def _inward(self, far: socket.socket, dialler: tuple[str, int]) -> None:
        with suppress(BlockingIOError):
            while True:
                data = far.recv(65_536)
                if self.passes(data):
                    self.carried.append(len(data))
                    self._near.sendto(data, dialler)


def throw(target: Place, datagrams: Sequence[bytes]) -> None:
    """Send these from somewhere on this host."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as somewhere:
        for datagram in datagrams:
            somewhere.sendto(datagram, target.address)
