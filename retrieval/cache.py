"""The cache: searches, pages and model replies in one SQLite file that several processes may share.

What is stored is what was paid for, so a write happens as soon as a reply is in, and a failure is never an answer.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from retrieval.caching.connection import StoreConnection
from retrieval.caching.keys import cache_key, readable
from retrieval.caching.store import KINDS, DamagedEntry, Kind, pack, unpack
from signatures.errors import DataError

__all__ = ["KINDS", "Cache", "CachePolicy", "Entry", "Kind", "cache_key"]

T = TypeVar("T")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CachePolicy:
    """How a run uses the cache; it changes no key and no identity.

    Attributes:
        max_age_s: A search or page older than this many seconds is asked for anew; None keeps them for ever. Replies
            of models do not age, and in a replay nothing does.
        replay: Answer from the cache only; what is not there is an error that says so.
    """

    max_age_s: float | None = None
    replay: bool = False


@dataclass(frozen=True)
class Entry:
    """A stored value.

    Attributes:
        value: The JSON value.
        created: When it was stored, seconds since the epoch.
    """

    value: Any
    created: float


class Cache:
    """A write-through store of JSON values in one SQLite file.

    Safe for several threads and processes; survives pickling and deepcopy by opening its file again. Reading and
    writing have a connection each, so that a reader never waits for a write.

    Args:
        path: The file; it and its folder are made when first used.
        policy: How a run uses it.
    """

    _thread: ThreadPoolExecutor | None
    _starting: threading.Lock

    def __init__(self, path: str | Path, policy: CachePolicy | None = None) -> None:
        self.path = Path(path)
        self.policy = policy or CachePolicy()
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
        found = self.entry(kind, cache_key(key_parts))
        return None if found is None else found.value

    def entry(self, kind: Kind, key: str) -> Entry | None:
        """Look an entry up by its key.

        Args:
            kind: One of `KINDS`.
            key: Made by `cache_key`.

        Returns:
            The entry, or None if there is none.

        Raises:
            DataError: As for `get`.
        """
        statement = f"SELECT value, created FROM {_table(kind)} WHERE key = ?"
        row = self._using(self._reader, lambda c: c.execute(statement, (key,)).fetchone())
        if row is None:
            return None
        try:
            return Entry(unpack(row[0]), float(row[1] or 0.0))
        except DamagedEntry:
            _log.warning("An entry of the cache %s is damaged and counts as missing.", self.path)
            return None

    def put(self, kind: Kind, key_parts: Mapping[str, Any], value: Any, provider: str = "", about: str = "") -> None:
        """Store a value, replacing an earlier one, and commit.

        Args:
            kind: One of `KINDS`.
            key_parts: Everything that changes the value, JSON only; kept readable, with credentials blacked out.
            value: A JSON value other than None.
            provider: Who gave it, for statistics.
            about: What it answers, for people, where the parts do not tell.

        Raises:
            DataError: The file is no cache, is locked for too long, or cannot be written.
        """
        statement = f"INSERT OR REPLACE INTO {_table(kind)} (key, value, created, parts, provider) VALUES (?,?,?,?,?)"
        row = _row(key_parts, value, provider, about)
        self._using(self._writer, lambda c: c.execute(statement, row))

    def keep(
        self,
        kind: Kind,
        key_parts: Mapping[str, Any],
        value: Any,
        provider: str = "",
        about: str = "",
        max_age_s: float | None = None,
    ) -> Any:
        """Store a value unless there is one, and return the one that is there afterwards.

        Of two processes that asked the same at the same time both go on with one answer, so that a replay can repeat
        both.

        Args:
            kind: One of `KINDS`.
            key_parts: As for `put`.
            value: A JSON value other than None.
            provider: As for `put`.
            about: As for `put`.
            max_age_s: A stored value older than this is replaced.

        Returns:
            The stored value.

        Raises:
            DataError: As for `put`.
        """
        row = _row(key_parts, value, provider, about)
        oldest = 0.0 if max_age_s is None else row[2] - max_age_s
        insert = (
            f"INSERT INTO {_table(kind)} (key, value, created, parts, provider) VALUES (?,?,?,?,?) ON CONFLICT (key) "
            "DO UPDATE SET value = excluded.value, created = excluded.created, parts = excluded.parts, "
            "provider = excluded.provider WHERE created < ?"
        )

        def write(connection: sqlite3.Connection) -> Any:
            if connection.execute(insert, (*row, oldest)).rowcount:
                return None
            return connection.execute(f"SELECT value FROM {kind} WHERE key = ?", (row[0],)).fetchone()

        stored = self._using(self._writer, write)
        if stored is None:
            return value
        try:
            return unpack(stored[0])
        except DamagedEntry:
            self.put(kind, key_parts, value, provider, about)
            return value

    def drop(self, kind: Kind, key_parts: Mapping[str, Any]) -> None:
        """Remove an entry, if there is one.

        Raises:
            DataError: As for `put`.
        """
        key = (cache_key(key_parts),)
        self._using(self._writer, lambda c: c.execute(f"DELETE FROM {_table(kind)} WHERE key = ?", key))

    async def off_loop(self, work: Callable[..., T], *arguments: Any) -> T:
        """Write from asynchronous code: the event loop goes on while the file is written.

        Args:
            work: `put`, `keep` or `drop` of this cache.
            *arguments: Its arguments.

        Returns:
            What it returns, once it is in the file; a caller that is cancelled meanwhile loses nothing.
        """
        self._check_owner()
        if self._thread is None:
            with self._starting:
                self._thread = self._thread or ThreadPoolExecutor(1, thread_name_prefix="cache-writer")
        return await asyncio.shield(asyncio.wrap_future(self._thread.submit(work, *arguments)))

    def stats(self) -> dict[str, int]:
        """Return how many entries of each kind there are, and under `bytes` the size of the file."""
        counts: dict[str, int] = {}
        for kind in KINDS:
            counts[kind] = self._using(self._reader, partial(_count, kind=kind))
        counts["bytes"] = self.path.stat().st_size
        return counts

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._reader.close()
        self._writer.close()

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "policy": self.policy}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.path = state["path"]
        self.policy = state["policy"]
        self._reset()

    def _reset(self) -> None:
        self._reader = StoreConnection()
        self._writer = StoreConnection()
        self._thread = None
        self._starting = threading.Lock()
        self._owner = os.getpid()

    def _check_owner(self) -> None:
        if self._owner != os.getpid():
            # A connection must not be used across fork, nor may a lock that another thread held at that moment.
            self._reset()

    def _using(self, which: StoreConnection, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._owner != os.getpid():
            reading = which is self._reader
            self._reset()
            which = self._reader if reading else self._writer
        try:
            return which.use(self.path, work)
        except (sqlite3.Error, OSError) as error:
            raise DataError(
                f"The cache {self.path} cannot be used ({error}). Is its folder writable and not full? "
                "If the file is damaged, move it away: a new one is made."
            ) from error


def _row(key_parts: Mapping[str, Any], value: Any, provider: str, about: str) -> tuple[str, bytes, float, str, str]:
    shown = {**key_parts, "about": about} if about else key_parts
    return cache_key(key_parts), pack(value), time.time(), readable(shown), provider


def _count(connection: sqlite3.Connection, kind: Kind) -> int:
    return int(connection.execute(f"SELECT COUNT(*) FROM {kind}").fetchone()[0])


def _table(kind: Kind) -> str:
    if kind not in KINDS:
        raise DataError(f"The cache keeps no {kind!r}; it keeps: {', '.join(KINDS)}.")
    return kind
