"""What a person reads at the end of an evaluation."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from metrics.statistics import Estimate, PairedDifference
from runs.contamination import KINDS
from runs.summary import Summary

_KIND_LABELS = {
    "question_and_answer": "question and answer on a page",
    "question": "question on a page",
    "mirror": "page of a benchmark host",
}


def percent(estimate: Estimate) -> str:
    """Return a score with its 95 % interval, in percent."""
    if estimate.mean != estimate.mean:
        return "-"
    return f"{100 * estimate.mean:.1f} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def print_scores(console: Console, summaries: Sequence[tuple[str, Summary]]) -> None:
    """Print methods side by side: both families, groups, chains and failures.

    Args:
        console: Where to print.
        summaries: (label, summary) a method.
    """
    table = Table(
        title=f"{summaries[0][1].questions} questions, scores in percent with 95 % intervals", title_justify="left"
    )
    table.add_column("")
    for label, _ in summaries:
        table.add_column(label, justify="right")
    first = summaries[0][1]
    for family in first.scores:
        for name in first.scores[family]:
            table.add_row(f"{name} ({family})", *[percent(s.scores[family][name]) for _, s in summaries])
    for family, by_name in first.repeated.items():
        for name in by_name:
            cells = [s.repeated.get(family, {}).get(name) for _, s in summaries]
            table.add_row(f"{name} ({family})", *["-" if cell is None else percent(cell) for cell in cells])
    table.add_section()
    for group in first.groups:
        table.add_row(
            # Group values are anybody's text, which must not be read as colours and styles.
            Text(f"{first.headline} {group} (n={first.groups[group].n})"),
            *[percent(s.groups[group]) for _, s in summaries],
        )
    table.add_section()
    rows = {
        "searches a question": ("searches", "{:.2f}"),
        "questions with a search": ("searched_share", "{:.0%}"),
        "pages read a question": ("pages_read", "{:.1f}"),
        "refined to nothing": ("refined_to_nothing_rate", "{:.0%}"),
        "valid answers": ("valid_share", "{:.0%}"),
        "tokens a question": ("tokens", "{:.0f}"),
        "prompt tokens cached": ("cached_share", "{:.0%}"),
        "seconds a question (p50)": ("seconds_p50", "{:.1f}"),
    }
    for label, (key, form) in rows.items():
        table.add_row(label, *[_number(s.chains[key], form) for _, s in summaries])
    table.add_row("finished", *[", ".join(f"{k} {v}" for k, v in sorted(s.finishes.items())) for _, s in summaries])
    if any(s.failures for _, s in summaries):
        table.add_row(
            "failed, by kind", *[", ".join(f"{k} {v}" for k, v in s.failures.items()) or "-" for _, s in summaries]
        )
    if any(s.fallbacks for _, s in summaries):
        table.add_row("direct answer stood in", *[str(s.fallbacks) for _, s in summaries])
    if any(s.public_only for _, s in summaries):
        # Without the private tests a strict score is an upper bound, which nobody should take for a result.
        table.add_row("judged on public tests only", *[str(s.public_only) for _, s in summaries])
    for label, counts in (
        ("pages failed, by reason", [s.read_failures for _, s in summaries]),
        ("searches failed, by provider", [s.search_failures for _, s in summaries]),
    ):
        if any(counts):
            table.add_row(label, *[", ".join(f"{name} {n}" for name, n in c.items()) or "-" for c in counts])
    if any(s.hits_blocked for _, s in summaries):
        table.add_row("hits removed from benchmark hosts", *[str(s.hits_blocked) for _, s in summaries])
    if any(s.contaminated for _, s in summaries):
        _add_contamination(table, [s for _, s in summaries])
    console.print(table)


def print_difference(console: Console, first: str, second: str, difference: PairedDifference, metric: str) -> None:
    """Print the paired difference of two methods on the same questions."""
    p = "" if difference.mcnemar_p is None else f", McNemar p = {difference.mcnemar_p:.2g}"
    console.print(
        f"{first} - {second}: {metric} {100 * difference.difference:+.1f} "
        f"[{100 * difference.low:+.1f}, {100 * difference.high:+.1f}] on {difference.n} questions "
        f"(only {first} right {difference.only_a}, only {second} {difference.only_b}{p})",
        highlight=False,
        soft_wrap=True,
    )


def _add_contamination(table: Table, summaries: Sequence[Summary]) -> None:
    """Add how many questions were given away by what was found, and every score without them."""
    table.add_section()
    shares = [f"{s.contaminated} ({100 * s.contamination_share:.1f} %)" for s in summaries]
    table.add_row("contaminated questions", *shares)
    for kind in KINDS:
        if any(kind in s.contamination for s in summaries):
            table.add_row(f"  {_KIND_LABELS[kind]}", *[str(s.contamination.get(kind, 0)) for s in summaries])
    table.add_row("questions without them", *[str(s.clean.questions) for s in summaries])
    for family, by_name in summaries[0].clean.scores.items():
        for name in by_name:
            table.add_row(f"{name} ({family}), clean", *[percent(s.clean.scores[family][name]) for s in summaries])


def _number(value: float, form: str) -> str:
    return "-" if value != value else form.format(value)
