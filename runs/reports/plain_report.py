"""Runs as one table, methods against benchmarks: a report without the paper."""

from __future__ import annotations

from collections.abc import Sequence

from metrics.statistics import mean_with_error
from runs.reports.fallback import FAMILIES, Outcomes
from runs.reports.layout import MISSING, Document, Heading, Paragraph, Row, Table, bullets
from runs.reports.run_table import coverage_notes, double_notes, learned_notes, missing_notes, run_table
from runs.reports.systems import System, systems_of
from runs.reports.wording import with_interval

METRICS = {
    "open_qa": (("EM", ("em",)), ("F1", ("f1",))),
    "multiple_choice": (("accuracy", ("em",)),),
    "math": (("accuracy", ("math_equal", "em")),),
    "code": (("pass@1", ("pass@1",)),),
}
"""By task kind the columns of a benchmark: title, and names of the metric of which the first present counts."""

_OTHER = (("EM", ("em",)),)


def plain_document(outcomes: Sequence[Outcomes]) -> Document:
    """Lay out runs as a table.

    Args:
        outcomes: The runs.

    Returns:
        The report.
    """
    sets = list(dict.fromkeys((o.run.benchmark, o.run.split, o.run.task) for o in outcomes))
    columns = [(b, s, *metric) for b, s, task in sets for metric in METRICS.get(task, _OTHER)]
    rows = [
        Row((f"{system.label}, {family}", *(_cell(system, family, b, s, names) for b, s, _, names in columns)))
        for system in systems_of(outcomes)
        for family in FAMILIES
    ]
    groups = (("", 1), *((f"{b} {s}".strip(), len(METRICS.get(task, _OTHER))) for b, s, task in sets))
    table = Table("Scores in percent with 95 % intervals", ("", *(c[2] for c in columns)), tuple(rows), groups)
    different = [
        f"{benchmark} {split}: its runs were made on different question files or versions; do not compare them.".strip()
        for benchmark, split, _ in sets
        if len({o.run.facts.get("data") for o in outcomes if (o.run.benchmark, o.run.split) == (benchmark, split)}) > 1
    ]
    return Document(
        "Scores of runs",
        (
            Paragraph(
                "official repeats the paper's published scorer, strict is right rather than comparable. Failed "
                f"questions count as wrong. {MISSING} was not run."
            ),
            table,
            Heading("Runs"),
            run_table(outcomes),
            *bullets(
                [
                    *missing_notes(outcomes),
                    *learned_notes(outcomes),
                    *coverage_notes(outcomes),
                    *double_notes(outcomes),
                    *different,
                ]
            ),
        ),
    )


def _cell(system: System, family: str, benchmark: str, split: str, metrics: Sequence[str]) -> str:
    each = next((o for o in system.outcomes if (o.run.benchmark, o.run.split) == (benchmark, split)), None)
    if each is None:
        return MISSING
    values = each.values(family, metrics, fallback=bool(each.run.facts.get("fallback")))
    return with_interval(mean_with_error(list(values.values()))) if values else MISSING
