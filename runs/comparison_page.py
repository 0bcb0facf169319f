"""A comparison as one HTML page of its own, with both chains of every question that flipped."""

from __future__ import annotations

from html import escape

from runs.comparison import ComparedScores, Comparison, Flip, Outcome
from runs.comparison_printing import (
    describe_run,
    difference_of,
    flips_title,
    p_of,
    read_power,
    rows_of,
    test_name,
)
from runs.printing import percent

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; color: #1a1a1a }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { padding: .25rem .8rem; text-align: right }
th { border-bottom: 2px solid #444 }
td { border-bottom: 1px solid #ddd }
th:first-child, td:first-child { text-align: left }
article { border-top: 1px solid #ddd; padding: .6rem 0 }
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f6f6f4; padding: .6rem; max-height: 30rem;
  overflow: auto }
.mark { background: #fde7c7; padding: 0 .4em; border-radius: .2em }
""".strip()


def comparison_page(comparison: Comparison) -> str:
    """Return a comparison as an HTML page that needs no other file and runs no script.

    Args:
        comparison: The comparison.

    Returns:
        The page. Everything that a model or a page wrote is shown as text.
    """
    a, b = comparison.run_a, comparison.run_b
    version = "" if comparison.metrics_version is None else f", metrics version {comparison.metrics_version}"
    head = "".join(f"<th>{name}</th>" for name in ("", "n", "A", "B", "B − A", "p", "only A", "only B"))
    rows = "".join(_row(label, scores) for label, scores in rows_of(comparison))
    lines = [*read_power(comparison.power, comparison.overall), *comparison.notes]
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        f"<title>{escape(a.id)} and {escape(b.id)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(f'{comparison.metric} ({comparison.family})')}: B − A = {difference_of(comparison.overall)}</h1>",
        *[f"<p><b>{letter}</b> {escape(r.id)} ({escape(describe_run(r))})</p>" for letter, r in (("A", a), ("B", b))],
        f"<p>In percent with 95 % intervals{version}; p by {escape(test_name(comparison))}.</p>",
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>",
        *[f"<p>{escape(line)}</p>" for line in lines],
    ]
    for gained in (False, True):
        found = [flip for flip in comparison.flips if flip.gained is gained]
        if found:
            parts.append(f"<h2>{escape(flips_title(comparison, gained=gained))}</h2>")
            parts += [_flip(flip) for flip in found]
    return "\n".join([*parts, "</body></html>"]) + "\n"


def _row(label: str, scores: ComparedScores) -> str:
    cells = [
        escape(label), scores.n, percent(scores.a), percent(scores.b), difference_of(scores), escape(p_of(scores)),
        scores.only_a, scores.only_b,
    ]  # fmt: skip
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _flip(flip: Flip) -> str:
    mark = " <span class='mark'>contaminated</span>" if flip.contaminated else ""
    sides = "".join(
        f"<div>{''.join(_outcome(letter, outcome) for outcome in outcomes)}</div>"
        for letter, outcomes in (("A", flip.a), ("B", flip.b))
    )
    return (
        f"<article><p><b>{escape(flip.id)}</b>{mark} {escape(flip.question)}</p>"
        f"<p>Gold: {escape(' | '.join(flip.answers))}</p><div class='sides'>{sides}</div></article>"
    )


def _outcome(letter: str, outcome: Outcome) -> str:
    answer = escape(outcome.prediction) or f"no answer ({escape(outcome.finish)})"
    trace = f" <a href='{escape(outcome.trace)}'>trace</a>" if outcome.trace else ""
    return (
        f"<details><summary><b>{letter}</b> {answer} ({100 * outcome.score:.0f} %)</summary>"
        f"<p>Sample {outcome.sample}, {escape(outcome.journal)}{trace}</p><pre>{escape(outcome.chain)}</pre></details>"
    )
