"""Reading predictions that were made elsewhere: the authors' output files, our journals, plain JSON with id and output.

The authors' files (`{split}.{time}.json` in a folder named by set and model; github.com/sunnynexus/Search-o1) are a
JSON list of the set's own rows with `Output`, `Pred_Answer` and `Metrics` added and `Question` replaced by the prompt.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from metrics.labels import as_output
from runs.benchmarks.question import Question
from runs.benchmarks.rows import ID_FIELDS, QUESTION_FIELDS, Row, question_of
from signatures.errors import DataError

Shape = Literal["authors", "journal", "plain"]

SHAPES: dict[Shape, str] = {
    "authors": "the paper's authors' output file",
    "journal": "a journal of ours",
    "plain": "predictions with id and output",
}
"""Shape of a file to what it is called."""

_STORED = ("em", "acc", "f1", "math_equal", "pass@1")
"""Stored metrics that are compared with ours; the authors' `is_valid_answer` counts long choices that ours does not."""


@dataclass(frozen=True)
class Prediction:
    """One output of a model.

    Attributes:
        id: Id of its question.
        sample: Number of the sample, from 0.
        output: What the model wrote; empty for nothing.
        missing: Whether there is no output at all.
        where: Where it stands, for messages.
        question: Its question as the file tells it, or None where the file has no label.
        direct: Direct answer that stood in when it was recorded, or empty.
        stored: Family to metric to value, as the file has them.
        row: The row as it was read.
    """

    id: str
    sample: int
    output: str
    missing: bool
    where: str
    question: Question | None
    direct: str = ""
    stored: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    row: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PredictionFile:
    """The predictions of a file.

    Attributes:
        path: The file.
        shape: How its items are laid out, a key of `SHAPES`.
        predictions: One a (question, sample), in the file's order.
    """

    path: Path
    shape: Shape
    predictions: Sequence[Prediction]


def read_predictions(path: Path) -> PredictionFile:
    """Read a file of predictions.

    Args:
        path: A JSON list or JSON Lines.

    Returns:
        Its predictions. An item without output, where others have one, is a missing prediction. Of a journal the last
        record of a (question, sample) counts, as it does for the run itself.

    Raises:
        DataError: The file is missing, empty, no such JSON, of no known or of mixed shapes, has no output in any item,
            or an id stands for two items.
    """
    rows = _read_rows(path)
    shapes = {shape for where, row in rows if (shape := _shape_of(row, where)) is not None}
    if not shapes:
        names = sorted({name for _, row in rows[:100] for name in row})
        raise DataError(
            f"{path}: no item has an output; expected `Output` (the authors' files), `output` with `id`, or a journal. "
            f"Its fields are: {', '.join(names[:20]) or 'none'}."
        )
    if len(shapes) > 1:
        listed = " and ".join(sorted(SHAPES[shape] for shape in shapes))
        raise DataError(f"{path} mixes {listed}; put each into a file of its own.")
    (shape,) = shapes
    read = {"authors": _authors, "journal": _journal, "plain": _plain}[shape]
    found: dict[tuple[str, int], Prediction] = {}
    repeated: list[Prediction] = []
    for index, (where, row) in enumerate(rows):
        prediction = read(row, where, index)
        key = prediction.id, prediction.sample
        if key in found and shape != "journal":
            repeated.append(prediction)
        found[key] = prediction
    if repeated:
        first = repeated[0]
        raise DataError(
            f"{path}: {len(repeated)} items repeat an id, first {first.where} with {first.id!r}; ids must be unique. "
            "Several samples of a question are told apart by a field `sample`."
        )
    return PredictionFile(path, shape, list(found.values()))


