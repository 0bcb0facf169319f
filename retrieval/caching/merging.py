"""Bringing the entries of one cache file into another."""

from __future__ import annotations

import json
import math
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from retrieval.caching.store import KINDS, DamagedEntry, Kind, open_store, unpack
from signatures.errors import DataError

_KEY = re.compile(r"[0-9a-f]{64}")
_TEXT_CHARS = 1_000_000
_CLOCK_SKEW_S = 86_400.0


@dataclass
class Imported:
    """What an import did.

    Attributes:
        added: Entries by kind that were new here.
        replaced: Entries that took the place of an older one.
        kept: Entries that gave way to one here, as new or newer.
        damaged: Entries that could not be read and were left out.
    """

    added: dict[Kind, int] = field(default_factory=dict)
    replaced: dict[Kind, int] = field(default_factory=dict)
    kept: dict[Kind, int] = field(default_factory=dict)
    damaged: int = 0


def import_store(path: Path, source: Path) -> Imported:
    """Bring the entries of an exported cache into another: the newer of two wins.

    What the file says is data: values are JSON and checked to be that, nothing in it is executed, and either all of it
    is taken or nothing.

    Args:
        path: The cache to add to; made if it is not there.
        source: The file to take from; an export, or any cache that is not in use.

    Returns:
        Counts.

    Raises:
        DataError: `source` is missing, no cache, or damaged, or `path` cannot be written; nothing is changed then.
    """
    if not source.is_file():
        raise DataError(f"There is no file {source} to import.")
    if path.exists() and path.samefile(source):
        raise DataError(f"{source} is the cache itself; give the file that another one was exported to.")
    try:
        with closing(_open_untrusted(source)) as theirs:
            columns = _tables(theirs, source)
            damaged = _damaged(theirs, columns)
            return _merge(path, theirs, columns, damaged)
    except sqlite3.Error as error:
        raise DataError(f"{source} cannot be imported into {path} ({error}); nothing was changed.") from error


def _open_untrusted(source: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{quote(str(source.absolute()))}?mode=ro", uri=True)
    try:
        # A crafted file may bring views and triggers; none of their functions may run.
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA cell_size_check=ON")
        connection.execute("BEGIN")
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        connection.close()
        raise DataError(f"{source} is no cache that can be read ({error}); nothing was changed.") from error
    if found != "ok":
        connection.close()
        raise DataError(f"{source} is damaged ({found}); export it again. Nothing was changed.")
    return connection


def _tables(theirs: sqlite3.Connection, source: Path) -> dict[Kind, str]:
    """Return the tables that the file has, each with the columns to select from it."""
    names = {row[0] for row in theirs.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    found: dict[Kind, str] = {}
    for kind in KINDS:
        there = {row[1] for row in theirs.execute(f"PRAGMA table_info({kind})")} if kind in names else set()
        if {"key", "value", "created"} <= there:
            found[kind] = ", ".join(
                name if name in there else f"NULL AS {name}"
                for name in ("key", "value", "created", "parts", "provider")
            )
    if not found:
        raise DataError(
            f"{source} is an SQLite file but no cache of this program; give one that `search-o1 cache export` wrote. "
            "Nothing was changed."
        )
    return found


def _damaged(theirs: sqlite3.Connection, columns: dict[Kind, str]) -> set[tuple[Kind, Any]]:
    # Looked through before the other file is locked: its users wait for the writing only.
    return {
        (kind, row[0])
        for kind, selected in columns.items()
        for row in theirs.execute(f"SELECT {selected} FROM {kind}")
        if not _sound(row)
    }


def _sound(row: tuple[Any, ...]) -> bool:
    key, value, created, parts, provider = row
    try:
        texts = all(text is None or (isinstance(text, str) and len(text) <= _TEXT_CHARS) for text in (parts, provider))
        if not (isinstance(key, str) and _KEY.fullmatch(key) and isinstance(value, bytes) and texts):
            return False
        if not (isinstance(created, int | float) and math.isfinite(created)) or created > time.time() + _CLOCK_SKEW_S:
            return False
        return unpack(value) is not None and (parts is None or isinstance(json.loads(parts), dict))
    except (DamagedEntry, ValueError, RecursionError):
        return False


def _merge(
    path: Path, theirs: sqlite3.Connection, columns: dict[Kind, str], damaged: set[tuple[Kind, Any]]
) -> Imported:
    done = Imported(damaged=len(damaged))
    with closing(open_store(path)) as ours:
        ours.execute("BEGIN IMMEDIATE")
        try:
            for kind, selected in columns.items():
                before = ours.execute(f"SELECT COUNT(*) FROM {kind}").fetchone()[0]
                rows = _rows(theirs, kind, selected, damaged)
                changed = offered = 0
                for row in rows:
                    offered += 1
                    changed += ours.execute(
                        f"INSERT INTO {kind} (key, value, created, parts, provider) VALUES (?,?,?,?,?) "
                        "ON CONFLICT (key) DO UPDATE SET value = excluded.value, created = excluded.created, "
                        "parts = excluded.parts, provider = excluded.provider WHERE excluded.created > created",
                        row,
                    ).rowcount
                added = ours.execute(f"SELECT COUNT(*) FROM {kind}").fetchone()[0] - before
                counts = ((done.added, added), (done.replaced, changed - added), (done.kept, offered - changed))
                for told, number in counts:
                    if number:
                        told[kind] = number
        except BaseException:
            ours.rollback()
            raise
        ours.commit()
    return done


def _rows(
    theirs: sqlite3.Connection, kind: Kind, selected: str, damaged: set[tuple[Kind, Any]]
) -> Iterator[tuple[Any, ...]]:
    for row in theirs.execute(f"SELECT {selected} FROM {kind}"):
        if (kind, row[0]) not in damaged:
            yield row
