"""The averages and relative gains that the paper argues with (sections 4.4 and 4.5), its own and ours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from runs.reports.cells import Cell
from runs.reports.fallback import FAMILIES
from runs.reports.intervals import Interval, average, relative_gain
from runs.reports.paper_tables import AVERAGES, METHODS, Column, PaperRow, paper_tables
from runs.reports.systems import System

GAINS = (
    ("search_o1", "direct"),
    ("search_o1", "standard_rag"),
    ("search_o1", "rag_agent"),
    ("rag_agent", "standard_rag"),
)
"""Which method is compared with which."""


@dataclass(frozen=True)
class Average:
    """An average over benchmarks, each counting the same.

    Attributes:
        name: Key of `AVERAGES`.
        system: Whose average.
        columns: Keys of the columns that went in.
        complete: Whether these are all columns of the average.
        paper: The paper's average over the same columns, 0 to 1, or None.
        official: Ours.
        strict: Ours, strictly, or None.
    """

    name: str
    system: System
    columns: tuple[str, ...]
    complete: bool
    paper: float | None
    official: Interval
    strict: Interval | None


@dataclass(frozen=True)
class Gain:
    """By what share one method's average exceeds another's, with the same model.

    Attributes:
        name: Key of `AVERAGES`.
        method: The method.
        over: The method it is compared with.
        model: The model.
        columns: Keys of the columns that both were measured on.
        complete: Whether these are all columns of the average.
        paper: The paper's gain over the same columns, as a share, or None.
        official: Ours.
        strict: Ours, strictly, or None.
    """

    name: str
    method: str
    over: str
    model: str
    columns: tuple[str, ...]
    complete: bool
    paper: float | None
    official: Interval
    strict: Interval | None


def averages_of(systems: Sequence[System], cells: Sequence[Cell]) -> list[Average]:
    """Return the averages of systems over the sets they were run on.

    Args:
        systems: The systems.
        cells: Their cells.

    Returns:
        By average, then system; an average of which a system has no column is left out.
    """
    found: list[Average] = []
    for name, (_, keys) in AVERAGES.items():
        for system in systems:
            own = _cells(system, cells, keys)
            if not own:
                continue
            used = tuple(own)
            stricts = [cell.strict for cell in own.values()]
            found.append(
                Average(
                    name,
                    system,
                    used,
                    len(used) == len(keys),
                    paper_average(paper_row(system.method, system.model, used), used),
                    average([cell.official for cell in own.values()]),
                    average([s for s in stricts if s is not None]) if None not in stricts else None,
                )
            )
    return found


def gains_of(systems: Sequence[System], cells: Sequence[Cell]) -> list[Gain]:
    """Return the gains of one method over another with the same model.

    Args:
        systems: The systems.
        cells: Their cells.

    Returns:
        By pair of methods, then model, then average.
    """
    found: list[Gain] = []
    for method, over in GAINS:
        for a in (s for s in systems if s.method == method):
            b = next((s for s in systems if s.method == over and s.model_label == a.model_label), None)
            if b is None:
                continue
            for name, (_, keys) in AVERAGES.items():
                ours, theirs = _cells(a, cells, keys), _cells(b, cells, keys)
                used = tuple(key for key in keys if key in ours and key in theirs)
                if not used:
                    continue
                pairs = [(ours[key], theirs[key]) for key in used]
                papers = [paper_average(paper_row(m, a.model, used), used) for m in (method, over)]
                gain = papers[0] / papers[1] - 1 if papers[0] is not None and papers[1] else None
                official, strict = (_gain(pairs, family) for family in FAMILIES)
                if official is not None:
                    found.append(
                        Gain(name, method, over, a.model_label, used, len(used) == len(keys), gain, official, strict)
                    )
    return found


def paper_row(method: str, model: str, keys: Iterable[str]) -> PaperRow | None:
    """Return the row that has the paper's figures of a method and model in these columns, or None."""
    wanted = list(keys)
    rows = (table.row(method, model) for table in paper_tables())
    return next((row for row in rows if row is not None and all(key in row.values for key in wanted)), None)


def paper_average(row: PaperRow | None, keys: Sequence[str]) -> float | None:
    """Return the average of a row's figures in some columns, 0 to 1, or None without a row."""
    return math.fsum(row.values[key] for key in keys) / len(keys) / 100 if row is not None and keys else None


def method_title(method: str) -> str:
    """Return what tables call a method."""
    return METHODS.get(method, method)


def _cells(system: System, cells: Sequence[Cell], keys: Sequence[str]) -> dict[str, Cell]:
    mine = {cell.column.key: cell for cell in cells if any(cell.outcomes is o for o in system.outcomes)}
    return {key: mine[key] for key in keys if key in mine}


def _gain(pairs: Sequence[tuple[Cell, Cell]], family: str) -> Interval | None:
    values = [[_values(cell, cell.column, family) for cell in pair] for pair in pairs]
    if any(v is None for pair in values for v in pair):
        return None
    a, b = ([pair[side] or {} for pair in values] for side in (0, 1))
    paired = all(x.outcomes.run.same_questions(y.outcomes.run) for x, y in pairs)
    return relative_gain(a, b, paired=paired)


def _values(cell: Cell, column: Column, family: str) -> Mapping[str, float] | None:
    return cell.outcomes.values(family, column.metrics, fallback=cell.with_fallback, group=column.group)
