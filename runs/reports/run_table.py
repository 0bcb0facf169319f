"""The table of runs that every report ends with: what was run, on how much, and how."""

from __future__ import annotations

from collections.abc import Sequence

from runs.reports.fallback import Outcomes
from runs.reports.layout import MISSING, Row, Table
from runs.reports.paper_settings import setting_differences, settings_word
from runs.reports.systems import systems_of
from runs.trained_on import training_notes

_SHOWN = 8


def run_table(outcomes: Sequence[Outcomes]) -> Table:
    """Return the table of runs.

    Args:
        outcomes: The runs.

    Returns:
        One row a run.
    """
    columns = ("Run", "Set", "Method", "Model", "Questions", "Samples", "Failed", "Paper settings", "Fallback")
    rows = [
        Row(
            (
                each.run.id,
                f"{each.run.benchmark} {each.run.split}".strip(),
                each.run.method_title,
                each.run.model,
                str(len(each.run.by_question)),
                str(each.run.samples),
                str(sum(r["finish"] == "error" for r in each.run.records)),
                settings_word(each.run),
                _fallback(each),
            )
        )
        for each in outcomes
    ]
    return Table("What was run", columns, tuple(rows), words=4)


def setting_notes(outcomes: Sequence[Outcomes]) -> list[str]:
    """Return for each run without the paper's settings in what they differ."""
    notes = []
    for each in outcomes:
        found = setting_differences(each.run)
        if found:
            more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            notes.append(f"{each.run.id}: not the paper's settings: {'; '.join(found[:_SHOWN])}{more}.")
    return notes


def missing_notes(outcomes: Sequence[Outcomes]) -> list[str]:
    """Return which runs are not finished."""
    return [
        f"{each.run.id} is not finished: {each.run.missing} answers are missing, so its scores are not final."
        if each.run.missing
        else f"{each.run.id} was stopped, and how many answers it should have was not noted."
        for each in outcomes
        if each.run.missing != 0
    ]


def coverage_notes(outcomes: Sequence[Outcomes]) -> list[str]:
    """Return which code runs had only the public tests to be judged on."""
    counts = [(each.run, sum(r.get("coverage") == "public only" for r in each.run.records)) for each in outcomes]
    return [
        f"{run.id}: {count} of {len(run.records)} answers were judged on public tests only, for the data held no "
        "others; its strict score is an upper bound."
        for run, count in counts
        if count
    ]


def learned_notes(outcomes: Sequence[Outcomes]) -> list[str]:
    """Return which runs were made with a program that has learned from their questions."""
    return [note for each in outcomes for note in training_notes(each.run.facts, each.run.id)]


def double_notes(outcomes: Sequence[Outcomes]) -> list[str]:
    """Return which run is meant where the same method and model were run several times on the same set."""
    doubles = [s for s in systems_of(outcomes) if s.number > 1]
    said = "; ".join(f"{s.label} is {', '.join(o.run.id for o in s.outcomes)}" for s in doubles)
    return [f"Further runs of the same method and model on the same set stand by themselves: {said}."] if said else []


def _fallback(each: Outcomes) -> str:
    if not each.has_fallback:
        return MISSING
    answers = f"{each.taken} answers"
    return answers if each.direct is None else f"{answers}, from {each.direct.id}"
