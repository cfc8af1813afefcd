"""The packet of docs/packet.md a second time: slow, short, and written from that page alone.

It shares no code with the product and takes the textbook's way wherever the product takes a shorter one:

* X25519 is the Montgomery ladder of RFC 7748 in Python's integers;
* the sender of the layer `x25519` applies every blinding factor in turn, so nothing here multiplies scalars;
* AES counter mode is written out block by block, and the ML-KEM encapsulation of the layer `pq` follows FIPS 203.

Section numbers refer to docs/packet.md. Nothing here runs in constant time: it is for tests.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from tests.reference import mlkem_reference

Entropy = Callable[[int], bytes]

VERSION = b"\x01"
FORWARD, DELIVER, REPLY = 1, 2, 3
MAC_BYTES = 16
ZERO_TAG = bytes(32)
ELEMENT_BYTES = {"x25519": 32, "x25519-kem": 32, "pq": 1120}
CARRIED_BYTES = {"x25519": 0, "x25519-kem": 32, "pq": 1120}


class RefusedError(Exception):
    """The packet is refused, for the cause that §7 names."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause


# ------------------------------------------------------------------------------------------------ §1 lengths


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One geometry, and every length that follows from it."""

    key_layer: str
    max_hops: int
    body_bytes: int

    @property
    def element_bytes(self) -> int:
        return ELEMENT_BYTES[self.key_layer]

    @property
    def carried_bytes(self) -> int:
        return CARRIED_BYTES[self.key_layer]

    @property
    def slot_bytes(self) -> int:
        return 1 + 4 + 32 + MAC_BYTES + self.carried_bytes

    @property
    def beta_bytes(self) -> int:
        return self.max_hops * self.slot_bytes

    @property
    def header_bytes(self) -> int:
        return self.element_bytes + self.beta_bytes + MAC_BYTES

    @property
    def packet_bytes(self) -> int:
        return self.header_bytes + self.body_bytes

    @property
    def payload_bytes(self) -> int:
        return self.body_bytes - len(ZERO_TAG)

    @property
    def surb_bytes(self) -> int:
        return 32 + self.header_bytes + 32

    @property
    def context(self) -> bytes:
        return f"unlinkabledfl/packet/1/{self.key_layer}/{self.max_hops}/{self.body_bytes}".encode()


# --------------------------------------------------------------------------------------------- §2 primitives

PRIME = 2**255 - 19
BASE_POINT = (9).to_bytes(32, "little")


def clamp(scalar: bytes) -> int:
    """The integer that RFC 7748 makes of 32 bytes: little-endian, unlike everything else in the packet."""
    return int.from_bytes(scalar, "little") & ~7 & (2**255 - 1) | 2**254


def ladder(scalar: int, u: int) -> int:
    """The u-coordinate of scalar times the point at u: the ladder of RFC 7748, section 5."""
    x2, z2, x3, z3 = 1, 0, u, 1
    for position in reversed(range(255)):
        bit = scalar >> position & 1
        if bit:
            x2, z2, x3, z3 = x3, z3, x2, z2
        plus, minus = x2 + z2, x2 - z2
        plus_squared, minus_squared = plus * plus % PRIME, minus * minus % PRIME
        difference = plus_squared - minus_squared
        cross_1 = (x3 - z3) * plus % PRIME
        cross_2 = (x3 + z3) * minus % PRIME
        x3, z3 = (cross_1 + cross_2) ** 2 % PRIME, u * (cross_1 - cross_2) ** 2 % PRIME
        x2 = plus_squared * minus_squared % PRIME
        z2 = difference * (plus_squared + 121665 * difference) % PRIME
        if bit:
            x2, z2, x3, z3 = x3, z3, x2, z2
    return x2 * pow(z2, PRIME - 2, PRIME) % PRIME


def x25519(scalar: bytes, u: bytes) -> bytes:
    """X25519 of RFC 7748; a result of zero is refused."""
    result = ladder(clamp(scalar), int.from_bytes(u, "little") & (2**255 - 1))
    if result == 0:
        raise RefusedError("bad_element")
    return result.to_bytes(32, "little")


def shake256(data: bytes, length: int) -> bytes:
    return hashlib.shake_256(data).digest(length)


def mac(key: bytes, data: bytes) -> bytes:
    return hashlib.blake2b(data, key=key, digest_size=MAC_BYTES).digest()


def xor(left: bytes, right: bytes) -> bytes:
    if len(left) != len(right):
        raise ValueError(f"cannot xor {len(left)} with {len(right)} bytes")
    return (int.from_bytes(left, "big") ^ int.from_bytes(right, "big")).to_bytes(len(left), "big")


def ctr(key: bytes, data: bytes) -> bytes:
    """AES-256 in counter mode: the blocks 0^12 ‖ 2, 0^12 ‖ 3, … encrypted are the key stream."""
    blocks = -(-len(data) // 16)
    counters = b"".join(bytes(12) + (2 + block).to_bytes(4, "big") for block in range(blocks))
    # ECB of distinct counter blocks is what counter mode is made of.
    encryptor = Cipher(algorithms.AES256(key), modes.ECB()).encryptor()
    return xor(data, (encryptor.update(counters) + encryptor.finalize())[: len(data)])


def gmac(key: bytes, data: bytes) -> bytes:
    """AES-256-GCM under the nonce 0^12 with nothing to encrypt: its tag over the associated data."""
    encryptor = Cipher(algorithms.AES256(key), modes.GCM(bytes(12))).encryptor()
    encryptor.authenticate_additional_data(data)
    encryptor.finalize()
    return encryptor.tag


def h(key: bytes, data: bytes) -> bytes:
    return hashlib.blake2b(gmac(key[:32], data), key=key[32:], digest_size=32).digest()


def wide(keys: bytes, data: bytes) -> bytes:
    k1, k2, k3, k4 = keys[:32], keys[32:96], keys[96:128], keys[128:]
    left, right = data[:32], data[32:]
    right = ctr(xor(left, k1), right)
    left = xor(left, h(k2, right))
    right = ctr(xor(left, k3), right)
    left = xor(left, h(k4, right))
    return left + right


def unwide(keys: bytes, data: bytes) -> bytes:
    k1, k2, k3, k4 = keys[:32], keys[32:96], keys[96:128], keys[128:]
    left, right = data[:32], data[32:]
    left = xor(left, h(k4, right))
    right = ctr(xor(left, k3), right)
    left = xor(left, h(k2, right))
    right = ctr(xor(left, k1), right)
    return left + right


# ------------------------------------------------------------------------------------- §3 what a hop derives


@dataclass(frozen=True, slots=True, kw_only=True)
class HopKeys:
    """What both ends of one layer know. The secret is kept for the golden vectors."""

    secret: bytes
    mac_key: bytes
    header_key: bytes
    blind: bytes
    replay_tag: bytes
    payload_key: bytes


def derive(form: Format, *, secret: bytes, alpha: bytes, public: bytes) -> HopKeys:
    out = shake256(form.context + b"/hop" + secret + alpha + public, 304)
    return HopKeys(
        secret=secret,
        mac_key=out[:32],
        header_key=out[32:64],
        blind=out[64:96],
        replay_tag=out[96:112],
        payload_key=out[112:],
    )


def gamma(keys: HopKeys, alpha: bytes, beta: bytes) -> bytes:
    return mac(keys.mac_key, VERSION + alpha + beta)


# ----------------------------------------------------------------------------------------- §6 the key layers


def public_key(form: Format, private: bytes) -> bytes:
    """The public key of 32 private bytes."""
    if form.key_layer != "pq":
        return x25519(private, BASE_POINT)
    kem, scalar = _expand_xwing(private)
    return kem.public_key().public_bytes_raw() + x25519(scalar, BASE_POINT)


def _expand_xwing(seed: bytes) -> tuple[MLKEM768PrivateKey, bytes]:
    expanded = shake256(seed, 96)
    return MLKEM768PrivateKey.from_seed_bytes(expanded[:64]), expanded[64:]


def _combine_xwing(kem_secret: bytes, dh_secret: bytes, dh_cipher: bytes, dh_public: bytes) -> bytes:
    label = bytes.fromhex("5c2e2f2f5e5c")
    return hashlib.sha3_256(kem_secret + dh_secret + dh_cipher + dh_public + label).digest()


def _combine_x25519_kem(shared: bytes) -> bytes:
    return shake256(b"unlinkabledfl/x25519-kem/1" + shared, 32)


def sender_layers(form: Format, publics: Sequence[bytes], entropy: Entropy) -> list[tuple[bytes, HopKeys]]:
    """Step 1 of §5: the element and the keys of every hop, in the order of the path."""
    if form.key_layer == "x25519":
        return _sender_blinded(form, publics, entropy)
    layers = []
    for public in publics:
        ephemeral = entropy(32)
        if form.key_layer == "x25519-kem":
            alpha = x25519(ephemeral, BASE_POINT)
            secret = _combine_x25519_kem(x25519(ephemeral, public))
        else:
            kem_public, dh_public = public[:1184], public[1184:]
            # The format leaves this randomness to the library. Here it follows from the scalar, so that runs repeat.
            kem_secret, kem_cipher = mlkem_reference.encapsulate(kem_public, shake256(b"encapsulation" + ephemeral, 32))
            dh_cipher = x25519(ephemeral, BASE_POINT)
            alpha = kem_cipher + dh_cipher
            secret = _combine_xwing(kem_secret, x25519(ephemeral, dh_public), dh_cipher, dh_public)
        layers.append((alpha, derive(form, secret=secret, alpha=alpha, public=public)))
    return layers


def _sender_blinded(form: Format, publics: Sequence[bytes], entropy: Entropy) -> list[tuple[bytes, HopKeys]]:
    """The chain of the Sphinx paper: the sender's scalar, then the blinding factor of every earlier hop."""
    factors = [entropy(32)]
    layers = []
    for public in publics:
        alpha, secret = BASE_POINT, public
        for factor in factors:
            alpha, secret = x25519(factor, alpha), x25519(factor, secret)
        keys = derive(form, secret=secret, alpha=alpha, public=public)
        factors.append(keys.blind)
        layers.append((alpha, keys))
    return layers


