"""Scoring a question's chain by its task kind: compared as text, as mathematics, or run as a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from metrics.code import score_code, score_code_async
from metrics.code_verdicts import CodeScore
from metrics.livecodebench_tests import CodeTests
from metrics.sandbox.isolation import choose_backend
from metrics.sandbox.options import SandboxOptions
from metrics.scorer import score, score_async
from metrics.scores import Score
from runs.benchmarks.question import Question
from signatures.errors import DataError

_LONG_CHAIN = 100_000
"""Characters from which comparing words may take long enough to be felt by the other chains."""


def check_scoring(task: str, sandbox: SandboxOptions, questions: Sequence[Question] = ()) -> None:
    """Make sure that answers of a kind can be scored here, before anything is paid for.

    Args:
        task: Task kind.
        sandbox: How programs are run.
        questions: The questions to be answered.

    Raises:
        DataError: Programs have to be run, and a question has no tests.
        SandboxError: Programs have to be run, and cannot be isolated here.
    """
    if task != "code":
        return
    for question in questions:
        if question.tests is None:
            raise _no_tests(question)
    choose_backend(sandbox)


async def score_question(question: Question, chain: str, task: str, sandbox: SandboxOptions | None = None) -> Score:
    """Score a chain without holding up the event loop.

    Args:
        question: The question, with its labels, choices or tests.
        chain: The whole chain; empty for a question that failed, which is wrong.
        task: Task kind.
        sandbox: How programs are run; None is the default of `SandboxOptions`.

    Returns:
        The score in both families.

    Raises:
        DataError: A code question has no tests, or they cannot be read.
        SandboxError: Programs cannot be isolated here.
        JudgeError: math-verify cannot be started.
    """
    if task == "code":
        if question.tests is None:
            raise _no_tests(question)
        return await score_code_async(chain, question.tests.read, sandbox=sandbox)
    if task == "math" or len(chain) > _LONG_CHAIN:
        return await score_async(chain, list(question.answers), task, question.choices)
    # Well under a millisecond: handing it to a thread would cost more.
    return score(chain, list(question.answers), task, question.choices)


def score_of_nothing(task: str) -> Score:
    """Return the score of a question that could not be scored: that of an empty chain, every metric 0.

    Args:
        task: Task kind.

    Returns:
        The score, with the metrics that others of this kind have; nothing is run or compared for it.
    """
    if task == "code":
        return replace(score_code("", CodeTests(())), coverage="")
    return score("", [], task)


def verdict_of(result: Score) -> dict[str, str]:
    """Return why a program passed or failed, for the record; empty for other kinds.

    Args:
        result: The score.

    Returns:
        `verdict` (see `metrics.code_verdicts.REASONS`) and `coverage` (which tests were there; empty where nobody
        looked), or nothing.
    """
    if not isinstance(result, CodeScore):
        return {}
    return {"verdict": result.reason, "coverage": result.coverage}


def _no_tests(question: Question) -> DataError:
    return DataError(
        f"Question {question.id!r} has no tests to run its program on; a code problem has them in public_test_cases."
    )
