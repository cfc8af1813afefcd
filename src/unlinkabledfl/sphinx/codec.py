"""Wrap and unwrap packets of one geometry.

    packet --wrong length--------------> PacketError, refused
    packet --MAC fails-----------------> PacketError, refused
    packet --tag seen before-----------> PacketError, refused
    packet --slot says forward---------> Forward, unwrapped
    packet --slot says deliver---------> Deliver, unwrapped
    packet --slot says reply-----------> Reply, unwrapped

Invariant: nothing of a packet is decrypted before its MAC holds, and no replay tag is stored before either; a forgery
costs one multiplication (two in a batch on eight lanes) and leaves no trace.
"""

from collections.abc import Sequence
from functools import partial
from hmac import compare_digest
from typing import TypeAlias

from unlinkabledfl.errors import ConfigError, LocalProtocolError, PacketError
from unlinkabledfl.sphinx.geometry import MAX_DELAY_US, NODE_ID_BYTES, SEED_BYTES, SURB_ID_BYTES, Geometry
from unlinkabledfl.sphinx.header import Command, HeaderBuilder, Slot, SlotReader
from unlinkabledfl.sphinx.keylayers.protocol import SenderHop, generate_key
from unlinkabledfl.sphinx.multibuffer import load
from unlinkabledfl.sphinx.multiplier import EightAtOnce, Multiplier, OneByOne
from unlinkabledfl.sphinx.primitives import (
    HopKeys,
    derive_hop_keys,
    derive_reply_key,
    header_mac,
    payload_of,
    stream_xor,
    tagged,
    wide_decrypt,
    wide_encrypt,
)
from unlinkabledfl.sphinx.surb import Surb, SurbKeys
from unlinkabledfl.sphinx.types import (
    Deliver,
    Entropy,
    Forward,
    Hop,
    NodeId,
    PrivateKey,
    ReplayFilter,
    Reply,
    Unwrapped,
)

_NO_ID = bytes(NODE_ID_BYTES)
_FORWARD = int(Command.FORWARD)
_EXACT = OneByOne()
"""Stateless, and right on every point."""


def choose_multiplier(backend: str) -> Multiplier:
    """`auto` takes eight lanes where this machine has them; the two names insist."""
    if backend == "pynacl":
        return _EXACT
    if backend not in {"auto", "ipp"}:
        raise ConfigError(key="packet.backend", got=backend, takes="'auto', 'pynacl' or 'ipp'")
    lanes = load()
    if lanes is not None:
        return EightAtOnce(lanes)
    if backend == "auto":
        return _EXACT
    raise ConfigError(
        key="packet.backend",
        got=backend,
        takes="'auto' or 'pynacl' on this machine",
        hint="'ipp' needs the package ipp-crypto and a CPU with AVX-512 IFMA",
    )


_Opened: TypeAlias = tuple[bytes, bytes, HopKeys, Slot]
"""Packet, element, keys and slot of what is to be forwarded."""


