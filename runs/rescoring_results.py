"""What rescoring gives: scores by item, by group and over all, and how they compare with those in the file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from metrics.kinds import HEADLINE
from metrics.statistics import Estimate, mean_with_error

FAMILIES = ("official", "strict")
_SAME = 1e-6
_SHOWN = 5


@dataclass(frozen=True)
class Numbers:
    """One answer in one family.

    Attributes:
        answer: The answer that was read.
        metrics: Metrics by name, 0 to 1, `valid` among them.
    """

    answer: str
    metrics: Mapping[str, float]

    @property
    def valid(self) -> bool:
        """Whether there is an answer at all."""
        return bool(self.metrics.get("valid"))


@dataclass(frozen=True)
class ItemScore:
    """The scores of one output.

    Attributes:
        id: Id of its question.
        sample: Number of the sample.
        groups: Groups of its question.
        missing: Whether there was no output.
        own: Scores of the method's own answer, by family.
        counted: Scores that count: those of the direct answer where it stood in.
        fallback: By family whether the direct answer stood in.
        stored: Scores that the file has, by family.
        stored_with_fallback: Whether these are of the direct answer that stood in.
    """

    id: str
    sample: int
    groups: Mapping[str, str]
    missing: bool
    own: Mapping[str, Numbers]
    counted: Mapping[str, Numbers]
    fallback: Mapping[str, bool]
    stored: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    stored_with_fallback: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the item as plain data."""
        told: dict[str, Any] = {
            "id": self.id,
            "sample": self.sample,
            "groups": dict(self.groups),
            "missing": self.missing,
        }
        for family in FAMILIES:
            numbers = self.counted[family]
            told[family] = {"prediction": numbers.answer, **numbers.metrics, "fallback": self.fallback[family]}
        return told


