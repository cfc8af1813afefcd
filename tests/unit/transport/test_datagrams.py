"""What is read from datagrams before anybody is known: bounded, and from any bytes at all."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.transport.virtual import entropy
from unlinkabledfl.transport.datagrams import Initial, RetryTokens, connection_id_of, parse_initial, split

ADDRESS = ("192.0.2.1", 4433)


def initial(*, destination: bytes = b"d" * 8, source: bytes = b"s" * 8, token: bytes = b"") -> bytes:
    """A first datagram as far as it is read."""
    length = bytes([len(token)]) if len(token) < 64 else struct.pack(">H", 0x4000 | len(token))
    head = b"\xc3\x00\x00\x00\x01" + bytes([len(destination)]) + destination + bytes([len(source)]) + source
    return (head + length + token).ljust(1_200, b"\0")


@pytest.mark.parametrize("token", [b"", b"t" * 5, b"t" * 63, b"t" * 64, b"t" * 700])
def test_a_first_datagram_gives_its_ids_and_its_token(token: bytes) -> None:
    datagram = initial(destination=b"d" * 20, source=b"", token=token)

    assert parse_initial(datagram) == Initial(destination=b"d" * 20, source=b"", token=token)
    assert connection_id_of(datagram) == b"d" * 20


@pytest.mark.parametrize(
    "datagram",
    [
        initial()[:1_199],
        b"\x43" + initial()[1:],  # short header
        b"\xe3" + initial()[1:],  # handshake packet
        initial()[:1] + b"\x6b\x33\x43\xcf" + initial()[5:],  # QUIC version 2
        initial(destination=b"d" * 7),
        initial(destination=b"d" * 21),
        initial(source=b"s" * 21),
        initial()[:23] + b"\x7f\xff" + initial()[25:],  # a token that would not end in this datagram
    ],
)
def test_what_asks_for_no_connection_gets_none(datagram: bytes) -> None:
    assert parse_initial(datagram) is None


def test_a_read_is_cut_only_if_it_holds_datagrams_of_several_connections_or_of_a_handshake() -> None:
    ours = [b"\x40" + b"c" * 8 + bytes([number]) * 91 for number in range(3)]
    others = b"\x40" + b"d" * 8 + bytes(91)

    assert split(b"".join(ours), 100) is None
    assert split(b"".join(ours) + ours[0][:50], 100) is None
    assert split(b"".join([ours[0], others]), 100) == [ours[0], others]
    assert split(b"".join([ours[0], initial()[:100]]), 100) == [ours[0], initial()[:100]]
    assert split(ours[0], 100) is None


@given(st.binary(max_size=1_500), st.integers(1, 1_500))
def test_any_bytes_can_be_looked_at(data: bytes, segment_bytes: int) -> None:
    found = parse_initial(data)
    assert found is None or found.destination == connection_id_of(data)
    pieces = split(data, segment_bytes)
    assert pieces is None or b"".join(pieces) == data


class Retried:
    """A dialler that was told to come again."""

    def __init__(self, *, at_s: float = 50.0) -> None:
        self.tokens = RetryTokens(entropy(1))
        self.first = Initial(destination=b"d" * 8, source=b"s" * 8, token=b"")
        self.retry = self.tokens.retry(self.first, ADDRESS, now_s=at_s)
        chosen_end = 15 + self.retry[14]
        self.again = Initial(destination=self.retry[15:chosen_end], source=b"s" * 8, token=self.retry[chosen_end:-16])


def test_who_comes_again_with_its_token_is_let_in_under_the_id_that_it_chose_first() -> None:
    retried = Retried()

    assert retried.tokens.check(retried.again, ADDRESS, now_s=50.1) == b"d" * 8


@pytest.mark.parametrize(
    ("address", "now_s"), [(("192.0.2.2", 4433), 50.1), (("192.0.2.1", 4434), 50.1), (ADDRESS, 60.1), (ADDRESS, 48.0)]
)
def test_a_token_is_good_at_one_address_and_for_a_while(address: tuple[str, int], now_s: float) -> None:
    retried = Retried()

    assert retried.tokens.check(retried.again, address, now_s=now_s) is None


def test_a_token_is_good_for_one_connection_and_at_one_endpoint() -> None:
    retried = Retried()
    elsewhere = Initial(destination=b"x" * 8, source=b"s" * 8, token=retried.again.token)

    assert retried.tokens.check(elsewhere, ADDRESS, now_s=50.1) is None
    assert RetryTokens(entropy(2)).check(retried.again, ADDRESS, now_s=50.1) is None


@given(st.binary(max_size=200))
def test_no_token_can_be_made_up(token: bytes) -> None:
    made_up = Initial(destination=b"d" * 8, source=b"s" * 8, token=token)

    assert RetryTokens(entropy(1)).check(made_up, ADDRESS, now_s=0.0) is None
