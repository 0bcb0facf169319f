r"""Scores that are right rather than comparable: what the model itself says at the end, judged by what it means.

>>> from metrics import strict
>>> strict.score("math", "so \\boxed{\\frac{2}{4}}", "0.5").math_equal
1.0

The functions are those of `metrics.official`. Questions and choices are judged without I/O; of math answers, those that
are not just numbers go to a child process (`metrics.math_judge`), which takes some seconds to start and then
milliseconds an answer. From a running event loop use `metrics.scorer.score_async`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from metrics.choice import choice_letter, strict_choice
from metrics.extraction import strict_box
from metrics.feedback import Metric, ScoreWithFeedback, as_metric, with_feedback
from metrics.kinds import compared_kind
from metrics.labels import as_labels, as_output
from metrics.math_strict import strict_math
from metrics.qa import strict_qa
from metrics.scores import Scores

SCORERS: dict[str, Callable[[str, Sequence[str]], dict[str, float]]] = {
    "open_qa": strict_qa,
    "multiple_choice": strict_choice,
    "math": strict_math,
}
"""By task kind, what turns an extracted answer and its labels into numbers."""


def score(kind: str, output: Any, labels: Any, choices: Sequence[str] | None = None) -> Scores:
    """Score a model's whole output.

    Args:
        kind: `qa`, `choice` or `math`, or a task kind's full name.
        output: Everything the chain holds, injected blocks with their markers; None or NaN is an empty output.
        labels: A label or several, of which any is right; see `metrics.labels.as_labels`.
        choices: Texts of a question's choices in order, where known; see `metrics.choice.choice_letter`.

    Returns:
        The scores; all 0 without a box or without a label.

    Raises:
        OptionError: The kind is unknown, or is code, which must be run.
        DataError: The output or a label is no text.
        JudgeError: math-verify cannot be started.
    """
    return score_answer(kind, strict_box(as_output(output)), labels, choices)


def score_answer(kind: str, answer: Any, labels: Any, choices: Sequence[str] | None = None) -> Scores:
    """Score an answer that was already read out of an output.

    Args:
        kind: As for `score`.
        answer: The answer without its box.
        labels: As for `score`.
        choices: As for `score`.

    Returns:
        The scores; the prediction of a choice is its letter, where the answer names one.

    Raises:
        OptionError: As for `score`.
        DataError: As for `score`.
        JudgeError: As for `score`.
    """
    task, answer, labels = compared_kind(kind), as_output(answer), as_labels(labels)
    if task == "multiple_choice":
        numbers = strict_choice(answer, labels, choices)
        return Scores.from_numbers(numbers, choice_letter(answer, choices) or answer)
    return Scores.from_numbers(SCORERS[task](answer, labels), answer)


def feedback(kind: str, output: Any, labels: Any, choices: Sequence[str] | None = None) -> ScoreWithFeedback:
    """Score a model's whole output and say in words what was wrong with it.

    Args:
        kind: As for `score`.
        output: As for `score`.
        labels: As for `score`.
        choices: As for `score`.

    Returns:
        The headline score with its feedback text, as DSPy's GEPA takes it.

    Raises:
        OptionError: As for `score`.
        DataError: As for `score`.
        JudgeError: As for `score`.
    """
    return with_feedback("strict", kind, score(kind, output, labels, choices), output, labels)


def metric(kind: str) -> Metric:
    """Return a DSPy metric: `metric(example, prediction, trace=None)`, also with GEPA's five arguments.

    Args:
        kind: As for `score`.

    Returns:
        A function that gives the headline score; see `metrics.feedback.as_metric` for the fields it reads.

    Raises:
        OptionError: As for `score`.
    """
    return as_metric("strict", kind, score, score_answer)
