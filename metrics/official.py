r"""The published scorer, exactly, so that numbers compare with the paper: pure functions of text, no I/O, no DSPy.

>>> from metrics import official
>>> official.score("choice", "The answer is \\boxed{\\text{(B)}}.", "B").em
1.0

`metrics.strict` has the same functions and judges what is right. What the published scorer does that a reader may not
expect is told where it happens: `metrics.extraction.official_box`, `metrics.qa`, `metrics.choice`,
`metrics.math_official`.
Source: github.com/sunnynexus/Search-o1, scripts/evaluate.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from metrics.choice import official_choice
from metrics.extraction import official_box
from metrics.feedback import Metric, ScoreWithFeedback, as_metric, with_feedback
from metrics.kinds import compared_kind
from metrics.labels import as_labels, as_output
from metrics.math_official import official_math
from metrics.qa import official_qa
from metrics.scores import Scores

SCORERS: dict[str, Callable[[str, Sequence[str]], dict[str, float]]] = {
    "open_qa": official_qa,
    "multiple_choice": official_choice,
    "math": official_math,
}
"""By task kind, what turns an extracted answer and its labels into numbers."""


def score(kind: str, output: Any, labels: Any) -> Scores:
    """Score a model's whole output.

    Args:
        kind: `qa`, `choice` or `math`, or a task kind's full name.
        output: Everything the chain holds, injected text included; None or NaN is an empty output.
        labels: A label or several, of which any is right; see `metrics.labels.as_labels`.

    Returns:
        The scores; all 0 without a box or without a label.

    Raises:
        OptionError: The kind is unknown, or is code, which must be run.
        DataError: The output or a label is no text.
    """
    return score_answer(kind, official_box(as_output(output), compared_kind(kind)), labels)


def score_answer(kind: str, answer: Any, labels: Any) -> Scores:
    """Score an answer that was already read out of an output.

    Args:
        kind: As for `score`.
        answer: The answer without its box.
        labels: As for `score`.

    Returns:
        The scores.

    Raises:
        OptionError: As for `score`.
        DataError: As for `score`.
    """
    answer = as_output(answer)
    return Scores.from_numbers(SCORERS[compared_kind(kind)](answer, as_labels(labels)), answer)


def feedback(kind: str, output: Any, labels: Any) -> ScoreWithFeedback:
    """Score a model's whole output and say in words what was wrong with it.

    Args:
        kind: As for `score`.
        output: As for `score`.
        labels: As for `score`.

    Returns:
        The headline score with its feedback text, as DSPy's GEPA takes it.

    Raises:
        OptionError: As for `score`.
        DataError: As for `score`.
    """
    return with_feedback("official", kind, score(kind, output, labels), output, labels)


def metric(kind: str) -> Metric:
    """Return a DSPy metric: `metric(example, prediction, trace=None)`, also with GEPA's five arguments.

    Args:
        kind: As for `score`.

    Returns:
        A function that gives the headline score; see `metrics.feedback.as_metric` for the fields it reads.

    Raises:
        OptionError: As for `score`.
    """
    return as_metric("official", kind, score, score_answer)
