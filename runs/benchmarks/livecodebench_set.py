"""LiveCodeBench: the 112 contest problems of 1 August to 30 November 2024.

They stand in two files of nearly two gigabytes, almost all of it private tests. Lines outside the window are passed
over before they are parsed, and of the others the tests stay in the file (see `problem_tests`). Window and removal of
repeated problem texts are those of the paper's authors (data/data_pre_precess.ipynb).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from runs.benchmarks.hub import dataset_page, fetch
from runs.benchmarks.problem_tests import RowPlace
from runs.benchmarks.rows import Row, questions_of
from runs.benchmarks.spec import Benchmark, LoadedSplit
from signatures.errors import DataError

_REPO = "livecodebench/code_generation_lite"
_FILES = ("test3.jsonl", "test4.jsonl")
_FIRST_DAY = datetime(2024, 8, 1)
_LAST_DAY = datetime(2024, 11, 30)
_DATE = re.compile(rb'"contest_date":\s*"([^"]*)"')


def _load(split: str) -> LoadedSplit:
    files = fetch(_REPO, _FILES)
    return LoadedSplit(questions_of(_chosen(files.paths)), files.revision)


def _chosen(paths: tuple[Path, ...]) -> Iterator[Row]:
    seen: set[str] = set()
    for path in paths:
        for row in _rows_in_window(path):
            text = row.fields.get("question_content")
            if text and text not in seen:
                seen.add(text)
                yield row


def _rows_in_window(path: Path) -> Iterator[Row]:
    with path.open("rb") as file:
        offset = 0
        for number, line in enumerate(file, 1):
            place = RowPlace(path, offset, len(line))
            offset += len(line)
            where = f"{path}, line {number}"
            # A quotation mark inside a JSON text has a backslash before it, so the first match is the field itself.
            found = _DATE.search(line)
            if found and _in_window(found.group(1).decode("utf-8", "replace"), where):
                yield Row(where, _parse(line, where), place)


def _in_window(date: str, where: str) -> bool:
    try:
        return _FIRST_DAY <= datetime.fromisoformat(date).replace(tzinfo=None) <= _LAST_DAY
    except ValueError:
        raise DataError(f"{where}: contest_date {date!r} is no date.") from None


def _parse(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise DataError(f"{where}: not JSON ({error}).") from None
    if not isinstance(row, dict):
        raise DataError(f"{where}: expected an object, found {type(row).__name__}.")
    return row


LIVECODEBENCH = Benchmark(
    name="livecodebench",
    summary="contest problems of AtCoder and LeetCode, August to November 2024",
    licence="CC",
    task="code",
    metric="pass@1",
    splits={"test": 112},
    default_split="test",
    load=_load,
    groups=("difficulty", "platform"),
    source=dataset_page(_REPO),
)
