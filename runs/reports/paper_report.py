"""Runs laid out beside the paper's tables: `search-o1 report RUN… --paper`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runs.reports.averages import Average, Gain, averages_of, gains_of, method_title
from runs.reports.cells import Cell, cells_of
from runs.reports.fallback import Outcomes
from runs.reports.intervals import Interval
from runs.reports.layout import MISSING, Block, Document, Heading, Paragraph, Row, Table, bullets
from runs.reports.paper_notes import paper_notes
from runs.reports.paper_tables import AVERAGES, METHODS, PaperRow, PaperTable, paper_data, paper_tables
from runs.reports.run_table import (
    coverage_notes,
    double_notes,
    learned_notes,
    missing_notes,
    run_table,
    setting_notes,
)
from runs.reports.systems import System, systems_of
from runs.reports.wording import percent, signed, with_interval


@dataclass(frozen=True)
class PaperComparison:
    """Everything that is laid out, as numbers.

    Attributes:
        cells: Our numbers beside the paper's.
        averages: Averages over sets.
        gains: Relative gains.
        notes: What a reader must know of them.
        document: The layout.
    """

    cells: tuple[Cell, ...]
    averages: tuple[Average, ...]
    gains: tuple[Gain, ...]
    notes: tuple[str, ...]
    document: Document


def compare_with_paper(outcomes: Sequence[Outcomes]) -> PaperComparison:
    """Lay runs beside the paper's tables.

    Args:
        outcomes: The runs.

    Returns:
        The comparison.
    """
    systems = systems_of(outcomes)
    cells = [cell for table in paper_tables() for cell in cells_of(table, outcomes)]
    averages, gains = averages_of(systems, cells), gains_of(systems, cells)
    notes = [
        *paper_notes(outcomes, cells),
        *missing_notes(outcomes),
        *learned_notes(outcomes),
        *coverage_notes(outcomes),
        *double_notes(outcomes),
        *setting_notes(outcomes),
    ]
    blocks: list[Block] = [
        Paragraph(f"Figures in percent. Paper: {paper_data()['source']}. {MISSING} was not measured."),
    ]
    for table in paper_tables():
        mine = [cell for cell in cells if cell.table == table.number]
        blocks.append(Heading(f"Table {table.number}. {table.title}"))
        blocks.append(_wide(table, systems, mine))
        if mine:
            blocks.append(_side_by_side(table, systems, mine))
    if averages:
        blocks += [Heading("Averages over sets"), _averages(averages)]
    if gains:
        blocks += [Heading("Relative gains"), _gains(gains)]
    blocks += [Heading("Notes"), *bullets(notes), Heading("Runs"), run_table(outcomes)]
    document = Document("Runs beside the Search-o1 paper", tuple(blocks))
    return PaperComparison(tuple(cells), tuple(averages), tuple(gains), tuple(notes), document)


def marks(cell: Cell) -> str:
    """Return the signs that stand behind a number: † for a part of the set, ‡ for a fallback that is missing."""
    return ("†" if cell.partial else "") + ("‡" if cell.fallback_missing else "")


def _wide(table: PaperTable, systems: Sequence[System], cells: Sequence[Cell]) -> Table:
    """Return the paper's own layout, our numbers under the rows they belong to."""
    rows: list[Row] = []
    for method in ("human", *METHODS):
        theirs = [row for row in table.rows if row.method == method]
        ours = [s for s in systems if s.method == method and _of(s, cells)]
        shown: list[Row] = []
        for row in theirs:
            beside = [s for s in ours if table.row(s.method, s.model) is row]
            # Another paper's figures are there for our runs of that model, not as a table of their own.
            if beside or "arXiv" not in row.source:
                shown.append(_paper_row(table, row))
            shown += [line for system in beside for line in _our_rows(table, system, cells)]
        for system in ours:
            if table.row(system.method, system.model) is None:
                shown += _our_rows(table, system, cells)
        if shown:
            rows += [Row((METHODS.get(method, "Human experts"),), "section"), *shown]
    spans: dict[str, int] = {}
    for column in table.columns:
        spans[column.set_title] = spans.get(column.set_title, 0) + 1
    heads = tuple(column.title for column in table.columns)
    return Table(
        f"Table {table.number} of the paper with our runs", ("", *heads), tuple(rows), (("", 1), *spans.items())
    )


