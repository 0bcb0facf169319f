"""What a person reads after rescoring: both families with intervals, by group, and beside the file's own scores."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from runs.printing import percent
from runs.rescoring_results import FAMILIES, GroupScores, Rescoring

_KINDS = {"open_qa": "open questions", "multiple_choice": "multiple choice", "math": "math", "code": "code"}


def print_rescoring(console: Console, found: Rescoring) -> None:
    """Print scores.

    Args:
        console: Where to print.
        found: The scores.
    """

    def say(line: str) -> None:
        console.print(line, highlight=False, soft_wrap=True, markup=False)

    say(f"{found.path.name}: {found.shape}, {_KINDS[found.kind]} ({found.reason}).")
    total = found.total
    outputs = "" if total.outputs == total.questions else f", {total.outputs} outputs"
    say(f"{total.questions} questions{outputs}, scores in percent with 95 % intervals, * the headline")
    console.print(_scores(found))
    if found.groups:
        say("By group: official, and the strict headline")
        console.print(_groups(found))
    if found.stored:
        say("Beside the scores in the file, in percent")
        console.print(_stored(found))
        if not any(d.different for d in found.stored):
            say("The scores in the file are those of this scorer, output by output.")
    if found.coverage == "public only":
        say("strict: public tests only, so an upper bound; the data hold no private tests.")
    for note in found.notes:
        say(f"Note: {note}")


def _scores(found: Rescoring) -> Table:
    total = found.total
    table = Table()
    table.add_column("")
    parts: list[tuple[str, GroupScores]] = [("score", found.own)]
    if found.fallback:
        parts = [("with fallback", total), ("own answers", found.own)]
    for title, _ in parts:
        table.add_column(title, justify="right")
    for family in FAMILIES:
        for name in total.scores[family]:
            mark = " *" if name == found.headline else ""
            table.add_row(f"{name} ({family}){mark}", *[percent(part.scores[family][name]) for _, part in parts])
    table.add_section()
    for family in FAMILIES:
        table.add_row(f"valid ({family})", *[f"{part.valid[family]} of {part.outputs}" for _, part in parts])
    table.add_row("no output", *[str(found.missing)] * len(parts))
    if found.fallback:
        taken = ", ".join(f"{found.taken[family]} ({family})" for family in FAMILIES)
        table.add_row("direct answer stood in", taken, "-")
    return table


def _groups(found: Rescoring) -> Table:
    names = list(found.total.scores["official"])
    table = Table()
    table.add_column("")
    for title in ("questions", *names, "valid"):
        table.add_column(title, justify="right")
    table.add_column(f"strict {found.headline}", justify="right")
    last = ""
    for group, scores in found.groups.items():
        key, _, value = group.partition("=")
        if key != last:
            table.add_section()
            table.add_row(Text(key), style="italic")
            last = key
        official = [f"{100 * scores.scores['official'][name].mean:.1f}" for name in names]
        table.add_row(
            # Group values are anybody's text, which must not be read as colours and styles.
            Text(f"  {value}"),
            str(scores.questions),
            *official,
            str(scores.valid["official"]),
            f"{100 * scores.scores['strict'][found.headline].mean:.1f}",
        )
    return table


def _stored(found: Rescoring) -> Table:
    table = Table()
    table.add_column("")
    for title in ("file", "here", "difference", "outputs that differ"):
        table.add_column(title, justify="right")
    for d in found.stored:
        table.add_row(
            f"{d.metric} ({d.family})",
            f"{100 * d.stored:.1f}",
            f"{100 * d.ours:.1f}",
            f"{round(100 * (d.ours - d.stored), 1) + 0.0:+.1f}",
            f"{len(d.different)} of {d.items}",
        )
    return table
