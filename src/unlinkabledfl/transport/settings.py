"""How a node's endpoint behaves: sizes, bounds and times of its links."""

from dataclasses import dataclass, fields
from math import inf

from unlinkabledfl.errors import ConfigError

__all__ = ["DATAGRAM_BYTES_MAX", "DATAGRAM_BYTES_MIN", "EndpointSettings"]

DATAGRAM_BYTES_MIN = 1_200
"""What QUIC asks of every path."""
DATAGRAM_BYTES_MAX = 16_384
"""A packet with its headers and some more; datagrams of 64 kB would leave nothing to batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointSettings:
    """One node's links. `packet_bytes` is the deployment's; the rest is each node's own affair."""

    packet_bytes: int
    """What every packet weighs: the packet format's `packet_bytes`."""
    datagram_bytes: int = 1_280
    """The largest UDP payload that we send. Paths that cannot carry it get 1,280, or less by what they do carry."""
    send_window_packets: int = 64
    """A link with so many packets not yet on the wire is not writable."""
    dial_queue_packets: int = 64
    """How many packets wait for one link while it is being dialled."""
    control_queue_messages: int = 4_096
    """How many control messages wait for one link."""
    receive_window_bytes: int = 1_048_576
    """How much a peer may have under way to us on one link."""
    key_datagrams: int = 1_048_576
    """After so many datagrams a link asks for new keys."""
    links_max: int = 512
    """How many links a node has at once, at most."""
    dialled_max: int = 256
    """How many of them it may have dialled on demand; past that, the one unused for longest makes room."""
    handshakes_max: int = 128
    """How many accepted connections may be short of their proof at once."""
    handshakes_per_source: int = 64
    """How many of those may come from one IP address."""
    handshakes_unchecked: int = 32
    """With so many under way, a dialler first has to show that it receives at its address."""
    handshake_timeout_s: float = 10.0
    """From the first datagram until the peer is authenticated."""
    keep_alive_s: float = 10.0
    """A link on which nothing arrived for so long is probed by its dialler."""
    idle_timeout_s: float = 30.0
    """A link on which nothing arrived for so long is gone."""
    backoff_first_s: float = 0.25
    """The mean pause before the first new attempt at a wanted link; it doubles from there."""
    backoff_max_s: float = 30.0
    """The longest mean pause."""
    close_timeout_s: float = 1.0
    """For how long an orderly close waits until what was sent is on the wire."""
    allow_loopback: bool = False
    """Whether peers may be at loopback addresses: in experiments on one host."""

    def __post_init__(self) -> None:
        _check(
            "process.datagram_bytes",
            self.datagram_bytes,
            low=DATAGRAM_BYTES_MIN,
            high=DATAGRAM_BYTES_MAX,
        )
        _check("links.packet_bytes", self.packet_bytes, low=1, high=1 << 24)
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name.endswith("_s"):
                if not 0.0 < value < inf:
                    raise ConfigError(key=f"process.{field.name}", got=value, takes="seconds, more than zero")
            elif field.name != "allow_loopback" and value < 1:
                raise ConfigError(key=f"process.{field.name}", got=value, takes="a whole number from 1")
        if self.dial_queue_packets > self.send_window_packets:
            raise ConfigError(
                key="process.dial_queue_packets",
                got=self.dial_queue_packets,
                takes=f"at most process.send_window_packets, which is {self.send_window_packets}",
            )
        if self.keep_alive_s >= self.idle_timeout_s:
            raise ConfigError(
                key="process.keep_alive_s",
                got=self.keep_alive_s,
                takes=f"less than process.idle_timeout_s, which is {self.idle_timeout_s}",
            )


def _check(key: str, value: int, *, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ConfigError(key=key, got=value, takes=f"a whole number from {low} to {high}")
