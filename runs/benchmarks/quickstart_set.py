"""`quickstart`: 360 short encyclopedic articles and 476 questions on them, shipped with the package (CC0).

Clusters of four linked articles belong to one split each, so no article answers questions of two splits. The files were
committed with their SHA-256 before any prompt or demo existed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from runs.benchmarks.question import Question
from runs.benchmarks.question_files import read_questions
from runs.benchmarks.spec import Benchmark
from signatures.errors import DataError

_FOLDER = Path(str(files("runs") / "benchmarks" / "quickstart"))
_COUNTS = {"train": 185, "validation": 79, "test": 212}


def _load(split: str) -> Sequence[Question]:
    path = _FOLDER / f"{split}.jsonl"
    listed = [line.split() for line in (_FOLDER / "SHA256SUMS").read_text(encoding="utf-8").splitlines()]
    if [hashlib.sha256(path.read_bytes()).hexdigest(), path.name] not in listed:
        raise DataError(f"{path} differs from the checksum it was published with; install the package again.")
    questions = read_questions(path)
    if len(questions) != _COUNTS[split]:
        raise DataError(f"{path} has {len(questions)} questions, expected {_COUNTS[split]}; install the package again.")
    return questions


QUICKSTART = Benchmark(
    name="quickstart",
    summary="single-hop, two-hop, comparison and yes/no questions on 360 shipped articles",
    licence="CC0-1.0",
    task="open_qa",
    metric="em",
    splits=_COUNTS,
    default_split="test",
    load=_load,
    corpus=_FOLDER / "corpus.jsonl",
    methods=("direct", "search_o1"),
    default_limit=40,
)
