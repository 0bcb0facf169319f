"""What our runs put into the paper's tables: one cell a column and run, in both families, with and without fallback."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from metrics.statistics import Estimate, mean_with_error
from runs.reports.fallback import Outcomes
from runs.reports.intervals import Interval, difference, published_estimate
from runs.reports.paper_tables import Column, PaperRow, PaperTable


@dataclass(frozen=True)
class Cell:
    """One of our numbers beside one of the paper's.

    Attributes:
        table: Number of the table.
        column: The column.
        outcomes: The run behind it.
        row: Row of the paper with the same method and model, or None.
        official: Official score as the paper has it: with the fallback where it can be told, else without.
        official_own: Official score of the method's own answers alone, or None.
        strict: Strict score, likewise.
        strict_own: Strict score of the method's own answers alone, or None.
        with_fallback: Whether `official` and `strict` have the fallback.
    """

    table: int
    column: Column
    outcomes: Outcomes
    row: PaperRow | None
    official: Estimate
    official_own: Estimate | None
    strict: Estimate | None
    strict_own: Estimate | None
    with_fallback: bool

    @property
    def paper(self) -> float | None:
        """The paper's figure, 0 to 1, or None."""
        found = self.row.values.get(self.column.key) if self.row is not None else None
        return None if found is None else found / 100

    @property
    def partial(self) -> bool:
        """Whether the run has fewer questions than the set."""
        return self.official.n != self.column.questions

    @property
    def fallback_missing(self) -> bool:
        """Whether the paper's figure has a fallback that ours has not."""
        return self.paper is not None and self.outcomes.run.method != "direct" and not self.with_fallback

    @property
    def difference(self) -> Interval | None:
        """Our official score minus the paper's figure, each with its own error; None without a figure."""
        if self.paper is None or self.row is None:
            return None
        if self.column.metrics == ("f1",):
            # Of a mean of graded outcomes the paper gives no spread: that of our outcomes is taken for it.
            scale = math.sqrt(self.official.n / self.column.questions)
            below, above = (self.official.mean - self.official.low), (self.official.high - self.official.mean)
            theirs = Estimate(
                self.paper, math.nan, self.paper - scale * below, self.paper + scale * above, self.column.questions
            )
        elif self.row.binomial:
            theirs = published_estimate(self.paper, self.column.questions)
        else:
            theirs = Estimate(self.paper, math.nan, self.paper, self.paper, self.column.questions)
        return difference(self.official, theirs)


def cells_of(table: PaperTable, outcomes: Sequence[Outcomes]) -> list[Cell]:
    """Return all cells of a table that runs fill.

    Args:
        table: The table.
        outcomes: The runs.

    Returns:
        Run by run, in the order of the columns. Columns whose group no question of a run belongs to are left out.
    """
    found: list[Cell] = []
    for each in outcomes:
        for column in table.columns:
            cell = _cell(table, column, each) if each.run.measures(column) else None
            if cell is not None:
                found.append(cell)
    return found


def _cell(table: PaperTable, column: Column, outcomes: Outcomes) -> Cell | None:
    def estimate(family: str, *, fallback: bool) -> Estimate | None:
        values = outcomes.values(family, column.metrics, fallback=fallback, group=column.group)
        return mean_with_error(list(values.values())) if values else None

    own = {family: estimate(family, fallback=False) for family in ("official", "strict")}
    counted = own
    if outcomes.has_fallback:
        counted = {family: estimate(family, fallback=True) for family in ("official", "strict")}
    if counted["official"] is None:
        return None
    return Cell(
        table.number,
        column,
        outcomes,
        table.row(outcomes.run.method, outcomes.run.model),
        counted["official"],
        own["official"],
        counted["strict"],
        own["strict"],
        outcomes.has_fallback,
    )
