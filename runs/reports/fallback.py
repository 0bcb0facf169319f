"""Each question's outcome with and without the paper's fallback, in both metric families.

The paper's retrieval methods all fall back on the direct answer where they give none (section 4.3). A run that was made
with `--fallback` holds both answers; for one made without, the answers of a direct run of the same model on the same
questions stand in, as the authors' own script does it afterwards (scripts/evaluate.py, `--apply_backoff`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from metrics.extraction import code_block
from metrics.scorer import score
from runs.journal import Record
from runs.reports.loading import ReportRun

FAMILIES = ("official", "strict")

Scores = Mapping[str, float]


@dataclass(frozen=True)
class Outcomes:
    """What a run's questions came to.

    Attributes:
        run: The run.
        direct: The direct run whose answers stand in, or None.
    """

    run: ReportRun
    direct: ReportRun | None = None

    @property
    def has_fallback(self) -> bool:
        """Whether it can be said what the run scores with the fallback."""
        return bool(self.run.facts.get("fallback")) or self.direct is not None

    @property
    def taken(self) -> int:
        """How often a direct answer stood in, by the strict family's judgement."""
        own = self.scores("strict", fallback=False)
        with_it = self.scores("strict", fallback=True) if self.has_fallback else own
        recorded = sum(bool(r.get("fallback")) for r in self.run.records)
        return recorded or sum(x is not y for x, y in zip(own, with_it, strict=True))

    def scores(self, family: str, *, fallback: bool) -> list[Scores | None]:
        """Return the metrics of each record.

        Args:
            family: `official` or `strict`.
            fallback: Whether direct answers stand in.

        Returns:
            One a record, in the run's order; None where it cannot be told from the journal (a program that was
            replaced before it was ever tested).
        """
        return self._with[family] if fallback else self._own[family]

    def values(
        self, family: str, metrics: Sequence[str], *, fallback: bool, group: tuple[str, str] | None = None
    ) -> dict[str, float] | None:
        """Return the outcome of each question.

        Args:
            family: `official` or `strict`.
            metrics: Names of the metric, of which the first that a record has counts.
            fallback: Whether direct answers stand in.
            group: Only questions of this group, as (name, value), case ignored.

        Returns:
            Question id to mean over its samples; None where the run has no such metric, or an outcome cannot be told.
        """
        found: dict[str, list[float]] = {}
        for record, scores in zip(self.run.records, self.scores(family, fallback=fallback), strict=True):
            if group is not None and str(record.get("groups", {}).get(group[0], "")).lower() != group[1].lower():
                continue
            name = next((m for m in metrics if scores is not None and m in scores), None)
            if name is None or scores is None:
                return None
            found.setdefault(str(record["id"]), []).append(float(scores[name]))
        return {i: sum(samples) / len(samples) for i, samples in found.items()}

    @cached_property
    def _own(self) -> dict[str, list[Scores | None]]:
        pairs = [self._own_scores(record) for record in self.run.records]
        return {family: [pair[family] for pair in pairs] for family in FAMILIES}

    @cached_property
    def _with(self) -> dict[str, list[Scores | None]]:
        if self.run.facts.get("fallback") or self.direct is None:
            return {family: [record[family] for record in self.run.records] for family in FAMILIES}
        direct = {(str(r["id"]), r.get("sample", 0)): r for r in self.direct.records}
        return {
            family: [
                self._replaced(record, own, direct, family)
                for record, own in zip(self.run.records, self._own[family], strict=True)
            ]
            for family in FAMILIES
        }

    def _replaced(
        self, record: Record, own: Scores | None, direct: Mapping[tuple[str, Any], Record], family: str
    ) -> Scores | None:
        if own is not None and own.get("valid"):
            return own
        i = str(record["id"])
        stand_in = direct.get((i, record.get("sample", 0))) or direct.get((i, 0))
        if stand_in is None or stand_in["finish"] == "error" or not stand_in[family].get("valid"):
            return own
        scores: Scores = stand_in[family]
        return scores

    def _own_scores(self, record: Record) -> dict[str, Scores | None]:
        recorded: dict[str, Scores | None] = {family: record[family] for family in FAMILIES}
        if not record.get("fallback"):
            return recorded
        nothing = {family: dict.fromkeys(record[family], 0.0) for family in FAMILIES}
        chain = "" if record["finish"] == "error" else str(record.get("chain") or "")
        if self.run.task == "code":
            # The program that stood in was tested, the method's own was not. Without one there is nothing to test.
            return {
                family: nothing[family] if not code_block(chain, strict=family == "strict") else None
                for family in FAMILIES
            }
        if not chain:
            return {**nothing}
        own = score(chain, record["answers"], self.run.task, record.get("choices") or ())
        return {"official": own.official, "strict": own.strict}


def outcomes_of(runs: Sequence[ReportRun]) -> list[Outcomes]:
    """Pair each run with the direct run that stands in for it, where there is one among them.

    Args:
        runs: All runs of a report.

    Returns:
        One a run, in order.
    """
    return [Outcomes(run, _stand_in(run, runs)) for run in runs]


def _stand_in(run: ReportRun, runs: Sequence[ReportRun]) -> ReportRun | None:
    if run.method == "direct" or run.facts.get("fallback"):
        return None
    fitting = [r for r in runs if r.method == "direct" and r.same_model(run) and r.same_questions(run)]
    # A compiled program is best served by a compiled one, where both kinds were run.
    alike = [r for r in fitting if bool(r.facts.get("compiled")) == bool(run.facts.get("compiled"))]
    return next(iter(alike or fitting), None)
