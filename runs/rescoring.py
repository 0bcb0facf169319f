"""Scores predictions that were made elsewhere: `search-o1 rescore`.

The scorers are those of an evaluation, in both families. The fallback is that of the authors' scripts/evaluate.py
(`--apply_backoff`): where the method's own answer is not valid, the direct answer stands in if that one is valid.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from metrics.code_verdicts import CodeScore
from metrics.scorer import score
from metrics.scores import Score
from runs.benchmarks.question import Question
from runs.benchmarks.question_files import read_questions
from runs.rescoring_formats import SHAPES, Prediction, read_predictions
from runs.rescoring_kinds import find_kind
from runs.rescoring_results import FAMILIES, ItemScore, Numbers, Rescoring, summarise_items
from runs.user_path import user_path
from signatures.errors import DataError

_SHOWN = 5


def rescore(
    file: str | Path,
    *,
    backoff: str | Path | None = None,
    kind: str | None = None,
    data: str | Path | None = None,
    output: str | Path | None = None,
    unsafe_code: bool = False,
) -> Rescoring:
    """Score the predictions of a file.

    Args:
        file: The authors' output JSON, a `journal.jsonl` of ours, or JSON or JSONL with `id`, `output` and, where
            `data` does not have them, `answers`.
        backoff: A file of direct answers, joined by id, which stand in where the predictions give no valid answer.
        kind: `qa`, `choice`, `math` or `code`; None goes by the fields and names of the file.
        data: A question file to take labels, tests and groups from, joined by id. Its questions are the denominator:
            one without a prediction counts as wrong.
        output: JSON file to write, with every item's scores.
        unsafe_code: Run programs without isolation where none is to be had.

    Returns:
        The scores.

    Raises:
        DataError: A file is bad (see `runs.rescoring_formats`), ids do not fit together, or labels are missing.
        OptionError: The kind is unknown.
        SandboxError: Programs have to be run and cannot be isolated here.
    """
    path = user_path(file)
    read = read_predictions(path)
    asked = {q.id: q for q in read_questions(_existing(data))} if data is not None else None
    predictions, unanswered = _joined(read.predictions, asked, path, data)
    questions = _questions(predictions, path)
    chosen, reason = find_kind(
        replace(read, predictions=predictions), questions, kind, Path(data) if data is not None else None
    )
    notes: list[str] = []
    results = _score_all([p.output for p in predictions], questions, chosen, unsafe_code)
    own = [_numbers(result) for result in results]
    stood_in = _stand_ins(predictions, questions, own, chosen, backoff, asked, unsafe_code, notes)
    items = [
        ItemScore(
            id=p.id,
            sample=p.sample,
            groups=q.groups,
            missing=p.missing,
            own=o,
            counted=c,
            stored=p.stored,
            # What a run recorded has the fallback in it; the authors' files hold the method's own scores.
            stored_with_fallback=bool(p.direct),
            fallback={family: c[family] is not o[family] for family in FAMILIES},
        )
        for p, q, o, c in zip(predictions, questions, own, stood_in or own, strict=True)
    ]
    if unanswered:
        notes.append(f"{unanswered} of {len({i.id for i in items})} questions have no prediction; they count as wrong.")
    found = summarise_items(
        items,
        path=path,
        shape=SHAPES[read.shape],
        kind=chosen,
        reason=reason,
        fallback=stood_in is not None,
        notes=notes,
        coverage=_coverage(results),
    )
    if output is not None:
        _write(user_path(output), found.to_dict())
    return found


def _existing(data: str | Path) -> Path:
    path = user_path(data)
    if not path.is_file():
        raise DataError(f"There is no question file {path}; check --data.")
    return path


def _joined(
    predictions: Sequence[Prediction], asked: Mapping[str, Question] | None, path: Path, data: str | Path | None
) -> tuple[list[Prediction], int]:
    """Join predictions with the questions of `--data`, and add what has no prediction."""
    if asked is None:
        return list(predictions), 0
    strange = list(dict.fromkeys(p.id for p in predictions if p.id not in asked))
    if strange:
        ids = len({p.id for p in predictions})
        raise DataError(
            f"{len(strange)} of {ids} ids in {path} are not in {data}: {_listed(strange)}. The question file must hold "
            "every question that was answered, under the same ids."
        )
    joined = [replace(p, question=asked[p.id]) for p in predictions]
    there = {p.id for p in predictions}
    absent = [q for q in asked.values() if q.id not in there]
    joined += [Prediction(q.id, 0, "", missing=True, where=f"{data}, id {q.id}", question=q) for q in absent]
    return joined, len(absent)


def _questions(predictions: Sequence[Prediction], path: Path) -> list[Question]:
    without = [p for p in predictions if p.question is None]
    if without:
        raise DataError(
            f"{path}: {len(without)} of {len(predictions)} items have no label, first {without[0].where}; put "
            "`answers` into each, or give the question file with --data."
        )
    return [p.question for p in predictions if p.question is not None]


def _score_all(outputs: Sequence[str], questions: Sequence[Question], kind: str, unsafe: bool) -> Sequence[Score]:
    if kind != "code":
        return [score(o, list(q.answers), kind, q.choices) for o, q in zip(outputs, questions, strict=True)]
    from metrics.code import score_many
    from metrics.sandbox.options import SandboxOptions

    without = [q.id for q in questions if q.tests is None]
    if without:
        raise DataError(
            f"{len(without)} of {len(questions)} questions have no tests ({_listed(without)}); give the question file "
            "with public_test_cases as --data."
        )
    tests = [q.tests.read for q in questions if q.tests is not None]
    return score_many(outputs, tests, sandbox=SandboxOptions(unsafe=unsafe))


def _numbers(result: Score) -> dict[str, Numbers]:
    return {
        "official": Numbers(result.official_answer, dict(result.official)),
        "strict": Numbers(result.strict_answer, dict(result.strict)),
    }


def _stand_ins(
    predictions: Sequence[Prediction],
    questions: Sequence[Question],
    own: Sequence[dict[str, Numbers]],
    kind: str,
    backoff: str | Path | None,
    asked: Mapping[str, Question] | None,
    unsafe: bool,
    notes: list[str],
) -> list[dict[str, Numbers]] | None:
    """Return the scores with direct answers in place of invalid ones, or None where there are no direct answers."""
    direct = _direct(predictions, user_path(backoff), asked, notes) if backoff is not None else {}
    recorded = any(p.direct for p in predictions)
    if backoff is None and not recorded:
        return None
    needed: list[tuple[int, str, Question]] = []
    for place, (prediction, question, scores) in enumerate(zip(predictions, questions, own, strict=True)):
        if prediction.direct:
            needed.append((place, prediction.direct, question))
        elif not all(scores[family].valid for family in FAMILIES):
            found = direct.get((prediction.id, prediction.sample)) or direct.get((prediction.id, 0))
            if found is not None:
                # Its own label: unseeded shuffles give the two files different orders of choices.
                needed.append((place, found.output, found.question or question))
    results = _score_all([text for _, text, _ in needed], [q for _, _, q in needed], kind, unsafe)
    counted = [dict(scores) for scores in own]
    for (place, _, _), result in zip(needed, results, strict=True):
        for family, numbers in _numbers(result).items():
            # What the run recorded as having stood in did so in both families.
            if predictions[place].direct or (numbers.valid and not own[place][family].valid):
                counted[place][family] = numbers
    return counted


def _direct(
    predictions: Sequence[Prediction], path: Path, asked: Mapping[str, Question] | None, notes: list[str]
) -> dict[tuple[str, int], Prediction]:
    found = {(p.id, p.sample): p for p in read_predictions(path).predictions}
    ids = {i for i, _ in found}
    wanted = list(dict.fromkeys(p.id for p in predictions))
    absent = [i for i in wanted if i not in ids]
    if len(absent) == len(wanted):
        raise DataError(
            f"None of the {len(wanted)} ids has a direct answer in {path}, whose ids are {_listed(sorted(ids))}; "
            "give the direct outputs on the same questions."
        )
    if absent:
        notes.append(f"{len(absent)} of {len(wanted)} questions have no direct answer in {path.name}; theirs are kept.")
    if asked is not None:
        return {key: replace(p, question=asked.get(p.id)) for key, p in found.items()}
    return found


def _coverage(results: Sequence[Score]) -> str:
    found = {result.coverage for result in results if isinstance(result, CodeScore)}
    return "partly public only" if len(found) > 1 else "".join(found)


def _listed(ids: Sequence[str]) -> str:
    more = f" … ({len(ids)} in all)" if len(ids) > _SHOWN else ""
    return ", ".join(repr(i) for i in ids[:_SHOWN]) + more


def _write(path: Path, content: dict[str, Any]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}; choose another --output.") from error
