"""What a score cannot say: how many of a run's questions its compiled program has learned from.

A program names the questions of its training and validation sets by key, so that a score on them is known as such
wherever it is told: on the screen, in the run's folder, in MLflow, in reports and comparisons.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from programs.saving import CompiledProgram
from runs.optimizing.question_text import question_key

TRAINED, LEAKED = "trained_on_these", "leaked_test_rows"


def training_facts(compiled: CompiledProgram | None, questions: Mapping[str, str]) -> dict[str, int]:
    """Count the questions that a program has learned from.

    Args:
        compiled: The run's compiled program, or None.
        questions: Id to text of the run's questions.

    Returns:
        `trained_on_these`, the number of questions, for a program that names what it has learned from; and
        `leaked_test_rows`, how many test rows it was allowed to learn from, where that is more than none.
    """
    if compiled is None:
        return {}
    facts = {}
    keys = compiled.metadata.get("trained_on")
    if isinstance(keys, list):
        known = {key for key in keys if isinstance(key, str)}
        facts[TRAINED] = sum(question_key(text) in known for text in questions.values())
    leaked = compiled.metadata.get(LEAKED)
    count = len(leaked) if isinstance(leaked, list) else leaked if isinstance(leaked, int) else 0
    return {**facts, LEAKED: int(count)} if count else facts


def training_notes(facts: Mapping[str, Any], name: str) -> list[str]:
    """Return what a reader of a run's scores must know.

    Args:
        facts: Facts of the run, those of `training_facts` among them.
        name: What the reader knows the run by.

    Returns:
        Sentences; none for a run whose program has learned from none of its questions.
    """
    notes = []
    if trained := facts.get(TRAINED):
        notes.append(
            f"{name}: its program has learned from {trained} of these questions; the score does not say what it does "
            "on new ones."
        )
    if leaked := facts.get(LEAKED):
        notes.append(f"{name}: its program was made with {leaked} test rows (optimize --i-know).")
    return notes