def _read_rows(path: Path) -> list[tuple[str, Mapping[str, Any]]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DataError(f"There is no file {path}; give a file of predictions, or a run's journal.jsonl.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}. It must be a UTF-8 JSON or JSONL file.") from None
    if not text.strip():
        raise DataError(f"{path} is empty; expected a JSON list or one JSON object a line.")
    listed = text.lstrip().startswith("[")
    loaded: list[tuple[str, Any]] = _list(path, text) if listed else _lines(path, text)
    if not loaded:
        raise DataError(f"{path} holds no item; expected at least one prediction.")
    for where, row in loaded:
        if not isinstance(row, Mapping):
            raise DataError(f"{where}: expected an object, found {type(row).__name__}.")
    return loaded


def _list(path: Path, text: str) -> list[tuple[str, Any]]:
    try:
        return [(f"{path}, item {number}", row) for number, row in enumerate(json.loads(text), 1)]
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not valid JSON: {error}.") from None


def _lines(path: Path, text: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            found.append((f"{path}, line {number}", json.loads(line)))
        except (ValueError, RecursionError) as error:
            raise DataError(_not_lines(path, text, number, error)) from None
    if len(found) == 1 and _is_metrics(found[0][1]):
        raise DataError(_not_lines(path, text, 1, ValueError()))
    return found


def _not_lines(path: Path, text: str, number: int, error: Exception) -> str:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return f"{path}, line {number}: not JSON ({error}); expected one JSON object a line, or a JSON list."
    if _is_metrics(whole):
        return f"{path} holds the authors' averages, not their outputs; give the file beside it without `.metrics`."
    return f"{path} holds one JSON object; expected a JSON list, or one object a line."


def _is_metrics(whole: Any) -> bool:
    return isinstance(whole, Mapping) and "overall" in whole and "id" not in whole


def _shape_of(row: Mapping[str, Any], where: str) -> Shape | None:
    shapes: list[Shape] = []
    if "Output" in row:
        shapes.append("authors")
    if "chain" in row and "finish" in row:
        shapes.append("journal")
    if "output" in row:
        shapes.append("plain")
    if len(shapes) > 1:
        raise DataError(f"{where} has several outputs ({', '.join(SHAPES[s] for s in shapes)}); keep one of them.")
    return shapes[0] if shapes else None


def _authors(row: Mapping[str, Any], where: str, index: int) -> Prediction:
    stored = row.get("Metrics")
    numbers = _numbers(stored, where) if isinstance(stored, Mapping) else {}
    return _prediction(row, "Output", where, index, {"official": numbers} if numbers else {})


def _plain(row: Mapping[str, Any], where: str, index: int) -> Prediction:
    if not any(name in row for name in ID_FIELDS):
        raise DataError(f"{where} has no id; expected one of the fields {', '.join(ID_FIELDS)}.")
    return _prediction(row, "output", where, index, {})


def _prediction(
    row: Mapping[str, Any], name: str, where: str, index: int, stored: Mapping[str, Mapping[str, float]]
) -> Prediction:
    question = _question(row, where, index)
    known = next((str(row[f]) for f in ID_FIELDS if row.get(f) is not None), str(index))
    return Prediction(
        id=question.id if question is not None else known,
        sample=_sample(row, where),
        output=_output(row.get(name), where),
        missing=row.get(name) is None or row[name] != row[name],
        where=where,
        question=question,
        stored=stored,
        row=row,
    )


def _journal(row: Mapping[str, Any], where: str, index: int) -> Prediction:
    lacking = [name for name in ("id", "answers", "groups", "chain", "finish") if name not in row]
    if lacking:
        raise DataError(f"{where}: the record has no {', '.join(lacking)}; this is no journal of `search-o1 evaluate`.")
    failed = row["finish"] == "error"
    stored = {f: _numbers(row[f], where) for f in ("official", "strict") if isinstance(row.get(f), Mapping)}
    labels = row["answers"] if isinstance(row["answers"], list) else [row["answers"]]
    return Prediction(
        id=str(row["id"]),
        sample=_sample(row, where),
        # A chain that broke off is wrong, whatever its partial text holds.
        output="" if failed else _output(row["chain"], where),
        missing=failed,
        where=where,
        question=Question(
            id=str(row["id"]),
            question=str(row.get("question", "")),
            answers=tuple(str(label) for label in labels),
            choices=tuple(str(choice) for choice in row.get("choices") or ()),
            groups={str(k): str(v) for k, v in row["groups"].items()} if isinstance(row["groups"], Mapping) else {},
        ),
        direct=_output(row.get("direct_chain"), where),
        stored=stored,
        row=row,
    )


def _question(row: Mapping[str, Any], where: str, index: int) -> Question | None:
    """Return the question that a row tells, or None where it has no label to score by."""
    labelled = ("answers", "golden_answers", "answer", "Correct Choice", "Correct Answer", "public_test_cases")
    if all(row.get(name) is None for name in labelled):
        return None
    asked = any(isinstance(row.get(name), str) and row[name].strip() for name in QUESTION_FIELDS)
    # Scoring needs no question, so a row without one is read as if it had.
    return question_of(Row(where, row if asked else {**row, "question": where}), index)


def _output(value: Any, where: str) -> str:
    try:
        return as_output(value)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None


def _sample(row: Mapping[str, Any], where: str) -> int:
    sample = row.get("sample", 0)
    if not isinstance(sample, int) or isinstance(sample, bool) or sample < 0:
        raise DataError(f"{where}: sample is {sample!r}; expected a whole number from 0.")
    return sample


def _numbers(stored: Mapping[str, Any], where: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for name in _STORED:
        if name in stored:
            value = stored[name]
            if not isinstance(value, int | float) or value != value:
                raise DataError(f"{where}: its stored {name} is {value!r}; expected a number.")
            found[name] = float(value)
    return found
