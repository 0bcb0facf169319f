"""Documents of a corpus, read from JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signatures.errors import DataError


@dataclass(frozen=True)
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


def read_documents(paths: Sequence[Path]) -> Iterator[Document]:
    """Read documents from JSONL files, one object a line; blank lines are passed over.

    Two forms are known: `{"id", "title", "text"}`, and FlashRAG's `{"id", "contents"}`, where the first line of the
    contents is the title. Other keys are ignored. A number as id is taken as its digits.

    Args:
        paths: The files, in order.

    Yields:
        The documents in order.

    Raises:
        DataError: A file is missing, or a line is malformed or repeats an id; it names file and line.
    """
    seen: set[str] = set()
    for path in paths:
        try:
            with open(path, encoding="utf-8-sig") as lines:
                for number, line in enumerate(lines, start=1):
                    if not line.strip():
                        continue
                    document = _parse(line, f"{path}, line {number}")
                    if document.id in seen:
                        raise DataError(f"{path}, line {number}: the id {document.id!r} occurs twice; make it unique.")
                    seen.add(document.id)
                    yield document
        except OSError as error:
            raise DataError(f"The corpus file {path} cannot be read: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            raise DataError(f"The corpus file {path} is not UTF-8 ({error.reason}); convert it first.") from error


def _parse(line: str, where: str) -> Document:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not valid JSON ({error}).") from error
    if not isinstance(record, dict):
        raise DataError(f"{where}: a JSON object is needed, not {type(record).__name__}.")
    identity = record.get("id")
    if isinstance(identity, bool) or not isinstance(identity, str | int) or identity == "":
        raise DataError(f'{where}: "id" must be a string or a whole number, not {identity!r}.')
    if "text" in record:
        title, text = record.get("title") or "", record["text"]
    else:
        title, text = _from_contents(record, where)
    for key, value in (("title", title), ("text", text)):
        if not isinstance(value, str):
            raise DataError(f'{where}: "{key}" must be a string, not {value!r:.100}.')
    return Document(str(identity), title, text)


def _from_contents(record: dict[str, Any], where: str) -> tuple[str, str]:
    contents = record.get("contents")
    if not isinstance(contents, str):
        raise DataError(f'{where}: neither "text" nor "contents" is there; known keys are id, title, text, contents.')
    first, _, rest = contents.partition("\n")
    title = first.strip()
    if len(title) > 1 and title[0] == title[-1] == '"':
        title = title[1:-1]
    return (title, rest.strip()) if rest.strip() else ("", contents.strip())
