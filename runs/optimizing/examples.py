"""Questions as DSPy examples: what a program is called with, and beside it what a metric needs."""

from __future__ import annotations

from collections.abc import Iterable

import dspy

from runs.benchmarks.question import Question


def to_example(question: Question) -> dspy.Example:
    """Turn a question into an example.

    Args:
        question: The question.

    Returns:
        An example whose inputs are those of the programs (`question`; of a code problem also `question_title` and
        `starter_code`, where it has them). Beside them stand `id`, `answers` and, of a choice question, `choices`; the
        tests of a code problem stay with the question, which the metric finds by its id.
    """
    inputs = question.to_inputs()
    beside = {"answers": list(question.answers), **({"choices": list(question.choices)} if question.choices else {})}
    return dspy.Example(**inputs, **beside, id=question.id).with_inputs(*inputs)


def to_examples(questions: Iterable[Question]) -> list[dspy.Example]:
    """Turn questions into examples, in order."""
    return [to_example(question) for question in questions]
