"""From the logs of a run to its recording: who sent what to whom, and what of it is true.

A departure and an arrival belong together if source, target and hash agree; of several that do, as a control message
that is told twice, the first arrival belongs to the first departure. Of a packet the relays' logs say what it became,
so that its way can be followed from where it was made to where it ended.

What a log lacks, because its node died or its disk was full, is missing in the recording and makes nothing else wrong:
everything that refers to it counts as lost.

It takes about 200 bytes of memory a crossing while it works.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from unlinkabledfl.analysis.trace import (
    PACKET_KINDS,
    UNKNOWN,
    Crossings,
    Indices,
    Oracle,
    Packets,
    PublicSettings,
    Recording,
)
from unlinkabledfl.errors import RunError
from unlinkabledfl.experiment.records.files import reading
from unlinkabledfl.experiment.tracing.logs import CROSSING, DELIVERED, FIRST_KIND, RELAYED, SEALED, short_name
from unlinkabledfl.mixnet.journal import MESSAGE
from unlinkabledfl.sphinx import NodeId

__all__ = ["Merged", "merge"]

_Table = npt.NDArray[Any]
_Keys = npt.NDArray[np.uint64]
_MIX: Final = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))
_MESSAGES: Final = FIRST_KIND + PACKET_KINDS.index(MESSAGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What became of the logs."""

    recording: Recording
    cut_at_s: float | None
    """When the first log was full: nothing is told of what came later."""


def merge(
    folder: Path, names: Sequence[NodeId], settings: PublicSettings, *, begun_at_s: float = 0.0, full_at: int = 0
) -> Merged:
    """Read all logs of a run. `begun_at_s` is when it began, by their clock; a log of `full_at` records was full."""
    links = [_read(path, CROSSING) for path in sorted(folder.glob("*.links"))]
    sealed = [_read(path, SEALED) for path in sorted(folder.glob("*.sealed"))]
    cut_at_s = min((float(each["at_s"][-1]) for each in links if full_at and len(each) >= full_at), default=None)
    taken = _by_index(np.concatenate(links) if links else np.empty(0, CROSSING), names, "source", "target")
    if cut_at_s is not None:
        taken = taken[taken["at_s"] < cut_at_s]
    told = _by_index(np.concatenate(sealed) if sealed else np.empty(0, SEALED), names, "node")
    left = taken[taken["arrived"] == 0]
    left = left[np.argsort(left["at_s"], kind="stable")]
    arrived_at_s = _arrivals(left, taken[taken["arrived"] != 0])
    before = _before(left, arrived_at_s, told[told["what"] == RELAYED])
    packets = _packets(left, before, told[told["what"] >= FIRST_KIND])
    targets, origins, rounds, ways = _targets(left, arrived_at_s, before, told)
    crossings = Crossings(
        left_at_s=left["at_s"] - begun_at_s,
        arrived_at_s=arrived_at_s - begun_at_s,
        source=left["source"].astype(np.int32),
        target=left["target"].astype(np.int32),
        size_bytes=left["bytes"].astype(np.int32),
        wire_hash=_on_link(left),
    )
    recording = Recording(
        settings=settings,
        crossings=crossings,
        targets=targets,
        before=before,
        oracle=Oracle(origin=origins, path=ways),
        groups=_groups(origins, crossings.target[targets], rounds),
        packets=packets,
    )
    return Merged(recording=recording, cut_at_s=None if cut_at_s is None else cut_at_s - begun_at_s)


