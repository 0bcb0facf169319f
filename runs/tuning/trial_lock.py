"""A lock for each running trial, which the system lets go when its worker dies, however that happens.

The storage's heartbeat tells the same of workers on other machines, but only after its grace period.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: there the heartbeat alone must do.
    fcntl = None  # type: ignore[assignment]


def _path(folder: Path, number: int) -> Path:
    return folder / "running" / f"{number}.lock"


@contextlib.contextmanager
def trial_lock(folder: Path, number: int) -> Iterator[None]:
    """Hold a trial's lock.

    Args:
        folder: The study's folder.
        number: Number of the trial.
    """
    path = _path(folder, number)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Under its own name it must never be seen unlocked.
    draft = path.with_suffix(f".{os.getpid()}")
    with draft.open("w", encoding="utf-8") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        draft.replace(path)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def is_abandoned(folder: Path, number: int) -> bool:
    """Say whether a trial was begun from this home by a worker that is no more; False where nobody can know."""
    path = _path(folder, number)
    if fcntl is None:
        return False
    try:
        with path.open("r", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def forget_lock(folder: Path, number: int) -> None:
    """Remove what a dead worker left of a trial's lock."""
    _path(folder, number).unlink(missing_ok=True)


@contextlib.contextmanager
def study_lock(folder: Path, name: str) -> Iterator[None]:
    """Let one worker of this home at a time do something.

    Args:
        folder: The study's folder.
        name: What is done.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".{name}.lock").open("w", encoding="utf-8") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
