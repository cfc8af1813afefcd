import json
import runpy
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.bindings import crypto_scalarmult

from unlinkabledfl.errors import ConfigError, DescriptorError, LocalProtocolError
from unlinkabledfl.mixnet import descriptor as module
from unlinkabledfl.mixnet.descriptor import Descriptor, check_address, check_ip, parse, peek, sign
from unlinkabledfl.sphinx.keylayers import KEY_LAYERS
from unlinkabledfl.sphinx.small_order import PRIME, SMALL_ORDER_U

FOLDER = Path(__file__).parents[2] / "vectors"
VECTORS = json.loads((FOLDER / "descriptor.json").read_text())
NOW_S = VECTORS["now_s"]
SEED = bytes(range(32))
KEY = bytes(range(100, 132))


def make(**changes: Any) -> Descriptor:
    fields: dict[str, Any] = {
        "serial": 1,
        "epoch": 2,
        "public_key": KEY,
        "fingerprint": bytes(32),
        "valid_until_s": NOW_S + 60,
        "addresses": ["192.0.2.1:4433", "mix.example:4433"],
    }
    return sign(SEED, **(fields | changes))


def cause_of(data: bytes, **changes: Any) -> str:
    with pytest.raises(DescriptorError) as caught:
        parse(data, **({"now_s": NOW_S, "allow_loopback": False} | changes))
    return caught.value.cause


@pytest.mark.parametrize("case", VECTORS["good"], ids=lambda case: case["name"])
def test_a_golden_descriptor_is_made_and_read_byte_for_byte(case: dict[str, Any]) -> None:
    expected = Descriptor(
        node_id=bytes.fromhex(case["node_id"]),  # type: ignore[arg-type]
        serial=case["serial"],
        epoch=case["epoch"],
        public_key=bytes.fromhex(case["public_key"]),
        fingerprint=bytes.fromhex(case["fingerprint"]),
        valid_until_s=case["valid_until_s"],
        addresses=tuple(case["addresses"]),
        data=bytes.fromhex(case["data"]),
    )

    made = sign(
        bytes.fromhex(case["seed"]),
        serial=expected.serial,
        epoch=expected.epoch,
        public_key=expected.public_key,
        fingerprint=expected.fingerprint,
        valid_until_s=expected.valid_until_s,
        addresses=expected.addresses,
        allow_loopback=case["allow_loopback"],
    )
    read = parse(
        expected.data,
        now_s=NOW_S,
        allow_loopback=case["allow_loopback"],
        accepts_key=KEY_LAYERS["pq" if len(expected.public_key) > 32 else "x25519"].accepts,
    )

    assert (made, read) == (expected, expected)
    assert peek(expected.data) == (expected.node_id, (expected.epoch, expected.serial))


@pytest.mark.parametrize("case", VECTORS["bad"], ids=lambda case: case["name"])
def test_a_golden_rejection_names_its_cause(case: dict[str, Any]) -> None:
    assert cause_of(bytes.fromhex(case["data"])) == case["cause"]


def test_the_vectors_are_what_their_generator_writes() -> None:
    generator = runpy.run_path(str(FOLDER / "make_descriptor.py"))

    assert generator["document"]() == (FOLDER / "descriptor.json").read_text()


def test_every_cause_has_a_vector() -> None:
    assert {case["cause"] for case in VECTORS["bad"]} == {
        "too_long", "truncated", "trailing_bytes", "bad_version", "bad_signature", "stale", "too_far_ahead",
        "bad_address", "bad_key",
    }  # fmt: skip


@given(st.binary(max_size=600))
def test_random_bytes_are_refused_with_a_cause(data: bytes) -> None:
    cause_of(data)