def receiver_secret(form: Format, *, private: bytes, public: bytes, alpha: bytes) -> bytes:
    if form.key_layer == "x25519":
        return x25519(private, alpha)
    if form.key_layer == "x25519-kem":
        return _combine_x25519_kem(x25519(private, alpha))
    kem, scalar = _expand_xwing(private)
    kem_cipher, dh_cipher = alpha[:1088], alpha[1088:]
    return _combine_xwing(kem.decapsulate(kem_cipher), x25519(scalar, dh_cipher), dh_cipher, public[1184:])


# -------------------------------------------------------------------------- §4 and §5 slots, making a header


@dataclass(frozen=True, slots=True, kw_only=True)
class PathHop:
    node_id: bytes
    public_key: bytes
    delay_us: int = 0


def make_slot(
    form: Format,
    command: int,
    *,
    delay_us: int = 0,
    node_id: bytes = bytes(32),
    mac_: bytes = bytes(16),
    alpha: bytes = b"",
) -> bytes:
    carried = alpha[: form.carried_bytes].ljust(form.carried_bytes, b"\0")
    return bytes([command]) + delay_us.to_bytes(4, "big") + node_id + mac_ + carried


def make_header(
    form: Format, path: Sequence[PathHop], last_slot: bytes, entropy: Entropy
) -> tuple[bytes, list[HopKeys]]:
    n, r, s = len(path), form.max_hops, form.slot_bytes
    layers = sender_layers(form, [hop.public_key for hop in path], entropy)
    keys = [hop_keys for _, hop_keys in layers]
    alphas = [alpha for alpha, _ in layers]

    filler = b""
    for i in range(1, n):
        stream = ctr(keys[i - 1].header_key, bytes((r + 1) * s))
        filler = xor(stream[(r - i + 1) * s : (r + 1) * s], filler + bytes(s))

    padding = entropy((r - n) * s)
    beta = ctr(keys[n - 1].header_key, last_slot + padding) + filler
    tag = gamma(keys[n - 1], alphas[n - 1], beta)
    for i in reversed(range(n - 1)):
        slot = make_slot(
            form,
            FORWARD,
            delay_us=path[i].delay_us,
            node_id=path[i + 1].node_id,
            mac_=tag,
            alpha=alphas[i + 1],
        )
        beta = ctr(keys[i].header_key, slot + beta[: (r - 1) * s])
        tag = gamma(keys[i], alphas[i], beta)
    return alphas[0] + beta + tag, keys


