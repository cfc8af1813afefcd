"""Packets that are closed by convention instead of cryptography, for worlds of thousands of peers.

A sealed packet is an object that carries its route and its envelope in the open; what keeps a relay from looking is
only that `unwrap` is how a node reads it. Everything a node or an observer can notice stays as with real packets: every
packet weighs the same, only the right key opens a layer, the same layer opens once, a reply block works once, and each
hop sees another wire hash. An operation costs about a microsecond instead of a hundred.

Invariant: `unwrap` never changes the packet it is given. A duplicate therefore meets the same tag and is refused as
replayed, as its bytes would be.
"""

from collections.abc import Sequence

from unlinkabledfl.errors import LocalProtocolError, PacketError
from unlinkabledfl.mixnet.envelope import EnvelopeCodec
from unlinkabledfl.mixnet.packets import (
    Delivered,
    Envelope,
    Opaque,
    Relayed,
    Returned,
    Unwrapped,
    unwrap_one_by_one,
)
from unlinkabledfl.sphinx import Entropy, Geometry, Hop, NodeId, ReplayFilter

_KEY_BYTES = 32
_TAG_BYTES = 16
_SURB_ID_BYTES = 32


class SealedKey:
    """A private key whose only power is to match its public half."""

    __slots__ = ("public_bytes",)

    def __init__(self, public_bytes: bytes) -> None:
        self.public_bytes = public_bytes


class SealedSurb:
    """A reply block: a route back, the tags that its packet will show, and the id under which its maker knows it."""

    __slots__ = ("path", "surb_id", "tags")

    def __init__(self, path: tuple[Hop, ...], surb_id: bytes, tags: bytes) -> None:
        self.path = path
        self.surb_id = surb_id
        self.tags = tags


class SealedPacket:
    """A packet on its way to `path[position]`."""

    __slots__ = ("content", "path", "position", "tags")

    def __init__(self, path: tuple[Hop, ...], position: int, tags: bytes, content: Envelope | bytes) -> None:
        self.path = path
        self.position = position
        self.tags = tags
        self.content = content  # what the last hop finds: an envelope, or the id of the reply block that came back

    @property
    def wire_hash(self) -> bytes:
        """Eight bytes that stand for the hash of the packet's bytes on this link: the start of the next hop's tag."""
        start = self.position * _TAG_BYTES
        return self.tags[start : start + 8]


class SealedPackets:
    """The packet format without cryptography; sizes are those of the geometry and of real envelopes."""

    __slots__ = ("data_bytes", "max_hops", "packet_bytes")

    def __init__(self, geometry: Geometry) -> None:
        self.packet_bytes = geometry.packet_bytes
        self.max_hops = geometry.max_hops
        self.data_bytes = EnvelopeCodec(geometry).data_bytes

    def generate_key(self, entropy: Entropy) -> SealedKey:
        """Return a fresh key."""
        return SealedKey(entropy(_KEY_BYTES))

    def accepts_key(self, public_key: bytes) -> bool:
        """Any key will do that has the right length."""
        return len(public_key) == _KEY_BYTES

    def make_surb(self, path: Sequence[Hop], *, entropy: Entropy) -> tuple[SealedSurb, bytes, bytes]:
        """Return a reply block along `path` (we are its last hop), its id, and the secret that opens its reply."""
        hops = self._checked(path)
        drawn = entropy(_SURB_ID_BYTES + _TAG_BYTES * len(hops))
        surb_id = drawn[:_SURB_ID_BYTES]
        return SealedSurb(hops, surb_id, drawn[_SURB_ID_BYTES:]), surb_id, surb_id

    def wrap(self, path: Sequence[Hop], envelope: Envelope, *, entropy: Entropy) -> SealedPacket:
        """Return the packet that carries the envelope along `path` to its last hop."""
        hops = self._checked(path)
        return SealedPacket(hops, 0, entropy(_TAG_BYTES * len(hops)), envelope)

    def unwrap(self, packet: Opaque, *, key: SealedKey, replays: ReplayFilter) -> Unwrapped:
        """Return what is under our layer; PacketError if the packet is not for this key, or was here before."""
        if type(packet) is not SealedPacket:
            raise PacketError("bad_length", "not a sealed packet")
        path = packet.path
        position = packet.position
        hop = path[position]
        if hop.public_key != key.public_bytes:
            raise PacketError("bad_mac")
        tags = packet.tags
        start = position * _TAG_BYTES
        if not replays.test_and_set(tags[start : start + _TAG_BYTES]):
            raise PacketError("replayed")
        content = packet.content
        position += 1
        if position < len(path):
            onward = SealedPacket(path, position, tags, content)
            return Relayed(path[position].node_id, hop.delay_us * 1e-6, onward)
        if type(content) is bytes:
            return Returned(content, content)
        return Delivered(hop.delay_us * 1e-6, content)  # type: ignore[arg-type]

    def unwrap_batch(
        self, packets: Sequence[Opaque], *, key: SealedKey, replays: ReplayFilter
    ) -> list[Unwrapped | PacketError]:
        return unwrap_one_by_one(self, packets, key=key, replays=replays)

    def acknowledge(self, surb: Opaque) -> tuple[NodeId, SealedPacket]:
        """Return the first hop and the packet of the acknowledgement."""
        return surb.path[0].node_id, SealedPacket(surb.path, 0, surb.tags, surb.surb_id)

    def open_acknowledgement(self, secret: Opaque, body: Opaque) -> None:
        """Check the reply; PacketError if it does not belong to the reply block with this secret."""
        if secret != body:
            raise PacketError("bad_reply")

    def _checked(self, path: Sequence[Hop]) -> tuple[Hop, ...]:
        if not 1 <= len(path) <= self.max_hops:
            raise LocalProtocolError(f"a path of {len(path)} hops: packets carry 1 to {self.max_hops}")
        return tuple(path)
