"""The SQLite file behind the cache: its tables, how it is opened, and how an older one is brought up to date."""

from __future__ import annotations

import json
import sqlite3
import time
import zlib
from pathlib import Path
from typing import Any, Literal

Kind = Literal["searches", "pages", "replies", "turns", "tokens", "servers", "failures"]
KINDS: tuple[Kind, ...] = ("searches", "pages", "replies", "turns", "tokens", "servers", "failures")
"""Tables of the file.

`turns` names the reply that a text got, `tokens` says what a tokenizer was asked, `servers` what a model server told of
itself, `failures` which calls failed: these four serve replays, the first three live runs as well.
"""

BUSY_SECONDS = 30.0
"""How long a write waits for another process's write."""

MOST_BYTES = 256 * 1024 * 1024
"""A value that unpacks to more than this is damaged or hostile."""

_LATER_COLUMNS = {"parts": "TEXT", "provider": "TEXT"}


class DamagedEntry(Exception):
    """A stored value cannot be unpacked."""


def pack(value: Any) -> bytes:
    """Return a JSON value as the compressed bytes that the file holds."""
    return zlib.compress(json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode(), 3)


def unpack(stored: Any) -> Any:
    """Return the JSON value of stored bytes.

    Args:
        stored: What the file holds.

    Returns:
        The value.

    Raises:
        DamagedEntry: It is not compressed JSON, or unpacks to more than `MOST_BYTES`.
    """
    try:
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(stored, MOST_BYTES)
        if not unpacker.eof:
            raise DamagedEntry("cut short or too large")
        return json.loads(text)
    except (zlib.error, ValueError, TypeError, RecursionError) as error:
        raise DamagedEntry(str(error)) from error


def open_store(path: Path) -> sqlite3.Connection:
    """Open the file, making it and its tables where they are missing.

    Args:
        path: The file.

    Returns:
        A connection that several threads may use in turn.

    Raises:
        sqlite3.Error: It is no SQLite file, or locked for too long.
        OSError: Its folder cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False)
    try:
        _switch_to_wal(connection)
        # In WAL mode this survives the death of the process; only a power cut can lose the last commits.
        connection.execute("PRAGMA synchronous=NORMAL")
        if any(_missing(connection, kind) for kind in KINDS):
            make_tables(connection)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables and columns that a file lacks; what it holds stays.

    Args:
        connection: An open file; the change is committed.
    """
    # Taken at once: of several processes that open an old file one changes it, and the others then find nothing to do.
    connection.execute("BEGIN IMMEDIATE")
    try:
        for kind in KINDS:
            missing = _missing(connection, kind)
            if len(missing) > len(_LATER_COLUMNS):
                connection.execute(
                    f"CREATE TABLE {kind} "
                    "(key TEXT PRIMARY KEY NOT NULL, value BLOB, created REAL, parts TEXT, provider TEXT)"
                )
                continue
            for column in missing:
                connection.execute(f"ALTER TABLE {kind} ADD COLUMN {column} {_LATER_COLUMNS[column]}")
    except sqlite3.Error:
        connection.rollback()
        raise
    connection.commit()


def _missing(connection: sqlite3.Connection, kind: Kind) -> set[str]:
    there = {row[1] for row in connection.execute(f"PRAGMA table_info({kind})")}
    return {"key", "value", "created", *_LATER_COLUMNS} - there


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
