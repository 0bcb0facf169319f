"""Progress of long work: a bar with the running score, the rate and the time left; plain lines without a terminal."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from runs.journal import Record


class RunProgress:
    """Shows how a run goes; use it as a context manager.

    Args:
        label: What is running.
        total: Questions (times samples) to do.
        done: Records that were finished before.
        headline: Metric of the running score.
        console: Where to draw; standard error by default.
        shown: False draws nothing.
    """

    def __init__(
        self,
        label: str,
        total: int,
        done: list[Record],
        headline: str,
        console: Console | None = None,
        *,
        shown: bool = True,
    ) -> None:
        self.console = console or Console(stderr=True)
        self.label = label
        self.total = total
        self.headline = headline
        self.scores = [r["strict"][headline] for r in done]
        self.failures = 0
        self.finished = 0
        self.started = time.monotonic()
        self._shown = shown
        self._bar: Progress | None = None
        self._lines = max(1, total // 5)
        if shown and self.console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[state]}"),
                TimeRemainingColumn(), console=self.console,
            )  # fmt: skip
            self._task = self._bar.add_task(label, total=total + len(done), completed=len(done), state=self.state())

    def state(self) -> str:
        """Return the running score and rate as text."""
        seconds = max(1e-9, time.monotonic() - self.started)
        score = 100 * sum(self.scores) / len(self.scores) if self.scores else 0.0
        failures = f" · {self.failures} failed" if self.failures else ""
        return f"{self.headline} {score:.1f} · {60 * self.finished / seconds:.1f} questions/min{failures}"

    def add(self, record: Record) -> None:
        """Count a finished record."""
        self.finished += 1
        self.failures += record["finish"] == "error"
        self.scores.append(record["strict"][self.headline])
        if self._bar is not None:
            self._bar.update(self._task, advance=1, state=self.state())
        elif self._shown and (self.finished % self._lines == 0 or self.finished == self.total):
            left = (self.total - self.finished) * (time.monotonic() - self.started) / self.finished
            self.console.print(
                f"{self.label}: {self.finished}/{self.total} · {self.state()} · {left:.0f} s left", highlight=False
            )

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