def _paper_row(table: PaperTable, row: PaperRow) -> Row:
    name = f"{row.model} ({row.source})" if row.source else row.model
    return Row((name, *(percent(_share(row.values.get(c.key))) for c in table.columns)), "paper")


def _our_rows(table: PaperTable, system: System, cells: Sequence[Cell]) -> list[Row]:
    mine = {cell.column.key: cell for cell in _of(system, cells)}
    official = [
        f"{percent(mine[c.key].official.mean)}{marks(mine[c.key])}" if c.key in mine else MISSING for c in table.columns
    ]
    strict = []
    for column in table.columns:
        found = mine[column.key].strict if column.key in mine else None
        strict.append(MISSING if found is None else f"{percent(found.mean)}{marks(mine[column.key])}")
    name = f"{system.model_label}, ours"
    return [Row((f"{name}, official", *official), "ours"), Row((f"{name}, strict", *strict), "ours")]


def _side_by_side(table: PaperTable, systems: Sequence[System], cells: Sequence[Cell]) -> Table:
    columns = (
        "", "Paper", "Difference", "With fallback", "Own answers", "With fallback", "Own answers", "Questions",
    )  # fmt: skip
    rows: list[Row] = []
    for system in systems:
        mine = sorted(_of(system, cells), key=lambda cell: table.columns.index(cell.column))
        if mine:
            rows.append(Row((system.label,), "section"))
        for cell in mine:
            asked = str(cell.official.n)
            rows.append(
                Row(
                    (
                        cell.column.name,
                        percent(cell.paper),
                        signed(cell.difference) + (marks(cell) if cell.difference is not None else ""),
                        with_interval(cell.official if cell.with_fallback else None),
                        with_interval(cell.official_own),
                        with_interval(cell.strict if cell.with_fallback else None),
                        with_interval(cell.strict_own),
                        f"{asked} of {cell.column.questions}" if cell.partial else asked,
                    )
                )
            )
    groups = (("", 3), ("Ours, official", 2), ("Ours, strict", 2), ("", 1))
    return Table(f"Our runs in Table {table.number}, with 95 % intervals", columns, tuple(rows), groups)


def _averages(averages: Sequence[Average]) -> Table:
    rows: list[Row] = []
    for name, (title, keys) in AVERAGES.items():
        mine = [a for a in averages if a.name == name]
        if mine:
            rows.append(Row((title,), "section"))
        rows += [
            Row(
                (
                    a.system.label,
                    percent(a.paper),
                    with_interval(a.official),
                    with_interval(a.strict),
                    _sets(a.columns, len(keys)),
                )
            )
            for a in mine
        ]
    return Table("Averages, each set counting the same", ("", "Paper", "Official", "Strict", "Sets"), tuple(rows))


def _gains(gains: Sequence[Gain]) -> Table:
    rows: list[Row] = []
    pairs = dict.fromkeys((g.method, g.over, g.model) for g in gains)
    for method, over, model in pairs:
        rows.append(Row((f"{method_title(method)} over {method_title(over)}, {model}",), "section"))
        rows += [
            Row(
                (
                    AVERAGES[g.name][0],
                    signed(None if g.paper is None else Interval(g.paper)),
                    signed(g.official),
                    signed(g.strict),
                    _sets(g.columns, len(AVERAGES[g.name][1])),
                )
            )
            for g in gains
            if (g.method, g.over, g.model) == (method, over, model)
        ]
    caption = "By how many percent one method's average exceeds another's"
    return Table(caption, ("", "Paper", "Official", "Strict", "Sets"), tuple(rows))


def _sets(columns: Sequence[str], wanted: int) -> str:
    if len(columns) == wanted:
        return f"all {wanted}"
    return f"{len(columns)} of {wanted}: {', '.join(key.split('.')[0] for key in columns)}"


def _of(system: System, cells: Sequence[Cell]) -> list[Cell]:
    return [cell for cell in cells if any(cell.outcomes is o for o in system.outcomes)]


def _share(value: float | None) -> float | None:
    return None if value is None else value / 100
