"""Write descriptor.json, the golden vectors of the peer descriptor: python tests/vectors/make_descriptor.py.

Written from the table in `unlinkabledfl/mixnet/descriptor.py`, not with its code, and signed with another library:
so the vectors say whether the code does what the table says. Everything is derived from fixed seeds, so a second run
writes the same bytes; a test insists on that.
"""

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

TARGET = Path(__file__).with_name("descriptor.json")
LABEL = b"unlinkabledfl/descriptor/v1\x00"
NOW_S = 1_800_000_000
DAY_S = 86_400


def derived(name: str, size: int) -> bytes:
    """Bytes that look random and are the same each time."""
    return hashlib.shake_256(f"descriptor vector {name}".encode()).digest(size)


def hybrid_key(name: str) -> bytes:
    """A public key of the layer `pq`: ML-KEM-768 and X25519."""
    mlkem = MLKEM768PrivateKey.from_seed_bytes(derived(f"{name} ML-KEM", 64))
    x25519 = X25519PrivateKey.from_private_bytes(derived(f"{name} X25519", 32))
    return mlkem.public_key().public_bytes_raw() + x25519.public_key().public_bytes_raw()


def case(name: str, *, addresses: list[str], key: bytes | None = None, **fields: int) -> dict[str, Any]:
    """The fields of one descriptor, in JSON's types."""
    return {
        "name": name,
        "seed": derived(f"{name} seed", 32).hex(),
        "serial": fields.get("serial", 7),
        "epoch": fields.get("epoch", 3),
        "public_key": (key or derived(f"{name} key", 32)).hex(),
        "fingerprint": derived(f"{name} fingerprint", 32).hex(),
        "valid_until_s": fields.get("valid_until_s", NOW_S + DAY_S),
        "addresses": addresses,
        "allow_loopback": bool(fields.get("allow_loopback", 0)),
    }


def body_of(fields: dict[str, Any], *, version: int = 1, trailing: bytes = b"") -> bytes:
    """Everything before the signature."""
    private = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(fields["seed"]))
    key = bytes.fromhex(fields["public_key"])
    body = struct.pack(">B", version) + private.public_key().public_bytes_raw()
    body += struct.pack(">QI", fields["serial"], fields["epoch"])
    body += struct.pack(">H", len(key)) + key + bytes.fromhex(fields["fingerprint"])
    body += struct.pack(">QB", fields["valid_until_s"], len(fields["addresses"]))
    for address in fields["addresses"]:
        encoded = address.encode()
        body += struct.pack(">B", len(encoded)) + encoded
    return body + trailing


def signed(fields: dict[str, Any], body: bytes) -> bytes:
    """The descriptor's bytes."""
    private = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(fields["seed"]))
    return body + private.sign(LABEL + body)


def good_cases() -> list[dict[str, Any]]:
    """Descriptors that must parse to these fields, and be made from them."""
    cases = [
        case("no address", addresses=[], serial=0, epoch=0),
        case("every kind of address", addresses=[
            "192.0.2.17:4433", "[2001:db8::17]:1", "mix-7.hospital.example:65535", "node7:4433",
        ]),
        case("largest numbers", addresses=["10.0.0.1:4433"], serial=2**64 - 1, epoch=2**32 - 1),
        case("loopback where it is allowed", addresses=["127.0.0.1:4433", "[::1]:4433"], allow_loopback=1),
        case("hybrid key", addresses=["[fd00::5]:4433"], key=hybrid_key("hybrid")),
        case("longest life", addresses=[], valid_until_s=NOW_S + 30 * DAY_S),
    ]  # fmt: skip
    for fields in cases:
        private = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(fields["seed"]))
        fields["node_id"] = private.public_key().public_bytes_raw().hex()
        fields["data"] = signed(fields, body_of(fields)).hex()
    return cases


def bad_cases() -> list[dict[str, Any]]:
    """Bytes that must be refused, and the cause; all but the unsigned ones carry a good signature."""
    fields = case("bad", addresses=["192.0.2.17:4433"])
    body = body_of(fields)
    data = signed(fields, body)

    def with_fields(**changes: object) -> bytes:
        changed = fields | changes
        return signed(changed, body_of(changed))

    found = {
        "empty": ("truncated", b""),
        "one byte short of the shortest": ("truncated", data[:151]),  # 152: no key, no address
        "last byte missing": ("truncated", data[:-1]),
        "one byte more": ("trailing_bytes", data + b"\x00"),
        "signed trailing byte": ("trailing_bytes", signed(fields, body_of(fields, trailing=b"\x00"))),
        "one byte longer than the longest": ("too_long", data.ljust(3225, b"\x00")),
        "version 0": ("bad_version", signed(fields, body_of(fields, version=0))),
        "version 2": ("bad_version", signed(fields, body_of(fields, version=2))),
        "signature of other bytes": ("bad_signature", body + signed(fields, body + b"x")[-64:]),
        "signature without label": ("bad_signature", unlabelled(fields, body)),
        "signature of zeros": ("bad_signature", body + bytes(64)),
        "expired at this second": ("stale", with_fields(valid_until_s=NOW_S)),
        "valid for too long": ("too_far_ahead", with_fields(valid_until_s=NOW_S + 30 * DAY_S + 1)),
        "key of zeros": ("bad_key", with_fields(public_key="00" * 32)),
        "key of order 4": ("bad_key", with_fields(public_key="01" + "00" * 31)),
        "short key": ("bad_key", with_fields(public_key="aa" * 31)),
        "no key": ("bad_key", with_fields(public_key="")),
        "five addresses": ("bad_address", with_fields(addresses=[f"192.0.2.{i}:1" for i in range(1, 6)])),
        "one address twice": ("bad_address", with_fields(addresses=["192.0.2.1:1"] * 2)),
        "loopback where it is not allowed": ("bad_address", with_fields(addresses=["127.0.0.1:4433"])),
        "address not in ASCII": ("bad_address", with_fields(addresses=["münchen.example:4433"])),
        "empty address": ("bad_address", with_fields(addresses=[""])),
    }
    return [{"name": name, "cause": cause, "data": raw.hex()} for name, (cause, raw) in found.items()]


def unlabelled(fields: dict[str, Any], body: bytes) -> bytes:
    """Signed without the label, as another protocol's signature by the same key might be."""
    return body + Ed25519PrivateKey.from_private_bytes(bytes.fromhex(fields["seed"])).sign(body)


def document() -> str:
    """The whole file."""
    content = {"now_s": NOW_S, "good": good_cases(), "bad": bad_cases()}
    return json.dumps(content, indent=1) + "\n"


if __name__ == "__main__":
    TARGET.write_text(document())
