"""Reading question files: a JSON list, JSON Lines, or Parquet.

JSON Lines are read line by line, so that a file of gigabytes costs no more memory than the rows that are kept, and by
no table reader: those guess types, and would turn a label like `2001-09-11` into a date.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runs.benchmarks.problem_tests import RowPlace
from runs.benchmarks.question import Question
from runs.benchmarks.rows import Row, questions_of
from signatures.errors import DataError

_PARQUET = b"PAR1"


def read_questions(path: Path) -> list[Question]:
    """Read the questions of a file.

    Args:
        path: A JSON list, JSON Lines, or Parquet; told apart by its first bytes. For field names see
            `runs.benchmarks.rows`.

    Returns:
        The questions, in file order.

    Raises:
        DataError: The file is missing or malformed, a row lacks a question or an answer, or two share an id.
    """
    questions = questions_of(read_rows(path))
    if not questions:
        raise DataError(f"{path} holds no question; expected a JSON list, one JSON object a line, or Parquet.")
    return questions


def read_rows(path: Path) -> Iterator[Row]:
    """Read the rows of a file one after another.

    Args:
        path: The file.

    Yields:
        Its rows; those of JSON Lines with their place.

    Raises:
        DataError: The file is missing or malformed.
    """
    try:
        with path.open("rb") as file:
            start = file.read(1_024)
    except FileNotFoundError:
        raise DataError(f"No question file at {path}; check the path given with --data.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}. It must be a JSON, JSONL or Parquet file.") from None
    if start.startswith(_PARQUET):
        yield from _parquet_rows(path)
    elif start.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"["):
        yield from _listed_rows(path)
    else:
        yield from _lines(path)


def _parquet_rows(path: Path) -> Iterator[Row]:
    import datasets

    try:
        rows = datasets.load_dataset("parquet", data_files={"rows": str(path)}, split="rows", streaming=True)
        for number, fields in enumerate(rows, 1):
            yield Row(f"{path}, row {number}", fields)
    # The library passes on whatever its readers raise.
    except Exception as error:
        raise DataError(f"{path} is not valid Parquet: {type(error).__name__}: {error}.") from None


def _listed_rows(path: Path) -> Iterator[Row]:
    try:
        loaded = json.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise _not_utf8(path, error) from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not valid JSON: {error}.") from None
    for number, fields in enumerate(loaded, 1):
        yield Row(f"{path}, row {number}", fields)


def _lines(path: Path) -> Iterator[Row]:
    with path.open("rb") as file:
        offset = 0
        for number, line in enumerate(file, 1):
            place = RowPlace(path, offset, len(line))
            offset += len(line)
            if number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            if line.strip():
                yield Row(f"{path}, line {number}", _parse(line, path, number), place)


def _parse(line: bytes, path: Path, number: int) -> Any:
    try:
        return json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _not_utf8(path, error) from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}, line {number}: not JSON ({error}); expected one JSON object a line.") from None


def _not_utf8(path: Path, error: UnicodeDecodeError) -> DataError:
    return DataError(f"{path} cannot be read: {error}. It must be a UTF-8 JSON or JSONL file, or Parquet.")
