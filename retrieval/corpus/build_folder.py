"""The hidden folder in which an index grows until it is whole: one build at a time, resumable, put in place at once."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from signatures.errors import DataError

try:
    import fcntl
except ImportError:  # Windows has no such lock; there Tantivy's own one lets a second build fail.
    fcntl = None  # type: ignore[assignment]

Say = Callable[[str], None]
_REMOVALS = 40
_PAUSE_SECONDS = 0.05


class BuildFolder:
    """`.NAME-building` beside the place of an index NAME.

    Attributes:
        directory: The place of the index.
        index: Where the index grows.
        waited: Whether another build had to be waited for.

    Args:
        directory: The place of the index.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.folder = building_folder(directory)
        self.index = self.folder / "index"
        self.waited = False
        self._state = self.folder / "state.json"
        self._lock = self.folder / "lock"

    @contextlib.contextmanager
    def locked(self, busy: Callable[[], None]) -> Iterator[None]:
        """Hold the folder alone; it is removed at the end unless a state is kept in it.

        Args:
            busy: Called before waiting for another build; may raise instead of waiting.

        Raises:
            DataError: The folder cannot be made.
        """
        file = self._acquire(busy)
        try:
            yield
        finally:
            if not self._state.is_file():
                self._remove()
            # Closing it lets it go, as the end of the process would.
            file.close()

    def load(self) -> Any:
        """Return the state that was kept, or None."""
        try:
            return json.loads(self._state.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def keep(self, state: Any) -> None:
        """Keep a state; whatever happens, either it or the one before is found again."""
        fresh = self._state.with_suffix(".new")
        with open(fresh, "w", encoding="utf-8") as file:
            json.dump(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, self._state)

    def clear(self) -> None:
        """Remove what grew here, and its state."""
        with contextlib.suppress(FileNotFoundError):
            self._state.unlink()
        shutil.rmtree(self.index, ignore_errors=True)
        self.index.mkdir(exist_ok=True)

    def put_in_place(self) -> None:
        """Put the index in its place, in exchange for what stood there.

        Raises:
            DataError: What stands there cannot be moved.
        """
        self.take_away()
        try:
            os.rename(self.index, self.directory)
        except OSError as error:
            raise DataError(f"The index folder {self.directory} cannot be replaced: {error.strerror}.") from error
        with contextlib.suppress(FileNotFoundError):
            self._state.unlink()

    def take_away(self) -> None:
        """Move what stands in the place of the index into this folder, to be removed with it.

        Raises:
            DataError: It cannot be moved.
        """
        aside = self.folder / "replaced"
        shutil.rmtree(aside, ignore_errors=True)
        try:
            os.rename(self.directory, aside)
        except FileNotFoundError:
            return
        except OSError as error:
            raise DataError(f"The index folder {self.directory} cannot be replaced: {error.strerror}.") from error

    def _acquire(self, busy: Callable[[], None]) -> IO[str]:
        while True:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                file = open(self._lock, "w", encoding="utf-8")  # noqa: SIM115 (held open for as long as the lock)
            except FileNotFoundError:
                continue  # The build before has just removed the folder.
            except OSError as error:
                raise DataError(f"The index folder {self.directory} cannot be made: {error.strerror}.") from error
            try:
                if self._lock_file(file, busy):
                    return file
            except BaseException:
                file.close()
                raise
            file.close()

    def _lock_file(self, file: IO[str], busy: Callable[[], None]) -> bool:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise DataError(f"The build of {self.directory} cannot be locked: {error.strerror}.") from error
                busy()
                self.waited = True
                fcntl.flock(file, fcntl.LOCK_EX)
        # The build before removes its lock together with the folder; then this is a lock on nothing.
        try:
            return os.path.samestat(os.fstat(file.fileno()), os.stat(self._lock))
        except FileNotFoundError:
            return False

    def _remove(self) -> None:
        # The lock goes last: from then on another build may own the folder, and only an empty one is removed.
        for path in self.folder.iterdir():
            if path == self._lock:
                continue
            if path.is_dir() and not path.is_symlink():
                _remove_tree(path)
            else:
                path.unlink(missing_ok=True)
        self._lock.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.folder.rmdir()


def _remove_tree(path: Path) -> None:
    """Remove a folder in which Tantivy's threads, which end after their writer, may still put a file down."""
    for _ in range(_REMOVALS):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return
        time.sleep(_PAUSE_SECONDS)


def building_folder(directory: Path) -> Path:
    """Return where the index of a place grows."""
    return directory.parent / f".{directory.name}-building"