def _read(path: Path, record: np.dtype[Any]) -> _Table:
    with reading(path):
        # What a killed writer left of a last record is none.
        return np.fromfile(path, dtype=record, count=path.stat().st_size // record.itemsize)


def _by_index(table: _Table, names: Sequence[NodeId], *columns: str) -> _Table:
    """Replace short names by indices."""
    short = np.array([short_name(name) for name in names], dtype=np.uint64)
    order = np.argsort(short)
    for column in columns:
        place = np.minimum(np.searchsorted(short[order], table[column]), len(order) - 1)
        found = order[place]
        if not np.array_equal(short[found], table[column]):
            raise RunError("the trace names a node that is none of this run: was its folder used by another one?")
        table[column] = found
    return table


def _key(*columns: npt.NDArray[Any]) -> _Keys:
    """Return one number for a row of several: two rows have the same with a probability that nobody lives to see."""
    found = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        found = (found ^ column.astype(np.uint64)) * _MIX[0]
        found ^= (found >> np.uint64(29)) * _MIX[1]
    return found


def _arrivals(left: _Table, arrived: _Table) -> npt.NDArray[np.float64]:
    """Return when every departure arrived; NaN: it did not."""
    arrived = arrived[np.argsort(arrived["at_s"], kind="stable")]
    departures, arrivals = (_key(each["hash"], each["source"], each["target"]) for each in (left, arrived))
    by_departure, by_arrival = np.argsort(departures, kind="stable"), np.argsort(arrivals, kind="stable")
    departures, arrivals = departures[by_departure], arrivals[by_arrival]
    first = np.searchsorted(departures, arrivals, side="left")
    rank = np.arange(len(arrivals)) - np.searchsorted(arrivals, arrivals, side="left")
    matches = first + rank < np.searchsorted(departures, arrivals, side="right")
    found = np.full(len(left), np.nan)
    found[by_departure[(first + rank)[matches]]] = arrived["at_s"][by_arrival[matches]]
    # Where a first copy was lost, a later departure is given the arrival of an earlier one.
    found[found < left["at_s"]] = np.nan
    return found


def _find(keys: _Keys, wanted: _Keys) -> Indices:
    """Return where each wanted key is first; UNKNOWN where nowhere."""
    if not len(keys):
        return np.full(len(wanted), UNKNOWN, dtype=np.int64)
    order = np.argsort(keys, kind="stable")
    place = np.minimum(np.searchsorted(keys[order], wanted), len(order) - 1)
    found = order[place]
    return np.where(keys[found] == wanted, found, UNKNOWN).astype(np.int64)


def _before(left: _Table, arrived_at_s: npt.NDArray[np.float64], relayed: _Table) -> Indices:
    """Return for every crossing the one that its packet came from."""
    sent = _find(_key(left["hash"], left["source"]), _key(relayed["other"], relayed["node"]))
    received = _find(_key(left["hash"], left["target"]), _key(relayed["hash"], relayed["node"]))
    # A relay's clock does not run backwards: what left before it came is another's.
    sound = (sent != UNKNOWN) & (received != UNKNOWN) & (received < sent)
    sound[sound] = arrived_at_s[received[sound]] <= left["at_s"][sent[sound]]
    before = np.full(len(left), UNKNOWN, dtype=np.int64)
    before[sent[sound]] = received[sound]
    return before


def _packets(left: _Table, before: Indices, originated: _Table) -> Packets:
    """Follow every packet that was made from its first crossing on."""
    first = _find(_key(left["hash"], left["source"]), _key(originated["hash"], originated["node"]))
    seen = first != UNKNOWN
    originated, first = originated[seen], first[seen]
    after = np.full(len(left), UNKNOWN, dtype=np.int64)
    linked = np.flatnonzero(before != UNKNOWN)
    after[before[linked]] = linked
    stops = [first]
    while (stops[-1] != UNKNOWN).any():
        stops.append(np.where(stops[-1] == UNKNOWN, UNKNOWN, after[stops[-1]]))
    crossings = np.stack(stops[:-1], axis=1) if len(stops) > 1 else np.empty((0, 1), dtype=np.int64)
    last = np.where(crossings == UNKNOWN, -1, np.arange(crossings.shape[1])).max(axis=1, initial=0)
    order = np.argsort(first, kind="stable")
    return Packets(
        first=first[order],
        last=crossings[np.arange(len(crossings)), last][order],
        origin=originated["node"].astype(np.int32)[order],
        kind=(originated["what"] - FIRST_KIND).astype(np.int8)[order],
        path=np.where(crossings == UNKNOWN, UNKNOWN, left["target"].astype(np.int64)[crossings])[order],
    )


def _targets(
    left: _Table, arrived_at_s: npt.NDArray[np.float64], before: Indices, told: _Table
) -> tuple[Indices, npt.NDArray[np.int32], npt.NDArray[np.int64], tuple[tuple[int, ...], ...]]:
    """Return the crossings that first delivered a message, and of each its sender, its round and its way."""
    delivered = told[told["what"] == DELIVERED]
    last = _find(_key(left["hash"], left["target"]), _key(delivered["hash"], delivered["node"]))
    there = last != UNKNOWN
    there[there] = ~np.isnan(arrived_at_s[last[there]])
    delivered, last = delivered[there], last[there]
    by_arrival = np.argsort(arrived_at_s[last], kind="stable")
    delivered, last = delivered[by_arrival], last[by_arrival]
    # Of a message that came twice, the first time counts.
    _, once = np.unique(delivered["message"], return_index=True)
    delivered, last = delivered[once], last[once]
    ways = [last]
    while ((earlier := np.where(ways[-1] == UNKNOWN, UNKNOWN, before[ways[-1]])) != UNKNOWN).any():
        ways.append(earlier)
    table = np.stack(ways, axis=1)
    first = table[np.arange(len(last)), (table != UNKNOWN).sum(axis=1) - 1]
    made = told[told["what"] == _MESSAGES]
    # Only what its sender says that it made has a known origin: a chain that ends at a gap leads to a relay.
    maker = _find(_key(made["hash"], made["node"]), _key(left["hash"][first], left["source"][first]))
    order = np.argsort(last, kind="stable")
    order = order[maker[order] != UNKNOWN]
    stops = np.where(table == UNKNOWN, UNKNOWN, left["target"].astype(np.int64)[table])[order]
    paths = tuple(tuple(int(node) for node in row[::-1] if node != UNKNOWN) for row in stops)
    origins = left["source"].astype(np.int32)[first][order]
    return last[order], origins, delivered["round"].astype(np.int64)[order], paths


def _groups(origins: npt.NDArray[np.int32], destinations: npt.NDArray[np.int32], rounds: Indices) -> Indices:
    """Number models by the order in which their first fragment left: a number that says nothing of the sender."""
    keys = np.stack([origins.astype(np.int64), destinations.astype(np.int64), rounds], axis=1)
    _, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first, kind="stable")] = np.arange(len(first))
    found: Indices = number[which.reshape(-1)]
    return found


def _on_link(left: _Table) -> npt.NDArray[np.uint64]:
    """Return hashes as an observer has them: equal bytes look different on each link and each time, encrypted anew."""
    columns = (left["hash"], left["source"], left["target"], left["at_s"])
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return np.fromiter(
        (int.from_bytes(blake2b(repr(row).encode(), digest_size=8).digest()) for row in rows),
        dtype=np.uint64,
        count=len(left),
    )
