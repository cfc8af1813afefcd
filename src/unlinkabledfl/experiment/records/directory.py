"""One run on disk: where things lie, who may write, and how it is opened again.

    absent      --create----------------> running
    running     --finish, all done------> finished
    running     --finish, told to stop--> interrupted
    running     --finish, by an error---> failed
    running     --its writer died-------> interrupted
    interrupted --resume----------------> running
    failed      --resume----------------> running
    finished    --resume----------------> ConfigError, finished

A running directory is locked by its writer; that the writer died is what `open` sees.

Invariant: at any moment the directory can be read. Tables hold whole lines; everything else is replaced at once. One
process writes: the lock goes with it, also when it is killed.
"""

import fcntl
import json
import os
import re
import textwrap
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NoReturn, Self

from unlinkabledfl.errors import ConfigError, RunError
from unlinkabledfl.experiment.records import checkpoints
from unlinkabledfl.experiment.records.files import SECRET, reading, write_file, writing
from unlinkabledfl.experiment.records.recorder import Status
from unlinkabledfl.experiment.records.surroundings import RUN_PACKAGES, describe
from unlinkabledfl.experiment.records.tables import Event, MetricTable, Problems, read_events, read_metrics

__all__ = ["RunDescription", "RunDirectory"]

_DOCUMENT_MAX_BYTES: Final = 64 << 20
_NODES_MAX: Final = 1_000_000
_EDGE: Final = re.compile(r"([0-9]{1,7}),([0-9]{1,7})")
_SECRET_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,80}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDescription:
    """What a run is, for whoever reads its records without the code that made it."""

    run: str
    """The scenario's name."""
    backend: str
    nodes: int
    planned_rounds: int
    seed: int


