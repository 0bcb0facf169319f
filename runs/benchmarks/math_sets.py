"""MATH-500, AIME 2024 and AMC 2023, as the paper's authors chose them.

Of the two AI-MO sets the year is kept, told by the problem's address, and an answer is the whole number in it (`025`
and 25.0 are 25). Source: the authors' data notebook, data/data_pre_precess.ipynb.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from runs.benchmarks.hub import dataset_page, fetch
from runs.benchmarks.question_files import read_rows
from runs.benchmarks.rows import Row, questions_of
from runs.benchmarks.spec import Benchmark, LoadedSplit
from signatures.errors import DataError

_MATH500 = "HuggingFaceH4/MATH-500"
_AIME = "AI-MO/aimo-validation-aime"
_AMC = "AI-MO/aimo-validation-amc"
_TABLE = "data/train-*.parquet"


def _load_math500(split: str) -> LoadedSplit:
    files = fetch(_MATH500, [f"{split}.jsonl"])
    return LoadedSplit(questions_of(read_rows(files.paths[0])), files.revision)


def _load_aime24(split: str) -> LoadedSplit:
    return _load_year(_AIME, "2024_AIME")


def _load_amc23(split: str) -> LoadedSplit:
    return _load_year(_AMC, "2023")


def _load_year(repo: str, mark: str) -> LoadedSplit:
    files = fetch(repo, [_TABLE])
    chosen = (row for row in read_rows(files.paths[0]) if mark in str(row.fields.get("url")))
    return LoadedSplit(questions_of(_whole_answers(chosen)), files.revision)


def _whole_answers(rows: Iterator[Row]) -> Iterator[Row]:
    for row in rows:
        yield replace(row, fields={**row.fields, "answer": _whole(row.fields.get("answer"), row.where)})


def _whole(answer: Any, where: str) -> str:
    try:
        number = int(answer)
        if number == float(answer):
            return str(number)
    except (TypeError, ValueError, OverflowError):
        pass
    raise DataError(f"{where}: the answer {answer!r} is no whole number.")


MATH500 = Benchmark(
    name="math500",
    summary="500 problems of the MATH dataset's test split",
    licence="MIT",
    task="math",
    metric="math_equal",
    splits={"test": 500},
    default_split="test",
    load=_load_math500,
    groups=("level", "subject"),
    source=dataset_page(_MATH500),
)

AIME24 = Benchmark(
    name="aime24",
    summary="American Invitational Mathematics Examination 2024, I and II",
    licence="Apache-2.0 (problems: MAA)",
    task="math",
    metric="math_equal",
    splits={"test": 30},
    default_split="test",
    load=_load_aime24,
    source=dataset_page(_AIME),
)

AMC23 = Benchmark(
    name="amc23",
    summary="American Mathematics Competitions 12, 2023, with whole-number answers",
    licence="Apache-2.0 (problems: MAA)",
    task="math",
    metric="math_equal",
    splits={"test": 40},
    default_split="test",
    load=_load_amc23,
    source=dataset_page(_AMC),
)
