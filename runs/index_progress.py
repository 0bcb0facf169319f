"""Progress of building an index: a bar with documents, rate and time left; plain lines without a terminal."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from retrieval.corpus.build import BuildProgress

PROBLEMS_SHOWN = 5
LINE_SECONDS = 10.0
"""Time between two lines where there is no terminal."""


class IndexProgress:
    """Shows how a build goes, and the first things it skips; use it as a context manager.

    Args:
        name: Name of the index.
        console: Where to draw; standard error by default.
        shown: False draws nothing.
    """

    def __init__(self, name: str, console: Console | None = None, *, shown: bool = True) -> None:
        self.name = name
        self.console = console or Console(stderr=True)
        self.problems = 0
        self._shown = shown
        self._started = self._said = time.monotonic()
        self._bar: Progress | None = None
        if shown and self.console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"),
                TextColumn("{task.fields[state]}"), TimeRemainingColumn(), console=self.console,
            )  # fmt: skip
            self._task = self._bar.add_task(f"Indexing {name}", total=None, state="")

    def update(self, progress: BuildProgress) -> None:
        """Show how far it is."""
        if self._bar is not None:
            self._bar.update(
                self._task,
                total=max(1, progress.bytes_total),
                completed=progress.bytes_done,
                state=self._state(progress),
            )
        elif self._shown and time.monotonic() - self._said >= LINE_SECONDS:
            self._said = time.monotonic()
            share = 100 * progress.bytes_done / max(1, progress.bytes_total)
            self.say(f"Indexing {self.name}: {share:.0f} % · {self._state(progress)}")

    def problem(self, text: str) -> None:
        """Show what was skipped, unless there were several before."""
        self.problems += 1
        if self.problems <= PROBLEMS_SHOWN:
            self.say(f"Skipped: {text}")
        elif self.problems == PROBLEMS_SHOWN + 1:
            self.say("Skipped: further ones are only counted ...")

    def say(self, line: str) -> None:
        """Show a line."""
        if self._shown:
            self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _state(self, progress: BuildProgress) -> str:
        rate = (progress.documents - progress.resumed) / max(1e-9, time.monotonic() - self._started)
        skipped = f" · {progress.skipped:,} skipped" if progress.skipped else ""
        return f"{progress.documents:,} documents · {rate:,.0f}/s{skipped}"

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
