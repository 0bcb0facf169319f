"""Keeping test rows out of a tuning: options chosen on the rows that are reported on make their score too good."""

from __future__ import annotations

from dataclasses import dataclass

from runs.benchmarks.registry import QuestionSet, find_benchmark, load_questions
from runs.optimizing.held_out import QuestionKeys, held_out_rows
from runs.tuning.settings import TuneSettings
from signatures.errors import DataError, OptionError

_SPLIT = "validation"


@dataclass(frozen=True)
class TuningQuestions:
    """The questions to tune on, and what is known of them.

    Attributes:
        questions: The questions.
        leaked: Ids of those that are test rows.
        warning: Why nobody can say whether some are, or empty.
    """

    questions: QuestionSet
    leaked: tuple[str, ...] = ()
    warning: str = ""


def tuning_questions(settings: TuneSettings) -> TuningQuestions:
    """Load the questions of a tuning and make sure that none is a test row.

    Args:
        settings: The settings.

    Returns:
        The questions.

    Raises:
        OptionError: The benchmark is unknown, or has no validation questions.
        DataError: The file is bad, or some rows are test rows and the user did not say that this is known.
    """
    named = settings.benchmark or ("quickstart" if settings.data is None else "")
    if settings.data is None and not settings.split:
        splits = find_benchmark(named).splits
        if _SPLIT not in splits:
            raise OptionError(
                f"Benchmark {named} has no split {_SPLIT!r} to tune on; it has: {', '.join(splits)}. Give questions of "
                "your own with --data FILE, or another split with --split."
            )
    split = settings.split or ("" if settings.data is not None else _SPLIT)
    found = load_questions(named, data=settings.data, split=split, limit=settings.limit)
    whole = {settings.data: load_questions(named, data=settings.data).questions} if settings.data is not None else {}
    tests = held_out_rows(found.benchmark, whole)
    keys = QuestionKeys(tests.questions)
    leaked = tuple(q.id for q in found.questions if keys.holds(q))
    if leaked and not settings.i_know:
        raise DataError(
            f"{len(leaked)} of {len(found.questions)} questions to tune on are test rows, for example {leaked[0]!r}: "
            "options chosen on them make the test score too good. Tune on other questions (--split, --data), or say "
            "--i-know; the result then says so."
        )
    return TuningQuestions(found, leaked, tests.warning)
