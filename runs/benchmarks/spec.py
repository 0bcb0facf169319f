"""What a benchmark is: where its questions come from, how they are judged, how they like to be run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runs.benchmarks.question import Question
from signatures.templates import Task


@dataclass(frozen=True)
class Benchmark:
    """A benchmark.

    Attributes:
        name: Name on the command line.
        summary: One line for listings.
        licence: Licence of its questions.
        task: Task kind.
        metric: Headline metric.
        splits: Split name to number of questions; counts are checked at load.
        default_split: Split taken when none is named.
        load: Loads a split.
        corpus: JSONL file of a corpus that comes with it, or None.
        options: Program options it is run with unless others are given.
        methods: Methods run by default.
        default_limit: Questions run by default, or None for all.
    """

    name: str
    summary: str
    licence: str
    task: Task
    metric: str
    splits: Mapping[str, int]
    default_split: str
    load: Callable[[str], Sequence[Question]]
    corpus: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    methods: tuple[str, ...] = ("search_o1",)
    default_limit: int | None = None