class RunDirectory:
    """A run's directory. `create` and `resume` give one to write, `open` one to read."""

    def __init__(self, path: Path, *, lock: int | None = None) -> None:
        self.path = path
        self._lock = lock

    # ------------------------------------------------------------------------------------------------- for its writer

    @classmethod
    def create(
        cls, path: Path, *, scenario_toml: str, description: RunDescription, edges: Iterable[tuple[int, int]] = ()
    ) -> Self:
        """Make the directory of a new run; one that holds anything already is refused."""
        with writing(path):
            if os.path.lexists(path) and not (path.is_dir() and not any(path.iterdir())):
                hint = "go on with that run by --resume, or choose another directory"
                raise ConfigError(key="--out", got=str(path), takes="a directory that is new or empty", hint=hint)
            for part in ("checkpoints", "logs"):
                (path / part).mkdir(parents=True, exist_ok=True)
        surroundings = describe(*RUN_PACKAGES)
        made = cls(path, lock=_lock(path))
        try:
            write_file(made.scenario_path, _with_versions(scenario_toml, surroundings["versions"]))
            write_file(made.topology_path, "node,neighbour\n" + "".join(f"{one},{other}\n" for one, other in edges))
            made.write_summary({**asdict(description), "status": Status.RUNNING.value, "rounds": [], **surroundings})
        except BaseException:
            made.release()
            raise
        return made

    @classmethod
    def resume(cls, path: Path) -> Self:
        """Take up a run that was interrupted or failed."""
        found = cls.open(path)
        if found.status() is Status.FINISHED:
            takes = "a run that was interrupted or failed"
            raise ConfigError(key="--resume", got=str(path), takes=takes, hint="this one is finished")
        for part in ("checkpoints", "logs"):
            with writing(path):
                (path / part).mkdir(exist_ok=True)
        return cls(path, lock=_lock(path))

    @property
    def is_writable(self) -> bool:
        """Whether this object holds the lock."""
        return self._lock is not None

    def write_summary(self, document: Mapping[str, Any]) -> None:
        """Replace `summary.json`."""
        write_file(self.summary_path, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")

    def write_secret(self, name: str, content: bytes) -> Path:
        """Write something that only this user may read, such as a node's keys, and return where it lies."""
        if not _SECRET_NAME.fullmatch(name) or name.startswith("."):
            raise ConfigError(key="name", got=name, takes="letters, digits, dots, dashes and underscores")
        folder = self.path / "secrets"
        with writing(folder):
            folder.mkdir(mode=0o700, exist_ok=True)
        write_file(folder / name, content, mode=SECRET)
        return folder / name

    def save_checkpoint(self, node: int, *, round_number: int, state: checkpoints.State) -> None:
        """Replace a node's checkpoint."""
        path = checkpoints.checkpoint_path(self.path / "checkpoints", node)
        checkpoints.save_checkpoint(path, round_number=round_number, state=state)

    def release(self) -> None:
        """Let others resume this run."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    # ------------------------------------------------------------------------------------------------- for its readers

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a run to read it, while it goes on or afterwards."""
        found = cls(path)
        if not found.summary_path.is_file() and not found.metrics_path.is_file():
            takes = "the directory of a run"
            what = "holds neither summary.json nor metrics.csv" if path.is_dir() else "is not a directory"
            raise ConfigError(key="RUN", got=str(path), takes=takes, hint=f"{path} {what}")
        return found

    @property
    def scenario_path(self) -> Path:
        """The complete scenario: `unlinkabledfl run` with this file is this run again."""
        return self.path / "scenario.toml"

    @property
    def topology_path(self) -> Path:
        """The edges of the topology as the run began."""
        return self.path / "topology.csv"

    @property
    def metrics_path(self) -> Path:
        """All figures, in long form."""
        return self.path / "metrics.csv"

    @property
    def parquet_path(self) -> Path:
        """The same, columnar, once the run has ended and where pyarrow is installed."""
        return self.path / "metrics.parquet"

    @property
    def events_path(self) -> Path:
        """What happened once."""
        return self.path / "events.csv"

    @property
    def phases_path(self) -> Path:
        """What nodes did when."""
        return self.path / "phases.csv"

    @property
    def summary_path(self) -> Path:
        """What the run came to."""
        return self.path / "summary.json"

    @property
    def report_path(self) -> Path:
        """The page for people."""
        return self.path / "report.html"

    @property
    def board_path(self) -> Path:
        """What adversaries made of its trace, where it was attacked."""
        return self.path / "attack.json"

    def log_path(self, node: int | None = None) -> Path:
        """Return where a node logs; without one, the launcher."""
        return self.path / "logs" / ("run.log" if node is None else f"node-{node:04d}.log")

    def summary(self) -> dict[str, Any]:
        """Return what `summary.json` holds."""
        with reading(self.summary_path), self.summary_path.open("rb") as source:
            raw = source.read(_DOCUMENT_MAX_BYTES + 1)
        if len(raw) > _DOCUMENT_MAX_BYTES:
            raise RunError(f"{self.summary_path} cannot be read: it has more than {_DOCUMENT_MAX_BYTES:,} bytes")
        try:
            document = json.loads(raw, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise RunError(f"{self.summary_path} cannot be read: {error}") from error
        if not isinstance(document, dict):
            raise RunError(f"{self.summary_path} cannot be read: it holds no object")
        return document

    def status(self) -> Status:
        """Say how the run stands. One that says it is running, and whose writer is gone, was interrupted."""
        try:
            status = Status(self.summary().get("status", ""))
        except (RunError, ValueError):
            status = Status.RUNNING
        return Status.INTERRUPTED if status is Status.RUNNING and not self.has_writer() else status

    def description(self, summary: Mapping[str, Any] | None = None) -> RunDescription:
        """Say what the run is, by its summary (read anew unless given), or by its scenario where that is damaged."""
        try:
            known = self.summary() if summary is None else summary
        except RunError:
            known = self._described_by_scenario()
        return RunDescription(
            run=str(known.get("run") or self.path.name)[:200],
            backend=str(known.get("backend") or "unknown")[:40],
            nodes=_whole(known.get("nodes"), most=_NODES_MAX),
            planned_rounds=_whole(known.get("planned_rounds"), most=_NODES_MAX),
            seed=_whole(known.get("seed"), most=2**63),
        )

    def scenario_toml(self) -> str:
        """Return the scenario as it was written."""
        with reading(self.scenario_path), self.scenario_path.open(encoding="utf-8", errors="replace") as source:
            return source.read(_DOCUMENT_MAX_BYTES)

    def edges(self, problems: Problems) -> list[tuple[int, int]]:
        """Return the edges of the topology."""
        if not self.topology_path.is_file():
            return []
        with reading(self.topology_path), self.topology_path.open(encoding="utf-8", errors="replace") as source:
            lines = source.read(_DOCUMENT_MAX_BYTES).splitlines()
        edges = []
        for number, line in enumerate(lines[1:], start=2):
            if (pair := _EDGE.fullmatch(line)) is None:
                problems.add(f"{self.topology_path.name}, line {number:,}: no pair of nodes; the line is left out")
            else:
                edges.append((int(pair[1]), int(pair[2])))
        return edges

    def metrics(self, problems: Problems) -> MetricTable:
        """Read all figures, and note what is wrong with the file."""
        return read_metrics(self.metrics_path, problems)

    def events(self, problems: Problems) -> list[Event]:
        """Read all events, and note what is wrong with the file."""
        return read_events(self.events_path, problems) if self.events_path.is_file() else []

    def checkpoint(self, node: int) -> checkpoints.Checkpoint:
        """Load a node's last model."""
        return checkpoints.load_checkpoint(checkpoints.checkpoint_path(self.path / "checkpoints", node))

    def checkpointed_nodes(self) -> Sequence[int]:
        """Return the nodes whose last model is here."""
        return checkpoints.checkpointed_nodes(self.path / "checkpoints")

    def has_writer(self) -> bool:
        """Whether some process writes this run now."""
        if self._lock is not None:
            return True
        try:
            descriptor = os.open(self.path / ".lock", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        else:
            return False
        finally:
            os.close(descriptor)

    @property
    def is_open_to_us(self) -> bool:
        """Whether we can tell if somebody writes it: not if it is another user's. One that is gone nobody writes."""
        try:
            os.close(os.open(self.path / ".lock", os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            return isinstance(error, FileNotFoundError | NotADirectoryError)
        return True

    def writer(self) -> int | None:
        """Return the process that writes this run now, None where none does."""
        if not self.has_writer():
            return None
        try:
            noted = (self.path / ".lock").read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError):
            return None
        return int(noted) if noted.isdigit() and len(noted) < 10 else None  # noqa: PLR2004 - no process has more digits

    def _described_by_scenario(self) -> dict[str, Any]:
        try:
            scenario = tomllib.loads(self.scenario_toml())
        except (RunError, tomllib.TOMLDecodeError, RecursionError):
            return {}
        run, topology = (part if isinstance(part := scenario.get(name), dict) else {} for name in ("run", "topology"))
        return {
            "run": run.get("name"),
            "backend": run.get("backend"),
            "seed": run.get("seed"),
            "planned_rounds": run.get("rounds"),
            "nodes": topology.get("nodes"),
        }


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _lock(path: Path) -> int:
    with writing(path):
        descriptor = os.open(path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, SECRET)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        takes = "a run that nobody is writing"
        raise ConfigError(key="--out", got=str(path), takes=takes, hint="it is still running; stop it first") from error
    # Whoever sees the lock held may want to stop its holder. The number is of no use without the lock.
    with writing(path):
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
    return descriptor


def _with_versions(scenario_toml: str, versions: Mapping[str, str | None]) -> str:
    known = ", ".join(f"{name} {number}" for name, number in versions.items() if number is not None)
    head = textwrap.wrap(f"The complete scenario of this run, made with {known}.", width=70)
    return "".join(f"# {line}\n" for line in head) + f"\n{scenario_toml.strip()}\n"


def _whole(value: object, *, most: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most else 0
