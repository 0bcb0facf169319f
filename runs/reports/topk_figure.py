"""Scores by hits a search: the paper's Figure 3, from a set of runs at top_k = 1, 3, 5, 10.

The paper prints no numbers in its figure; what its Table 1 and Table 3 say of the same model stands beside ours with
hollow markers at the table's top_k of 10, and a dashed line for direct reasoning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from metrics.statistics import Estimate, mean_with_error
from runs.reports.averages import paper_row
from runs.reports.fallback import Outcomes
from runs.reports.figures import legend_below, looks_of, panels, styled
from runs.reports.paper_tables import METHODS, Column, headline_column, set_title
from runs.reports.plain_report import METRICS
from runs.reports.systems import System
from signatures.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PAPER_TOP_K = 10
_BESIDE = 0.15


@styled
def draw_topk(outcomes: Sequence[Outcomes]) -> Figure:
    """Draw scores by hits a search, one panel a set, with 95 % intervals.

    Args:
        outcomes: Runs at several `top_k`; direct runs become a line, for they search nothing.

    Returns:
        The figure.

    Raises:
        DataError: No method was run with two different `top_k` on the same set, or one was run twice with the same.
    """
    from matplotlib.lines import Line2D

    series = _series(outcomes)
    sets = list(dict.fromkeys((o.run.benchmark, o.run.split) for o in outcomes))
    systems = [System(method, model) for method, model in _order(dict.fromkeys(key[:2] for key in series))]
    looks = looks_of(systems)
    figure, axes = panels(len(sets))
    ticks = sorted({k for points in series.values() for k in points if k})
    shows_paper = False
    for ax, (benchmark, split) in zip(axes, sets, strict=True):
        column = headline_column(benchmark, split)
        for place, (system, look) in enumerate(zip(systems, looks, strict=True)):
            points = series.get((system.method, system.model, benchmark, split), {})
            # Points at the same top-k lie beside each other, so that none hides another.
            shift = _BESIDE * (place - (len(systems) - 1) / 2)
            _draw_ours(ax, points, look, shift)
            if column is not None and points:
                shows_paper |= _draw_paper(ax, system, column, look, shift)
        ax.set_title(set_title(benchmark, split))
        ax.set_xlabel("Hits a search (top-k)")
        ax.set_xticks(ticks)
        ax.margins(x=0.08)
    name = _metric_name(outcomes)
    axes[0].set_ylabel(f"{name} (%)")
    handles: list[Any] = [
        Line2D([], [], color=colour, marker="" if system.method == "direct" else marker, label=system.label)
        for system, (colour, marker) in zip(systems, looks, strict=True)
    ]
    if shows_paper:
        handles.append(
            Line2D(
                [],
                [],
                color="#555555",
                marker="o",
                markerfacecolor="white",
                linestyle="--",
                label="hollow, dashed: paper",
            )
        )
    legend_below(figure, handles, columns=1 if len(sets) == 1 else 3)
    return figure


def topk_notes(outcomes: Sequence[Outcomes]) -> list[str]:
    """Return which curves join runs that differ in more than their hits a search.

    Args:
        outcomes: The runs.

    Returns:
        A sentence a curve, naming the options.
    """
    curves: dict[tuple[str, str, str, str], list[Outcomes]] = {}
    for each in outcomes:
        run = each.run
        curves.setdefault((run.method, run.model, run.benchmark, run.split), []).append(each)
    notes = []
    for (_, _, benchmark, split), members in curves.items():
        first = _setting(members[0])
        names = sorted({n for m in members[1:] for n, value in _setting(m).items() if value != first.get(n)})
        if names:
            notes.append(
                f"{members[0].run.label} on {set_title(benchmark, split)}: its runs differ in more than top_k, namely "
                f"in {', '.join(names)}; the curve shows the effect of all of them."
            )
    return notes


def _setting(each: Outcomes) -> dict[str, Any]:
    facts = each.run.facts
    rest = {name: facts.get(name) for name in ("data", "compiled", "prompt", "fallback", "sampling", "version")}
    return {**{n: v for n, v in each.run.options.items() if n not in ("top_k", "seed")}, **rest}


def _series(outcomes: Sequence[Outcomes]) -> dict[tuple[str, str, str, str], dict[int, Estimate]]:
    """Return for each method, model and set the score by top_k; 0 for a method that does not search."""
    found: dict[tuple[str, str, str, str], dict[int, Estimate]] = {}
    seen: dict[tuple[Any, ...], str] = {}
    for each in outcomes:
        run = each.run
        top_k = 0 if run.method == "direct" else int(run.options.get("top_k") or 0)
        key = (run.method, run.model, run.benchmark, run.split)
        if (*key, top_k) in seen:
            raise DataError(
                f"Runs {seen[*key, top_k]} and {run.id} are the same method, model, set and top_k = {top_k}; "
                "leave one of them out."
            )
        seen[*key, top_k] = run.id
        values = each.values("official", METRICS.get(run.task, (("EM", ("em",)),))[0][1], fallback=each.has_fallback)
        if values:
            found.setdefault(key, {})[top_k] = mean_with_error(list(values.values()))
    if not any(len(points) > 1 for points in found.values()):
        given = ", ".join(f"{o.run.id} at {o.run.options.get('top_k')}" for o in outcomes)
        raise DataError(
            f"--figure topk needs runs of one method and model on one set at several top_k (evaluate with --set "
            f"top_k=1, 3, 5, 10); given: {given}."
        )
    return found


def _draw_ours(ax: Axes, points: dict[int, Estimate], look: tuple[str, str], shift: float) -> None:
    colour, marker = look
    if 0 in points:
        line = points[0]
        ax.axhline(100 * line.mean, color=colour, linewidth=1.0)
        if line.low == line.low:
            ax.axhspan(100 * line.low, 100 * line.high, color=colour, alpha=0.08, linewidth=0)
    ks = sorted(k for k in points if k)
    if ks:
        means = [100 * points[k].mean for k in ks]
        ends = [
            [max(0.0, 100 * (points[k].mean - points[k].low)) for k in ks],
            [max(0.0, 100 * (points[k].high - points[k].mean)) for k in ks],
        ]
        ax.errorbar([k + shift for k in ks], means, yerr=ends, color=colour, marker=marker, capsize=2, elinewidth=0.8)


def _draw_paper(ax: Axes, system: System, column: Column, look: tuple[str, str], shift: float) -> bool:
    row = paper_row(system.method, system.model, [column.key])
    if row is None:
        return False
    value = row.values[column.key]
    if system.method == "direct":
        ax.axhline(value, color=look[0], linewidth=0.9, linestyle="--")
    else:
        ax.plot(
            [_PAPER_TOP_K + shift],
            [value],
            color=look[0],
            marker=look[1],
            markerfacecolor="white",
            linestyle="none",
            zorder=5,
        )
    return True


def _metric_name(outcomes: Sequence[Outcomes]) -> str:
    names = {METRICS.get(o.run.task, (("EM", ("em",)),))[0][0] for o in outcomes}
    return f"Official {names.pop()}" if len(names) == 1 else "Official score"


def _order(keys: dict[tuple[str, ...], None]) -> list[tuple[str, str]]:
    order = list(METHODS)
    return sorted(
        ((method, model) for method, model in keys), key=lambda k: order.index(k[0]) if k[0] in order else len(order)
    )
