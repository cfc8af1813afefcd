"""What the runs' summaries say, remembered in SQLite, so that a long history is listed without reading it all.

Invariant: it is a cache. A row counts only while the summary on disk is the one that it was made of; a file that is
damaged, or of another version, is thrown away and made anew from the run directories.
"""

import json
import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from threading import Lock
from typing import Any, Final

__all__ = ["Index"]

_VERSION: Final = 1
_TABLE: Final = "CREATE TABLE run (id TEXT PRIMARY KEY, made_of TEXT NOT NULL, document TEXT NOT NULL) STRICT"


class Index:
    """The cache of one folder of runs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._database = self._open()

    def get(self, run: str, made_of: str, make: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        """Return the document of a run; it is made anew where what it was made of has changed."""
        with self._lock, suppress(sqlite3.Error, ValueError):
            row = self._database.execute("SELECT document FROM run WHERE id = ? AND made_of = ?", (run, made_of))
            if (found := row.fetchone()) is not None:
                document: Mapping[str, Any] = json.loads(found[0])
                return document
        document = make()
        with self._lock, suppress(sqlite3.Error), self._database:
            self._database.execute("REPLACE INTO run VALUES (?, ?, ?)", (run, made_of, json.dumps(document)))
        return document

    def keep_only(self, runs: set[str]) -> None:
        """Forget all others."""
        with self._lock, suppress(sqlite3.Error), self._database:
            known = {row[0] for row in self._database.execute("SELECT id FROM run")}
            self._database.executemany("DELETE FROM run WHERE id = ?", [(run,) for run in known - runs])

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._database.close()

    def _open(self) -> sqlite3.Connection:
        try:
            return self._connected(str(self._path))
        except sqlite3.DatabaseError:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
        try:
            return self._connected(str(self._path))
        except sqlite3.DatabaseError:
            # A folder that cannot be written still has runs to show.
            return self._connected(":memory:")

    @staticmethod
    def _connected(path: str) -> sqlite3.Connection:
        if path != ":memory:":
            with suppress(OSError), closing_descriptor(path):
                pass
        database = sqlite3.connect(path, check_same_thread=False, timeout=2.0)
        try:
            if database.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
                with database:
                    database.execute("DROP TABLE IF EXISTS run")
                    database.execute(_TABLE)
                    database.execute(f"PRAGMA user_version = {_VERSION}")
            database.execute("SELECT id, made_of, document FROM run LIMIT 1").fetchone()
        except BaseException:
            database.close()
            raise
        return database


def closing_descriptor(path: str) -> closing[Any]:
    """Create the file with mode 0600 before SQLite does with another."""
    return closing(os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "rb"))
