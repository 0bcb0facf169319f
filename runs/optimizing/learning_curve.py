"""The learning curve of an optimisation: the score of every trial, and the best so far."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runs.reports.figures import legend_below, panels, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOUR = "#0072B2"
_REJECTED = "#D55E00"


@dataclass(frozen=True)
class Point:
    """A trial in the curve.

    Attributes:
        number: Number of the trial.
        score: Its mean score, 0 to 1.
        whole: Whether it met every validation question; others cannot be compared and never count as the best.
        rejected: Whether it was rejected without a run.
    """

    number: int
    score: float
    whole: bool
    rejected: bool = False


def best_so_far(points: Iterable[Point]) -> list[tuple[int, float]]:
    """Return the best score up to each trial that met every validation question.

    Args:
        points: Trials in any order.

    Returns:
        (number, best score so far), by number.
    """
    curve: list[tuple[int, float]] = []
    for point in sorted(points, key=lambda point: point.number):
        if point.whole and not point.rejected:
            curve.append((point.number, max(point.score, curve[-1][1]) if curve else point.score))
    return curve


@styled
def draw_learning_curve(points: Iterable[Point]) -> Figure:
    """Draw the scores by trial.

    Args:
        points: Trials in any order.

    Returns:
        The figure: filled markers met every validation question, hollow ones some, crosses were rejected; the line is
        the best so far.
    """
    from matplotlib.ticker import MaxNLocator

    every = sorted(points, key=lambda point: point.number)
    figure, (ax,) = panels(1)
    kinds: list[tuple[str, list[Point], dict[str, Any]]] = [
        ("all validation questions", [p for p in every if p.whole and not p.rejected], {"c": _COLOUR}),
        (
            "some of them",
            [p for p in every if not p.whole and not p.rejected],
            {"facecolors": "none", "edgecolors": _COLOUR},
        ),
        ("rejected", [p for p in every if p.rejected], {"c": _REJECTED, "marker": "x"}),
    ]
    handles: list[Any] = []
    for label, chosen, look in kinds:
        if chosen:
            numbers, scores = [p.number for p in chosen], [100 * p.score for p in chosen]
            handles.append(ax.scatter(numbers, scores, s=18, linewidths=1.0, zorder=3, label=label, **look))
    if curve := best_so_far(every):
        ends = [*curve, (every[-1].number, curve[-1][1])]
        numbers, scores = [number for number, _ in ends], [100 * score for _, score in ends]
        handles += ax.step(numbers, scores, where="post", color=_COLOUR, label="best so far")
    ax.set_xlabel("trial")
    ax.set_ylabel("score, %")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if handles:
        legend_below(figure, handles)
    return figure
