"""What a person reads after comparing two runs."""

from __future__ import annotations

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from metrics.statistics import Estimate
from runs.comparison import ComparedRun, ComparedScores, Comparison, Flip, Outcome, Power
from runs.printing import percent

_QUESTION_CHARS = 160
_ANSWER_CHARS = 80


def print_comparison(console: Console, comparison: Comparison, *, flips: int = 20) -> None:
    """Print a comparison: scores and differences, power, and the questions that flipped.

    Args:
        console: Where to print.
        comparison: The comparison.
        flips: How many flipped questions to show; 0 for all.
    """
    overall = comparison.overall
    for letter, run, score in (("A", comparison.run_a, overall.a), ("B", comparison.run_b, overall.b)):
        _say(console, f"{letter}  {run.id}  ({describe_run(run)})  {comparison.metric} {percent(score)}")
    _say(console, f"{_heading(comparison)}, in percent; B - A with its 95 % interval, p by {test_name(comparison)}")
    console.print(_scores(comparison))
    for line in (*read_power(comparison.power, comparison.overall), *comparison.notes):
        _say(console, line)
    _print_flips(console, comparison, flips)


def describe_run(run: ComparedRun) -> str:
    """Return what a run is, in a few words."""
    samples = f", {run.samples} samples each" if run.samples > 1 else ""
    words = [run.method, run.model, run.program, f"{run.questions} questions{samples}"]
    return " · ".join(word for word in words if word)


def rows_of(comparison: Comparison) -> Iterator[tuple[str, ComparedScores]]:
    """Yield the lines of the table of scores: what they are over, and the scores."""
    yield "all questions", comparison.overall
    if comparison.clean is not None:
        yield "without contaminated", comparison.clean
    yield from comparison.groups.items()


def points(value: float) -> str:
    """Return a difference in percentage points with its sign, or a dash."""
    return "-" if value != value else f"{100 * value:+.1f}"


def difference_of(scores: ComparedScores) -> str:
    """Return a difference with its 95 % interval, in points."""
    if scores.difference != scores.difference:
        return "-"
    return f"{points(scores.difference)} [{points(scores.low)}, {points(scores.high)}]"


def p_of(scores: ComparedScores) -> str:
    """Return the p of a difference."""
    return "-" if scores.p is None or scores.p != scores.p else "<0.0001" if scores.p < 1e-4 else f"{scores.p:.2g}"


def test_name(comparison: Comparison) -> str:
    """Return the test whose p is told."""
    return "McNemar's exact test" if comparison.overall.mcnemar_p is not None else "exchanging the runs at random"


def read_power(power: Power, overall: ComparedScores) -> list[str]:
    """Return how many questions it takes, in sentences."""
    lines = []
    if power.needed is not None:
        lines.append(
            f"To see a difference of {points(overall.difference)} points with 80 % power takes about {power.needed:,} "
            f"questions; here are {power.questions:,}."
        )
    elif power.discordant_bound is not None:
        lines.append(
            f"The runs decided no question differently: no number of questions shows a difference of 0. Up to "
            f"{100 * power.discordant_bound:.1f} % may be decided differently (95 % bound)."
        )
    elif overall.difference == 0:
        lines.append("There is no difference; no number of questions would show one of 0.")
    if power.visible is not None:
        lines.append(
            f"With {power.questions:,} questions a difference shows from about {100 * power.visible:.1f} points on."
        )
    elif power.needed is None or power.questions < power.needed:
        lines.append(f"Runs that differ on so few questions cannot be told apart with {power.questions:,}.")
    return lines


def flips_title(comparison: Comparison, *, gained: bool) -> str:
    """Return the heading of the questions that the second run gained or lost."""
    count = comparison.overall.only_b if gained else comparison.overall.only_a
    graded = comparison.overall.mcnemar_p is None
    what = ("B better than A" if gained else "B worse than A") if graded else "B right, A wrong" if gained else ""
    return f"{'Gained' if gained else 'Lost'} ({what or 'A right, B wrong'}): {count}"


def _heading(comparison: Comparison) -> str:
    version = comparison.metrics_version
    return f"{comparison.metric} ({comparison.family}{f', metrics version {version}' if version is not None else ''})"


def _scores(comparison: Comparison) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("")
    for name in ("n", "A", "B", "B - A", "p", "only A", "only B"):
        table.add_column(name, justify="right", no_wrap=True)
    for label, scores in rows_of(comparison):
        table.add_row(
            escape(label), str(scores.n), _mean(scores.a), _mean(scores.b), difference_of(scores), p_of(scores),
            str(scores.only_a), str(scores.only_b),
        )  # fmt: skip
    return table


def _mean(estimate: Estimate) -> str:
    return "-" if estimate.mean != estimate.mean else f"{100 * estimate.mean:.1f}"


def _print_flips(console: Console, comparison: Comparison, limit: int) -> None:
    for gained in (False, True):
        found = [flip for flip in comparison.flips if flip.gained is gained]
        if not found:
            continue
        _say(console, "")
        _say(console, flips_title(comparison, gained=gained))
        for flip in found[: limit or None]:
            _print_flip(console, flip)
        if limit and len(found) > limit:
            _say(console, f"  ... {len(found) - limit} more (all: --flips 0, or --html FILE)")
    if any(outcome.trace.startswith("http://127.0.0.1:5000/") for f in comparison.flips for outcome in (*f.a, *f.b)):
        _say(console, "")
        _say(console, "The addresses of the chains are those of: search-o1 ui")


def _print_flip(console: Console, flip: Flip) -> None:
    mark = "  [contaminated]" if flip.contaminated else ""
    _say(console, f"  {flip.id}  {_short(flip.question, _QUESTION_CHARS)}{mark}")
    _say(console, f"    gold  {_short(' | '.join(flip.answers), _ANSWER_CHARS)}")
    for letter, outcomes in (("A", flip.a), ("B", flip.b)):
        for outcome in outcomes:
            _say(console, f"    {letter}     {_outcome(flip, outcome, many=len(outcomes) > 1)}")


def _outcome(flip: Flip, outcome: Outcome, *, many: bool) -> str:
    answer = _short(outcome.prediction, _ANSWER_CHARS) or f"- ({outcome.finish})"
    score = "" if outcome.score in (0, 1) and not many else f"  {100 * outcome.score:.0f} %"
    where = outcome.trace or f"{outcome.journal} (id {flip.id}, sample {outcome.sample})"
    return f"{answer}{score}  {where}"


def _short(text: str, length: int) -> str:
    folded = " ".join(text.split())
    return folded if len(folded) <= length else folded[: length - 1].rstrip() + "…"


def _say(console: Console, line: str) -> None:
    console.print(line, highlight=False, soft_wrap=True, markup=False)
