"""A question as every benchmark gives it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from runs.benchmarks.problem_tests import ProblemTests


@dataclass(frozen=True)
class Question:
    """One question with its accepted answers.

    Attributes:
        id: Stable id, unique in its set.
        question: The question as asked; of a multiple-choice question with its choices.
        answers: Accepted answers, of which the best counts; the letter of a choice; none of a code problem.
        gold_titles: Titles of the documents that hold the answer, or empty.
        groups: Group name to value (`type` to `bridge`), by which scores are also given.
        split: Split it belongs to, or empty.
        inputs: Further inputs of the program (question_title, starter_code).
        task: Task kind that the row's own fields tell, or empty where they leave it open.
        choices: Texts of the choices in the order shown, or empty.
        choice_order: Place in the file of each choice shown, where they were shuffled; 0 is the file's first.
        tests: Tests of a code problem, or None.
        details: What else is known of it (`contest_date`, `url`), for people; it changes no score.
    """

    id: str
    question: str
    answers: tuple[str, ...]
    gold_titles: tuple[str, ...] = ()
    groups: Mapping[str, str] = field(default_factory=dict)
    split: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    task: str = ""
    choices: tuple[str, ...] = ()
    choice_order: tuple[int, ...] = ()
    tests: ProblemTests | None = None
    details: Mapping[str, str] = field(default_factory=dict)

    def to_inputs(self) -> dict[str, str]:
        """Return the keyword arguments a program is called with."""
        return {"question": self.question, **self.inputs}


def dataset_hash(questions: Sequence[Question]) -> str:
    """Return a SHA-256 over what a score was measured on, in order.

    That is ids, questions (with the choices as shown), answers, further inputs and tests.
    """
    digest = hashlib.sha256()
    for q in questions:
        parts: list[object] = [q.id, q.question, list(q.answers)]
        if q.inputs or q.tests is not None:
            parts.append(dict(q.inputs))
        if q.tests is not None:
            parts.append(q.tests.digest)
        digest.update(json.dumps(parts, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
