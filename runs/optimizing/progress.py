"""Progress of an optimisation: trial, best score, questions, tokens and cost spent, time left."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from runs.optimizing.ledger import Ledger

_LINES = 20
_SOON = 0.25


class OptimizationProgress:
    """Shows how an optimisation goes, from its ledger; use it as a context manager.

    Args:
        label: What is running.
        ledger: The ledger.
        rollouts: Questions that are expected to be put to a program.
        candidates: Candidates that are expected to be tried.
        console: Where to draw.
        shown: False draws nothing.
    """

    def __init__(
        self, label: str, ledger: Ledger, rollouts: int, candidates: int, console: Console, *, shown: bool = True
    ) -> None:
        self.label = label
        self.ledger = ledger
        self.rollouts = max(1, rollouts)
        self.candidates = max(1, candidates)
        self.console = console
        self.done = 0
        # What an earlier start paid for comes from the cache now, and costs nothing more.
        self._paid = ledger.spent
        self.started = time.monotonic()
        self._shown = shown
        self._lock = threading.Lock()
        self._next_line = 1 / _LINES
        self._drawn = 0.0
        self._bar: Progress | None = None
        if shown and console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"), console=console
            )
            self._task = self._bar.add_task(label, total=self.rollouts, state=self.state())

    def answered(self) -> None:
        """Count a question that was put to a program."""
        with self._lock:
            self.done += 1
            now = time.monotonic()
            if self._bar is not None:
                if now - self._drawn >= _SOON:
                    self._drawn = now
                    self._bar.update(self._task, completed=min(self.done, self.rollouts), state=self.state())
            elif self._shown and self.done / self.rollouts >= self._next_line:
                self._next_line = self.done / self.rollouts + 1 / _LINES
                self.console.print(f"{self.label}: {self.state()}", highlight=False, soft_wrap=True, markup=False)

    def state(self) -> str:
        """Return where the optimisation stands, as text."""
        spent, best = self.ledger.spent, self.ledger.best()
        tried = len(self.ledger.trials())
        parts = [
            f"trial {tried} of {max(tried, self.candidates)}",
            f"best {100 * best[1]:.1f}" if best is not None else "no score yet",
            f"{self.done}/{max(self.done, self.rollouts)} questions",
            f"{_short(spent.tokens)} tokens",
            *([f"${spent.cost:.2f}"] if spent.cost is not None else []),
            self.left(),
        ]
        return " · ".join(part for part in parts if part)

    def left(self) -> str:
        """Return the time, and where prices are known the money, that is still expected to be spent; or empty."""
        if not self.done or self.done >= self.rollouts:
            return ""
        more = (self.rollouts - self.done) / self.done
        minutes, seconds = divmod(int((time.monotonic() - self.started) * more), 60)
        spent = self.ledger.spent
        wanted = [f"{minutes}:{seconds:02d}", f"{_short(more * (spent.tokens - self._paid.tokens))} tokens"]
        if spent.cost is not None:
            wanted.append(f"${more * (spent.cost - (self._paid.cost or 0.0)):.2f}")
        return f"left about {', '.join(wanted)}"

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=min(self.done, self.rollouts), state=self.state())
            self._bar.stop()


def _short(count: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.1f}{letter}"
    return f"{count:.0f}"
