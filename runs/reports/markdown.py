"""A report as Markdown (GitHub's tables)."""

from __future__ import annotations

import re

from runs.reports.layout import Block, Bullets, Document, Heading, Paragraph, Row, Table

_SPECIAL = re.compile(
    r"""[\\`*<>|~]                               # anywhere
    | (?<![A-Za-z0-9])_ | _(?![A-Za-z0-9])      # not within a word, as in search_o1
    | \](?=[(\[:])                              # not in an interval, as in [1.0, 2.0]
    | &(?=[#\w]+;)
    | ^[#+-](?=\s)                              # what would begin a heading or a list
    """,
    re.VERBOSE,
)


def to_markdown(document: Document) -> str:
    """Render a report.

    Args:
        document: The report.

    Returns:
        Markdown, ending in a line break. What is Markdown's own in names and values is escaped.
    """
    parts = [f"# {_escape(document.title)}", *(_block(block) for block in document.blocks)]
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {_escape(block.text)}"
    if isinstance(block, Paragraph):
        return _escape(block.text)
    if isinstance(block, Bullets):
        return "\n".join(f"- {_escape(item)}" for item in block.items)
    return _table(block)


def _table(table: Table) -> str:
    # Markdown has one header line: the heading over several columns goes into each of them.
    over = [title for title, count in table.groups for _ in range(count)] or [""] * len(table.columns)
    heads = [
        _escape(f"{group} {column}".strip() if group != column else column)
        for group, column in zip(over, table.columns, strict=True)
    ]
    lines = [
        f"**{_escape(table.caption)}**",
        "",
        f"| {' | '.join(heads)} |",
        f"|{'|'.join([':--'] * table.words + ['--:'] * (len(heads) - table.words))}|",
        *(f"| {' | '.join(_cells(row, len(heads)))} |" for row in table.rows),
    ]
    return "\n".join(lines)


def _cells(row: Row, width: int) -> list[str]:
    cells = [_escape(cell) for cell in row.cells] + [""] * (width - len(row.cells))
    if row.kind == "section":
        cells[0] = f"*{cells[0]}*"
    elif row.kind == "ours":
        cells = [f"**{cell}**" if cell else "" for cell in cells]
    return cells


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", " ".join(text.split()))
