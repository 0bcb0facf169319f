"""What a person reads before a tuning and at its end."""

from __future__ import annotations

import math
import shlex

from rich.console import Console
from rich.table import Table
from rich.text import Text

from runs.command_flags import flags_of_settings, note_without_flag
from runs.terminal_text import visible
from runs.tuning.parameter import value_text
from runs.tuning.results import TrialResult, Tuned
from runs.tuning.settings import TuneSettings
from runs.tuning.space import Space

_SHOWN = 5


def opening_lines(settings: TuneSettings, space: Space, questions: int, *, finished: int) -> list[str]:
    """Return what is said before the first trial.

    Args:
        settings: The settings.
        space: The space.
        questions: Questions a trial.
        finished: Trials finished before.

    Returns:
        Lines for the user.
    """
    lines = [f"Tuning {', '.join(f'{n}={s}' for n, s in space.specs.items())} on {questions} questions a trial."]
    if finished:
        lines.append(f"Going on after {finished} of {settings.trials} finished trials.")
    if space.size < settings.trials:
        lines.append(
            f"The space has only {space.size:.0f} combinations, fewer than {settings.trials} trials; those that come "
            "again are answered from the cache."
        )
    if len(settings.objective) > 1 and settings.pruner != "none":
        lines.append(
            f"With several objectives ({', '.join(settings.objective)}) Optuna cannot prune: every trial answers all "
            "questions."
        )
    elif settings.pruner != "none" and questions <= settings.report_every:
        lines.append(
            f"No trial is pruned: {questions} questions are answered before the first look (--report-every "
            f"{settings.report_every})."
        )
    if "latency" in settings.objective:
        lines.append("Latency is measured, so model replies are neither taken from the cache nor kept in it.")
    return lines


def print_result(console: Console, tuned: Tuned, settings: TuneSettings, benchmark: str, *, leaked: int) -> None:
    """Print the best trials and the command that checks the best one.

    Args:
        console: Where to print.
        tuned: What was found.
        settings: The settings.
        benchmark: Name of the benchmark, or empty for a file of one's own.
        leaked: Test rows among the questions.
    """
    pruned = sum(t.state == "pruned" for t in tuned.trials)
    failed = sum(t.state == "failed" for t in tuned.trials)
    counts = f"{tuned.finished} trials, {pruned} of them pruned" + (f"; {failed} broken off" if failed else "")

    def say(line: str) -> None:
        console.print(line, highlight=False, soft_wrap=True, markup=False)

    if tuned.best is None:
        say(f"{counts}. None answered every question; give more --trials.")
        return
    several = len(tuned.objective) > 1
    whole = [t for t in tuned.trials if t.state == "complete"]
    rows = tuned.front if several else sorted(whole, key=lambda t: (-t.metrics["score"], t.metrics["tokens"]))
    title = "Pareto front: no trial beats these in everything" if several else "Best trials"
    console.print(_table(rows if several else rows[:_SHOWN], title))
    say(f"{counts}. Study {tuned.study} in {tuned.folder}")
    say(f"Best options: {tuned.flags}")
    if leaked:
        say(f"{leaked} of the questions are test rows: the test score with these options is too good.")
    say("The best of many trials on the same questions is flattered by them; check it on others:")
    label = [benchmark] if benchmark else []
    say(f"  {shlex.join(['search-o1', 'evaluate', *label, *_given(settings, tuned.best)])} {tuned.flags}")
    if note := note_without_flag(settings):
        say(note)


def _given(settings: TuneSettings, best: TrialResult) -> list[str]:
    """Return the flags of the data, the model, the retrieval, the program and the method."""
    flags = [] if settings.data is None else ["--data", "OTHER_QUESTIONS.jsonl"]
    flags += flags_of_settings(settings)
    if "program" not in best.values and settings.program != "auto":
        flags += ["--program", settings.program]
    return flags if "method" in best.values else [*flags, "--method", settings.method]


def _table(trials: list[TrialResult], title: str) -> Table:
    table = Table(title=title, title_justify="left")
    for name in ("trial", "score (95 % interval)", "tokens", "seconds (p50)"):
        table.add_column(name, justify="right")
    table.add_column("options")
    for trial in trials:
        m = trial.metrics
        score = f"{100 * m['score']:.1f} [{100 * m.get('low', math.nan):.1f}, {100 * m.get('high', math.nan):.1f}]"
        latency = f"{m['latency']:.2f}" if "latency" in m else "-"
        values = " ".join(f"{name}={value_text(value)}" for name, value in trial.values.items())
        # A program may be named after anything.
        table.add_row(str(trial.number), score, f"{m['tokens']:.0f}", latency, Text(visible(values)))
    return table
