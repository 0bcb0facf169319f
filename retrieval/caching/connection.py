"""One connection to the cache file, which threads share."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from retrieval.caching.store import open_store

T = TypeVar("T")


class StoreConnection:
    """A connection that threads use in turn, opened when first used, and again when the file is another one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None

    def use(self, path: Path, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do something in one transaction.

        Args:
            path: The file.
            work: What to do.

        Returns:
            What it returns.

        Raises:
            sqlite3.Error: The file is no SQLite file, is locked for too long, or cannot be read or written.
            OSError: Its folder cannot be made.
        """
        with self._lock:
            # Somebody may move a file away that is in use; what is stored afterwards belongs in the new one.
            if self._open is not None and _file_of(path) != self._file:
                self._shut()
            if self._open is None:
                self._open = open_store(path)
                self._file = _file_of(path)
            with self._open:
                return work(self._open)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            self._shut()

    def _shut(self) -> None:
        if self._open is not None:
            self._open.close()
        self._open = None


def _file_of(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
