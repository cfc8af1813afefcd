"""Every length of a packet, derived in one place from three choices.

Invariant: no other module adds up header sizes. Two participants whose geometries differ derive different keys, so
their packets fail the MAC instead of being misread.
"""

from dataclasses import dataclass

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.sphinx.keylayers import KEY_LAYERS
from unlinkabledfl.sphinx.keylayers.protocol import KeyLayer
from unlinkabledfl.sphinx.primitives import MAC_BYTES, TAG_BYTES

NODE_ID_BYTES = 32
SEED_BYTES = 32
SURB_ID_BYTES = NODE_ID_BYTES
COMMAND_BYTES = 1
DELAY_BYTES = 4
MAX_HOPS = 10
MIN_BODY_BYTES = 1_024
MAX_BODY_BYTES = 1_048_576
MIN_ROOM_BYTES = 512
MAX_DELAY_US = (1 << (8 * DELAY_BYTES)) - 1


@dataclass(frozen=True, slots=True)
class Geometry:
    """The shape that every packet of a deployment has. See docs/packet.md §1 for the table."""

    max_hops: int = 5
    body_bytes: int = 10_240
    key_layer: str = "x25519"

    def __post_init__(self) -> None:
        if not 1 <= self.max_hops <= MAX_HOPS:
            raise ConfigError(key="packet.max_hops", got=self.max_hops, takes=f"a whole number from 1 to {MAX_HOPS}")
        if not MIN_BODY_BYTES <= self.body_bytes <= MAX_BODY_BYTES:
            raise ConfigError(
                key="packet.body_bytes",
                got=self.body_bytes,
                takes=f"a whole number from {MIN_BODY_BYTES:,} to {MAX_BODY_BYTES:,}",
            )
        if self.key_layer not in KEY_LAYERS:
            raise ConfigError(
                key="packet.key_layer", got=self.key_layer, takes=f"one of {', '.join(sorted(KEY_LAYERS))}"
            )
        least = TAG_BYTES + self.surb_bytes + MIN_ROOM_BYTES
        if self.body_bytes < least:
            raise ConfigError(
                key="packet.body_bytes",
                got=self.body_bytes,
                takes=f"at least {least:,} with the key layer {self.key_layer} and {self.max_hops} hops",
                hint="a reply block travels inside the body and has to leave room for a message",
            )

    @property
    def layer(self) -> KeyLayer:
        """The key layer itself."""
        return KEY_LAYERS[self.key_layer]

    @property
    def context(self) -> bytes:
        """What every key derivation starts with."""
        return f"unlinkabledfl/packet/1/{self.key_layer}/{self.max_hops}/{self.body_bytes}".encode()

    @property
    def element_bytes(self) -> int:
        """α: what a hop makes its shared secret from."""
        return self.layer.element_bytes

    @property
    def slot_bytes(self) -> int:
        """What one hop reads of β."""
        return COMMAND_BYTES + DELAY_BYTES + NODE_ID_BYTES + MAC_BYTES + self.layer.carried_bytes

    @property
    def beta_bytes(self) -> int:
        """The routing information, one slot for each hop that a path may have."""
        return self.max_hops * self.slot_bytes

    @property
    def header_bytes(self) -> int:
        """α, β and γ."""
        return self.element_bytes + self.beta_bytes + MAC_BYTES

    @property
    def packet_bytes(self) -> int:
        """What every packet weighs, whatever it is."""
        return self.header_bytes + self.body_bytes

    @property
    def payload_bytes(self) -> int:
        """What a body carries beside its zero tag."""
        return self.body_bytes - TAG_BYTES

    @property
    def surb_bytes(self) -> int:
        """A reply block: its first hop, its header and the seed of its body key."""
        return NODE_ID_BYTES + self.header_bytes + SEED_BYTES
