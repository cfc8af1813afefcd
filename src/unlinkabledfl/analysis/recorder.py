"""Record a run: give this to a world as its observer and to its nodes as their journals.

    recorder = TraceRecorder(settings, names, digest=hash_of)
    … the world runs, its nodes with `JournaledPackets(packets, recorder.journal(index))` …
    recording = recorder.recording(from_s=60.0)

A packet is known by its hash on one link. An arrival belongs to the departure with the same hash on the same edge; a
relay's journal says which hash it turned into which.

Recording costs memory: some 60 bytes a crossing. It is off unless a scenario asks for it.
"""

from array import array
from collections.abc import Callable, Sequence

import numpy as np

from unlinkabledfl.analysis.trace import UNKNOWN, Crossings, Indices, Oracle, PublicSettings, Recording
from unlinkabledfl.mixnet.items import MessageId
from unlinkabledfl.mixnet.journal import MESSAGE, Journal
from unlinkabledfl.mixnet.packets import Opaque
from unlinkabledfl.sphinx import NodeId

Digest = Callable[[Opaque], bytes]
"""Eight bytes that stand for a packet on one link."""


class TraceRecorder:
    """Takes down crossings and truth while a world runs."""

    __slots__ = (
        "_arrived",
        "_before",
        "_deliveries",
        "_digest",
        "_hash",
        "_index_of",
        "_left",
        "_messages",
        "_settings",
        "_size",
        "_source",
        "_target",
        "_under_way",
    )

    def __init__(self, settings: PublicSettings, names: Sequence[NodeId], *, digest: Digest) -> None:
        self._settings = settings
        self._digest = digest
        self._index_of = {name: index for index, name in enumerate(names)}
        self._left = array("d")
        self._arrived = array("d")
        self._source = array("i")
        self._target = array("i")
        self._size = array("i")
        self._hash = array("Q")
        self._under_way: dict[bytes, int] = {}  # by hash, where it is in the columns
        self._before: dict[bytes, bytes] = {}
        self._messages: dict[MessageId, tuple[int, dict[bytes, tuple[int, ...]]]] = {}
        self._deliveries: dict[MessageId, bytes] = {}

    # What a global observer sees: `simulation.log.Observer`.

    def packet_left(self, at_s: float, source: int, target: int, size_bytes: int, wire_hash: bytes) -> None:
        """A packet went on the wire."""
        self._under_way[wire_hash] = len(self._left)
        self._left.append(at_s)
        self._arrived.append(np.nan)
        self._source.append(source)
        self._target.append(target)
        self._size.append(size_bytes)
        self._hash.append(int.from_bytes(wire_hash))

    def packet_arrived(self, at_s: float, source: int, target: int, size_bytes: int, wire_hash: bytes) -> None:
        """A packet came off the wire; of a duplicate the first arrival counts."""
        _ = source, target, size_bytes
        index = self._under_way.get(wire_hash)
        if index is not None and np.isnan(self._arrived[index]):
            self._arrived[index] = at_s

    # What nodes know of their own.

    def journal(self, index: int) -> Journal:
        """Return the journal of one node."""
        return _NodeJournal(self, index)

    def originated(
        self, node: int, sent: Opaque, kind: str, path: Sequence[NodeId], message_id: MessageId | None
    ) -> None:
        """Remember a message's way; nothing else is asked for later."""
        if kind == MESSAGE and message_id is not None:
            ways = self._messages.setdefault(message_id, (node, {}))[1]
            ways[self._digest(sent)] = tuple(self._index_of[name] for name in path)

    def relayed(self, received: Opaque, sent: Opaque) -> None:
        """Remember that one became the other."""
        self._before[self._digest(sent)] = self._digest(received)

    def delivered(self, received: Opaque, message_id: MessageId) -> None:
        """Remember by which packet a message came first."""
        self._deliveries.setdefault(message_id, self._digest(received))

    # The result.

    def recording(self, *, from_s: float = 0.0) -> Recording:
        """Return all that was taken down; targets are messages that arrived at or after this instant."""
        crossings = Crossings(
            left_at_s=np.array(self._left),
            arrived_at_s=np.array(self._arrived),
            source=np.array(self._source, dtype=np.int32),
            target=np.array(self._target, dtype=np.int32),
            size_bytes=np.array(self._size, dtype=np.int32),
            wire_hash=np.array(self._hash, dtype=np.uint64),
        )
        before = np.full(len(crossings), UNKNOWN, dtype=np.int64)
        for sent, received in self._before.items():
            if sent in self._under_way and received in self._under_way:
                before[self._under_way[sent]] = self._under_way[received]
        targets, origins, paths = self._targets(crossings, before, from_s)
        return Recording(
            settings=self._settings,
            crossings=crossings,
            targets=np.array(targets, dtype=np.int64),
            before=before,
            oracle=Oracle(origin=np.array(origins, dtype=np.int32), path=tuple(paths)),
        )

    def _targets(
        self, crossings: Crossings, before: Indices, from_s: float
    ) -> tuple[list[int], list[int], list[tuple[int, ...]]]:
        hashes = {index: wire_hash for wire_hash, index in self._under_way.items()}
        found = []
        for message_id, received in self._deliveries.items():
            last = self._under_way.get(received)
            if last is None or message_id not in self._messages:
                continue
            if not crossings.arrived_at_s[last] >= from_s:
                continue
            origin, ways = self._messages[message_id]
            first = last
            while before[first] != UNKNOWN:
                first = int(before[first])
            # Which attempt it was: the one whose first packet this is.
            found.append((last, origin, ways[hashes[first]]))
        found.sort()
        return [each[0] for each in found], [each[1] for each in found], [each[2] for each in found]


class _NodeJournal:
    __slots__ = ("_node", "_recorder")

    def __init__(self, recorder: TraceRecorder, node: int) -> None:
        self._recorder = recorder
        self._node = node

    def originated(self, sent: Opaque, *, kind: str, path: Sequence[NodeId], message_id: MessageId | None) -> None:
        self._recorder.originated(self._node, sent, kind, path, message_id)

    def relayed(self, received: Opaque, sent: Opaque) -> None:
        self._recorder.relayed(received, sent)

    def delivered(self, received: Opaque, *, message_id: MessageId, data: bytes) -> None:
        _ = data
        self._recorder.delivered(received, message_id)
