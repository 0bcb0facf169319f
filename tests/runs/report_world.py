"""Finished runs written by hand, in the shape that `evaluate` leaves behind."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from programs.options import make_options, paper_options
from runs.answering import make_record
from runs.benchmarks.question import Question
from runs.home import Home
from signatures.profiles import profile_for
from tests.runs.world import write_lines

TASKS = {"gpqa": "multiple_choice", "math500": "math", "amc23": "math", "aime24": "math", "livecodebench": "code"}
GROUPS = {
    "gpqa": ("domain", ("Physics", "Chemistry", "Biology")),
    "livecodebench": ("difficulty", ("easy", "medium", "hard")),
}
LABELS = {"multiple_choice": "B", "math": "42", "open_qa": "Paris"}
WRONG = {"multiple_choice": "C", "math": "43", "open_qa": "Rome"}


def chain(answer: str | None, words: str = "") -> str:
    return f"Perhaps. Wait, {words}" + (f" So \\boxed{{{answer}}}" if answer is not None else "")


def write_run(
    home: Home,
    benchmark: str = "nq",
    method: str = "search_o1",
    right: Sequence[int] = (1, 1, 0, 0),
    *,
    model: str = "Qwen/QwQ-32B-Preview",
    split: str = "",
    empty: Sequence[int] = (),
    direct: Sequence[int] = (),
    failed: Sequence[int] = (),
    name: str = "",
    paper: bool = True,
    samples: int = 1,
    data: str = "hash",
    words: str = "",
    **options: Any,
) -> Path:
    """Write a run's folder.

    Args:
        home: Home folder.
        benchmark: Set.
        method: Method.
        right: For each question 1 or 0.
        model: Model name as it is served.
        split: Split.
        empty: Places of questions that the method leaves without a box.
        direct: Places of those for which a right direct answer stood in (`--fallback`).
        failed: Places of questions that broke off.
        name: Run id; by default one made of the rest.
        paper: With the paper's settings.
        samples: Samples a question, all alike.
        data: Hash of the questions.
        words: Text put into every chain.
        **options: Options of the chain.
    """
    task = TASKS.get(benchmark, "open_qa")
    profile = profile_for(model)
    single = benchmark in ("nq", "triviaqa")
    base = paper_options(method, profile, task, benchmark=benchmark, multi_hop=not single) if paper else make_options()
    chosen = make_options(base, **{"task": task, **options})
    facts = {
        "benchmark": benchmark, "split": split, "data": data, "method": method, "model": f"vllm:{model}:main",
        "profile": profile.name, "profile_fields": asdict(profile), "options": chosen.model_dump(mode="json"),
        "compiled": "", "fallback": "generate" if direct else "", "version": "0.1.0",
    }  # fmt: skip
    records = [
        _record(benchmark, task, i, s, value, model, i in empty, i in direct, i in failed, words)
        for s in range(samples)
        for i, value in enumerate(right)
    ]
    folder = home.runs / (name or f"{benchmark}{split}-{method}-{profile.name}-{len(list(home.runs.glob('*')))}")
    write_lines(folder / "journal.jsonl", records)
    (folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")
    plan = {f"q{i}": samples for i in range(len(right))}
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    return folder


def _record(
    benchmark: str, task: str, i: int, sample: int, right: int, model: str, empty: bool, direct: bool, failed: bool,
    words: str,
) -> dict[str, Any]:  # fmt: skip
    name, values = GROUPS.get(benchmark, ("", ()))
    question = Question(
        id=f"q{i}",
        question=f"Question {i}?",
        answers=(LABELS.get(task, ""),),
        groups={name: values[i % len(values)]} if values else {},
    )
    found: dict[str, Any] = {"finish": "answered", "model": model, "events": [], "searches": []}
    label = LABELS.get(task, "")
    found["reasoning"] = chain(None if empty else label if right else WRONG.get(task, ""), words)
    if direct:
        found |= {"direct_reasoning": chain(label), "fallback": True}
    if failed:
        found |= {"finish": "error", "error": "refused", "error_kind": "model"}
    if task != "code":
        return make_record(question, sample, found, task, 1.0, 2.0)
    record = make_record(question, sample, found, "open_qa", 1.0, 2.0)
    numbers = {"pass@1": float(right or direct), "valid": float(not empty or direct)}
    return {**record, "official": dict(numbers), "strict": dict(numbers)}
