"""GPQA: graduate-level questions in biology, physics and chemistry, each with four choices.

The file is read by the `csv` module, as the paper's authors do: a table reader would take the choice `None` for a gap.
Its authors ask that questions are not shown in plain text online, so the set is gated and no question ships here.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from runs.benchmarks.hub import dataset_page, fetch
from runs.benchmarks.rows import Row, questions_of
from runs.benchmarks.spec import Benchmark, LoadedSplit
from signatures.errors import DataError

_REPO = "Idavidrein/gpqa"
_COLUMNS = ("Record ID", "Question", "Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")


def _load(split: str) -> LoadedSplit:
    files = fetch(_REPO, [f"gpqa_{split}.csv"])
    return LoadedSplit(questions_of(_rows(files.paths[0])), files.revision)


def _rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        for number, fields in enumerate(csv.DictReader(file), 1):
            missing = [name for name in _COLUMNS if not fields.get(name)]
            if missing:
                raise DataError(f"{path}, row {number}: no {missing[0]!r}; the hub's file has changed its columns.")
            kept = {name: fields[name] for name in (*_COLUMNS, "High-level domain", "Subdomain") if fields.get(name)}
            yield Row(f"{path}, row {number}", kept)


GPQA = Benchmark(
    name="gpqa",
    summary="graduate-level multiple choice in biology, physics and chemistry",
    licence="CC-BY-4.0",
    task="multiple_choice",
    metric="em",
    splits={"diamond": 198, "main": 448, "extended": 546},
    default_split="diamond",
    load=_load,
    groups=("domain",),
    gated=True,
    source=dataset_page(_REPO),
)
