"""One direction of a link between two peers, and the settings of all of them.

What happens to a packet, in this order:

1. it waits until the packets before it are on the wire, and takes `packet_bytes / bandwidth` to follow them;
2. it is lost with probability `loss`;
3. it travels for `latency_s` plus an exponential time with mean `jitter_s`;
4. with probability `reordering` it is held back for another `reordering_delay_s` and may be overtaken; otherwise it
   arrives no earlier than the packet before it, as in the byte stream that a QUIC link is;
5. with probability `duplication` it arrives a second time, after a second journey.

QUIC itself repairs the loss of datagrams, and its delay belongs into the jitter. `loss` here stands for whole packets
that never arrive: a connection that goes away with what it had accepted, or a peer that drops. Duplicates and
overtaking stand for what a hostile or broken peer can do to the packets that pass through it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from random import Random

from unlinkabledfl.errors import ConfigError

LOST = -1.0
"""Arrival time of a packet that does not arrive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSettings:
    """How a link behaves; see the module. `None` as a bandwidth stands for one that is never the bottleneck."""

    latency_s: float = 0.05
    jitter_s: float = 0.0
    bandwidth_bytes_per_s: float | None = None
    loss: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0
    reordering_delay_s: float = 0.1
    queue_packets: int = 64  # a link with so many packets unsent is not writable
    handshake_s: float = 0.1  # from dialling until both sides are linked
    dial_timeout_s: float = 5.0  # from dialling until the dialler gives up
    detection_s: float = 1.0  # from a peer's crash, or a cut, until the other side knows

    def __post_init__(self) -> None:
        for name in ("loss", "duplication", "reordering"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(key=f"links.{name}", got=getattr(self, name), takes="a probability from 0 to 1")
        for name in (setting.name for setting in fields(self)):
            if name.endswith("_s") and not name.endswith("_per_s") and not 0.0 <= getattr(self, name) < math.inf:
                raise ConfigError(key=f"links.{name}", got=getattr(self, name), takes="seconds, zero or more")
        bandwidth = self.bandwidth_bytes_per_s
        if bandwidth is not None and not 0.0 < bandwidth < math.inf:
            raise ConfigError(
                key="links.bandwidth_bytes_per_s", got=bandwidth, takes="bytes a second, or nothing for no limit"
            )
        if self.queue_packets < 1:
            raise ConfigError(key="links.queue_packets", got=self.queue_packets, takes="a whole number from 1")
        if self.dial_timeout_s < self.handshake_s:
            raise ConfigError(
                key="links.dial_timeout_s",
                got=self.dial_timeout_s,
                takes=f"at least links.handshake_s, which is {self.handshake_s}",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkPlan:
    """The links of a world: one law for all, exceptions by (source, target), and how many a node may dial.

    Past `dialled_max` links beyond those of the topology, a node closes the one it has had longest; the next packet
    over it dials again.
    """

    default: LinkSettings = field(default_factory=LinkSettings)
    between: Mapping[tuple[int, int], LinkSettings] = field(default_factory=dict)
    dialled_max: int = 64

    def __post_init__(self) -> None:
        if self.dialled_max < 1:
            raise ConfigError(key="links.dialled_max", got=self.dialled_max, takes="a whole number from 1")


class Channel:
    """One direction of a link: turns departures into arrivals."""

    __slots__ = ("_free_at_s", "_last_arrival_s", "_packet_s", "settings")

    def __init__(self, settings: LinkSettings, *, packet_bytes: int) -> None:
        bandwidth = settings.bandwidth_bytes_per_s
        self.settings = settings
        self._packet_s = 0.0 if bandwidth is None else packet_bytes / bandwidth
        self._free_at_s = 0.0
        self._last_arrival_s = 0.0

    def is_writable(self, now_s: float) -> bool:
        """Return whether fewer packets than the bound are waiting for the wire."""
        return self._free_at_s - now_s < self._packet_s * self.settings.queue_packets or not self._packet_s

    def arrival_s(self, now_s: float, chances: Random) -> float:
        """Send a packet now; return when it arrives, or `LOST`."""
        settings = self.settings
        departure_s = now_s
        if self._packet_s:
            departure_s = self._free_at_s = max(now_s, self._free_at_s) + self._packet_s
        if settings.loss and chances.random() < settings.loss:
            return LOST
        arrival_s = departure_s + settings.latency_s
        if settings.jitter_s:
            arrival_s -= settings.jitter_s * math.log(1.0 - chances.random())
        if settings.reordering and chances.random() < settings.reordering:
            return arrival_s + settings.reordering_delay_s
        if arrival_s < self._last_arrival_s:
            return self._last_arrival_s
        self._last_arrival_s = arrival_s
        return arrival_s

    def copy_arrival_s(self, arrival_s: float, chances: Random) -> float:
        """Return when a second copy of the packet that arrives at `arrival_s` arrives, or `LOST` if there is none."""
        settings = self.settings
        if not settings.duplication or chances.random() >= settings.duplication:
            return LOST
        second_s = arrival_s + settings.latency_s
        if settings.jitter_s:
            second_s -= settings.jitter_s * math.log(1.0 - chances.random())
        return second_s
