"""Whether two runs may be compared at all: the same questions, the same scorers, all of them answered."""

from __future__ import annotations

import math
from collections.abc import Sequence

from runs.journal import Record
from runs.run_folder import RunFolder
from runs.summary import FAMILIES
from signatures.errors import DataError, OptionError

_SHOWN = 5


class ComparisonRefused(DataError):
    """Two runs whose difference would mean something else than it says."""

    kind = "comparison"


def common_questions(a: RunFolder, b: RunFolder, *, shared: bool) -> tuple[list[str], list[str]]:
    """Return the questions on which two runs may be compared.

    Args:
        a: The first run.
        b: The second run.
        shared: Whether it is enough that some questions are the same, and whether runs may be unfinished.

    Returns:
        The ids in the first run's order, and notes for the reader.

    Raises:
        ComparisonRefused: The runs were scored by different versions of the metrics, or have no question in common; or,
            unless `shared`, one is unfinished or they were asked different questions.
        DataError: A run has no record at all.
    """
    if a.folder.resolve() == b.folder.resolve():
        raise OptionError(f"{a.id} is named twice; name two runs.")
    for run in (a, b):
        if not run.records:
            raise DataError(f"{run.folder} holds no answered question; start the run again with its own command.")
    refusals, notes = _scorers(a, b)
    ids = [i for i in a.by_question if i in b.by_question and _asked(a, i) == _asked(b, i)]
    if not ids:
        refusals.append("no question of one is in the other")
    doubts = [*_unfinished(a), *_unfinished(b), *_question_sets(a, b, ids)]
    if doubts and not shared:
        refusals += doubts
    elif doubts:
        notes += [f"{doubt[0].upper()}{doubt[1:]}." for doubt in doubts]
        notes.append(f"Compared on the {len(ids)} questions that both answered.")
    if refusals:
        way_out = "" if shared or len(refusals) > len(doubts) else " Compare what both answered: --shared."
        raise ComparisonRefused(f"{a.id} and {b.id} do not compare: {'; '.join(refusals)}.{way_out}")
    return ids, notes


def check_scores(run: RunFolder, ids: Sequence[str], family: str, metric: str) -> None:
    """Refuse scores that are not there, or are no numbers.

    Args:
        run: The run.
        ids: The questions compared.
        family: `official` or `strict`.
        metric: Metric name.

    Raises:
        OptionError: Family or metric are unknown.
        DataError: A score is no finite number.
    """
    if family not in FAMILIES:
        raise OptionError(f"Unknown family {family!r}; known: {', '.join(FAMILIES)}.")
    records = [record for i in ids for record in run.by_question[i]]
    known = set.intersection(*(set(record[family]) for record in records))
    if metric not in known:
        raise OptionError(f"{run.id} has no metric {metric!r}; it has: {', '.join(sorted(known))}.")
    wrong = [record["id"] for record in records if not _is_number(record[family][metric])]
    if wrong:
        more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise DataError(
            f"{run.journal}: {metric} ({family}) is no number for {', '.join(wrong[:_SHOWN])}{more}; score the "
            "run again by repeating its command with --fresh."
        )


def _scorers(a: RunFolder, b: RunFolder) -> tuple[list[str], list[str]]:
    """Return why their scorers do not let runs be compared, or else what to keep in mind."""
    first, second = a.facts.get("metrics"), b.facts.get("metrics")
    if first != second:
        told = [f"{run.id} by {_version(run)}" for run in (a, b)]
        return [
            f"they were scored by different versions of the metrics, {told[0]} and {told[1]} (the command of the older "
            "run makes a new one under the present version, out of the cache where its replies are kept)"
        ], []
    if first is None:
        return [], ["Neither run noted the version of its metrics; the scorers may have changed between them."]
    return [], []


def _version(run: RunFolder) -> str:
    version = run.facts.get("metrics")
    return f"version {version}" if version is not None else "an unnumbered one"


def _unfinished(run: RunFolder) -> list[str]:
    if run.complete:
        return []
    if run.missing is None:
        return [f"{run.id} is unfinished: {len(run.records)} answers, how many are missing is not noted"]
    return [f"{run.id} is unfinished: {run.missing} of {run.missing + len(run.records)} answers are missing"]


def _question_sets(a: RunFolder, b: RunFolder, ids: Sequence[str]) -> list[str]:
    """Return how the questions of two runs differ."""
    found = []
    sets = [(run.facts.get("benchmark", "?"), run.facts.get("split", ""), run.facts.get("data")) for run in (a, b)]
    if None not in (sets[0][2], sets[1][2]) and sets[0][2] != sets[1][2]:
        names = [f"{name} {split}".rstrip() + f" ({str(digest)[:12]})" for name, split, digest in sets]
        found.append(f"their question sets differ, {names[0]} and {names[1]}")
    changed = sum(i in b.by_question and _asked(a, i) != _asked(b, i) for i in a.by_question)
    if changed:
        found.append(f"{changed} questions have one id but another text or other answers")
    only_a, only_b = (len(run.by_question) - len(ids) - changed for run in (a, b))
    if only_a or only_b:
        found.append(
            f"they answered different questions, {len(a.by_question)} and {len(b.by_question)}, of which {len(ids)} "
            "are the same"
        )
    return found


def _asked(run: RunFolder, question_id: str) -> tuple[str, list[str]]:
    record: Record = run.by_question[question_id][0]
    return record["question"], record["answers"]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
