"""From `host:port`, as contacts and descriptors have it, to where a datagram can be sent.

What a name resolves to is held to the same rule as an address that is written out (`check_ip`): otherwise a stranger's
descriptor could make us knock at our own host's or the local network's doors by way of a name.
"""

import socket
from collections.abc import Callable
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, TypeAlias

from unlinkabledfl.errors import DescriptorError
from unlinkabledfl.mixnet.descriptor import check_ip
from unlinkabledfl.transport.udp import Address

__all__ = ["Resolver", "places", "resolve_by_system"]

Resolver: TypeAlias = Callable[[str], list[str]]
"""Turns a name into IP addresses as text; none if there are none. It may block: it is called in a thread."""

_RESOLVED_MAX: Final = 4


def resolve_by_system(name: str) -> list[str]:
    """Ask the system's resolver; an empty list if it does not know."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return []
    return [str(entry[4][0]) for entry in found]


def places(
    address: str, *, family: int, allow_loopback: bool, resolve: Resolver
) -> list[Address] | Callable[[], list[Address]]:
    """Return where to send for this address; a function that blocks to find out, if it is a name.

    `family` is our socket's: IPv6 ones reach both kinds, IPv4 ones their own.
    """
    host, _, port = address.rpartition(":")
    usable = partial(_usable, port=int(port), family=family, allow_loopback=allow_loopback)
    text = host.removeprefix("[").removesuffix("]")
    try:
        ip_address(text)
    except ValueError:
        return lambda: usable(resolve(host)[:_RESOLVED_MAX])
    return usable([text])


def _usable(texts: list[str], *, port: int, family: int, allow_loopback: bool) -> list[Address]:
    found: list[Address] = []
    for text in texts:
        try:
            ip = ip_address(text)
            check_ip(ip, allow_loopback=allow_loopback)
        except (ValueError, DescriptorError):
            continue
        place = _place(ip, port, family)
        if place is not None and place not in found:
            found.append(place)
    return found


def _place(ip: IPv4Address | IPv6Address, port: int, family: int) -> Address | None:
    if family == socket.AF_INET6:
        return (str(ip) if isinstance(ip, IPv6Address) else f"::ffff:{ip}", port, 0, 0)
    return (str(ip), port) if isinstance(ip, IPv4Address) else None
