"""Progress of a tuning: a bar with trial, best and time left; plain lines without a terminal."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from runs.tuning.parameter import value_text
from runs.tuning.results import TrialResult


class TuneProgress:
    """Shows how a study goes; use it as a context manager.

    Args:
        wanted: Trials wanted in all.
        finished: Trials finished before.
        questions: Questions a trial.
        console: Where to draw.
        shown: False draws nothing.
    """

    def __init__(self, wanted: int, finished: int, questions: int, console: Console, *, shown: bool = True) -> None:
        self._console = console
        self._wanted = wanted
        self._first = finished
        self._finished = finished
        self._questions = questions
        self._answered = 0
        self._number = 0
        self._best: TrialResult | None = None
        self._started = time.monotonic()
        self._shown = shown
        self._bar: Progress | None = None
        if shown and console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[state]}"),
                TimeRemainingColumn(), console=console,
            )  # fmt: skip
            self._task = self._bar.add_task("tune", total=wanted, completed=finished, state="")

    def begin(self, number: int) -> None:
        """Show that a trial has begun."""
        self._number, self._answered = number, 0
        self._refresh()

    def answered(self) -> None:
        """Count a question of the trial."""
        self._answered += 1
        self._refresh()

    def ended(self, trial: TrialResult, best: TrialResult | None, finished: int) -> None:
        """Show how a trial ended.

        Args:
            trial: The trial.
            best: The best trial so far, or None.
            finished: Trials finished by all workers.
        """
        self._best, self._finished = best, finished
        if self._bar is None and self._shown:
            values = " ".join(f"{name}={value_text(value)}" for name, value in trial.values.items())
            score = f"{100 * trial.metrics['score']:.1f}" if "score" in trial.metrics else "-"
            after = f" after {trial.metrics['questions']:.0f} questions" if trial.state == "pruned" else ""
            line = f"trial {trial.number}: {values} · {score} {trial.state}{after} · {self._state()}"
            self._console.print(line, highlight=False, soft_wrap=True, markup=False)
        self._refresh()

    def _state(self) -> str:
        best = f"best {100 * self._best.metrics['score']:.1f} (trial {self._best.number})" if self._best else "no best"
        done = self._finished - self._first
        left = (self._wanted - self._finished) * (time.monotonic() - self._started) / done if done else 0.0
        time_left = f" · {left:.0f} s left" if done and left > 0 else ""
        return f"{best} · {self._finished}/{self._wanted}{time_left}"

    def _refresh(self) -> None:
        if self._bar is not None:
            best = f" · best {100 * self._best.metrics['score']:.1f}" if self._best else ""
            state = f"trial {self._number}: {self._answered}/{self._questions}{best}"
            self._bar.update(self._task, completed=self._finished, state=state)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
