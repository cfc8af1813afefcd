"""Small machines to drive a world with: real ones, of a few lines each."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from unlinkabledfl.mixnet.events import MessageReceived, MixEvent, SendControl, SendPacket
from unlinkabledfl.mixnet.items import MessageId
from unlinkabledfl.mixnet.packets import Opaque
from unlinkabledfl.sphinx import Entropy, NodeId

IDS = [NodeId(index.to_bytes(32)) for index in range(64)]

Heard = tuple[float, str, Opaque, int]


@dataclass(slots=True)
class Station:
    """Writes down what it hears, passes packets on, and sends what it is told to at its timer.

    A packet is (wire hash, route): the node ids that it still has to visit. At the end of its route it is a message.
    """

    index: int
    serial: int
    entropy: Entropy
    heard: list[Heard] = field(default_factory=list)
    outbox: list[tuple[float, SendPacket | SendControl]] = field(default_factory=list)
    unsent: list[SendPacket | SendControl] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    events: deque[MixEvent] = field(default_factory=deque)
    unwelcome: set[int] = field(default_factory=set)

    def start(self, *, now_s: float) -> None:
        self.heard.append((now_s, "start", self.serial, self.index))

    def receive_packet(self, packet: Opaque, *, from_peer: NodeId, now_s: float) -> None:
        self.heard.append((now_s, "packet", packet, IDS.index(from_peer)))
        self.counters["packets"] = self.counters.get("packets", 0) + 1
        if packet.route:
            onward = Parcel(packet.name, packet.route[1:])
            self.events.append(SendPacket(to=packet.route[0], packet=onward))
        else:
            self.events.append(MessageReceived(message_id=packet.name, data=b""))

    def receive_control(self, data: bytes, *, from_peer: NodeId, now_s: float) -> None:
        self.heard.append((now_s, "control", data, IDS.index(from_peer)))

    def link_up(self, peer: NodeId, *, now_s: float) -> bool:
        self.heard.append((now_s, "up", None, IDS.index(peer)))
        return IDS.index(peer) not in self.unwelcome

    def link_down(self, peer: NodeId, *, now_s: float) -> None:
        self.heard.append((now_s, "down", None, IDS.index(peer)))

    def dial_failed(self, peer: NodeId, *, now_s: float) -> None:
        self.heard.append((now_s, "failed", None, IDS.index(peer)))

    def packet_unsent(self, event: SendPacket, *, now_s: float) -> None:
        self.unsent.append(event)

    def control_unsent(self, event: SendControl, *, now_s: float) -> None:
        self.unsent.append(event)

    def send_message(self, destination: NodeId, data: bytes, *, now_s: float) -> MessageId:
        message_id = MessageId(self.entropy(16))
        self.events.append(SendPacket(to=destination, packet=Parcel(message_id, ())))
        return message_id

    def next_timer_s(self) -> float | None:
        return min((at_s for at_s, _ in self.outbox), default=None)

    def handle_timer(self, *, now_s: float) -> None:
        self.events += [event for at_s, event in self.outbox if at_s <= now_s]
        self.outbox = [(at_s, event) for at_s, event in self.outbox if at_s > now_s]

    def next_event(self) -> MixEvent | None:
        return self.events.popleft() if self.events else None

    def kinds(self) -> list[tuple[float, str, int]]:
        """What was heard without what it was about, rounded to microseconds."""
        return [(round(at_s, 6), kind, peer) for at_s, kind, _, peer in self.heard]


@dataclass(frozen=True, slots=True)
class Parcel:
    """A packet of these worlds."""

    name: MessageId
    route: tuple[NodeId, ...]

    @property
    def wire_hash(self) -> bytes:
        return self.name[:7] + bytes([len(self.route)])


def parcel(name: str, *route: int) -> Parcel:
    return Parcel(MessageId(name.encode().ljust(16, b".")), tuple(IDS[index] for index in route))


def stations(told: Callable[[Station], None] | None = None) -> Callable[..., Station]:
    """A factory of stations; `told` may give each its instructions."""

    def build(*, index: int, serial: int, entropy: Entropy) -> Station:
        station = Station(index, serial, entropy)
        if told is not None:
            told(station)
        return station

    return build
