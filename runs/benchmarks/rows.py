"""Turns a row of a question file into a question, under the field names that files use.

Names are ours (`question`, `answers`, `choices`), those of the sets on the hub (`golden_answers`, `problem`,
`Correct Answer`, `question_content`), or those of the paper's authors' files (`Question`, `Correct Choice`,
`public_test_cases`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

from metrics.extraction import strict_box
from metrics.labels import as_labels
from runs.benchmarks.choices import lay_out, letter, shown_choices, shuffled
from runs.benchmarks.problem_tests import ProblemTests, RowPlace
from runs.benchmarks.question import Question
from signatures.errors import DataError

QUESTION_FIELDS = ("question", "Question", "problem", "question_content")
ANSWER_FIELDS = ("answers", "golden_answers", "answer")
ID_FIELDS = ("id", "unique_id", "question_id", "Record ID", "_id")

_GROUP_FIELDS = {
    "type": "type",
    "domain": "domain",
    "High-level domain": "domain",
    "level": "level",
    "subject": "subject",
    "difficulty": "difficulty",
    "platform": "platform",
}
_DETAIL_FIELDS = ("url", "unique_id", "question_id", "musique_id", "contest_id", "contest_date", "Subdomain")
_HUB_CHOICES = ("Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")
_CHOICE_COLUMNS = ("Choice A", "Choice B", "Choice C", "Choice D", "Choice E", "Choice F")


@dataclass(frozen=True)
class Row:
    """A row as it was read.

    Attributes:
        where: Where it stands, for messages: `questions.jsonl, line 3`.
        fields: Its parsed content, which should be an object.
        place: Where it can be read again, or None.
    """

    where: str
    fields: Any
    place: RowPlace | None = None


def questions_of(rows: Iterable[Row]) -> list[Question]:
    """Turn rows into questions.

    Args:
        rows: The rows, in order. A row without an id gets its position from 0.

    Returns:
        The questions, in the same order.

    Raises:
        DataError: A row is malformed, two share an id, or rows are of different task kinds.
    """
    questions: list[Question] = []
    seen: dict[str, str] = {}
    first: Row | None = None
    for index, row in enumerate(rows):
        question = question_of(row, index)
        first = first or row
        if question.id in seen:
            raise DataError(
                f"{row.where}: the id {question.id!r} stands in {seen[question.id]} already; ids must be unique."
            )
        if questions and question.task != questions[0].task:
            kinds = [task or "neither choice nor code" for task in (question.task, questions[0].task)]
            raise DataError(
                f"{row.where}: its fields say {kinds[0]}, but those of {first.where} say {kinds[1]}; put each task "
                "kind into a file of its own."
            )
        seen[question.id] = row.where.rpartition(", ")[2]
        questions.append(question)
    return questions


def question_of(row: Row, index: int) -> Question:
    """Turn one row into a question.

    Args:
        row: The row.
        index: Its position from 0, the id of a row that has none.

    Returns:
        The question.

    Raises:
        DataError: The row is no object, or lacks a question or an answer.
    """
    fields, where = row.fields, row.where
    if not isinstance(fields, Mapping):
        raise DataError(f"{where}: expected an object, found {type(fields).__name__}.")
    text = next((fields[n] for n in QUESTION_FIELDS if isinstance(fields.get(n), str) and fields[n].strip()), None)
    if text is None:
        raise DataError(f"{where}: no question; expected one of the fields {', '.join(QUESTION_FIELDS)}.")
    metadata = fields["metadata"] if isinstance(fields.get("metadata"), Mapping) else {}
    name = next((given[0] for field in ID_FIELDS if (given := _labels(fields, field, where))), str(index))
    kind: dict[str, Any]
    if _has(fields, "public_test_cases") or _has(fields, "private_test_cases"):
        kind = {"task": "code", "tests": ProblemTests.of_row(fields, row.place), "answers": ()}
    elif _is_choice(fields):
        kind = _choice(fields, text, name, where)
    else:
        kind = {"answers": _answers(fields, where)}
    return Question(
        **{"question": text, **kind},
        id=name,
        gold_titles=_gold_titles(fields, metadata),
        groups=_groups(fields, metadata),
        split=str(fields.get("split") or ""),
        inputs={n: str(fields[n]) for n in ("question_title", "starter_code") if _has(fields, n)},
        details={n: _text(fields[n]) for n in _DETAIL_FIELDS if _has(fields, n)},
    )


def _has(fields: Mapping[str, Any], name: str) -> bool:
    value = fields.get(name)
    return value is not None and value != "" and value == value


def _labels(fields: Mapping[str, Any], name: str, where: str) -> list[str]:
    """Return the labels in a field; a blank one is none, for it would make an empty prediction right."""
    try:
        return as_labels(fields.get(name))
    except DataError as error:
        raise DataError(f"{where}, {name}: {error}") from None


def _answers(fields: Mapping[str, Any], where: str) -> tuple[str, ...]:
    for name in ANSWER_FIELDS:
        if found := _labels(fields, name, where):
            return tuple(found)
    for name in ("solution", "Solution"):
        if isinstance(fields.get(name), str) and (boxed := strict_box(fields[name])):
            return (boxed,)
    blank = [f"{name} is {fields[name]!r}" for name in ANSWER_FIELDS if name in fields]
    found_text = f" (here {', '.join(blank)})" if blank else ""
    raise DataError(f"{where}: no answer; expected one of the fields {', '.join(ANSWER_FIELDS)}{found_text}.")


def _is_choice(fields: Mapping[str, Any]) -> bool:
    columns = _has(fields, _HUB_CHOICES[0]) and _has(fields, _HUB_CHOICES[1])
    return _has(fields, "Correct Choice") or columns or _listed(fields)


def _choice(fields: Mapping[str, Any], text: str, record: str, where: str) -> dict[str, Any]:
    """Return what is particular to a multiple-choice question.

    The letter of `Correct Choice` goes with choices already laid out or in columns of their own. Without it the hub's
    columns are shuffled; a list `choices` keeps its order, and `answer` is a letter, a text or a place from 0.
    """
    order: tuple[int, ...] = ()
    if _has(fields, "Correct Choice"):
        choices = tuple(_text(fields[name]) for name in _CHOICE_COLUMNS if _has(fields, name)) or shown_choices(text)
        right = _named(_labels(fields, "Correct Choice", where), choices, where)
    elif _listed(fields):
        choices = tuple(_text(choice) for choice in fields["choices"])
        name = next((name for name in ANSWER_FIELDS if _has(fields, name)), ANSWER_FIELDS[-1])
        right = _by_place(fields.get(name), choices) or _named(_labels(fields, name, where), choices, where)
    else:
        listed = [_text(fields[name]) for name in _HUB_CHOICES if _has(fields, name)]
        order = shuffled(len(listed), record)
        choices = tuple(listed[place] for place in order)
        right = letter(order.index(0))
    return {
        "task": "multiple_choice",
        "question": lay_out(text, choices),
        "answers": (right,),
        "choices": tuple(choice.strip() for choice in choices),
        "choice_order": order,
    }


def _listed(fields: Mapping[str, Any]) -> bool:
    return isinstance(fields.get("choices"), list) and len(fields["choices"]) > 0


def _by_place(given: Any, choices: tuple[str, ...]) -> str:
    """Return the letter of a place from 0, unless a choice reads just like that number; empty for anything else."""
    if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given < len(choices):
        return ""
    return "" if str(given) in choices else letter(given)


def _named(labels: list[str], choices: tuple[str, ...], where: str) -> str:
    """Return the letter that a label gives, as a letter or as the text of a choice."""
    # A question may show its choices in a form of its own; its letter then stands as it is.
    letters = ascii_uppercase[: len(choices) or len(ascii_uppercase)]
    if len(choices) > len(letters):
        raise DataError(f"{where}: {len(choices)} choices; there are letters for {len(letters)} at most.")
    if len(labels) == 1:
        label = labels[0].strip()
        if len(label) == 1 and label.upper() in letters:
            return label.upper()
        texts = [choice.strip() for choice in choices]
        if texts.count(label) == 1:
            return letter(texts.index(label))
    raise DataError(
        f"{where}: the answer {labels!r} is none of its {len(choices)} choices; expected one letter from A to "
        f"{letters[-1]} or the text of a choice."
    )


def _gold_titles(fields: Mapping[str, Any], metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the titles of the gold documents: ours, or those in the metadata of the FlashRAG files."""
    if fields.get("gold_titles"):
        return tuple(str(title) for title in fields["gold_titles"])
    titles: list[Any] = []
    facts = metadata.get("supporting_facts")
    if isinstance(facts, Mapping):
        titles = list(facts.get("title") or ())
    for step in _steps(fields, metadata):
        paragraph = step.get("support_paragraph")
        if isinstance(paragraph, Mapping) and paragraph.get("title"):
            titles.append(paragraph["title"])
    return tuple(dict.fromkeys(str(title) for title in titles))


def _groups(fields: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, str]:
    groups = {group: _text(fields[name]) for name, group in _GROUP_FIELDS.items() if _has(fields, name)}
    if "type" not in groups and isinstance(metadata.get("type"), str) and metadata["type"]:
        groups["type"] = metadata["type"]
    if steps := _steps(fields, metadata):
        groups["hops"] = str(len(steps))
    return groups


def _steps(fields: Mapping[str, Any], metadata: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the single-hop questions that a MuSiQue question was put together from."""
    listed = fields.get("decomposition") or metadata.get("question_decomposition") or ()
    return [step for step in listed if isinstance(step, Mapping)] if isinstance(listed, list | tuple) else []


def _text(value: Any) -> str:
    """Return a value as text; a whole number reads the same as 3 and as 3.0."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
