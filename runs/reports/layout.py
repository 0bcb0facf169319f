"""A report as data, before it is Markdown, HTML or LaTeX: headings, paragraphs, lists and tables of plain text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

MISSING = "–"
"""What stands in a cell that nobody measured."""

RowKind = Literal["paper", "ours", "plain", "section"]


@dataclass(frozen=True)
class Heading:
    """A heading.

    Attributes:
        text: Its text.
        level: 1 for the title of the report, 2 for a part.
    """

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of plain text."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list of plain sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes:
        cells: Texts, the row's name first; a section has its name only.
        kind: Whose figures these are, which renderers show by more than colour.
    """

    cells: tuple[str, ...]
    kind: RowKind = "plain"


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        caption: What it shows.
        columns: Column headings, that of the row names first.
        rows: The rows.
        groups: Headings over several columns, as (heading, number of columns), which together span all of them; empty
            for none.
        words: How many columns from the left hold words; those after them hold numbers.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    groups: tuple[tuple[str, int], ...] = ()
    words: int = 1


Block = Heading | Paragraph | Bullets | Table


@dataclass(frozen=True)
class Document:
    """A whole report.

    Attributes:
        title: Its title.
        blocks: What follows, in order.
    """

    title: str
    blocks: tuple[Block, ...]


def bullets(items: Sequence[str]) -> tuple[Block, ...]:
    """Return a list as a block, or nothing for no items."""
    return (Bullets(tuple(items)),) if items else ()
