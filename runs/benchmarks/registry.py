"""The benchmarks that ship or load by name. A new benchmark is one new file and one line here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import cast

from runs.benchmarks.flashrag_sets import FLASHRAG_SETS
from runs.benchmarks.gpqa_set import GPQA
from runs.benchmarks.livecodebench_set import LIVECODEBENCH
from runs.benchmarks.math_sets import AIME24, AMC23, MATH500
from runs.benchmarks.own_file import is_benchmark_file, read_benchmark
from runs.benchmarks.question import Question
from runs.benchmarks.question_files import read_questions
from runs.benchmarks.quickstart_set import QUICKSTART
from runs.benchmarks.spec import Benchmark
from signatures.errors import DataError, OptionError
from signatures.templates import Task

BENCHMARKS: dict[str, Benchmark] = {
    benchmark.name: benchmark for benchmark in (QUICKSTART, GPQA, MATH500, AIME24, AMC23, LIVECODEBENCH, *FLASHRAG_SETS)
}


@dataclass(frozen=True)
class QuestionSet:
    """Questions chosen for a run.

    Attributes:
        name: Name of the benchmark or of the file.
        split: Split they come from; empty for a file without splits.
        questions: The questions.
        benchmark: The benchmark they belong to, or None for a file without one.
        task: Task kind: the benchmark's, else the one that the file's fields tell, else `open_qa`.
        revision: Commit of the hub repository they come from, or empty.
    """

    name: str
    split: str
    questions: Sequence[Question]
    benchmark: Benchmark | None = None
    task: Task = "open_qa"
    revision: str = ""


def find_benchmark(name: str) -> Benchmark:
    """Return a benchmark.

    Args:
        name: Its name, or the path of a Python file that defines one.

    Returns:
        The benchmark.

    Raises:
        OptionError: The name is unknown; the text lists the known ones.
        DataError: The file defines no benchmark.
    """
    if is_benchmark_file(name):
        return read_benchmark(Path(name))
    if name not in BENCHMARKS:
        raise OptionError(
            f"Unknown benchmark {name!r}; known: {', '.join(BENCHMARKS)}. Your own questions: `--data FILE`, or a "
            "benchmark file `my_set.py` (see docs/your_own_benchmark.md)."
        )
    return BENCHMARKS[name]


def load_questions(
    benchmark: str | Benchmark = "",
    *,
    data: Path | None = None,
    split: str = "",
    limit: int | None = None,
    ids: Sequence[str] = (),
) -> QuestionSet:
    """Load the questions of a benchmark or of a file.

    Args:
        benchmark: A benchmark, its name or its file. With `data` the questions come from there: a known benchmark then
            gives task, metric and options, any other name is a label.
        data: A question file.
        split: Split to take; a benchmark's own default when empty, all rows of a file.
        limit: Take only the first so many.
        ids: Take only these ids.

    Returns:
        The chosen questions, in order.

    Raises:
        OptionError: The benchmark, split or an id is unknown, or nothing is left.
        DataError: The file is bad, is of another task kind than the benchmark, or cannot be fetched.
    """
    chosen = _from_file(benchmark, data, split) if data is not None else _from_benchmark(benchmark, split)
    found = list(chosen.questions)
    if ids:
        known = {q.id for q in found}
        missing = [i for i in ids if i not in known]
        if missing:
            raise OptionError(f"No question with id {missing[0]!r} in {chosen.name} {chosen.split}.".replace(" .", "."))
        found = [q for q in found if q.id in set(ids)]
    found = found[:limit] if limit else found
    if not found:
        raise OptionError(f"No questions left in {chosen.name}: check --split {split!r} and --limit {limit}.")
    return replace(chosen, questions=found)


def data_folder(benchmark: str) -> Path:
    """Return the folder of a benchmark's shipped files."""
    return Path(str(files("runs") / "benchmarks" / benchmark))


def _from_benchmark(benchmark: str | Benchmark, split: str) -> QuestionSet:
    spec = find_benchmark(benchmark) if isinstance(benchmark, str) else benchmark
    wanted = split or spec.default_split
    if wanted not in spec.splits:
        raise OptionError(f"Benchmark {spec.name} has no split {wanted!r}; it has: {', '.join(spec.splits)}.")
    loaded = spec.load_split(wanted)
    _check_kind(spec, loaded.questions, spec.name)
    return QuestionSet(spec.name, wanted, loaded.questions, spec, spec.task, loaded.revision)


def _from_file(benchmark: str | Benchmark, data: Path, split: str) -> QuestionSet:
    spec, label = (None, benchmark) if isinstance(benchmark, str) else (benchmark, benchmark.name)
    if label in BENCHMARKS or is_benchmark_file(label):
        spec = find_benchmark(label)
    questions = read_questions(data)
    if split:
        questions = [q for q in questions if q.split == split]
    told = questions[0].task if questions else ""
    if spec is None:
        return QuestionSet(label or data.stem, split, questions, None, cast(Task, told or "open_qa"))
    _check_kind(spec, questions, str(data))
    # A limit that suits the benchmark's own questions says nothing about these.
    return QuestionSet(spec.name, split, questions, replace(spec, default_limit=None), spec.task)


def _check_kind(spec: Benchmark, questions: Sequence[Question], where: str) -> None:
    """Refuse questions that cannot be scored as the benchmark's are."""
    told = {q.task for q in questions}
    needed = {spec.task} if spec.task in ("code", "multiple_choice") else {""}
    if told and told != needed:
        names = ", ".join(sorted(task or "neither choice nor code" for task in told))
        raise DataError(
            f"{where}: its fields say {names}, but {spec.name} is {spec.task}; name another benchmark, or give the "
            "file a label of its own."
        )
