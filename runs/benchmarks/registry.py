"""The benchmarks that ship or load by name. A new benchmark is one new file and one line here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from runs.benchmarks.question import Question, read_questions
from runs.benchmarks.quickstart_set import QUICKSTART
from runs.benchmarks.spec import Benchmark
from signatures.errors import OptionError

BENCHMARKS: dict[str, Benchmark] = {QUICKSTART.name: QUICKSTART}


@dataclass(frozen=True)
class QuestionSet:
    """Questions chosen for a run.

    Attributes:
        name: Name of the benchmark or of the file.
        split: Split they come from; empty for a file without splits.
        questions: The questions.
        benchmark: The benchmark they belong to, or None for a file.
    """

    name: str
    split: str
    questions: Sequence[Question]
    benchmark: Benchmark | None = None


def find_benchmark(name: str) -> Benchmark:
    """Return a benchmark by name.

    Raises:
        OptionError: The name is unknown; the text lists the known ones.
    """
    if name not in BENCHMARKS:
        raise OptionError(
            f"Unknown benchmark {name!r}; known: {', '.join(BENCHMARKS)}. Your own questions: `--data FILE` "
            "(see the README)."
        )
    return BENCHMARKS[name]


def load_questions(
    benchmark: str = "", *, data: Path | None = None, split: str = "", limit: int | None = None, ids: Sequence[str] = ()
) -> QuestionSet:
    """Load the questions of a benchmark or of a file.

    Args:
        benchmark: Name of a benchmark; ignored when `data` is given, except as a label.
        data: A question file.
        split: Split to take; a benchmark's own default when empty, all rows of a file.
        limit: Take only the first so many.
        ids: Take only these ids.

    Returns:
        The chosen questions, in order.

    Raises:
        OptionError: The benchmark, split or an id is unknown, or nothing is left.
        DataError: The file is bad.
    """
    if data is not None:
        questions = read_questions(data)
        if split:
            questions = [q for q in questions if q.split == split]
        chosen = QuestionSet(benchmark or data.stem, split, questions)
    else:
        spec = find_benchmark(benchmark)
        wanted = split or spec.default_split
        if wanted not in spec.splits:
            raise OptionError(f"Benchmark {benchmark} has no split {wanted!r}; it has: {', '.join(spec.splits)}.")
        chosen = QuestionSet(spec.name, wanted, spec.load(wanted), spec)
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
    return QuestionSet(chosen.name, chosen.split, found, chosen.benchmark)


def data_folder(benchmark: str) -> Path:
    """Return the folder of a benchmark's shipped files."""
    return Path(str(files("runs") / "benchmarks" / benchmark))