@given(st.data())
def test_any_changed_bit_is_refused(data: st.DataObject) -> None:
    raw = bytearray(make().data)
    bit = data.draw(st.integers(0, 8 * len(raw) - 1))
    raw[bit // 8] ^= 1 << bit % 8

    cause_of(bytes(raw))


@given(st.data())
def test_any_prefix_is_refused(data: st.DataObject) -> None:
    raw = make().data

    cause_of(raw[: data.draw(st.integers(0, len(raw) - 1))])


PORTS = st.integers(1, 65_535)
HOSTS = st.one_of(
    st.ip_addresses(v=4, network="10.0.0.0/8").map(str),
    st.ip_addresses(v=6, network="fd00::/8").map(lambda ip: f"[{ip}]"),
    st.from_regex(r"\A[a-z][a-z0-9]{0,20}(\.[a-z][a-z0-9]{0,20}){0,3}\Z").filter(lambda host: "localhost" not in host),
)
ADDRESSES = st.lists(st.builds("{}:{}".format, HOSTS, PORTS), max_size=4, unique=True)


@given(
    serial=st.integers(0, 2**64 - 1),
    epoch=st.integers(0, 2**32 - 1),
    fingerprint=st.binary(min_size=32, max_size=32),
    valid_until_s=st.integers(NOW_S + 1, NOW_S + module.LIFETIME_MAX_S),
    addresses=ADDRESSES,
)
def test_what_is_signed_here_is_read_there(
    serial: int, epoch: int, fingerprint: bytes, valid_until_s: int, addresses: list[str]
) -> None:
    made = make(serial=serial, epoch=epoch, fingerprint=fingerprint, valid_until_s=valid_until_s, addresses=addresses)

    assert parse(made.data, now_s=NOW_S, allow_loopback=False) == made
    assert len(made.data) <= module.MAX_BYTES


GOOD = ["1.2.3.4:1", "10.0.0.1:65535", "[2a00::1]:443", "[fc00::1]:1", "a:1", "xn--mnchen-3ya.example:9", "a-b.c1:80"]
BAD = [
    "", ":", "host", "host:", ":1", "host:0", "host:65536", "host:01", "host:+1", "host: 1", "host:1 ", "host:\uff11",
    " host:1", "ho st:1", "host\n:1", "host:1\n", "host\x00:1", "-host:1", "host-:1", "a..b:1", "host.:1", ".host:1",
    "under_score:1", f"{'a' * 64}:1", f"{'a.' * 130}a:1", "2001:db8::1:1", "[1.2.3.4]:1", "[]:1", "[::1:1", "::1]:1",
    "127.1:1", "0x7f000001:1", "2130706433:1", "0177.0.0.1:1", "1.2.3:1", "1.2.3.4.5:1", "1.2.3.256:1", "a.1:1",
    "0.0.0.0:1", "0.1.2.3:1", "255.255.255.255:1", "224.0.0.1:1", "239.1.2.3:1", "240.0.0.1:1", "169.254.169.254:1",
    "[::]:1", "[ff02::1]:1", "[fe80::1]:1", "[fe80::1%eth0]:1", "[fd00::1%eth0]:1", "[::ffff:10.0.0.1]:1",
    "[2002:7f00:1::]:1", "[2001:0:4136:e378:8000:63bf:3fff:fdd2]:1", "[::7f00:1]:1", "http://host:1", "user@host:1",
]  # fmt: skip
LOOPBACK = ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1", "LOCALHOST:1", "a.localhost:1"]


@pytest.mark.parametrize("address", GOOD)
def test_an_address_that_can_be_dialled_is_good(address: str) -> None:
    check_address(address, allow_loopback=False)


@pytest.mark.parametrize("allow_loopback", [False, True])
@pytest.mark.parametrize("address", BAD)
def test_an_absurd_address_is_bad(address: str, allow_loopback: bool) -> None:
    with pytest.raises(DescriptorError) as caught:
        check_address(address, allow_loopback=allow_loopback)

    assert caught.value.cause == "bad_address"


@pytest.mark.parametrize("address", LOOPBACK)
def test_loopback_is_good_only_where_it_is_allowed(address: str) -> None:
    check_address(address, allow_loopback=True)
    with pytest.raises(DescriptorError):
        check_address(address, allow_loopback=False)


def test_what_a_name_resolves_to_can_be_checked_too() -> None:
    check_ip(ip_address("192.168.1.5"), allow_loopback=False)
    with pytest.raises(DescriptorError):
        check_ip(ip_address("169.254.169.254"), allow_loopback=True)


@given(st.text(max_size=40))
def test_no_text_breaks_the_address_check(text: str) -> None:
    with suppress(DescriptorError):
        check_address(text, allow_loopback=True)
        assert text.isascii()
        assert text.isprintable()
        assert " " not in text


LOW_ORDER = [
    (u + shift).to_bytes(32, "little")
    for u in SMALL_ORDER_U
    for shift in (0, PRIME, 2**255)  # X25519 ignores bit 255 and reduces what is left
    if shift != PRIME or u + shift < 2**255
]


@pytest.mark.parametrize("key", LOW_ORDER, ids=bytes.hex)
def test_a_key_that_shares_no_secret_is_refused(key: bytes) -> None:
    # What makes such a key bad: libsodium refuses to multiply it, with any private key.
    with pytest.raises(RuntimeError):
        crypto_scalarmult(SEED, key)

    assert cause_of(make(public_key=key).data) == "bad_key"


def test_the_cheap_checks_come_before_the_signature() -> None:
    unsigned = make().data[:-64] + bytes(64)

    assert cause_of(unsigned) == "bad_signature"
    assert cause_of(unsigned, now_s=NOW_S + 61) == "stale"
    assert cause_of(unsigned, accepts_key=lambda _: False) == "bad_key"


def test_a_descriptor_ends_at_its_last_second() -> None:
    data = make(valid_until_s=NOW_S + 60).data

    assert parse(data, now_s=NOW_S + 59.9, allow_loopback=False).data == data
    assert cause_of(data, now_s=NOW_S + 60) == "stale"


@pytest.mark.parametrize(
    "changes",
    [
        {"fingerprint": bytes(31)},
        {"serial": -1},
        {"serial": 2**64},
        {"epoch": 2**32},
        {"valid_until_s": -1},
        {"public_key": b""},
        {"public_key": bytes([1]) * 2049},
    ],
    ids=str,
)
def test_a_descriptor_that_nobody_would_accept_is_a_bug_here(changes: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError):
        make(**changes)


def test_our_own_bad_address_is_the_operators_mistake() -> None:
    with pytest.raises(ConfigError) as caught:
        make(addresses=["127.0.0.1:4433"])

    assert caught.value.key == "node.addresses"


def test_a_seed_of_the_wrong_length_is_a_bug_here() -> None:
    with pytest.raises(LocalProtocolError):
        sign(bytes(31), serial=1, epoch=1, public_key=KEY, fingerprint=bytes(32), valid_until_s=1, addresses=[])


def test_key_bytes_are_not_printed_by_accident() -> None:
    assert KEY.hex() not in repr(make())
    assert repr(KEY) not in repr(make())
