"""From `host:port` to where a datagram goes: never to where a stranger must not send us."""

import socket

import pytest

from unlinkabledfl.transport.addresses import places, resolve_by_system
from unlinkabledfl.transport.udp import Address

NAMES = {
    "both.example": ["192.0.2.1", "2001:db8::1", "192.0.2.1"],
    "inside.example": ["127.0.0.1", "169.254.169.254", "::1", "fe80::1%eth0", "not an address"],
    "many.example": [f"192.0.2.{number}" for number in range(1, 200)],
}


def found(address: str, *, family: int = socket.AF_INET6, allow_loopback: bool = False) -> list[Address]:
    answer = places(address, family=family, allow_loopback=allow_loopback, resolve=lambda name: NAMES.get(name, []))
    return answer() if callable(answer) else answer


@pytest.mark.parametrize(
    ("address", "family", "expected"),
    [
        ("192.0.2.1:80", socket.AF_INET, [("192.0.2.1", 80)]),
        ("192.0.2.1:80", socket.AF_INET6, [("::ffff:192.0.2.1", 80, 0, 0)]),
        ("[2001:db8::1]:80", socket.AF_INET6, [("2001:db8::1", 80, 0, 0)]),
        ("[2001:db8::1]:80", socket.AF_INET, []),
        ("both.example:80", socket.AF_INET, [("192.0.2.1", 80)]),
        ("both.example:80", socket.AF_INET6, [("::ffff:192.0.2.1", 80, 0, 0), ("2001:db8::1", 80, 0, 0)]),
        ("nowhere.example:80", socket.AF_INET6, []),
    ],
)
def test_an_address_leads_where_our_socket_can_send(address: str, family: int, expected: list[Address]) -> None:
    assert found(address, family=family) == expected


@pytest.mark.parametrize("address", ["127.0.0.1:80", "[::1]:80", "169.254.169.254:80", "inside.example:80"])
def test_no_way_leads_to_our_own_host_or_link(address: str) -> None:
    assert found(address) == []


def test_loopback_is_allowed_in_experiments_and_link_local_addresses_never() -> None:
    assert found("inside.example:80", family=socket.AF_INET, allow_loopback=True) == [("127.0.0.1", 80)]


def test_a_name_gives_so_many_addresses_and_no_more() -> None:
    assert len(found("many.example:80")) == 4


def test_only_names_are_looked_up_and_by_a_call_that_may_block() -> None:
    def fail(name: str) -> list[str]:
        raise AssertionError(name)

    assert places("192.0.2.1:80", family=socket.AF_INET, allow_loopback=False, resolve=fail) == [("192.0.2.1", 80)]
    assert callable(places("both.example:80", family=socket.AF_INET, allow_loopback=False, resolve=fail))


def test_a_name_that_the_system_does_not_know_is_nobody() -> None:
    assert resolve_by_system("no host has blanks") == []
    assert "127.0.0.1" in resolve_by_system("127.0.0.1")
