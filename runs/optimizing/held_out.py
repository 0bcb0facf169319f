"""Which questions are test rows: what `evaluate` reports must not be learned from, nor options be chosen on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runs.benchmarks.question import Question
from runs.benchmarks.spec import Benchmark
from runs.optimizing.question_text import normalised_question
from signatures.errors import SearchO1Error

_TEST = "test"


@dataclass(frozen=True)
class HeldOut:
    """What is known of the test rows.

    Attributes:
        questions: The test rows.
        where: Where they were found, in words.
        warning: Why they could not all be known; empty when they are.
    """

    questions: Sequence[Question]
    where: tuple[str, ...] = ()
    warning: str = ""


class QuestionKeys:
    """Ids and folded texts of some questions: two are the same when either agrees.

    An id that is a bare number is the place of a row in its file and says nothing about another file.

    Args:
        questions: The questions.
    """

    def __init__(self, questions: Iterable[Question]) -> None:
        self._ids: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        for question in questions:
            if not question.id.isdecimal():
                self._ids.setdefault(question.id, question.id)
            self._texts.setdefault(normalised_question(question.question), question.id)

    def find(self, question: Question) -> str | None:
        """Return the id under which a question is known here, or None."""
        return self._ids.get(question.id) or self._texts.get(normalised_question(question.question))

    def holds(self, question: Question) -> bool:
        """Say whether a question is known here."""
        return self.find(question) is not None


def held_out_rows(benchmark: Benchmark | None, files: Mapping[Path, Sequence[Question]]) -> HeldOut:
    """Return the rows that `evaluate` would report: a benchmark's default split, and rows marked `test` in files.

    Args:
        benchmark: The benchmark, or None where the questions belong to none.
        files: All rows of each question file that is used.

    Returns:
        The test rows, with a warning where nobody can say which they are.
    """
    rows: list[Question] = []
    where: list[str] = []
    for path, read in files.items():
        if marked := [q for q in read if q.split == _TEST]:
            rows += marked
            where.append(f"the {len(marked)} rows of {path.name} marked {_TEST}")
    if benchmark is None:
        names = " and ".join(path.name for path in files)
        warning = (
            f"Not checked for test rows: nothing says which questions are for testing. No row of {names} is marked "
            f"`split`: `{_TEST}`, and no known benchmark is named."
        )
        return HeldOut(rows, tuple(where), "" if rows else warning)
    name = f"{benchmark.name} {benchmark.default_split}"
    try:
        found = benchmark.load_split(benchmark.default_split).questions
    except SearchO1Error as error:
        return HeldOut(rows, tuple(where), f"Not checked against the test rows of {name}: {error}")
    return HeldOut([*rows, *found], (*where, f"the {len(found)} rows of {name}"))
