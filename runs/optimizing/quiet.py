"""What DSPy's optimizers print goes to a log, not between the lines of the progress."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO, cast

_POOL = "ThreadPoolExecutor"
"""How threads of pools that nobody named begin their names; optimizers evaluate in such pools."""


class Quiet:
    """Sends to a file what one thread and unnamed pools print, while open; other threads print as ever.

    Args:
        thread: Name of the thread.
        path: The log; appended to.
    """

    def __init__(self, thread: str, path: Path) -> None:
        self.thread = thread
        self.path = path
        self.log: TextIO | None = None
        self._before: tuple[Any, Any] = (None, None)
        self._aloud = threading.local()

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.log = self.path.open("a", encoding="utf-8", errors="replace")
        self._before = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = cast(Any, [_Routed(stream, self) for stream in self._before])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.stdout, sys.stderr = self._before
        log, self.log = self.log, None
        if log is not None:
            log.close()

    def is_heard(self) -> bool:
        """Say whether the running thread is one that prints as ever."""
        name = threading.current_thread().name
        return getattr(self._aloud, "on", False) or (name != self.thread and not name.startswith(_POOL))

    @contextlib.contextmanager
    def aloud(self) -> Iterator[None]:
        """Let this thread be heard for a while, whichever it is."""
        self._aloud.on = True
        try:
            yield
        finally:
            self._aloud.on = False


class _Routed:
    """A stream whose text goes elsewhere when one thread writes it."""

    def __init__(self, stream: Any, quiet: Quiet) -> None:
        self._stream, self._quiet = stream, quiet

    def write(self, text: str) -> int:
        if self._quiet.is_heard():
            return int(self._stream.write(text))
        # A thread that could not be ended in time may still print; its lines are for nobody.
        with contextlib.suppress(ValueError):
            if self._quiet.log is not None:
                self._quiet.log.write(text)
        return len(text)

    def flush(self) -> None:
        if self._quiet.is_heard():
            self._stream.flush()

    def isatty(self) -> bool:
        return self._quiet.is_heard() and bool(self._stream.isatty())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
