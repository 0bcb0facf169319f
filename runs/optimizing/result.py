"""What an optimisation gives back, and how it is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from metrics.statistics import Estimate, PairedDifference
from programs.base import Program
from runs.optimizing.accounts import Spent, Trial
from runs.printing import percent


@dataclass(frozen=True)
class Optimised:
    """A finished optimisation, or one that was stopped.

    Attributes:
        id: The optimisation's id.
        folder: Its folder: ledger, candidates, facts.
        file: The compiled program.
        program: The compiled program, ready to be called.
        before: Validation score of the start, 0 to 1.
        after: Validation score of the compiled program, on the same questions.
        difference: After minus before, question by question.
        trials: Candidates that met validation questions, in order.
        spent: What all starts of the optimisation used.
        seconds: Wall time of all starts.
        improved: Whether a candidate beat the start; else the compiled program is the start.
        interrupted: Whether Ctrl-C ended it.
        mlflow_run: MLflow's run id, or empty.
        registered: Where MLflow registered the program (`models:/search-o1/3`), or empty.
        tracking_error: Why tracking stopped, or empty.
        metadata: What the file says of it.
    """

    id: str
    folder: Path
    file: Path
    program: Program = field(repr=False)
    before: Estimate
    after: Estimate
    difference: PairedDifference
    trials: list[Trial] = field(repr=False)
    spent: Spent
    seconds: float
    improved: bool
    interrupted: bool
    mlflow_run: str = ""
    registered: str = ""
    tracking_error: str = ""
    metadata: dict[str, Any] = field(default_factory=dict, repr=False)


def print_result(console: Console, done: Optimised, metric: str, use: str) -> None:
    """Print scores before and after, what it cost, where the program is and how to use it.

    Args:
        console: Where to print.
        done: The optimisation.
        metric: Name of the headline metric.
        use: Command that evaluates the program.
    """

    def say(line: str) -> None:
        console.print(line, highlight=False, soft_wrap=True, markup=False)

    say(f"{done.after.n} validation questions, {metric} (strict) in percent with 95 % intervals:")
    table = Table(show_header=False)
    table.add_column("")
    table.add_column(metric, justify="right")
    table.add_row("before", percent(done.before))
    table.add_row("after", percent(done.after))
    gap = done.difference
    table.add_row("difference", f"{100 * gap.difference:+.1f} [{100 * gap.low:+.1f}, {100 * gap.high:+.1f}]")
    p = gap.mcnemar_p if gap.mcnemar_p is not None else gap.p
    name = "McNemar p" if gap.mcnemar_p is not None else "p (signs exchanged at random)"
    table.add_row(name, "-" if p is None else f"{p:.2g}")
    console.print(table)
    spent = done.spent
    rejected = sum(bool(trial.rejected) for trial in done.trials)
    cost = f" · ${spent.cost:.2f}" if spent.cost is not None else ""
    say(
        f"{len(done.trials)} candidates ({rejected} rejected) · {spent.questions} questions asked · {spent.calls} "
        f"model calls, {spent.from_cache} of them from the cache · {spent.tokens} tokens{cost} · {done.seconds:.0f} s"
    )
    if done.interrupted:
        say("Stopped: this is the best so far. The same command goes on from here.")
    elif not done.improved:
        say("No candidate beat the start on the validation questions; the program written is the start.")
    say(f"Program: {done.file}")
    if done.improved:
        say("It was chosen by the validation score, which therefore flatters it. What it is worth, new questions say:")
    say(f"  {use}")