class Sphinx:
    """The codec of one geometry. It keeps no packet's state, so threads may share it, but not a replay window."""

    def __init__(self, geometry: Geometry, *, backend: str = "auto") -> None:
        self.geometry = geometry
        self._layer = geometry.layer
        self._multiplier = choose_multiplier(backend)
        self._context = geometry.context
        self._derive = partial(derive_hop_keys, geometry.context)
        self._headers = HeaderBuilder(geometry)
        self._slots = SlotReader(geometry)
        self._packet_bytes = geometry.packet_bytes
        self._element_bytes = geometry.element_bytes
        self._mac_at = geometry.element_bytes + geometry.beta_bytes
        self._body_at = geometry.header_bytes
        self._stream_padding = bytes(geometry.slot_bytes)

    def generate_key(self, entropy: Entropy) -> PrivateKey:
        """A fresh key of this geometry's layer."""
        return generate_key(self._layer, entropy)

    def accepts_key(self, public_key: bytes) -> bool:
        """Whether packets can be made for this public key of somebody else's."""
        return self._layer.accepts(public_key)

    # -- sending ------------------------------------------------------------------------------------------------

    def wrap(self, path: Sequence[Hop], payload: bytes, *, entropy: Entropy) -> bytes:
        """A packet that carries `payload` along `path` to its last hop."""
        return self.wrap_batch([(path, payload)], entropy=entropy)[0]

    def wrap_batch(self, jobs: Sequence[tuple[Sequence[Hop], bytes]], *, entropy: Entropy) -> list[bytes]:
        """The same for several at once, in their order."""
        for _, payload in jobs:
            self._check_payload(payload)
        paths = [path for path, _ in jobs]
        packets = []
        for (_, payload), (header, hops) in zip(jobs, self._make_headers(paths, None, entropy), strict=True):
            body = tagged(payload)
            for _, keys in reversed(hops):
                body = wide_encrypt(keys.payload, body)
            packets.append(header + body)
        return packets

    def make_surb(self, path: Sequence[Hop], *, entropy: Entropy) -> tuple[Surb, SurbKeys]:
        """A reply block along `path`, whose last hop is its maker."""
        surb_id, seed = entropy(SURB_ID_BYTES), entropy(SEED_BYTES)
        ((header, hops),) = self._make_headers([path], surb_id, entropy)
        kept = tuple(keys.payload for _, keys in hops[:-1])
        return Surb(path[0].node_id, header, seed), SurbKeys(surb_id, seed, kept)

    def reply(self, surb: Surb, payload: bytes) -> tuple[NodeId, bytes]:
        """The packet that answers through `surb`, and whom to hand it to."""
        self._check_payload(payload)
        key = derive_reply_key(self.geometry.context, surb.seed)
        return surb.first_hop, surb.header + wide_encrypt(key, tagged(payload))

    def open_reply(self, keys: SurbKeys, body: bytes) -> bytes:
        """What the destination answered. The caller has forgotten the block's id by now."""
        for key in reversed(keys.hop_keys):
            body = wide_encrypt(key, body)
        payload = payload_of(wide_decrypt(derive_reply_key(self.geometry.context, keys.seed), body))
        if payload is None:
            raise PacketError("bad_reply", "a reply's body was changed on its way")
        return payload

    def _make_headers(
        self, paths: Sequence[Sequence[Hop]], surb_id: bytes | None, entropy: Entropy
    ) -> list[tuple[bytes, list[SenderHop]]]:
        seeds, paddings = [], []
        for path in paths:
            self._check_path(path)
            seeds.append(entropy(self._layer.sender_entropy_bytes(len(path))))
            paddings.append(entropy(self._headers.padding_bytes(len(path))))
        keys = [[hop.public_key for hop in path] for path in paths]
        command, last_id = (Command.DELIVER, _NO_ID) if surb_id is None else (Command.REPLY, surb_id)
        return [
            (
                self._headers.build(path, hops, last_command=command, last_id=last_id, padding=padding),
                hops,
            )
            for path, hops, padding in zip(
                paths, self._layer.sender_hops(keys, seeds, self._derive, self._multiplier), paddings, strict=True
            )
        ]

    def _check_path(self, path: Sequence[Hop]) -> None:
        if not 1 <= len(path) <= self.geometry.max_hops:
            raise LocalProtocolError(
                f"a path has {len(path)} hops; this geometry carries 1 to {self.geometry.max_hops}"
            )
        for hop in path:
            if len(hop.node_id) != NODE_ID_BYTES:
                raise LocalProtocolError(f"a node id has {len(hop.node_id)} bytes, not {NODE_ID_BYTES}")
            if len(hop.public_key) != self._layer.public_key_bytes:
                raise LocalProtocolError(
                    f"a {self._layer.name} public key has {len(hop.public_key)} bytes,"
                    f" not {self._layer.public_key_bytes}"
                )
            if not 0 <= hop.delay_us <= MAX_DELAY_US:
                raise LocalProtocolError(f"a hop's delay is {hop.delay_us} µs; it fits 0 to {MAX_DELAY_US}")

    def _check_payload(self, payload: bytes) -> None:
        if len(payload) != self.geometry.payload_bytes:
            raise LocalProtocolError(
                f"a payload has {len(payload)} bytes; this geometry carries exactly {self.geometry.payload_bytes}"
            )

    # -- receiving ----------------------------------------------------------------------------------------------

    def unwrap(self, packet: bytes, *, key: PrivateKey, replays: ReplayFilter) -> Unwrapped:
        """Remove one layer; PacketError with its cause if the packet is not good."""
        self._check_length(packet)
        element = packet[: self._element_bytes]
        keys = self._authentic(packet, element, self._layer.secret(key, element), key)
        slot = self._open(packet, keys, replays)
        if slot.command != _FORWARD:
            return self._keep(packet, keys, slot)
        return self._forward(packet, keys, slot, self._layer.next_element(element, keys.blind, slot.carried))

    def unwrap_batch(
        self, packets: Sequence[bytes], *, key: PrivateKey, replays: ReplayFilter
    ) -> list[Unwrapped | PacketError]:
        """The same for several: one result a packet, in their order, what it is or why it was refused."""
        elements = [packet[: self._element_bytes] for packet in packets if len(packet) == self._packet_bytes]
        multiplier = self._multiplier if len(elements) > 1 else _EXACT
        secrets = iter(zip(elements, self._layer.secrets(key, elements, multiplier), strict=True))
        results: list[Unwrapped | PacketError | _Opened] = []
        for packet in packets:
            try:
                self._check_length(packet)
                element, secret = next(secrets)
                keys = self._authentic(packet, element, secret, key, look_twice=multiplier is not _EXACT)
                slot = self._open(packet, keys, replays)
                opened = (packet, element, keys, slot)
                results.append(opened if slot.command == _FORWARD else self._keep(packet, keys, slot))
            except PacketError as refusal:
                # A traceback would keep alive what the frames hold: keys, and every packet of the batch.
                results.append(refusal.with_traceback(None))
        return self._forward_all(results)

    def _forward_all(self, results: list[Unwrapped | PacketError | _Opened]) -> list[Unwrapped | PacketError]:
        """Blind the elements of all that is to be forwarded in one go, and leave the rest as it is."""
        opened = [result for result in results if isinstance(result, tuple)]
        next_elements = iter(
            self._layer.next_elements(
                [element for _, element, _, _ in opened],
                [keys.blind for _, _, keys, _ in opened],
                [slot.carried for _, _, _, slot in opened],
                self._multiplier,
            )
        )
        done: list[Unwrapped | PacketError] = []
        for result in results:
            if isinstance(result, tuple):
                packet, _, keys, slot = result
                done.append(self._forward(packet, keys, slot, next(next_elements)))
            else:
                done.append(result)
        return done

    def _check_length(self, packet: bytes) -> None:
        if len(packet) != self._packet_bytes:
            raise PacketError("bad_length", f"got {len(packet)} bytes, takes {self._packet_bytes}")

    def _authentic(
        self, packet: bytes, element: bytes, secret: bytes | None, key: PrivateKey, *, look_twice: bool = False
    ) -> HopKeys:
        """The keys that the secret gives, if the header verifies under them."""
        if secret is not None:
            keys = derive_hop_keys(self._context, secret, element, key.public_bytes)
            if compare_digest(header_mac(keys.mac, packet[: self._mac_at]), packet[self._mac_at : self._body_at]):
                return keys
        if look_twice:
            # The lanes are wrong on some points of special form, and whoever sends one must not find out from a
            # refusal: nothing is refused before the exact multiplication has had its say.
            exact = self._layer.secret(key, element)
            if exact is None or secret is None or not compare_digest(exact, secret):
                return self._authentic(packet, element, exact, key)
        if secret is None:
            raise PacketError("bad_element", "the packet's group element gives no secret")
        raise PacketError("bad_mac", "the header is forged, damaged or for another node, key or geometry")

    def _open(self, packet: bytes, keys: HopKeys, replays: ReplayFilter) -> Slot:
        """What an authentic and new header says."""
        if not replays.test_and_set(keys.replay_tag):
            raise PacketError("replayed", "this header was processed before")
        beta = packet[self._element_bytes : self._mac_at]
        return self._slots.read(stream_xor(keys.header, beta + self._stream_padding))

    def _keep(self, packet: bytes, keys: HopKeys, slot: Slot) -> Deliver | Reply:
        body = packet[self._body_at :]
        match slot.command:
            case Command.DELIVER:
                payload = payload_of(wide_decrypt(keys.payload, body))
                if payload is None:
                    raise PacketError("bad_payload", "the body was changed on its way")
                return Deliver(slot.delay_us, payload)
            case Command.REPLY:
                return Reply(slot.node_id, body)
            case command:
                raise PacketError("bad_command", f"a slot says {command}")

    def _forward(self, packet: bytes, keys: HopKeys, slot: Slot, next_element: bytes) -> Forward:
        body = wide_decrypt(keys.payload, packet[self._body_at :])
        return Forward(
            NodeId(slot.node_id), slot.delay_us, b"".join((next_element, slot.next_beta, slot.next_mac, body))
        )
