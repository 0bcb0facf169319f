"""Scoring a chain in both metric families at once, by task kind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from metrics import official, strict
from metrics.choice import choice_letter, strict_choice
from metrics.extraction import official_box, strict_box
from metrics.kinds import HEADLINE, compared_kind
from metrics.labels import as_labels, as_output
from metrics.scores import Score


def _score(chain: Any, answers: Any, choices: Sequence[str] = (), *, task: str) -> Score:
    chain, labels = as_output(chain), as_labels(answers)
    official_answer, strict_answer = official_box(chain, task), strict_box(chain)
    letter = ""
    if task == "multiple_choice":
        letter = choice_letter(strict_answer, choices)
        judged = strict_choice(strict_answer, labels, choices)
    else:
        judged = strict.SCORERS[task](strict_answer, labels)
    return Score(
        official=official.SCORERS[task](official_answer, labels),
        strict=judged,
        official_answer=official_answer,
        strict_answer=letter or strict_answer,
        headline=HEADLINE[task],
    )


TASKS: dict[str, Callable[..., Score]] = {task: partial(_score, task=task) for task in official.SCORERS}
"""Scorer by task kind; each takes a chain and the labels. Code has its own: it is run, not compared."""


def score(chain: Any, answers: Any, task: str, choices: Sequence[str] = ()) -> Score:
    """Score a chain in both metric families.

    Args:
        chain: The whole chain, injected blocks with their markers; empty for a question that failed, which is wrong.
        answers: The labels, of which any is right; a single string is one label. See `metrics.labels.as_labels`.
        task: Task kind, a key of `TASKS`, or its short name (`qa`, `choice`).
        choices: Texts of a multiple-choice question's choices as shown, where known; see `metrics.choice`.

    Returns:
        The score of this one answer.

    Raises:
        OptionError: No scorer is registered for the task kind.
        DataError: The chain or a label is no text.
        JudgeError: A math answer has to be compared and math-verify cannot be started.
    """
    return TASKS[compared_kind(task)](chain, answers, choices)


async def score_async(chain: Any, answers: Any, task: str, choices: Sequence[str] = ()) -> Score:
    """Score as `score` does, without holding up the event loop: a math answer may take seconds.

    Args:
        chain: As for `score`.
        answers: As for `score`.
        task: As for `score`.
        choices: As for `score`.

    Returns:
        The score of this one answer.

    Raises:
        OptionError: As for `score`.
        DataError: As for `score`.
        JudgeError: As for `score`.
    """
    return await asyncio.to_thread(score, chain, answers, task, choices)
