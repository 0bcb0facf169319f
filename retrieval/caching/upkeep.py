"""Looking after a cache file: what it holds, removing some of it, and the file that carries it elsewhere."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from retrieval.caching.store import KINDS, Kind, open_store
from signatures.errors import DataError, OptionError

_ROW_BYTES = "(LENGTH(value) + LENGTH(key) + COALESCE(LENGTH(parts), 0))"


@dataclass(frozen=True)
class Holding:
    """What a cache holds of one kind from one provider.

    Attributes:
        kind: One of the cache's kinds.
        provider: Who gave it; empty for entries of version 0.1, which did not say.
        entries: How many entries.
        bytes: Their size, compressed as they are.
        oldest: Time of the oldest, seconds since the epoch.
        newest: Time of the newest.
    """

    kind: Kind
    provider: str
    entries: int
    bytes: int
    oldest: float
    newest: float


@dataclass(frozen=True)
class Pruned:
    """What pruning removed.

    Attributes:
        removed: Entries removed by kind.
        bytes_before: Size of the file before.
        bytes_after: Size of the file afterwards.
        shrunk: False when another process used the file, so that the freed room stays in it to be used again.
    """

    removed: dict[Kind, int]
    bytes_before: int
    bytes_after: int
    shrunk: bool


def holdings(path: Path) -> list[Holding]:
    """Return what a cache file holds, by kind and provider.

    Args:
        path: The cache file.

    Returns:
        One record a kind and provider, in the order of `KINDS`, the largest first.

    Raises:
        DataError: There is no such file, or it is no cache.
    """
    with opened(path) as connection:
        return _holdings(connection)


def prune(
    path: Path,
    *,
    older_than_s: float | None = None,
    kinds: Sequence[Kind] = (),
    providers: Sequence[str] = (),
    max_bytes: int | None = None,
) -> Pruned:
    """Remove entries and give their room back.

    Args:
        path: The cache file.
        older_than_s: Remove what is older than this many seconds.
        kinds: Only entries of these kinds; empty means all.
        providers: Only entries of these providers; empty means all.
        max_bytes: Then remove the oldest of them until all entries together are at most so many bytes.

    Returns:
        What was removed.

    Raises:
        OptionError: Nothing says what to remove, or a kind is unknown.
        DataError: There is no such file, it is no cache, or it is locked.
    """
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise OptionError(f"The cache keeps no {unknown[0]!r}; it keeps: {', '.join(KINDS)}.")
    if older_than_s is None and max_bytes is None and not kinds and not providers:
        raise OptionError(
            "Nothing says what to remove: give --older-than, --kind, --provider or --max-bytes, for example "
            "--older-than 30d --kind pages."
        )
    before = file_bytes(path)
    removed: dict[Kind, int] = {}
    where, values = _condition(providers)
    with opened(path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for kind in kinds or KINDS:
            if max_bytes is not None and older_than_s is None:
                break
            age = "" if older_than_s is None else " AND created < ?"
            limit = () if older_than_s is None else (time.time() - older_than_s,)
            _count(removed, kind, connection.execute(f"DELETE FROM {kind} WHERE {where}{age}", (*values, *limit)))
        if max_bytes is not None:
            for kind, key in _oldest_beyond(connection, max_bytes, kinds or KINDS, where, values):
                _count(removed, kind, connection.execute(f"DELETE FROM {kind} WHERE key = ?", (key,)))
        connection.commit()
        shrunk = _vacuum(connection) if removed else True
    return Pruned(removed, before, file_bytes(path), shrunk)


def export_store(path: Path, target: Path, *, replace: bool = False) -> list[Holding]:
    """Write a cache into one file, as it is at this moment, while others may go on writing to it.

    Args:
        path: The cache file.
        target: The file to write.
        replace: Write over a file that is there.

    Returns:
        What the file holds.

    Raises:
        DataError: There is no cache, or the file is there or cannot be written.
    """
    if target.exists() and not replace:
        raise DataError(f"{target} is there already; choose another name, or give --force to write over it.")
    scratch = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with opened(path) as source:
            return _copy(source, scratch, target)
    finally:
        scratch.unlink(missing_ok=True)


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a cache file that must be there, for the length of a block.

    Args:
        path: The file.

    Yields:
        A connection.

    Raises:
        DataError: There is no such file, it is no cache, or it is locked for too long.
    """
    if not path.is_file():
        raise DataError(f"There is no cache at {path} yet: the first run makes it, or import one.")
    try:
        with closing(open_store(path)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise DataError(
            f"The cache {path} cannot be used ({error}). If another program holds it, wait for that; if the file is "
            "damaged, move it away: a new one is made."
        ) from error


def file_bytes(path: Path) -> int:
    """Return the size of a cache file with the log beside it."""
    files = (path, path.with_name(path.name + "-wal"))
    return sum(file.stat().st_size for file in files if file.is_file())


def _copy(source: sqlite3.Connection, scratch: Path, target: Path) -> list[Holding]:
    try:
        with closing(sqlite3.connect(scratch)) as copy:
            # In one step: a backup in several begins anew whenever somebody writes.
            source.backup(copy, pages=-1)
            # One file that is complete by itself, without a log beside it.
            copy.execute("PRAGMA journal_mode=DELETE")
            held = _holdings(copy)
        os.replace(scratch, target)
    except (sqlite3.Error, OSError) as error:
        raise DataError(
            f"The cache cannot be written to {target} ({error}). Is its folder there and not full?"
        ) from error
    return held


def _holdings(connection: sqlite3.Connection) -> list[Holding]:
    found = []
    for kind in KINDS:
        rows = connection.execute(
            f"SELECT COALESCE(provider, ''), COUNT(*), SUM({_ROW_BYTES}), MIN(created), MAX(created) "
            f"FROM {kind} GROUP BY 1 ORDER BY 3 DESC"
        )
        found += [
            Holding(kind, str(who), n, int(size or 0), low or 0.0, high or 0.0) for who, n, size, low, high in rows
        ]
    return found


def _condition(providers: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    if not providers:
        return "1", ()
    return f"COALESCE(provider, '') IN ({','.join('?' * len(providers))})", tuple(providers)


def _count(removed: dict[Kind, int], kind: Kind, cursor: sqlite3.Cursor) -> None:
    if cursor.rowcount > 0:
        removed[kind] = removed.get(kind, 0) + cursor.rowcount


def _oldest_beyond(
    connection: sqlite3.Connection, max_bytes: int, kinds: Sequence[Kind], where: str, values: tuple[str, ...]
) -> list[tuple[Kind, str]]:
    """Return the oldest entries whose removal leaves at most `max_bytes` in all kinds together."""
    total = sum(connection.execute(f"SELECT SUM({_ROW_BYTES}) FROM {kind}").fetchone()[0] or 0 for kind in KINDS)
    query = " UNION ALL ".join(
        f"SELECT '{kind}', key, created, {_ROW_BYTES} FROM {kind} WHERE {where}" for kind in kinds
    )
    chosen: list[tuple[Kind, str]] = []
    for kind, key, _, size in connection.execute(f"{query} ORDER BY 3", values * len(kinds)):
        if total <= max_bytes:
            break
        chosen.append((kind, key))
        total -= size
    return chosen


def _vacuum(connection: sqlite3.Connection) -> bool:
    connection.execute("PRAGMA busy_timeout=2000")
    try:
        connection.execute("VACUUM")
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except sqlite3.OperationalError:
        return False
    return not busy
