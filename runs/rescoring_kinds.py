"""What kind of task a file of predictions is about: told by its fields, its name, or the look of its labels."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from metrics.kinds import HEADLINE, task_kind
from runs.benchmarks.question import Question
from runs.rescoring_formats import PredictionFile
from signatures.errors import DataError

_NAMES = {
    "multiple_choice": ("gpqa", "medmcqa", "pubhealth"),
    "math": ("math500", "math", "aime", "amc"),
    "code": ("livecode", "livecodebench"),
    "open_qa": ("nq", "triviaqa", "hotpotqa", "musique", "bamboogle", "2wiki", "2wikimultihopqa"),
}
_MATH_FIELDS = ("solution", "Solution")
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")


def find_kind(
    file: PredictionFile, questions: Sequence[Question], wanted: str | None, data: Path | None = None
) -> tuple[str, str]:
    """Return the task kind of predictions, and how it is known.

    Args:
        file: The predictions.
        questions: Their questions.
        wanted: A kind that the user gave, or None.
        data: File that the questions come from, or None where the predictions hold them.

    Returns:
        (task kind, reason in words).

    Raises:
        OptionError: The given kind is unknown.
        DataError: The fields say different kinds, or another than the given one.
    """
    told = {q.task for q in questions if q.task}
    if len(told) > 1 or (told and any(not q.task for q in questions)):
        listed = ", ".join(sorted(told | {"neither choice nor code" for q in questions if not q.task}))
        raise DataError(f"{file.path} mixes tasks ({listed}); put each kind into a file of its own.")
    if wanted is not None:
        kind = task_kind(wanted)
        if kind == "code" and told != {"code"} and file.shape != "journal":
            raise DataError(
                f"{file.path}: --kind code needs the problems' tests: `public_test_cases` in its items, or --data FILE."
            )
        if "code" in told and kind != "code":
            raise DataError(f"{file.path} has public_test_cases, so it is code, not {wanted}; leave out --kind.")
        return kind, "as given with --kind"
    if told:
        (kind,) = told
        return kind, "its fields say so (Correct Choice, choices, or public_test_cases)"
    if file.shape == "journal" and (found := _of_journal(file)) is not None:
        return found
    if any(row.row.get(name) for row in file.predictions for name in _MATH_FIELDS):
        return "math", "its items have a solution"
    if questions and all({"level", "subject"} <= set(q.groups) for q in questions):
        return "math", "its questions have level and subject"
    for path in (file.path, data):
        if path is not None and (named := _of_name(path)) is not None:
            return named
    if any(
        isinstance(p.row.get(name), list) for p in file.predictions for name in ("answers", "golden_answers", "answer")
    ):
        return "open_qa", "its labels are lists"
    labels = [label for q in questions for label in q.answers]
    if labels and all("\\" in label or "$" in label or _NUMBER.fullmatch(label.strip()) for label in labels):
        return "math", "all its labels are numbers or LaTeX; if that is wrong, give --kind"
    return "open_qa", "nothing says otherwise; if that is wrong, give --kind"


def _of_name(path: Path) -> tuple[str, str] | None:
    """Return what the file's or its folder's name says: the authors' folders are `{set}.{model}.{method}`."""
    words = set(re.split(r"[^a-z0-9]+", f"{path.parent.name}.{path.name}".lower()))
    for kind, names in _NAMES.items():
        for name in names:
            if name in words:
                return kind, f"{name!r} stands in the path {path.parent.name}/{path.name}"
    return None


def _of_journal(file: PredictionFile) -> tuple[str, str] | None:
    facts = file.path.parent / "facts.json"
    try:
        task = json.loads(facts.read_text(encoding="utf-8"))["options"]["task"]
    except (OSError, ValueError, KeyError, TypeError):
        task = None
    if task in HEADLINE:
        return str(task), "its run says so (facts.json)"
    names = {name for p in file.predictions for name in (p.row.get("strict") or {})}
    if "pass@1" in names:
        return "code", "its records have test results"
    if "undecided" in names:
        return "math", "its records have math scores"
    if "math_equal" in names:
        return "multiple_choice", "its records have choice scores"
    return ("open_qa", "its records have scores of open questions") if "f1" in names else None
