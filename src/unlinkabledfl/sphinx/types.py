"""The words of the packet layer: who is addressed, and what a peeled packet turns out to be."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NewType, Protocol, TypeAlias

NodeId = NewType("NodeId", bytes)
"""32 bytes that name a participant."""

Entropy: TypeAlias = Callable[[int], bytes]
"""Gives n random bytes. Injected everywhere, so that a simulation can be replayed from its seed."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One station of a path. `delay_us` is how long it holds the packet, where the sender chooses that."""

    node_id: NodeId
    public_key: bytes
    delay_us: int = 0


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """A node's key for one epoch. `handle` is the loaded form that the key layer works with."""

    private_bytes: bytes = field(repr=False)
    public_bytes: bytes
    handle: Any = field(repr=False, compare=False)


class ReplayFilter(Protocol):
    """Remembers the replay tags of one key."""

    def test_and_set(self, tag: bytes, /) -> bool:
        """Store the tag; true if it was new. PacketError if there is no room to store it."""


@dataclass(frozen=True, slots=True)
class Forward:
    """Not for us: send `packet` to `next_hop`, after `delay_us` if the mixer leaves that to senders."""

    next_hop: NodeId
    delay_us: int
    packet: bytes


@dataclass(frozen=True, slots=True)
class Deliver:
    """For us. `delay_us` is how long to hold the acknowledgement."""

    delay_us: int
    payload: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply block that we made came back; `body` opens with the keys that we kept under its id."""

    surb_id: bytes
    body: bytes


Unwrapped: TypeAlias = Forward | Deliver | Reply
