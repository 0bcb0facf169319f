"""Scores of a run: every metric with its error, also by group; failures by kind. The denominator is the whole set."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from metrics.chain_statistics import chain_metrics
from metrics.statistics import (
    Estimate,
    PairedDifference,
    clustered_mean_with_error,
    mean_with_error,
    paired_difference,
)
from runs.contamination import KINDS, contamination_kinds
from runs.journal import Record
from runs.repeated_scores import repeated_scores
from runs.retrieval_counts import total

FAMILIES = ("official", "strict")
_UNSAFE = re.compile(r"[^\w.\- :/]")
"""What MLflow takes in no metric name; group values are free text."""


@dataclass(frozen=True)
class Clean:
    """Scores over the questions that no page or hit gave away (see `runs.contamination`).

    Attributes:
        questions: How many questions these are.
        scores: Family to metric to estimate; NaN when no question is left.
        groups: Family to group to the headline's estimate.
    """

    questions: int
    scores: dict[str, dict[str, Estimate]]
    groups: dict[str, dict[str, Estimate]]


@dataclass(frozen=True)
class Summary:
    """What a run's records say.

    Attributes:
        questions: Questions in the denominator.
        samples: Samples a question.
        headline: Name of the headline metric.
        scores: Family to metric to estimate.
        groups: Group (`type=bridge`) to the strict headline's estimate.
        official_groups: The same for the official family.
        clean: The scores without contaminated questions: those with a flag in any of their samples.
        contamination: Kind of flag to the number of questions that have one; the other kinds are left out.
        hits_blocked: Hits that were removed because they came from benchmark hosts.
        chains: Chain statistics.
        finishes: Finish reason to count.
        failures: Error kind to count.
        read_failures: Reason to count of pages that could not be read.
        search_failures: Provider to count of searches that failed, also beside others that answered.
        fallbacks: Questions whose direct answer stood in.
        public_only: Programs that only the public tests were there for: their strict score is an upper bound.
        repeated: Family to `pass@k` and `maj@k` of the headline, where each question has several samples (`scores` are
            then avg@k).
    """

    questions: int
    samples: int
    headline: str
    scores: dict[str, dict[str, Estimate]]
    groups: dict[str, Estimate]
    official_groups: dict[str, Estimate]
    clean: Clean
    chains: dict[str, float]
    finishes: dict[str, int]
    failures: dict[str, int]
    contamination: dict[str, int] = field(default_factory=dict)
    hits_blocked: int = 0
    read_failures: dict[str, int] = field(default_factory=dict)
    search_failures: dict[str, int] = field(default_factory=dict)
    fallbacks: int = 0
    repeated: dict[str, dict[str, Estimate]] = field(default_factory=dict)
    public_only: int = 0

    @property
    def contaminated(self) -> int:
        """Questions with a flag."""
        return self.questions - self.clean.questions

    @property
    def contamination_share(self) -> float:
        """Share of the questions with a flag, 0 to 1; 0 for no questions."""
        return self.contaminated / self.questions if self.questions else 0.0

    def metrics(self) -> dict[str, float]:
        """Return all numbers under flat names, as MLflow takes them; undefined ones are left out."""
        flat: dict[str, float] = {"questions": self.questions, "failures": sum(self.failures.values())}
        groups = {"strict": self.groups, "official": self.official_groups}
        for prefix, scores, by_group in (("", self.scores, groups), ("clean.", self.clean.scores, self.clean.groups)):
            for family, by_name in scores.items():
                for name, estimate in by_name.items():
                    flat |= _flat(f"{prefix}{family}.{name}", estimate)
            for family, in_groups in by_group.items():
                for group, estimate in in_groups.items():
                    flat |= _flat(f"{prefix}{family}.{self.headline}.{group.replace('=', '.')}", estimate)
        for family, by_name in self.repeated.items():
            for name, estimate in by_name.items():
                flat |= _flat(f"{family}.{name}", estimate)
        flat |= {"clean.questions": self.clean.questions, "contaminated_questions": self.contaminated}
        flat |= {"contamination_share": self.contamination_share, "hits_blocked": self.hits_blocked}
        flat |= {f"contamination.{kind}": self.contamination.get(kind, 0) for kind in KINDS}
        flat |= {f"read.failed.{reason}": count for reason, count in self.read_failures.items()}
        flat |= {f"search.failed.{provider}": count for provider, count in self.search_failures.items()}
        flat |= {f"chain.{name}": value for name, value in self.chains.items()}
        flat |= {f"finish.{name}": count for name, count in self.finishes.items()}
        flat |= {f"failure.{name}": count for name, count in self.failures.items()}
        flat |= {"fallbacks": self.fallbacks, "public_tests_only": self.public_only}
        return {_UNSAFE.sub("_", name): float(value) for name, value in flat.items() if value == value}


def summarise(records: Sequence[Record], headline: str = "em") -> Summary:
    """Summarise the records of a run.

    Args:
        records: One a (question, sample); a failed question is a record like any other, with every score 0.
        headline: Name of the headline metric.

    Returns:
        The summary.
    """
    by_question: dict[str, list[Record]] = {}
    for record in records:
        by_question.setdefault(record["id"], []).append(record)
    samples = max((len(group) for group in by_question.values()), default=1)
    names = {family: list(records[0][family]) if records else [] for family in FAMILIES}
    group_names = sorted({f"{key}={value}" for r in records for key, value in r["groups"].items()})
    scores, groups = _scores(by_question, names), _groups(by_question, group_names, headline)
    kinds = {i: {kind for r in rs for kind in contamination_kinds(r)} for i, rs in by_question.items()}
    unflagged = {i: rs for i, rs in by_question.items() if not kinds[i]}
    return Summary(
        questions=len(by_question),
        samples=samples,
        headline=headline,
        scores=scores,
        groups=groups["strict"],
        official_groups=groups["official"],
        clean=Clean(len(unflagged), _scores(unflagged, names), _groups(unflagged, group_names, headline)),
        chains=chain_metrics(records),
        finishes=dict(Counter(r["finish"] for r in records)),
        failures=dict(Counter(r["error_kind"] or "unexpected" for r in records if r["finish"] == "error")),
        contamination={kind: n for kind in KINDS if (n := sum(kind in found for found in kinds.values()))},
        hits_blocked=sum(r.get("hits_blocked", 0) for r in records),
        read_failures=total(records, "reads_failed"),
        search_failures=total(records, "searches_failed"),
        fallbacks=sum(r["fallback"] for r in records),
        repeated=repeated_scores(by_question, headline),
        public_only=sum(r.get("coverage") == "public only" for r in records),
    )


def compare_records(
    first: Sequence[Record], second: Sequence[Record], family: str = "strict", metric: str = "em", group: str = ""
) -> PairedDifference:
    """Compare two runs on the questions they share.

    Args:
        first: Records of the first run.
        second: Records of the second run.
        family: `official` or `strict`.
        metric: Metric name.
        group: Only questions of this group (`type=bridge`), or all.

    Returns:
        First minus second, question by question (means over samples), with interval and McNemar's p.
    """
    a, b = _by_question(first, family, metric, group), _by_question(second, family, metric, group)
    shared = [i for i in a if i in b]
    return paired_difference([a[i] for i in shared], [b[i] for i in shared])


def _by_question(records: Sequence[Record], family: str, metric: str, group: str) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for record in records:
        if group and record["groups"].get(group.split("=", 1)[0]) != group.split("=", 1)[1]:
            continue
        values.setdefault(record["id"], []).append(float(record[family][metric]))
    return {i: sum(v) / len(v) for i, v in values.items()}


def _scores(by_question: dict[str, list[Record]], names: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Estimate]]:
    return {family: {name: _estimate(by_question, family, name) for name in names[family]} for family in FAMILIES}


def _groups(
    by_question: dict[str, list[Record]], group_names: Sequence[str], headline: str
) -> dict[str, dict[str, Estimate]]:
    groups: dict[str, dict[str, Estimate]] = {family: {} for family in FAMILIES}
    for group in group_names:
        key, value = group.split("=", 1)
        members = {i: rs for i, rs in by_question.items() if rs[0]["groups"].get(key) == value}
        for family in FAMILIES:
            groups[family][group] = _estimate(members, family, headline)
    return groups


def _estimate(by_question: dict[str, list[Record]], family: str, name: str) -> Estimate:
    values = [[float(r[family][name]) for r in records] for records in by_question.values()]
    if all(len(v) == 1 for v in values):
        return mean_with_error([v[0] for v in values])
    return clustered_mean_with_error(values)


def _flat(name: str, estimate: Estimate) -> dict[str, float]:
    return {
        name: estimate.mean,
        f"{name}.stderr": estimate.standard_error,
        f"{name}.low": estimate.low,
        f"{name}.high": estimate.high,
    }