# -------------------------------------------------------------------------- §8 and §9 forward packets, SURBs


@dataclass(frozen=True, slots=True, kw_only=True)
class SurbSecrets:
    """What the maker of a SURB keeps."""

    surb_id: bytes
    seed: bytes
    payload_keys: tuple[bytes, ...]  # of every hop but the last, who is the maker
    hop_keys: tuple[HopKeys, ...]  # for the golden vectors only


def wrap_traced(
    form: Format, path: Sequence[PathHop], payload: bytes, *, entropy: Entropy, command: int = DELIVER
) -> tuple[bytes, list[HopKeys]]:
    """A forward packet and the keys of its hops. Another command makes what no honest sender makes."""
    if len(payload) != form.payload_bytes:
        raise ValueError(f"a payload has {form.payload_bytes} bytes, not {len(payload)}")
    header, keys = make_header(form, path, make_slot(form, command, delay_us=path[-1].delay_us), entropy)
    body = ZERO_TAG + payload
    for hop_keys in reversed(keys):
        body = wide(hop_keys.payload_key, body)
    return header + body, keys


def wrap(form: Format, path: Sequence[PathHop], payload: bytes, *, entropy: Entropy) -> bytes:
    return wrap_traced(form, path, payload, entropy=entropy)[0]


def make_surb(form: Format, path: Sequence[PathHop], *, entropy: Entropy) -> tuple[bytes, SurbSecrets]:
    surb_id, seed = entropy(32), entropy(32)
    header, keys = make_header(form, path, make_slot(form, REPLY, node_id=surb_id), entropy)
    payload_keys = tuple(hop_keys.payload_key for hop_keys in keys[:-1])
    secrets = SurbSecrets(surb_id=surb_id, seed=seed, payload_keys=payload_keys, hop_keys=tuple(keys))
    return path[0].node_id + header + seed, secrets


