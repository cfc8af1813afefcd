"""A recording on disk: what an adversary sees in one file, the truth in another.

- `observed.parquet`: a row a crossing, with source, target, times, size, wire hash, whether it delivered a target, and
  the crossing that it came from where a compromised relay can tell; for a target, the number of its model, which a
  curious destination can tell. The public settings, the version, and which nodes are compromised are its metadata;
- `oracle.parquet`: a row for every packet that a node made: its kind, its origin, its first and last crossing, the way
  it took, and whether it is a target.

Compromised nodes stand in the order in which they fall: whoever owns a share of all nodes owns the first ones, so that
larger shares hold smaller ones. Of other relays nothing is in the first file.

`read_trace` opens the first file only. Everything read is checked before it is used; a file that was cut off, or was
written by another version, is an error that says so.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np

from unlinkabledfl.analysis.parquet import arrow, read_table
from unlinkabledfl.analysis.trace import (
    PACKET_KINDS,
    UNKNOWN,
    Crossings,
    Indices,
    Oracle,
    Packets,
    PublicSettings,
    Recording,
    Trace,
)
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.mixnet.journal import MESSAGE
from unlinkabledfl.mixnet.mixers import MixerSettings, OffSettings, OutboxSettings, PoissonSettings
from unlinkabledfl.mixnet.topology import Topology

__all__ = ["OBSERVED", "ORACLE", "owned_nodes", "read_groups", "read_oracle", "read_trace", "write_recording"]

OBSERVED, ORACLE = "observed.parquet", "oracle.parquet"

_VERSION: Final = 2
_KEY: Final = b"unlinkabledfl.trace"
_MIXERS: Final[dict[str, type[MixerSettings]]] = {
    "outbox": OutboxSettings,
    "poisson": PoissonSettings,
    "off": OffSettings,
}
_NODES_MAX: Final = 100_000
_ROWS_A_GROUP: Final = 1 << 20
_LONGEST_S: Final = 30 * 86_400.0
"""Adversaries count in windows of time, and there must not be too many of them."""
_WRITTEN: Final = "a trace as `run` writes it"

_OBSERVED_COLUMNS: Final = {
    "source": np.int32,
    "target": np.int32,
    "left_at_s": np.float64,
    "arrived_at_s": np.float64,
    "size_bytes": np.int32,
    "wire_hash": np.uint64,
    "is_target": np.bool_,
    "group": np.int64,
    "before": np.int64,
}
_PATH: Final = "path"
_ORACLE_COLUMNS: Final = {"origin": np.int32, "first": np.int64, "last": np.int64, "is_target": np.bool_}


# --------------------------------------------------------------------------------------------------------------- write


def write_recording(directory: Path, recording: Recording, *, compromised: Sequence[int] = ()) -> None:
    """Write both files; the first holds what an adversary sees that owns these nodes, and no more."""
    _write_observed(directory, recording, compromised)
    _write_oracle(directory, recording)


def _write_observed(directory: Path, recording: Recording, compromised: Sequence[int]) -> None:
    crossings = recording.crossings
    is_target = np.zeros(len(crossings), dtype=np.bool_)
    is_target[recording.targets] = True
    group = np.full(len(crossings), UNKNOWN, dtype=np.int64)
    if recording.groups is not None:
        group[recording.targets] = recording.groups
    owned = np.isin(crossings.source, np.asarray(compromised, dtype=np.int64))
    columns = {
        "source": crossings.source,
        "target": crossings.target,
        "left_at_s": crossings.left_at_s,
        "arrived_at_s": crossings.arrived_at_s,
        "size_bytes": crossings.size_bytes,
        "wire_hash": crossings.wire_hash,
        "is_target": is_target,
        "group": group,
        "before": np.where(owned, recording.before, UNKNOWN),
    }
    about = {"version": _VERSION, "compromised": list(compromised), **_settings_document(recording.settings)}
    _write(directory / OBSERVED, columns, about)


def _write_oracle(directory: Path, recording: Recording) -> None:
    packets = recording.packets or _only_targets(recording)
    lengths = (packets.path != UNKNOWN).sum(axis=1)
    pyarrow, _ = arrow()
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    paths = pyarrow.ListArray.from_arrays(
        pyarrow.array(offsets), pyarrow.array(packets.path[packets.path != UNKNOWN].astype(np.int32))
    )
    columns = {
        "kind": pyarrow.DictionaryArray.from_arrays(pyarrow.array(packets.kind), pyarrow.array(list(PACKET_KINDS))),
        "origin": packets.origin,
        "first": packets.first,
        "last": packets.last,
        "is_target": np.isin(packets.last, recording.targets) & (packets.kind == PACKET_KINDS.index(MESSAGE)),
        "path": paths,
    }
    _write(directory / ORACLE, columns, {"version": _VERSION})


def _only_targets(recording: Recording) -> Packets:
    """What is known of packets where only targets were recorded."""
    first = recording.targets.copy()
    while (earlier := recording.before[first]).max(initial=UNKNOWN) != UNKNOWN:
        first = np.where(earlier == UNKNOWN, first, earlier)
    longest = max((len(path) for path in recording.oracle.path), default=1)
    paths = [[*path, *[UNKNOWN] * (longest - len(path))] for path in recording.oracle.path]
    return Packets(
        first=first,
        last=recording.targets,
        origin=recording.oracle.origin,
        kind=np.full(len(first), PACKET_KINDS.index(MESSAGE), dtype=np.int8),
        path=np.array(paths, dtype=np.int64).reshape(len(first), longest),
    )


def _write(path: Path, columns: dict[str, Any], about: dict[str, Any]) -> None:
    pyarrow, parquet = arrow()
    table = pyarrow.table(columns).replace_schema_metadata({_KEY: json.dumps(about).encode()})
    partial = path.with_name(f".{path.name}.partial")
    # Whoever may read the run's other files is not thereby let in on who sent what.
    with open(partial, "wb", opener=_private) as sink:
        parquet.write_table(table, sink, row_group_size=_ROWS_A_GROUP, compression="zstd")
    partial.replace(path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


# ---------------------------------------------------------------------------------------------------------------- read


def read_trace(directory: Path, *, share: float | None = None) -> Trace:
    """Return what an adversary sees that owns this share of the nodes; by default, of all that were recorded for it."""
    path = directory / OBSERVED
    columns, _, about = _read(path, _OBSERVED_COLUMNS)
    if not len(columns["source"]):
        raise ConfigError(key=str(path), got="no crossings", takes="a trace in which packets crossed links")
    settings = _settings_of(about, path)
    nodes = settings.topology.nodes
    _check_range(columns["source"], f"{path}: source", nodes)
    _check_range(columns["target"], f"{path}: target", nodes)
    times_s = columns["left_at_s"]
    if np.isfinite(times_s).all() and not float(times_s[-1]) - float(times_s[0]) <= _LONGEST_S:
        raise ConfigError(key=f"{path}: left_at_s", got=float(times_s[-1]), takes=f"at most {_LONGEST_S:,.0f} s in all")
    if (columns["size_bytes"] < 0).any():
        raise ConfigError(key=f"{path}: size_bytes", got=int(columns["size_bytes"].min()), takes="sizes from 0")
    owned = _owned(about, path, nodes=nodes, share=share)
    before = columns["before"]
    _check_before(before, columns, path)
    return Trace(
        settings=settings,
        crossings=Crossings(**{name: columns[name] for name in Crossings.__slots__}),
        targets=np.flatnonzero(columns["is_target"]).astype(np.int64),
        compromised=tuple(sorted(owned)),
        before=np.where(np.isin(columns["source"], np.asarray(owned, dtype=np.int64)), before, UNKNOWN),
    )


def read_groups(directory: Path, trace: Trace) -> Indices | None:
    """Return the number of the model that each target is a part of; None if the trace does not say."""
    columns, _, _ = _read(directory / OBSERVED, {"group": np.int64})
    groups: Indices = columns["group"]
    if len(groups) != len(trace.crossings):
        raise ConfigError(key=str(directory / OBSERVED), got="groups of another trace", takes=_WRITTEN)
    found = groups[trace.targets]
    if not len(found) or found.min() < 0:
        return None
    # Whatever the numbers are, so many and no more are kept apart.
    return np.unique(found, return_inverse=True)[1].reshape(-1).astype(np.int64)


def owned_nodes(directory: Path) -> tuple[int, ...]:
    """Return the nodes of which the trace tells what they link, in the order in which they fall."""
    path = directory / OBSERVED
    _, _, about = _read(path, {})
    return tuple(_whole_numbers(about.get("compromised"), most=_NODES_MAX, path=path))


def read_oracle(directory: Path, trace: Trace) -> Oracle:
    """Return the answers to the targets of this trace."""
    path = directory / ORACLE
    columns, table, _ = _read(path, _ORACLE_COLUMNS)
    chosen = np.flatnonzero(columns["is_target"])
    chosen = chosen[np.argsort(columns["last"][chosen], kind="stable")]
    if not np.array_equal(columns["last"][chosen], trace.targets):
        raise ConfigError(key=str(path), got="answers to other targets", takes="the file written with the trace")
    origin = columns["origin"][chosen]
    _check_range(origin, f"{path}: origin", trace.nodes)
    try:
        paths = table.column("path").take(chosen).to_pylist()
    except KeyError:
        raise ConfigError(key=str(path), got="no column path", takes=_WRITTEN) from None
    if not all(isinstance(way, list) and all(isinstance(node, int) for node in way) for way in paths):
        raise ConfigError(key=f"{path}: path", got="what is no list of nodes", takes=_WRITTEN)
    return Oracle(origin=origin, path=tuple(tuple(way) for way in paths))


def _read(path: Path, wanted: dict[str, Any]) -> tuple[dict[str, Any], Any, dict[str, Any]]:
    """Return the columns asked for, each of its type, the whole table, and what the file says of itself."""
    table, metadata = read_table(path, (*wanted, _PATH))
    try:
        about = json.loads(metadata.get(_KEY, b"null"))
    except (ValueError, RecursionError):
        about = None
    if not isinstance(about, dict) or about.get("version") != _VERSION:
        got = about.get("version") if isinstance(about, dict) else None
        raise ConfigError(
            key=str(path), got=f"version {str(got)[:20]}", takes=f"version {_VERSION}", hint="record the run again"
        )
    columns = {}
    for name, kind in wanted.items():
        if name not in table.column_names:
            raise ConfigError(key=str(path), got=f"no column {name}", takes=_WRITTEN)
        column = table.column(name)
        found = column.to_numpy()
        if column.null_count or found.dtype != kind:
            raise ConfigError(key=f"{path}: {name}", got=str(column.type), takes=f"{np.dtype(kind)} without gaps")
        columns[name] = found
    return columns, table, about


def _check_range(column: Any, key: str, nodes: int) -> None:  # noqa: ANN401 -- an array of whole numbers
    if len(column) and not (column.min() >= 0 and column.max() < nodes):
        worst = int(column.min()) if column.min() < 0 else int(column.max())
        raise ConfigError(key=key, got=worst, takes=f"nodes from 0 to {nodes - 1}")


def _check_before(before: Indices, columns: dict[str, Any], path: Path) -> None:
    """Refuse links that no relay can make: to what came later, or came to another node. Chains of them end."""
    known = np.flatnonzero(before != UNKNOWN)
    earlier = before[known]
    if not ((earlier >= 0) & (earlier < known)).all():
        raise ConfigError(key=f"{path}: before", got="a crossing that is not earlier", takes="crossings of this trace")
    if not (columns["target"][earlier] == columns["source"][known]).all():
        raise ConfigError(key=f"{path}: before", got="a crossing to another node", takes="what came to this relay")


def _owned(about: dict[str, Any], path: Path, *, nodes: int, share: float | None) -> list[int]:
    listed = _whole_numbers(about.get("compromised"), most=nodes - 1, path=path)
    if share is None:
        return listed
    if not 0.0 <= share <= 1.0:
        raise ConfigError(key="--compromised", got=share, takes="a share from 0 to 1")
    wanted = round(share * nodes)
    if wanted > len(listed):
        raise ConfigError(
            key="--compromised",
            got=share,
            takes=f"at most {len(listed) / nodes:g}: so many nodes may be compromised in this trace",
            hint=f"record the run again with --set monitoring.trace_compromised={share:g}",
        )
    return listed[:wanted]


# ------------------------------------------------------------------------------------------------------------ settings


def _settings_document(settings: PublicSettings) -> dict[str, Any]:
    topology = settings.topology
    kind = next(name for name, made in _MIXERS.items() if type(settings.mixer) is made)
    return {
        "adjacency": [list(topology.neighbours(node)) for node in range(topology.nodes)],
        "is_circulant": topology.is_circulant,
        "route": settings.route,
        "path_length": settings.path_length,
        "mixer": {"kind": kind, **asdict(settings.mixer)},
        "destinations": [list(partners) for partners in settings.destinations],
        "own_rate_per_s": settings.own_rate_per_s,
    }


def _settings_of(about: dict[str, Any], path: Path) -> PublicSettings:
    try:
        adjacency, destinations = about["adjacency"], about["destinations"]
        nodes = len(adjacency)
        if not 1 < nodes <= _NODES_MAX or len(destinations) != nodes:
            raise ConfigError(key=str(path), got=nodes, takes=f"2 to {_NODES_MAX} nodes with their destinations")
        mixer = dict(about["mixer"])
        found = PublicSettings(
            topology=Topology(
                [_whole_numbers(each, most=nodes - 1, path=path) for each in adjacency],
                is_circulant=about["is_circulant"] is True,
            ),
            route=str(about["route"])[:40],
            path_length=int(about["path_length"]),
            mixer=_MIXERS[mixer.pop("kind")](**mixer),
            destinations=tuple(tuple(_whole_numbers(each, most=nodes - 1, path=path)) for each in destinations),
            own_rate_per_s=float(about["own_rate_per_s"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ConfigError(key=str(path), got=f"settings that fail on {str(error)[:80]}", takes=_WRITTEN) from None
    if not (1 <= found.path_length < nodes and 0.0 <= found.own_rate_per_s < float("inf")):
        raise ConfigError(key=str(path), got="a path length or rate that cannot be", takes=_WRITTEN)
    return found


def _whole_numbers(found: object, *, most: int, path: Path) -> list[int]:
    good = isinstance(found, list) and all(type(each) is int and 0 <= each <= most for each in found)
    if not isinstance(found, list) or not good or len(set(found)) != len(found):
        raise ConfigError(key=str(path), got="a list that is none of nodes", takes=f"nodes from 0 to {most}, each once")
    return found
