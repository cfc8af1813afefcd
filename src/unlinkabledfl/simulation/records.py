"""What a world knows that no node does: who sent which message when, and what became of it.

The oracle of a run. Nothing of it is on any wire, and no node can read it.
"""

from dataclasses import dataclass, field

from unlinkabledfl.mixnet.items import MessageId


@dataclass(slots=True, kw_only=True)
class MessageRecord:
    """One message from its acceptance by its node to its end. Nodes are counted by index and life."""

    source: int
    source_serial: int
    destination: int
    destination_serial: int
    sent_at_s: float
    delivered_at_s: float | None = None
    delivered_to: tuple[int, ...] = ()  # the lives of the destination that got it, one entry a delivery
    acknowledged_at_s: float | None = None
    round_trip_s: float | None = None  # of the attempt that was acknowledged, since it left
    attempts: int = 0
    given_up_at_s: float | None = None

    @property
    def deliveries(self) -> int:
        """How often it was delivered. A destination that crashed may get it again in its next life, never in one."""
        return len(self.delivered_to)


@dataclass(slots=True, kw_only=True)
class QueueMaximum:
    """The longest that a queue has been in any node, and its bound."""

    longest: int = 0
    bound: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a world has seen so far. `messages` are the world's own records: they change if it runs on."""

    virtual_s: float
    cpu_s: float
    events: int
    packet_hops: int
    messages: tuple[MessageRecord, ...]
    serials: tuple[int, ...]  # the life that each node is in
    alive: tuple[bool, ...]
    counters: dict[str, int]  # of all nodes, crashed ones included
    lost: dict[str, int]  # packets that no node received, by cause
    duplicated: int
    refused: int  # messages that a full queue made the application offer again
    unsent: int  # messages whose node was down when they were due
    misdelivered: int  # messages that reached a node they were not for, or that nobody had sent
    queues: dict[str, QueueMaximum] = field(default_factory=dict)

    def delays_s(self) -> list[float]:
        """Return the end-to-end delay of every message that arrived, in the order of sending."""
        return [
            message.delivered_at_s - message.sent_at_s
            for message in self.messages
            if message.delivered_at_s is not None
        ]

    def survivors(self) -> list[MessageRecord]:
        """Return the messages between two nodes that have both been running since the message was sent."""
        return [message for message in self.messages if self._survived(message)]

    def _survived(self, message: MessageRecord) -> bool:
        source, destination = message.source, message.destination
        return (
            self.alive[source]
            and self.alive[destination]
            and self.serials[source] == message.source_serial
            and self.serials[destination] == message.destination_serial
        )


class Records:
    """Collects what becomes of messages while a world runs."""

    __slots__ = ("_by_id", "misdelivered", "queues", "refused", "unsent")

    def __init__(self) -> None:
        self._by_id: dict[MessageId, MessageRecord] = {}
        self.queues: dict[str, QueueMaximum] = {}
        self.refused = 0
        self.unsent = 0
        self.misdelivered = 0

    @property
    def messages(self) -> tuple[MessageRecord, ...]:
        """Return every message in the order of sending."""
        return tuple(self._by_id.values())

    def sent(self, message_id: MessageId, record: MessageRecord) -> None:
        """Remember a message that its node has accepted."""
        self._by_id[message_id] = record

    def delivered(self, message_id: MessageId, *, node: int, serial: int, now_s: float) -> None:
        """Note that a node has given this message to its application."""
        record = self._by_id.get(message_id)
        if record is None or record.destination != node:
            self.misdelivered += 1
            return
        record.delivered_to += (serial,)
        if record.delivered_at_s is None:
            record.delivered_at_s = now_s

    def acknowledged(self, message_id: MessageId, *, attempts: int, round_trip_s: float, now_s: float) -> None:
        """Note that the sender knows of the delivery."""
        record = self._by_id.get(message_id)
        if record is not None:
            record.acknowledged_at_s = now_s
            record.round_trip_s = round_trip_s
            record.attempts = attempts

    def given_up(self, message_id: MessageId, *, attempts: int, now_s: float) -> None:
        """Note that the sender has stopped trying."""
        record = self._by_id.get(message_id)
        if record is not None:
            record.given_up_at_s = now_s
            record.attempts = attempts

    def queue_length(self, name: str, length: int, bound: int) -> None:
        """Note how long a queue is; a bound of 0 stands for none."""
        maximum = self.queues.get(name)
        if maximum is None:
            maximum = self.queues[name] = QueueMaximum()
        maximum.longest = max(maximum.longest, length)
        maximum.bound = bound
