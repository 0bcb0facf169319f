"""What benchmarks there are, and examples of their questions: `search-o1 benchmarks`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from runs.benchmarks.question import Question
from runs.benchmarks.registry import BENCHMARKS, QuestionSet, load_questions
from runs.benchmarks.spec import Benchmark


@dataclass(frozen=True)
class BenchmarkEntry:
    """A line of the list of benchmarks.

    Attributes:
        name: Name on the command line.
        splits: Split name to number of questions, the default split first; None where the number is not known.
        task: Task kind.
        metric: Headline metric.
        groups: Groups by which scores are given too.
        licence: Licence of its questions.
        login: Whether a login at the hub and accepted terms are needed.
        searches: Searches a question that the paper's setting allows.
        turns: Turns a question that the paper's setting allows.
        source: Page where it is published, or empty for the one that ships.
        summary: What it is, in a line.
    """

    name: str
    splits: Mapping[str, int | None]
    task: str
    metric: str
    groups: tuple[str, ...]
    licence: str
    login: bool
    searches: int
    turns: int
    source: str
    summary: str

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain data."""
        return asdict(self)


def list_benchmarks() -> list[BenchmarkEntry]:
    """Return the benchmarks that load by name; nothing is fetched.

    Returns:
        One entry a benchmark.
    """
    return [_entry(benchmark) for benchmark in BENCHMARKS.values()]


def show_benchmark(name: str, *, data: Path | None = None, split: str = "", limit: int = 3) -> QuestionSet:
    """Load the first questions of a benchmark or of a file.

    Args:
        name: A benchmark's name or file; with `data` may be any label.
        data: A question file to take instead of the hub's.
        split: Split; the benchmark's default when empty.
        limit: How many questions; 0 for all.

    Returns:
        The questions.

    Raises:
        OptionError: Benchmark or split are unknown.
        DataError: The questions cannot be fetched or read; the text says what to do.
    """
    return load_questions(name, data=data, split=split, limit=limit)


def describe_question(question: Question) -> dict[str, Any]:
    """Return a question as plain data, what is empty left out.

    Args:
        question: The question. Of a code problem the number of tests is told, for which they are decoded.

    Returns:
        What `search-o1 benchmarks show --json` prints a line.
    """
    told: dict[str, Any] = {
        "id": question.id,
        "question": question.question,
        "answers": list(question.answers),
        "choices": list(question.choices),
        "choice_order": list(question.choice_order),
        "groups": dict(question.groups),
        "gold_titles": list(question.gold_titles),
        "inputs": dict(question.inputs),
        "details": dict(question.details),
    }
    if question.tests is not None:
        tests = question.tests.read()
        told["tests"] = {"public": len(tests.public), "private": len(tests.private), "function": tests.function}
    return {name: value for name, value in told.items() if value}


def _entry(benchmark: Benchmark) -> BenchmarkEntry:
    first = benchmark.default_split
    searches, turns = benchmark.paper_limits
    return BenchmarkEntry(
        name=benchmark.name,
        splits={first: benchmark.splits[first], **benchmark.splits},
        task=benchmark.task,
        metric=benchmark.metric,
        groups=benchmark.groups,
        licence=benchmark.licence,
        login=benchmark.gated,
        searches=searches,
        turns=turns,
        source=benchmark.source,
        summary=benchmark.summary,
    )
