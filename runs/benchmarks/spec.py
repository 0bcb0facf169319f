"""What a benchmark is: where its questions come from, how they are judged, how they like to be run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runs.benchmarks.question import Question
from signatures.errors import DataError, SearchO1Error
from signatures.templates import Task


@dataclass(frozen=True)
class LoadedSplit:
    """The questions of a split, and which version of their files they come from.

    Attributes:
        questions: The questions.
        revision: Commit of the hub repository; empty for files that came otherwise.
    """

    questions: Sequence[Question]
    revision: str = ""


@dataclass(frozen=True)
class Benchmark:
    """A benchmark.

    Attributes:
        name: Name on the command line.
        summary: One line for listings.
        licence: Licence of its questions.
        task: Task kind.
        metric: Headline metric.
        splits: Split name to number of questions, which is checked at load; None where it is not known.
        default_split: Split taken when none is named.
        load: Loads a split: a plain list of questions, or a `LoadedSplit`.
        corpus: JSONL file of a corpus that comes with it, or None.
        options: Program options it is run with unless others are given.
        methods: Methods run by default.
        default_limit: Questions run by default, or None for all.
        groups: Groups by which scores are given too.
        gated: Whether its files need a login and accepted terms.
        source: Page where its questions are published, or empty.
        multi_hop: Whether an open question needs several documents: the paper allows it 10 searches instead of 5.
    """

    name: str
    summary: str
    licence: str
    task: Task
    metric: str
    splits: Mapping[str, int | None]
    default_split: str
    load: Callable[[str], Sequence[Question] | LoadedSplit]
    corpus: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    methods: tuple[str, ...] = ("search_o1",)
    default_limit: int | None = None
    groups: tuple[str, ...] = ()
    gated: bool = False
    source: str = ""
    multi_hop: bool = True

    @property
    def paper_limits(self) -> tuple[int, int]:
        """Searches and turns that the paper's `search_o1` has (the authors' README; design section 3)."""
        if self.task != "open_qa":
            return 5, 10
        return (10 if self.multi_hop else 5), 15

    def load_split(self, split: str) -> LoadedSplit:
        """Load a split and check how many questions it has.

        Args:
            split: A key of `splits`.

        Returns:
            Its questions.

        Raises:
            DataError: They cannot be loaded, or are more or fewer than promised.
        """
        try:
            loaded = self.load(split)
        except SearchO1Error:
            raise
        except Exception as error:
            # Anybody may write a benchmark, and what goes wrong in it is theirs to mend.
            raise DataError(
                f"{self.name}, split {split}: it cannot be loaded ({type(error).__name__}: {error})."
            ) from error
        if not isinstance(loaded, LoadedSplit):
            loaded = LoadedSplit(loaded)
        found, expected = len(loaded.questions), self.splits[split]
        if expected is not None and found != expected:
            version = f" at revision {loaded.revision}" if loaded.revision else ""
            raise DataError(
                f"{self.name}, split {split}: found {found} questions{version}, expected {expected}. Its files have "
                "changed, so scores would not be comparable; give the questions you want with --data FILE. In a "
                "benchmark of your own, correct the number in `splits`."
            )
        return loaded
