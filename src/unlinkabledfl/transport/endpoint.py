"""One UDP socket, and all links of a node over it: the real world's counterpart of `simulation.network`."""

from collections.abc import Sequence
from typing import Protocol

from unlinkabledfl.mixnet.limits import Counters
from unlinkabledfl.sphinx import Entropy, NodeId
from unlinkabledfl.transport.book import PeerBook
from unlinkabledfl.transport.certificates import LinkIdentity
from unlinkabledfl.transport.settings import EndpointSettings

__all__ = ["Endpoint", "EndpointSink"]


class EndpointSink(Protocol):
    """Whom an endpoint tells what happens on its links. Of every peer it hears `link_up` and `link_down` in turn."""

    def link_up(self, peer: NodeId) -> bool:
        """There is an authenticated link to the peer from now on; false to have it closed."""
        ...

    def link_down(self, peer: NodeId) -> None:
        """The link to the peer is gone."""
        ...

    def dial_failed(self, peer: NodeId) -> None:
        """The peer does not answer at any of its addresses; packets that waited for the link are lost, and counted."""
        ...

    def packets_received(self, packets: Sequence[tuple[NodeId, bytes]]) -> None:
        """These arrived in one wake-up, in this order; each with the peer that handed it to us."""
        ...

    def control_received(self, peer: NodeId, data: bytes) -> None:
        """A linked peer sent a control message."""
        ...


class Endpoint:
    """A node's place in the network. The constructor opens nothing; `open` binds the socket, `close` gives it back."""

    def __init__(
        self,
        *,
        node_id: NodeId,
        identity: LinkIdentity,
        book: PeerBook,
        settings: EndpointSettings,
        entropy: Entropy,
        introduction: bytes = b"",
    ) -> None:
        self.counters = Counters()
        raise NotImplementedError

    async def open(self, sink: EndpointSink, *, host: str = "127.0.0.1", port: int = 0) -> tuple[str, int]:
        """Bind; return the address, whose port is chosen by the system if 0 was asked for.

        ConfigError `process.base_port` if the port is taken.
        """
        raise NotImplementedError

    def want(self, peer: NodeId) -> None:
        """Keep a link to this peer from now on: dial it, and dial it again whenever it is gone."""
        raise NotImplementedError

    def release(self, peer: NodeId) -> None:
        """Want it no longer; a link that stands stays until it is closed or idle."""
        raise NotImplementedError

    def dial(self, peer: NodeId) -> None:
        """Make a link to this peer if there is none: `link_up` or `dial_failed` follows, never before this returns."""
        raise NotImplementedError

    def is_linked(self, peer: NodeId) -> bool:
        raise NotImplementedError

    def send_packet(self, peer: NodeId, packet: bytes) -> bool:
        """Put a packet on the link, dialling it first if there is none; false: not writable now, the packet is yours."""
        raise NotImplementedError

    def send_control(self, peer: NodeId, data: bytes) -> bool:
        """Put a control message on a link that stands; false: no such link, or too many wait for it."""
        raise NotImplementedError

    def flush(self) -> None:
        """Write what was sent since the last time. It happens by itself before the loop sleeps; calling it is cheap."""
        raise NotImplementedError

    def hang_up(self, peer: NodeId) -> None:
        """Close the link to this peer, or stop dialling it."""
        raise NotImplementedError

    async def close(self) -> None:
        """Let go of all links in order, within `close_timeout_s`, then of the socket. `link_down` follows for each."""
        raise NotImplementedError

    def gauges(self) -> dict[str, float]:
        """Return how many links stand, are dialled or accepted, and what they hold."""
        raise NotImplementedError
