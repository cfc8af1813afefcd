"""A recording on disk: what an adversary sees in one file, the truth in another.

- `observed.parquet`: a row a crossing, with source, target, times, size, wire hash, whether it is a target, and what
  compromised relays link; the public settings and the version in its metadata;
- `oracle.parquet`: a row a target, with its crossing, origin and path.

`read_trace` opens the first file only. Everything read is checked before it is used; a file that was cut off, or was
written by another version, is an error that says so.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from unlinkabledfl.analysis.trace import UNKNOWN, Crossings, Oracle, PublicSettings, Recording, Trace
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.mixnet.mixers import MixerSettings, OffSettings, OutboxSettings, PoissonSettings
from unlinkabledfl.mixnet.topology import Topology

OBSERVED, ORACLE = "observed.parquet", "oracle.parquet"

_VERSION = 1
_KEY = b"unlinkabledfl.trace"
_MIXERS: dict[str, type[MixerSettings]] = {"outbox": OutboxSettings, "poisson": PoissonSettings, "off": OffSettings}
_NODES_MAX = 100_000
_COLUMNS = ("source", "target", "left_at_s", "arrived_at_s", "size_bytes", "wire_hash", "is_target", "before")


def write_recording(directory: Path, recording: Recording, *, compromised: Sequence[int] = ()) -> None:
    """Write both files; the first holds what an adversary with these nodes sees, and no more."""
    arrow, parquet = _arrow()
    trace, oracle = recording.observed(compromised=compromised)
    crossings = trace.crossings
    is_target = np.zeros(len(crossings), dtype=bool)
    is_target[trace.targets] = True
    table = arrow.table(
        {
            "source": crossings.source,
            "target": crossings.target,
            "left_at_s": crossings.left_at_s,
            "arrived_at_s": crossings.arrived_at_s,
            "size_bytes": crossings.size_bytes,
            "wire_hash": crossings.wire_hash,
            "is_target": is_target,
            "before": trace.before,
        }
    )
    about = {"version": _VERSION, "compromised": list(trace.compromised), **_settings_document(trace.settings)}
    parquet.write_table(table.replace_schema_metadata({_KEY: json.dumps(about).encode()}), directory / OBSERVED)
    answers = arrow.table(
        {"crossing": trace.targets, "origin": oracle.origin, "path": [list(path) for path in oracle.path]}
    )
    parquet.write_table(
        answers.replace_schema_metadata({_KEY: json.dumps({"version": _VERSION}).encode()}), directory / ORACLE
    )


def read_trace(directory: Path) -> Trace:
    """Return what the adversary sees; the truth is not opened."""
    path = directory / OBSERVED
    table, about = _read(path)
    missing = [name for name in _COLUMNS if name not in table.column_names]
    if missing:
        raise ConfigError(key=str(path), got=f"no column {missing[0]}", takes="a trace as `run` writes it")
    settings = _settings_of(about, path)
    columns = {name: table.column(name).to_numpy() for name in _COLUMNS}
    if not len(columns["source"]):
        raise ConfigError(key=str(path), got="no crossings", takes="a trace in which packets crossed links")
    nodes = settings.topology.nodes
    for name in ("source", "target"):
        if not (columns[name].min() >= 0 and columns[name].max() < nodes):
            raise ConfigError(key=f"{path}: {name}", got=int(columns[name].max()), takes=f"nodes from 0 to {nodes - 1}")
    before = np.asarray(columns["before"], dtype=np.int64)
    if not (before.min() >= UNKNOWN and before.max() < len(before)):
        raise ConfigError(key=f"{path}: before", got=int(before.max()), takes="crossings of this trace")
    return Trace(
        settings=settings,
        crossings=Crossings(
            left_at_s=np.asarray(columns["left_at_s"], dtype=np.float64),
            arrived_at_s=np.asarray(columns["arrived_at_s"], dtype=np.float64),
            source=np.asarray(columns["source"], dtype=np.int32),
            target=np.asarray(columns["target"], dtype=np.int32),
            size_bytes=np.asarray(columns["size_bytes"], dtype=np.int32),
            wire_hash=np.asarray(columns["wire_hash"], dtype=np.uint64),
        ),
        targets=np.flatnonzero(columns["is_target"]).astype(np.int64),
        compromised=tuple(_whole_numbers(about.get("compromised"), most=nodes - 1, path=path)),
        before=before,
    )


def read_oracle(directory: Path, trace: Trace) -> Oracle:
    """Return the answers to the targets of this trace."""
    path = directory / ORACLE
    table, _ = _read(path)
    if "crossing" not in table.column_names or not np.array_equal(table.column("crossing").to_numpy(), trace.targets):
        raise ConfigError(key=str(path), got="answers to other targets", takes="the file written with the trace")
    origin = np.asarray(table.column("origin").to_numpy(), dtype=np.int32)
    if len(origin) and not (origin.min() >= 0 and origin.max() < trace.nodes):
        raise ConfigError(key=f"{path}: origin", got=int(origin.max()), takes=f"nodes from 0 to {trace.nodes - 1}")
    return Oracle(origin=origin, path=tuple(tuple(each) for each in table.column("path").to_pylist()))


def _read(path: Path) -> tuple[Any, dict[str, Any]]:
    arrow, parquet = _arrow()
    hint = "run the scenario with monitoring.trace = true"
    if not path.is_file():
        raise ConfigError(key=str(path), got="no such file", takes="a run that was traced", hint=hint)
    try:
        table = parquet.read_table(path)
        about = json.loads((table.schema.metadata or {}).get(_KEY, b"null"))
    except (arrow.ArrowException, OSError, ValueError) as error:
        problem = str(error).splitlines()[0][:200]
        raise ConfigError(key=str(path), got=f"a damaged file: {problem}", takes="a whole Parquet file") from None
    if not isinstance(about, dict) or about.get("version") != _VERSION:
        got = about.get("version") if isinstance(about, dict) else None
        raise ConfigError(key=str(path), got=f"version {got}", takes=f"version {_VERSION}", hint="record the run again")
    return table, about


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
        return PublicSettings(
            topology=Topology(
                [_whole_numbers(each, most=nodes - 1, path=path) for each in adjacency],
                is_circulant=about["is_circulant"] is True,
            ),
            route=str(about["route"]),
            path_length=int(about["path_length"]),
            mixer=_MIXERS[mixer.pop("kind")](**mixer),
            destinations=tuple(tuple(_whole_numbers(each, most=nodes - 1, path=path)) for each in destinations),
            own_rate_per_s=float(about["own_rate_per_s"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(key=str(path), got=f"settings without {error}", takes="a trace as `run` writes it") from None


def _whole_numbers(found: object, *, most: int, path: Path) -> list[int]:
    if not isinstance(found, list) or not all(isinstance(each, int) and 0 <= each <= most for each in found):
        raise ConfigError(key=str(path), got="a list that is none of nodes", takes=f"nodes from 0 to {most}")
    return found


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow  # noqa: PLC0415 -- an extra: only who keeps traces needs it
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise ConfigError(
            key="monitoring.trace",
            got="no pyarrow",
            takes="the extra `experiment`: pip install 'unlinkabledfl[experiment]'",
        ) from None
    return pyarrow, parquet
