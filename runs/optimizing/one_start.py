"""One start of an optimisation at a time: two at once would each pay for the same calls."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from signatures.errors import ProgramError

try:
    import fcntl
except ImportError:  # Windows: two starts then pay twice, and come to the same result.
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def the_only_start(folder: Path) -> Iterator[None]:
    """Hold an optimisation's folder; the system lets go of it however this process ends.

    Args:
        folder: The folder; made if it is not there.

    Raises:
        ProgramError: Another process has it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w", encoding="utf-8") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ProgramError(
                    f"This very optimisation is being run by another process ({folder}); wait for it, or stop it and "
                    "start again: nothing is lost."
                ) from None
        yield
