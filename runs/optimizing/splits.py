"""Train, validation and test questions, kept apart by id and by the folded text of the question."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from runs.benchmarks.own_file import is_benchmark_file
from runs.benchmarks.question import Question
from runs.benchmarks.registry import BENCHMARKS, QuestionSet, find_benchmark, load_questions
from runs.benchmarks.spec import Benchmark
from runs.optimizing.held_out import HeldOut, QuestionKeys, held_out_rows
from runs.optimizing.question_text import normalised_question
from runs.optimizing.settings import OptimizeSettings
from signatures.errors import DataError
from signatures.templates import Task

VALIDATION_SHARE = 5
"""Without a validation set, one in so many training questions becomes one."""


@dataclass(frozen=True)
class Split:
    """The questions of an optimisation.

    Attributes:
        name: Name of the benchmark or of the training file.
        task: Task kind.
        train: Questions to learn from.
        val: Questions to choose by; no id and no text occurs in both.
        train_from: Where the training questions come from, in words.
        val_from: Where the validation questions come from, in words.
        dropped: Training questions left out: they stand in the validation set too, or stood there before.
        leaked: Ids of the test rows among both, which the user allowed.
        checked_against: Which test rows both were compared with; empty when none are known.
        warning: Why that comparison could not be made; empty when it was.
        benchmark: The benchmark they belong to, or None for files without one.
        revision: Commit of the hub repository of the training questions, or empty.
    """

    name: str
    task: Task
    train: list[Question]
    val: list[Question]
    train_from: str
    val_from: str
    dropped: int = 0
    leaked: tuple[str, ...] = ()
    checked_against: str = ""
    warning: str = ""
    benchmark: Benchmark | None = None
    revision: str = ""

    @property
    def questions(self) -> dict[str, Question]:
        """All questions by id."""
        return {question.id: question for question in (*self.train, *self.val)}


def split_examples(settings: OptimizeSettings) -> Split:
    """Load the questions of an optimisation and keep train, validation and test apart.

    Two questions are the same when their folded texts agree, or their ids; an id that is a bare number is the place of
    a row in its file and says nothing about another file.

    Args:
        settings: `train`, `val`, `train_split`, `val_split`, `train_limit`, `val_limit`, `benchmark`, `i_know`, `seed`.

    Returns:
        The split. Without a validation set a fifth of the training questions, chosen by seed and id, becomes one.

    Raises:
        OptionError: A benchmark or split is unknown.
        DataError: A file is bad, both sets are of different task kinds, or test rows are among them and
            `i_know` is not set.
    """
    source = _Source(settings)
    train_set, train_from = source.train()
    val_set, val_from = source.val()
    train = _distinct(train_set.questions)
    if val_set is not None:
        _check_kinds(train_set, val_set)
        val = _distinct(val_set.questions)[: settings.val_limit]
        known = QuestionKeys(val)
        train = [q for q in train if not known.holds(q)]
    dropped = len(train_set.questions) - len(train)
    train = train[: settings.train_limit]
    if val_set is None:
        train, val = _split_off(train, settings.seed)
        val = val[: settings.val_limit]
        val_from = f"a fifth of {train_from}"
    tests = source.held_out()
    leaked = _leaks(train, val, tests, settings)
    return Split(
        train_set.name,
        train_set.task,
        _own_ids(train, val),
        val,
        train_from,
        val_from,
        dropped,
        leaked,
        " and ".join(tests.where),
        tests.warning,
        train_set.benchmark,
        train_set.revision,
    )


def check_sizes(optimizer: str, min_train: int, min_val: int, split: Split) -> None:
    """Make sure that there are enough questions for an optimizer.

    Args:
        optimizer: Its name, for the message.
        min_train: Training questions it needs.
        min_val: Validation questions it needs.
        split: The questions.

    Raises:
        DataError: There are fewer; the text gives both numbers.
    """
    for needed, found, kind, where, flags in (
        (min_train, len(split.train), "training", split.train_from, "--train FILE, or a larger --train-limit"),
        (min_val, len(split.val), "validation", split.val_from, "--val FILE, or a larger --val-limit"),
    ):
        if found < needed:
            more = f" ({split.dropped} left out as duplicates)" if kind == "training" and split.dropped else ""
            raise DataError(
                f"Optimizer {optimizer} needs at least {needed} {kind} questions; found {found} in {where}{more}. Give "
                f"more with {flags}, or take another optimizer."
            )


class _Source:
    """Where the questions come from: files that the user gave, else the splits of a benchmark."""

    def __init__(self, settings: OptimizeSettings) -> None:
        self.settings = settings
        self.name = settings.benchmark or ("quickstart" if settings.train is None else "")
        # Beside a file a name that is no benchmark's is a label.
        known = settings.train is None or self.name in BENCHMARKS or is_benchmark_file(self.name)
        self.spec = find_benchmark(self.name) if known else None
        self._rows: dict[Path, Sequence[Question]] = {}

    def train(self) -> tuple[QuestionSet, str]:
        settings = self.settings
        if settings.train is not None:
            return self._of_file(settings.train, settings.train_split, "--train", "--train-split")
        split = settings.train_split or "train"
        spec = self.spec or find_benchmark(self.name)
        if split not in spec.splits and not settings.train_split:
            raise DataError(
                f"Benchmark {spec.name} has no training split (it has: {', '.join(spec.splits)}). Give questions to "
                "learn from with --train FILE, or name a split with --train-split."
            )
        return load_questions(spec, split=split), f"{spec.name} {split}"

    def val(self) -> tuple[QuestionSet | None, str]:
        settings = self.settings
        if settings.val is not None:
            return self._of_file(settings.val, settings.val_split, "--val", "--val-split")
        spec = self.spec
        if spec is not None and (settings.val_split or "validation" in spec.splits):
            split = settings.val_split or "validation"
            return load_questions(spec, split=split), f"{spec.name} {split}"
        if spec is None and settings.val_split and settings.train is not None:
            return self._of_file(settings.train, settings.val_split, "--train", "--val-split")
        return None, ""

    def held_out(self) -> HeldOut:
        return held_out_rows(self.spec, self._rows)

    def _of_file(self, path: Path, split: str, flag: str, split_flag: str) -> tuple[QuestionSet, str]:
        if not path.is_file():
            raise DataError(f"No question file at {path}; check the path given with {flag}.")
        loaded = load_questions(self.name, data=path)
        self._rows[path] = loaded.questions
        if not split:
            return loaded, path.name
        chosen = [q for q in loaded.questions if q.split == split]
        if not chosen:
            known = ", ".join(dict.fromkeys(q.split for q in loaded.questions if q.split)) or "none"
            raise DataError(f"{path} has no rows of split {split!r} ({split_flag}); its rows name: {known}.")
        return replace(loaded, questions=chosen, split=split), f"{path.name} {split}"


def _distinct(questions: Sequence[Question]) -> list[Question]:
    """Return questions without those whose text stood before."""
    seen: set[str] = set()
    kept = []
    for question in questions:
        text = normalised_question(question.question)
        if text not in seen:
            kept.append(question)
        seen.add(text)
    return kept


def _split_off(train: Sequence[Question], seed: int) -> tuple[list[Question], list[Question]]:
    """Return (train, validation): a fifth by the hash of seed and id, so that it is the same in every order."""

    def rank(question: Question) -> bytes:
        return hashlib.sha256(f"{seed}/{question.id}".encode("utf-8", "replace")).digest()

    chosen = {q.id for q in sorted(train, key=rank)[: max(1, len(train) // VALIDATION_SHARE)]}
    return [q for q in train if q.id not in chosen], [q for q in train if q.id in chosen]


def _own_ids(train: Sequence[Question], val: Sequence[Question]) -> list[Question]:
    """Rename training questions whose id, a bare number, is that of a validation question from another file."""
    taken = {q.id for q in val}
    return [replace(q, id=f"train-{q.id}") if q.id in taken else q for q in train]


def _check_kinds(train: QuestionSet, val: QuestionSet) -> None:
    if train.task != val.task:
        raise DataError(
            f"The training questions are {train.task}, the validation questions {val.task}; both sets must be of one "
            "task kind."
        )


def _leaks(
    train: Sequence[Question], val: Sequence[Question], tests: HeldOut, settings: OptimizeSettings
) -> tuple[str, ...]:
    """Return the ids of the test rows among train and validation; refuse them unless the user knows."""
    keys = QuestionKeys(tests.questions)
    found = {
        kind: [i for q in part if (i := keys.find(q))] for kind, part in (("training", train), ("validation", val))
    }
    if any(found.values()) and not settings.i_know:
        counts = " and ".join(
            f"{len(ids)} of the {len(part)} {kind} questions"
            for (kind, ids), part in zip(found.items(), (train, val), strict=True)
            if ids
        )
        example = next(ids[0] for ids in found.values() if ids)
        raise DataError(
            f"{counts} are test rows ({' and '.join(tests.where)}), {example!r} for one. A score on rows a program has "
            "learned from says nothing; take others (--train-split, --val-split), or pass --i-know: the program and "
            "all its scores will say so."
        )
    return tuple(dict.fromkeys(i for ids in found.values() for i in ids))
