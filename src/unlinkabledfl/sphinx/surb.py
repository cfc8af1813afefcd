"""Single-use reply blocks: what travels to the destination, and what their maker keeps."""

from dataclasses import dataclass, field
from typing import Self

from unlinkabledfl.errors import PacketError
from unlinkabledfl.sphinx.geometry import NODE_ID_BYTES, SEED_BYTES, Geometry
from unlinkabledfl.sphinx.types import NodeId


@dataclass(frozen=True, slots=True)
class Surb:
    """A way back to somebody: good for one packet."""

    first_hop: NodeId
    header: bytes
    seed: bytes = field(repr=False)

    def to_bytes(self) -> bytes:
        """The form that travels inside a payload."""
        return self.first_hop + self.header + self.seed

    @classmethod
    def from_bytes(cls, data: bytes, geometry: Geometry) -> Self:
        """Read one; only its length can be wrong, all else shows when it is used."""
        if len(data) != geometry.surb_bytes:
            raise PacketError("bad_surb_length", f"got {len(data)} bytes, takes {geometry.surb_bytes}")
        return cls(
            first_hop=NodeId(data[:NODE_ID_BYTES]),
            header=data[NODE_ID_BYTES:-SEED_BYTES],
            seed=data[-SEED_BYTES:],
        )


@dataclass(frozen=True, slots=True)
class SurbKeys:
    """What opens the reply. Forget it after its first use."""

    surb_id: bytes = field(repr=False)
    seed: bytes = field(repr=False)
    hop_keys: tuple[bytes, ...] = field(repr=False)
