"""Two runs on the same questions, compared as a statistician would: `search-o1 compare`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from metrics.power import (
    most_discordant,
    questions_for_means,
    questions_for_shares,
    visible_mean_difference,
    visible_share_difference,
)
from metrics.statistics import avg_at_k, clustered_mean_with_error
from runs.comparability import check_scores, common_questions
from runs.comparison import ComparedRun, ComparedScores, Comparison, Flip, Outcome, Power
from runs.home import Home
from runs.journal import Record
from runs.run_folder import RunFolder, load_run
from runs.summary import compare_records
from runs.trace_links import trace_links
from runs.trained_on import training_notes
from signatures.errors import OptionError

Links = Mapping[tuple[str, int], str]


def compare(
    run_a: str | Path | RunFolder,
    run_b: str | Path | RunFolder,
    *,
    metric: str | None = None,
    family: str = "strict",
    group: str = "",
    shared: bool = False,
    home: Home | None = None,
) -> Comparison:
    """Compare two runs question by question; every difference is the second run's score minus the first's.

    With several samples a question its mean is what is compared, so that samples are not taken for questions.

    Args:
        run_a: The baseline: an id or a unique part of it, a folder, or a run loaded before.
        run_b: The run to compare with it.
        metric: Metric name; by default the headline of the runs' task.
        family: `strict` or `official`.
        group: Name of the groups to tell apart (`type`); by default all that the questions have.
        shared: Compare runs that are unfinished or were asked different questions on the questions they share.
        home: Home folder whose runs are meant; by default the user's.

    Returns:
        The comparison.

    Raises:
        OptionError: A run, metric, family or group is unknown, or one run is named twice.
        ComparisonRefused: The runs were scored by different versions of the metrics, or (unless `shared`) are not
            finished or were asked different questions.
        DataError: A run is empty or damaged, or a score is no number.
    """
    home = home or Home()
    a, b = (run if isinstance(run, RunFolder) else load_run(run, home) for run in (run_a, run_b))
    ids, notes = common_questions(a, b, shared=shared)
    metric = metric or a.headline
    for run in (a, b):
        check_scores(run, ids, family, metric)
    pairs = _Pairs(a, b, family, metric)
    overall = pairs.scores(ids)
    given_away = {i for i in ids if any(r.get("contaminated") for r in (*a.by_question[i], *b.by_question[i]))}
    groups = {name: pairs.scores(members) for name, members in _groups(a, ids, group).items()}
    told_a, told_b = _told(a, ids), _told(b, ids)
    return Comparison(
        run_a=told_a,
        run_b=told_b,
        family=family,
        metric=metric,
        metrics_version=a.facts.get("metrics"),
        overall=overall,
        clean=pairs.scores([i for i in ids if i not in given_away]) if given_away else None,
        groups=groups,
        power=_power(overall),
        flips=pairs.flips(ids, given_away, home),
        notes=(
            *notes,
            *_cautions(told_a, told_b, len(groups)),
            *training_notes(a.facts, "A"),
            *training_notes(b.facts, "B"),
        ),
    )


class _Pairs:
    """Two runs and the score by which they are compared."""

    def __init__(self, a: RunFolder, b: RunFolder, family: str, metric: str) -> None:
        self.a, self.b, self.family, self.metric = a, b, family, metric

    def values(self, run: RunFolder, question_id: str) -> list[float]:
        return [float(record[self.family][self.metric]) for record in run.by_question[question_id]]

    def scores(self, ids: Sequence[str]) -> ComparedScores:
        chosen = [[record for i in ids for record in run.by_question[i]] for run in (self.a, self.b)]
        found = compare_records(chosen[1], chosen[0], self.family, self.metric)
        means = [clustered_mean_with_error([self.values(run, i) for i in ids]) for run in (self.a, self.b)]
        return ComparedScores(
            n=found.n,
            a=means[0],
            b=means[1],
            difference=found.difference,
            standard_error=found.standard_error,
            low=found.low,
            high=found.high,
            mcnemar_p=found.mcnemar_p,
            p=found.p,
            only_a=found.only_b,
            only_b=found.only_a,
        )

    def flips(self, ids: Sequence[str], given_away: set[str], home: Home) -> tuple[Flip, ...]:
        scores = {i: (avg_at_k(self.values(self.a, i)), avg_at_k(self.values(self.b, i))) for i in ids}
        flipped = [i for i in ids if not math.isclose(*scores[i], abs_tol=1e-12)]
        if not flipped:
            return ()
        links = [trace_links(run.mlflow_run, home) for run in (self.a, self.b)]
        found = []
        for i in flipped:
            first = self.a.by_question[i][0]
            found.append(
                Flip(
                    id=i,
                    question=first["question"],
                    answers=tuple(first["answers"]),
                    score_a=scores[i][0],
                    score_b=scores[i][1],
                    a=self._outcomes(self.a, i, links[0]),
                    b=self._outcomes(self.b, i, links[1]),
                    contaminated=i in given_away,
                )
            )
        return tuple(sorted(found, key=lambda flip: (flip.gained, -abs(flip.score_b - flip.score_a))))

    def _outcomes(self, run: RunFolder, question_id: str, links: Links) -> tuple[Outcome, ...]:
        answer = "official_prediction" if self.family == "official" else "prediction"
        return tuple(
            Outcome(
                sample=record["sample"],
                prediction=record.get(answer, ""),
                score=float(record[self.family][self.metric]),
                finish=record["finish"],
                journal=str(run.journal),
                trace=links.get((question_id, record["sample"]), ""),
                chain=record.get("chain", ""),
            )
            for record in run.by_question[question_id]
        )


def _groups(run: RunFolder, ids: Sequence[str], group: str) -> dict[str, list[str]]:
    """Return the questions of each group (`type=bridge`), in the order of their names."""
    found: dict[tuple[str, str], list[str]] = {}
    for i in ids:
        for name, value in run.by_question[i][0]["groups"].items():
            found.setdefault((name, str(value)), []).append(i)
    names = sorted({name for name, _ in found})
    if group and group not in names:
        known = f"they have: {', '.join(names)}" if names else "they have none"
        raise OptionError(f"The questions have no groups named {group!r}; {known}.")
    return {f"{name}={value}": found[name, value] for name, value in sorted(found) if group in ("", name)}


def _power(overall: ComparedScores) -> Power:
    n, difference = overall.n, overall.difference
    if overall.mcnemar_p is None:
        spread = overall.standard_error * math.sqrt(n)
        return Power(n, questions_for_means(difference, spread), visible_mean_difference(n, spread), None, None)
    share = (overall.only_a + overall.only_b) / n
    bound = None if share else most_discordant(n, 0)
    needed = questions_for_shares(difference, share)
    return Power(n, needed, visible_share_difference(n, share or bound or 0.0), share, bound)


def _told(run: RunFolder, ids: Sequence[str]) -> ComparedRun:
    method, model, program = (str(run.facts.get(name) or "") for name in ("method", "profile", "compiled"))
    compared: list[Record] = [record for i in ids for record in run.by_question[i]]
    return ComparedRun(
        id=run.id,
        folder=str(run.folder),
        method=method,
        model=model,
        program=program,
        questions=len(run.by_question),
        samples=max(len(run.by_question[i]) for i in ids),
        failed=sum(record["finish"] == "error" for record in compared),
    )


def _cautions(a: ComparedRun, b: ComparedRun, groups: int) -> list[str]:
    found = []
    if groups > 1:
        found.append(f"Each of the {groups} groups is looked at by itself: by chance alone one in twenty has p < 0.05.")
    if a.samples != b.samples:
        found.append(f"A has {a.samples} samples a question, B {b.samples}; question means are compared.")
    for letter, run in (("A", a), ("B", b)):
        if run.failed:
            found.append(f"{letter}: {run.failed} answers failed and count as wrong.")
    return found
