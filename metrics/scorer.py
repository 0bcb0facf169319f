"""The registry of scorers: one small module a task kind, one line here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from metrics.qa import score_open_qa
from metrics.scores import Score
from signatures.errors import OptionError

TASKS: dict[str, Callable[[str, Sequence[str]], Score]] = {
    "open_qa": score_open_qa,
}
"""Scorer by task kind; each takes a chain and the labels."""


def score(chain: str, answers: Sequence[str], task: str) -> Score:
    """Score a chain in both metric families.

    Args:
        chain: The whole chain, injected blocks with their markers; empty for a question that failed, which is wrong.
        answers: The labels, of which any is right; a single string is one label.
        task: Task kind, a key of `TASKS`.

    Returns:
        The score of this one answer.

    Raises:
        OptionError: No scorer is registered for the task kind.
    """
    if task not in TASKS:
        raise OptionError(f"no scorer for task {task!r}; tasks with a scorer: {', '.join(sorted(TASKS))}")
    return TASKS[task](chain, [answers] if isinstance(answers, str) else answers)
