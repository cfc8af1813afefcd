"""The packet format of real deployments: Sphinx packets around envelopes."""

from collections.abc import Sequence

from unlinkabledfl.errors import PacketError
from unlinkabledfl.mixnet.envelope import EnvelopeCodec
from unlinkabledfl.mixnet.packets import Delivered, Envelope, Relayed, Returned, Unwrapped
from unlinkabledfl.sphinx import (
    Deliver,
    Entropy,
    Forward,
    Hop,
    NodeId,
    PrivateKey,
    ReplayFilter,
    Reply,
    Sphinx,
    Surb,
    SurbKeys,
)

_US = 1e-6


class SphinxPackets:
    """`PacketFormat` over a Sphinx codec."""

    def __init__(self, codec: Sphinx) -> None:
        self._codec = codec
        self._envelopes = EnvelopeCodec(codec.geometry)
        self.packet_bytes = codec.geometry.packet_bytes
        self.data_bytes = self._envelopes.data_bytes
        self.max_hops = codec.geometry.max_hops

    def generate_key(self, entropy: Entropy) -> PrivateKey:
        return self._codec.generate_key(entropy)

    def accepts_key(self, public_key: bytes) -> bool:
        return self._codec.accepts_key(public_key)

    def make_surb(self, path: Sequence[Hop], *, entropy: Entropy) -> tuple[Surb, bytes, SurbKeys]:
        surb, keys = self._codec.make_surb(path, entropy=entropy)
        return surb, keys.surb_id, keys

    def wrap(self, path: Sequence[Hop], envelope: Envelope, *, entropy: Entropy) -> bytes:
        return self._codec.wrap(path, self._envelopes.encode(envelope), entropy=entropy)

    def unwrap(self, packet: bytes, *, key: PrivateKey, replays: ReplayFilter) -> Unwrapped:
        return self._read(self._codec.unwrap(packet, key=key, replays=replays))

    def unwrap_batch(
        self, packets: Sequence[bytes], *, key: PrivateKey, replays: ReplayFilter
    ) -> list[Unwrapped | PacketError]:
        results: list[Unwrapped | PacketError] = []
        for peeled in self._codec.unwrap_batch(packets, key=key, replays=replays):
            try:
                results.append(peeled if isinstance(peeled, PacketError) else self._read(peeled))
            except PacketError as refusal:
                results.append(refusal.with_traceback(None))
        return results

    def _read(self, peeled: Forward | Deliver | Reply) -> Unwrapped:
        match peeled:
            case Forward(next_hop, delay_us, forwarded):
                return Relayed(next_hop, delay_us * _US, forwarded)
            case Deliver(delay_us, payload):
                return Delivered(delay_us * _US, self._envelopes.decode(payload))
            case Reply(surb_id, body):
                return Returned(surb_id, body)

    def acknowledge(self, surb: Surb) -> tuple[NodeId, bytes]:
        return self._codec.reply(surb, self._envelopes.acknowledgement)

    def open_acknowledgement(self, secret: SurbKeys, body: bytes) -> None:
        self._envelopes.check_acknowledgement(self._codec.open_reply(secret, body))
