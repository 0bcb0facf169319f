"""Keeping test rows out of a tuning: options chosen on the rows that are reported on make their score too good."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from runs.benchmarks.registry import QuestionSet, find_benchmark, load_questions
from runs.optimizing.question_text import normalised_question
from runs.tuning.settings import TuneSettings
from signatures.errors import DataError, OptionError, SearchO1Error

_SPLIT, _TEST = "validation", "test"


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
    leaked, warning = _test_rows(found, settings.data)
    if leaked and not settings.i_know:
        raise DataError(
            f"{len(leaked)} of {len(found.questions)} questions to tune on are test rows, for example {leaked[0]!r}: "
            "options chosen on them make the test score too good. Tune on other questions (--split, --data), or say "
            "--i-know; the result then says so."
        )
    return TuningQuestions(found, leaked, warning)


def _test_rows(found: QuestionSet, data: Path | None) -> tuple[tuple[str, ...], str]:
    """Return the ids of test rows among questions, and why they may not be known.

    Rows are the same when their folded texts agree, or their ids; a bare number is a mere place in a file.
    """
    whole = load_questions(found.name, data=data).questions if data is not None else found.questions
    marked = [q for q in whole if q.split == _TEST]
    benchmark, test, warning = found.benchmark, list(marked), ""
    if benchmark is not None:
        try:
            test += load_questions(benchmark, split=benchmark.default_split).questions
        except SearchO1Error as error:
            warning = f"The test rows of {benchmark.name} could not be loaded to compare with: {error}"
    elif not any(q.split for q in whole):
        warning = (
            f"{data} names no split and belongs to no benchmark, so nobody can say whether it holds test rows: "
            "evaluate on other questions than these."
        )
    texts = {normalised_question(q.question) for q in test}
    ids = {q.id for q in test if not q.id.isdecimal()}
    leaked = (q.id for q in found.questions if q.id in ids or normalised_question(q.question) in texts)
    return tuple(leaked), warning
