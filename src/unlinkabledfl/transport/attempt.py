"""One dial: a peer's addresses in turn, until one of them answers as that peer.

    trying --welcomed---------------------------> done
    trying --silent after TLS, smaller ones-----> trying
    trying --closed, another address------------> trying
    trying --closed, no more addresses----------> failed

An address that gets through TLS and then falls silent probably loses our large datagrams: the proof is padded to be
one. It is tried again with smaller ones.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Final, Protocol

from unlinkabledfl.transport.addresses import Resolver, places
from unlinkabledfl.transport.book import Contact
from unlinkabledfl.transport.link import Link
from unlinkabledfl.transport.settings import DATAGRAM_BYTES_MIN, EndpointSettings
from unlinkabledfl.transport.udp import Address

__all__ = ["Attempt"]

_SIZES: Final = (1_280, DATAGRAM_BYTES_MIN)


class Connect(Protocol):
    """Begins a connection."""

    def __call__(self, address: Address, *, fingerprint: bytes, datagram_bytes: int) -> Link:
        """Return it; how it ends is told to `Attempt.closed`, or to nobody once it is welcomed."""
        ...


class Attempt:
    """Calls `connect` until a link is welcomed, or `failed` once there is nothing left to try."""

    __slots__ = (
        "_addresses",
        "_connect",
        "_failed",
        "_family",
        "_fingerprint",
        "_is_over",
        "_places",
        "_resolve",
        "_settings",
        "link",
    )

    def __init__(
        self,
        contact: Contact | None,
        *,
        settings: EndpointSettings,
        family: int,
        resolve: Resolver,
        connect: Connect,
        failed: Callable[[], None],
    ) -> None:
        self.link: Link | None = None
        self._fingerprint = b"" if contact is None else contact.fingerprint
        self._addresses = deque(() if contact is None else contact.addresses)
        self._places: deque[tuple[Address, int]] = deque()
        self._settings = settings
        self._family = family
        self._resolve = resolve
        self._connect = connect
        self._failed = failed
        self._is_over = False

    def start(self) -> None:
        """Begin; neither `connect` nor `failed` is called before the loop's next turn."""
        asyncio.get_running_loop().call_soon(self._next)

    def stop(self) -> Link | None:
        """Forget it; return the link in progress, which is the caller's to close."""
        self._is_over = True
        link, self.link = self.link, None
        return link

    def closed(self, *, in_silence: bool) -> None:
        """The link in progress came to nothing, `in_silence` if nobody closed it."""
        link, self.link = self.link, None
        if link is not None and link.was_secured and in_silence:
            smaller = next((size for size in _SIZES if size < link.datagram_bytes), None)
            if smaller is not None:
                self._places.appendleft((link.address, smaller))
        self._next()

    def _next(self) -> None:
        if self._is_over:
            return
        if self._places:
            address, datagram_bytes = self._places.popleft()
            self.link = self._connect(address, fingerprint=self._fingerprint, datagram_bytes=datagram_bytes)
        elif self._addresses:
            self._look_up(self._addresses.popleft())
        else:
            self._is_over = True
            self._failed()

    def _look_up(self, address: str) -> None:
        found = places(
            address,
            family=self._family,
            allow_loopback=self._settings.allow_loopback,
            resolve=self._resolve,
        )
        if callable(found):
            # Not the loop's pool of threads: closing the loop would wait for a name server that does not answer.
            Thread(target=_answer, args=(asyncio.get_running_loop(), found, self._found), daemon=True).start()
        else:
            self._found(found)

    def _found(self, addresses: list[Address]) -> None:
        self._places.extend((address, self._settings.datagram_bytes) for address in addresses)
        self._next()


def _answer(
    loop: asyncio.AbstractEventLoop, find: Callable[[], list[Address]], tell: Callable[[list[Address]], None]
) -> None:
    """Look a name up, in a thread."""
    addresses: list[Address] = []
    try:
        addresses = find()
    finally:
        with suppress(RuntimeError):  # the loop is closed: nobody waits for it any more
            loop.call_soon_threadsafe(tell, addresses)
