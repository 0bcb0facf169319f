"""Runs as an evaluation leaves them, without having to evaluate: real records in real journals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from metrics.version import METRICS_VERSION
from runs.answering import make_record
from runs.benchmarks.question import Question
from runs.home import Home
from runs.journal import Journal, Record
from runs.run_folder import note_start

FACTS = {
    "benchmark": "films", "split": "test", "data": "d" * 64, "method": "direct", "profile": "small", "compiled": "",
    "options": {"task": "open_qa"}, "metrics": METRICS_VERSION,
}  # fmt: skip


def question(number: int) -> Question:
    kind = "bridge" if number % 2 else "single"
    return Question(f"q{number}", f"Who directed film {number}?", (f"Name {number}",), groups={"type": kind})


def answer(number: int, right: bool, sample: int = 0, **found: Any) -> Record:
    """Return the record of an answer; `contaminated` may be given beside the fields of a prediction."""
    contaminated = found.pop("contaminated", False)
    text = f"Name {number}" if right else "nobody"
    given = {"reasoning": f"Well, \\boxed{{{text}}}", "finish": "answered", **found}
    record = make_record(question(number), sample, given, "open_qa", 1.0, 3.5)
    return {**record, "contaminated": contaminated}


def record_run(
    home: Home,
    name: str,
    outcomes: Sequence[bool | Sequence[bool]] | Sequence[Record],
    *,
    planned: int | None = None,
    facts: Mapping[str, Any] | None = None,
) -> str:
    """Write a run and return its id.

    Args:
        home: Where.
        name: Its id.
        outcomes: For each question whether it is right, or that of each sample; or whole records.
        planned: Questions asked for; by default those answered.
        facts: Facts that differ from `FACTS`; a None takes one away.
    """
    records: list[Record] = []
    for number, outcome in enumerate(outcomes):
        if isinstance(outcome, dict):
            records.append(outcome)
        else:
            samples = outcome if isinstance(outcome, list | tuple) else [outcome]
            records += [answer(number, right, sample) for sample, right in enumerate(samples)]
    folder = home.runs / name
    journal = Journal(folder / "journal.jsonl")
    for record in records:
        journal.append(record)
    told = {key: value for key, value in {**FACTS, **(facts or {})}.items() if value is not None}
    wanted = [(record["id"], record["sample"]) for record in records]
    extra = [(f"q{number}", 0) for number in range(len(outcomes), planned or 0)]
    note_start(folder, told, [*wanted, *extra], fresh=True)
    return name
