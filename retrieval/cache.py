"""The cache: searches, pages and model replies in one SQLite file that several processes may share.

What is stored is what was paid for, so a write happens as soon as a reply is in, and a failure is never stored.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from signatures.errors import DataError

Kind = Literal["searches", "pages", "replies"]
KINDS: tuple[Kind, ...] = ("searches", "pages", "replies")
BUSY_SECONDS = 30.0
"""How long a write waits for another process's write."""

_log = logging.getLogger(__name__)


class Cache:
    """A write-through store of JSON values in one SQLite file.

    Safe for several threads and processes; survives pickling and deepcopy by opening its file again.

    Args:
        path: The file; it and its folder are made when first used.
    """

    _connection: sqlite3.Connection | None

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._reset()

    def get(self, kind: Kind, key_parts: Mapping[str, Any]) -> Any | None:
        """Look a value up.

        Args:
            kind: One of `KINDS`.
            key_parts: Everything that changes the value, JSON only.

        Returns:
            The value, or None if there is none.

        Raises:
            DataError: The file is no cache, is locked for too long, or cannot be read; a damaged entry is missing.
        """
        key = cache_key(key_parts)
        row = self._execute(f"SELECT value FROM {_table(kind)} WHERE key = ?", (key,), one=True)
        if row is None:
            return None
        try:
            return json.loads(zlib.decompress(row[0]))
        except (zlib.error, ValueError, TypeError):
            _log.warning("An entry of the cache %s is damaged and counts as missing.", self.path)
            return None

    def put(self, kind: Kind, key_parts: Mapping[str, Any], value: Any) -> None:
        """Store a value, replacing an earlier one, and commit.

        Args:
            kind: One of `KINDS`.
            key_parts: Everything that changes the value, JSON only.
            value: A JSON value other than None.

        Raises:
            DataError: The file is no cache, is locked for too long, or cannot be written.
        """
        packed = zlib.compress(json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode())
        statement = f"INSERT OR REPLACE INTO {_table(kind)} (key, value, created) VALUES (?, ?, ?)"
        self._execute(statement, (cache_key(key_parts), packed, time.time()))

    def stats(self) -> dict[str, int]:
        """Return how many entries of each kind there are, and under `bytes` the size of the file."""
        counts: dict[str, int] = {}
        for kind in KINDS:
            row = self._execute(f"SELECT COUNT(*) FROM {kind}", (), one=True)
            counts[kind] = int(row[0]) if row else 0
        counts["bytes"] = self.path.stat().st_size
        return counts

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.path = state["path"]
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._connection = None
        self._owner = os.getpid()

    def _execute(self, statement: str, values: tuple[Any, ...], one: bool = False) -> Any:
        if self._owner != os.getpid():
            # A connection must not be used across fork, nor may a lock that another thread held at that moment.
            self._reset()
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = self._open()
                with self._connection:
                    cursor = self._connection.execute(statement, values)
                    return cursor.fetchone() if one else None
            except (sqlite3.Error, OSError) as error:
                raise DataError(
                    f"The cache {self.path} cannot be used ({error}). Is its folder writable and not full? "
                    "If the file is damaged, move it away: a new one is made."
                ) from error

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, check_same_thread=False)
        try:
            _switch_to_wal(connection)
            # In WAL mode this survives the death of the process; only a power cut can lose the last commits.
            connection.execute("PRAGMA synchronous=NORMAL")
            for kind in KINDS:
                connection.execute(
                    f"CREATE TABLE IF NOT EXISTS {kind} (key TEXT PRIMARY KEY, value BLOB, created REAL) WITHOUT ROWID"
                )
            connection.commit()
        except sqlite3.Error:
            connection.close()
            raise
        return connection


def cache_key(key_parts: Mapping[str, Any]) -> str:
    """Return the key of an entry.

    Args:
        key_parts: Everything that changes the value, JSON only; the order of the keys does not matter.

    Returns:
        SHA-256 of their canonical JSON, in hex.
    """
    canonical = json.dumps(key_parts, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _table(kind: Kind) -> str:
    if kind not in KINDS:
        raise DataError(f"The cache keeps no {kind!r}; it keeps: {', '.join(KINDS)}.")
    return kind


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    # Several processes may open a new file at once, and SQLite does not wait for a lock when it changes this mode.
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
