"""Documents of a corpus, and what one line, row or file of a source gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

Position = tuple[int, int]
"""Where reading goes on: an offset that the source understands (bytes, rows or files), and the units before it."""

START: Position = (0, 0)

LONGEST_BYTES = 10_000_000
"""A longer line, HTML file or text file is skipped, so that memory stays bounded."""

LONGEST_ID = 1000
"""Characters of an id at most; the index drops terms far beyond that."""


class Malformed(Exception):
    """A line, row or file gives no document; its text says why, without saying where."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a corpus.

    Attributes:
        id: Its name, unique in the corpus.
        title: Its title, or empty.
        text: Its text.
    """

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Unit:
    """What one line, row or file gave.

    Attributes:
        documents: Its documents in order; a line or row gives one, a long file several parts.
        where: File and line, row or path, for people.
        problem: Why it gave none, or empty.
        position: Where reading goes on after it.
        done: Bytes of the source read so far.
    """

    documents: tuple[Document, ...]
    where: str
    problem: str
    position: Position
    done: int


class Source(Protocol):
    """A file or folder that documents come from.

    Attributes:
        label: Its file name.
        size: Its bytes on disk.
    """

    label: str
    size: int

    def units(self, position: Position = START) -> Iterator[Unit]:
        """Read on from a position that an earlier reading gave.

        Args:
            position: Where to begin.

        Yields:
            What was read, in the same order every time.

        Raises:
            DataError: The source as a whole cannot be read.
        """
        ...


def parse_record(record: Any) -> Document:
    """Make a document from the fields of a line or row.

    Two forms are known: `{"id", "title", "text"}`, and FlashRAG's `{"id", "contents"}`, where the first line of the
    contents is the title. Other keys are ignored. A number as id is taken as its digits.

    Args:
        record: The fields by name.

    Returns:
        The document.

    Raises:
        Malformed: It is no object, or a field is missing or of the wrong type.
    """
    if not isinstance(record, dict):
        raise Malformed(f"a JSON object is needed, not {type(record).__name__}.")
    identity = record.get("id")
    if isinstance(identity, bool) or not isinstance(identity, str | int) or identity == "":
        raise Malformed(f'"id" must be a string or a whole number, not {identity!r:.100}.')
    identity = str(identity)
    if len(identity) > LONGEST_ID:
        raise Malformed(f'"id" has {len(identity):,} characters; at most {LONGEST_ID:,} are allowed.')
    # A table of both forms has both columns in every row, empty in one of them.
    title: Any
    text: Any
    if record.get("text") is not None or "contents" not in record:
        title, text = record.get("title") or "", record.get("text")
        if "text" not in record:
            raise Malformed('neither "text" nor "contents" is there; known keys are id, title, text, contents.')
    else:
        title, text = _from_contents(record["contents"])
    for key, value in (("title", title), ("text", text)):
        if not isinstance(value, str):
            raise Malformed(f'"{key}" must be a string, not {value!r:.100}.')
    return Document(identity, title, text)


def _from_contents(contents: Any) -> tuple[str, str]:
    if not isinstance(contents, str):
        raise Malformed(f'"contents" must be a string, not {contents!r:.100}.')
    first, _, rest = contents.partition("\n")
    title = first.strip()
    if len(title) > 1 and title[0] == title[-1] == '"':
        title = title[1:-1]
    return (title, rest.strip()) if rest.strip() else ("", contents.strip())