def reply_key(form: Format, seed: bytes) -> bytes:
    return shake256(form.context + b"/reply" + seed, 192)


def reply(form: Format, surb: bytes, payload: bytes) -> tuple[bytes, bytes]:
    """The first hop, and the packet to send there."""
    first_hop, header, seed = surb[:32], surb[32:-32], surb[-32:]
    return first_hop, header + wide(reply_key(form, seed), ZERO_TAG + payload)


def open_reply(form: Format, secrets: SurbSecrets, body: bytes) -> bytes:
    for payload_key in reversed(secrets.payload_keys):
        body = wide(payload_key, body)
    plain = unwide(reply_key(form, secrets.seed), body)
    if plain[:32] != ZERO_TAG:
        raise RefusedError("bad_reply")
    return plain[32:]


# ------------------------------------------------------------------------------------ §7 processing a packet


@dataclass(frozen=True, slots=True, kw_only=True)
class Peeled:
    """What one hop makes of a packet. Fields that the command does not use are at their defaults."""

    keys: HopKeys
    command: int
    delay_us: int = 0
    node_id: bytes = b""  # forward: the next hop; reply: the id of the SURB
    output: bytes = b""  # forward: the next packet; deliver: the payload; reply: the body, untouched


def process(form: Format, packet: bytes, *, private: bytes, seen: set[bytes]) -> Peeled:
    e, b, s = form.element_bytes, form.beta_bytes, form.slot_bytes
    if len(packet) != form.packet_bytes:
        raise RefusedError("bad_length")
    alpha, beta, tag, body = packet[:e], packet[e : e + b], packet[e + b : e + b + 16], packet[e + b + 16 :]
    public = public_key(form, private)
    secret = receiver_secret(form, private=private, public=public, alpha=alpha)
    keys = derive(form, secret=secret, alpha=alpha, public=public)
    if tag != gamma(keys, alpha, beta):
        raise RefusedError("bad_mac")
    if keys.replay_tag in seen:
        raise RefusedError("replayed")
    seen.add(keys.replay_tag)

    plain = ctr(keys.header_key, beta + bytes(s))
    slot, next_beta = plain[:s], plain[s:]
    command, delay_us, node_id = slot[0], int.from_bytes(slot[1:5], "big"), slot[5:37]
    if command == FORWARD:
        next_alpha = slot[53:] if form.carried_bytes else x25519(keys.blind, alpha)
        packet = next_alpha + next_beta + slot[37:53] + unwide(keys.payload_key, body)
        return Peeled(keys=keys, command=command, delay_us=delay_us, node_id=node_id, output=packet)
    if command == DELIVER:
        plain = unwide(keys.payload_key, body)
        if plain[:32] != ZERO_TAG:
            raise RefusedError("bad_payload")
        return Peeled(keys=keys, command=command, delay_us=delay_us, output=plain[32:])
    if command == REPLY:
        return Peeled(keys=keys, command=command, node_id=node_id, output=body)
    raise RefusedError("bad_command")