@dataclass(frozen=True)
class GroupScores:
    """Scores over some questions.

    Attributes:
        questions: How many.
        outputs: How many outputs they have; more than questions with several samples.
        scores: Family to metric to estimate, `valid` left out.
        valid: Family to number of outputs with a valid answer.
    """

    questions: int
    outputs: int
    scores: Mapping[str, Mapping[str, Estimate]]
    valid: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain data; an interval that does not exist is null."""
        told: dict[str, Any] = {"questions": self.questions, "outputs": self.outputs}
        for family, by_name in self.scores.items():
            told[family] = {name: _plain(estimate) for name, estimate in by_name.items()}
            told[family]["num_valid_answer"] = f"{self.valid[family]} of {self.outputs}"
        return told


@dataclass(frozen=True)
class StoredDifference:
    """How a metric that the file holds compares with ours.

    Attributes:
        family: Family.
        metric: Metric.
        items: Outputs for which the file has it.
        stored: Their mean in the file.
        ours: Their mean by our scorer.
        different: Ids whose values differ.
    """

    family: str
    metric: str
    items: int
    stored: float
    ours: float
    different: tuple[str, ...]


@dataclass(frozen=True)
class Rescoring:
    """The scores of a file of predictions.

    Attributes:
        path: The file.
        shape: What kind of file it is, in words.
        kind: Task kind.
        reason: How the kind is known.
        items: Every output's scores.
        total: Scores over all, with the fallback where there is one.
        own: Scores over all of the method's own answers.
        groups: Scores by group (`domain=Physics`).
        fallback: Whether direct answers could stand in.
        taken: Family to how often one did.
        missing: Outputs that are not there.
        stored: Comparison with the scores in the file; empty if it has none.
        coverage: Of code, which tests were there: `all` or `public only`; else empty.
        notes: What a reader must know.
    """

    path: Path
    shape: str
    kind: str
    reason: str
    items: tuple[ItemScore, ...]
    total: GroupScores
    own: GroupScores
    groups: Mapping[str, GroupScores]
    fallback: bool
    taken: Mapping[str, int]
    missing: int
    stored: tuple[StoredDifference, ...]
    coverage: str
    notes: tuple[str, ...]

    @property
    def headline(self) -> str:
        """Name of the headline metric."""
        return HEADLINE[self.kind]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "file": self.path.name,
            "shape": self.shape,
            "kind": self.kind,
            "kind_reason": self.reason,
            "headline": self.headline,
            "missing": self.missing,
            "coverage": self.coverage,
            "fallback": dict(self.taken) if self.fallback else None,
            "overall": self.total.to_dict(),
            "overall_own_answers": self.own.to_dict(),
            "per_group": {name: scores.to_dict() for name, scores in self.groups.items()},
            "stored": [{**vars(d), "different": list(d.different)} for d in self.stored],
            "notes": list(self.notes),
            "items": [item.to_dict() for item in self.items],
        }


def summarise_items(
    items: Sequence[ItemScore],
    *,
    path: Path,
    shape: str,
    kind: str,
    reason: str,
    fallback: bool,
    notes: Sequence[str],
    coverage: str,
) -> Rescoring:
    """Put the scores of items together.

    Args:
        items: The items.
        path: Their file.
        shape: What kind of file it is.
        kind: Task kind.
        reason: How the kind is known.
        fallback: Whether direct answers could stand in.
        notes: Notes so far.
        coverage: Which tests a code set has.

    Returns:
        The scores.
    """
    names = sorted({f"{key}={value}" for item in items for key, value in item.groups.items()})
    groups = {
        name: _group([i for i in items if i.groups.get(name.split("=", 1)[0]) == name.split("=", 1)[1]], own=False)
        for name in names
    }
    stored = _compare_stored(items)
    return Rescoring(
        path=path,
        shape=shape,
        kind=kind,
        reason=reason,
        items=tuple(items),
        total=_group(items, own=False),
        own=_group(items, own=True),
        groups=groups,
        fallback=fallback,
        taken={family: sum(item.fallback[family] for item in items) for family in FAMILIES},
        missing=sum(item.missing for item in items),
        stored=stored,
        coverage=coverage,
        notes=(*notes, *(_disagreement(d) for d in stored if d.different)),
    )


def _group(items: Sequence[ItemScore], *, own: bool) -> GroupScores:
    by_question: dict[str, list[ItemScore]] = {}
    for item in items:
        by_question.setdefault(item.id, []).append(item)
    numbers = {
        f: {i: [(s.own if own else s.counted)[f] for s in ss] for i, ss in by_question.items()} for f in FAMILIES
    }
    scores: dict[str, dict[str, Estimate]] = {}
    for family, by_id in numbers.items():
        names = dict.fromkeys(n for outputs in by_id.values() for o in outputs for n in o.metrics if n != "valid")
        scores[family] = {
            name: mean_with_error(
                [math.fsum(o.metrics.get(name, 0.0) for o in outputs) / len(outputs) for outputs in by_id.values()]
            )
            for name in names
        }
    valid = {family: sum(o.valid for outputs in by_id.values() for o in outputs) for family, by_id in numbers.items()}
    return GroupScores(len(by_question), len(items), scores, valid)


def _compare_stored(items: Sequence[ItemScore]) -> tuple[StoredDifference, ...]:
    found: list[StoredDifference] = []
    for family in FAMILIES:
        for name in dict.fromkeys(n for item in items for n in item.stored.get(family, {})):
            pairs = [
                (item.id, item.stored[family][name], _beside_stored(item, family)[name])
                for item in items
                if name in item.stored.get(family, {}) and name in _beside_stored(item, family)
            ]
            if pairs:
                found.append(
                    StoredDifference(
                        family,
                        name,
                        len(pairs),
                        math.fsum(theirs for _, theirs, _ in pairs) / len(pairs),
                        math.fsum(ours for _, _, ours in pairs) / len(pairs),
                        tuple(i for i, theirs, ours in pairs if abs(theirs - ours) > _SAME),
                    )
                )
    return tuple(found)


def _beside_stored(item: ItemScore, family: str) -> Mapping[str, float]:
    return (item.counted if item.stored_with_fallback else item.own)[family].metrics


def _disagreement(d: StoredDifference) -> str:
    shown = ", ".join(d.different[:_SHOWN]) + (" …" if len(d.different) > _SHOWN else "")
    return (
        f"The file's {d.metric} differs from our {d.family} {d.metric} for {len(d.different)} of {d.items} outputs "
        f"({shown}): {100 * d.stored:.1f} in the file, {100 * d.ours:.1f} here. The file was scored on other labels or "
        "outputs, or with another version of the scorer."
    )


def _plain(estimate: Estimate) -> dict[str, float | int | None]:
    return {
        name: None if isinstance(value, float) and value != value else value
        for name, value in estimate.to_dict().items()
    }
