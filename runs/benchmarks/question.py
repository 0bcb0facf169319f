"""A question as every benchmark gives it, and reading question files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from signatures.errors import DataError

_QUESTION_FIELDS = ("question", "Question", "problem", "question_content")
_ANSWER_FIELDS = ("answers", "golden_answers", "answer")
_GROUP_FIELDS = ("type", "domain", "level", "subject", "difficulty")


@dataclass(frozen=True)
class Question:
    """One question with its accepted answers.

    Attributes:
        id: Stable id, unique in its set.
        question: The question as asked.
        answers: Accepted answers; the best over them counts.
        gold_titles: Titles of the documents that hold the answer, or empty.
        groups: Group name to value (`type` to `bridge`), by which scores are also given.
        split: Split it belongs to, or empty.
        inputs: Further inputs of the program (question_title, starter_code).
    """

    id: str
    question: str
    answers: tuple[str, ...]
    gold_titles: tuple[str, ...] = ()
    groups: Mapping[str, str] = field(default_factory=dict)
    split: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)

    def to_inputs(self) -> dict[str, str]:
        """Return the keyword arguments a program is called with."""
        return {"question": self.question, **self.inputs}


def read_questions(path: Path) -> list[Question]:
    """Read questions from a JSON list or a JSONL file.

    Field names are ours (`id`, `question`, `answers`, `gold_titles`, `type`, `split`), those of FlashRAG
    (`golden_answers`) or those of the authors' files (`Question`, `answer`). A row without an id gets its position.

    Args:
        path: The file.

    Returns:
        The questions, in file order.

    Raises:
        DataError: The file is missing, not JSON, or a row lacks a question or an answer, or two share an id.
    """
    questions: list[Question] = []
    seen: dict[str, str] = {}
    for index, (place, row) in enumerate(_rows(path)):
        question = _question(row, f"{path}, {place}", index)
        if question.id in seen:
            raise DataError(
                f"{path}, {place}: the id {question.id!r} stands in {seen[question.id]} already; ids must be unique."
            )
        seen[question.id] = place
        questions.append(question)
    if not questions:
        raise DataError(f"{path} holds no question; expected a JSON list or one JSON object a line.")
    return questions


def dataset_hash(questions: Sequence[Question]) -> str:
    """Return a SHA-256 over ids, questions, answers and further inputs, in order: what a score was measured on."""
    digest = hashlib.sha256()
    for q in questions:
        parts = [q.id, q.question, list(q.answers), *([dict(q.inputs)] if q.inputs else [])]
        digest.update(json.dumps(parts, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _rows(path: Path) -> list[tuple[str, Any]]:
    """Return (where it stands, parsed row) pairs: `row 3` of a list, `line 3` of JSONL."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DataError(f"No question file at {path}; check the path given with --data.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}. It must be a UTF-8 JSON or JSONL file.") from None
    if text.lstrip().startswith("["):
        try:
            loaded = json.loads(text)
        except ValueError as error:
            raise DataError(f"{path} is not valid JSON: {error}.") from None
        return [(f"row {number}", row) for number, row in enumerate(loaded, 1)]
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            rows.append((f"line {number}", json.loads(line)))
        except ValueError as error:
            raise DataError(f"{path}, line {number}: not JSON ({error}); expected one JSON object a line.") from None
    return rows


def _question(row: Any, where: str, index: int) -> Question:
    if not isinstance(row, dict):
        raise DataError(f"{where}: expected an object, found {type(row).__name__}.")
    text = next((row[name] for name in _QUESTION_FIELDS if isinstance(row.get(name), str) and row[name].strip()), None)
    if text is None:
        raise DataError(f"{where}: no question; expected one of the fields {', '.join(_QUESTION_FIELDS)}.")
    answers = next((given for name in _ANSWER_FIELDS if (given := _answers(row.get(name)))), None)
    if answers is None:
        raise DataError(f"{where}: no answer; expected one of the fields {', '.join(_ANSWER_FIELDS)}.")
    return Question(
        id=str(index if row.get("id") is None else row["id"]),
        question=text,
        answers=answers,
        gold_titles=tuple(str(t) for t in row.get("gold_titles") or ()),
        groups={name: str(row[name]) for name in _GROUP_FIELDS if row.get(name) not in (None, "")},
        split=str(row.get("split") or ""),
        inputs={name: str(row[name]) for name in ("question_title", "starter_code") if row.get(name)},
    )


def _answers(given: Any) -> tuple[str, ...]:
    """Return the labels of a row; a blank one is none, for it would make an empty prediction right."""
    listed = given if isinstance(given, list) else [given]
    return tuple(str(a) for a in listed if a is not None and str(a).strip())
