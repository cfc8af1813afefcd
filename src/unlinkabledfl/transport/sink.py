"""What an endpoint tells, and whom."""

from collections.abc import Sequence
from typing import Protocol

from unlinkabledfl.sphinx import NodeId

__all__ = ["EndpointSink", "LinkTap"]


class LinkTap(Protocol):
    """Whoever takes down what an observer of this node's links could: each packet, and each control message."""

    def left(self, to: NodeId, data: bytes) -> None:
        """This goes on the link to the peer now."""
        ...

    def arrived(self, of: NodeId, data: bytes) -> None:
        """This came off the link with the peer."""
        ...


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
