"""Files of predictions in the shapes that rescoring reads, and the questions that go with them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.runs.world import write_lines


def listed(path: Path, items: Iterable[Any]) -> Path:
    """Write a list as the authors' scripts do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(list(items), indent=4, ensure_ascii=False), encoding="utf-8")
    return path


def metrics(em: int, acc: int, f1: float, math_equal: bool = False, valid: bool = True) -> dict[str, Any]:
    return {"is_valid_answer": valid, "acc": acc, "em": em, "f1": f1, "math_equal": math_equal}


def gpqa_items() -> list[dict[str, Any]]:
    """Five items as the authors' files have them: right, wrong, a letter with its text, no box, a box in a page."""
    prompt = (
        "<|im_start|>user\nYou are a reasoning assistant. Question:\nWhich? Choices:\n(A) one\n(B) two\n(C) three\n"
        "(D) four\n<|im_end|>\n<|im_start|>assistant\n"
    )
    page = "<|begin_search_result|> the answer is \\boxed{B} <|end_search_result|>"
    outputs = [
        ("So \\boxed{B}", "B", metrics(1, 1, 1.0, True)),
        ("So \\boxed{\\text{(C)}}", "C", metrics(0, 0, 0.0)),
        ("So \\boxed{B. two}", "B. two", metrics(0, 1, 0.0)),
        ("I cannot say", "", metrics(0, 0, 0.0, valid=False)),
        (f"Let me see. {page} Hm.", "B", metrics(1, 1, 1.0, True)),
    ]
    return [
        {
            "id": i, "Question": prompt, "Correct Choice": "B", "Correct Answer": "two", "Incorrect Answer 1": "one",
            "High-level domain": "Physics" if i < 3 else "Biology", "Subdomain": "Optics",
            "Output": output, "Pred_Answer": answer, "Metrics": stored,
        }
        for i, (output, answer, stored) in enumerate(outputs)
    ]  # fmt: skip


def direct_items() -> list[dict[str, Any]]:
    """Direct answers to them. The order of the choices is another one, as their unseeded shuffle leaves it."""
    outputs = ["\\boxed{A}", "\\boxed{A}", "\\boxed{A}", "\\boxed{A}", "no idea"]
    return [
        {**item, "Correct Choice": "A", "Output": output, "Pred_Answer": "", "Metrics": metrics(0, 0, 0.0)}
        for item, output in zip(gpqa_items(), outputs, strict=True)
    ]


def mean(found: Any, family: str, name: str, part: str = "total") -> float:
    return float(getattr(found, part).scores[family][name].mean)


def code_items() -> list[dict[str, Any]]:
    tests = json.dumps([{"input": "2\n", "output": "4\n", "testtype": "stdin"}])
    programs = ["print(int(input()) * 2)", "print(1)", None]
    return [
        {
            "id": i, "Question": "prompt", "question_title": "Twice", "difficulty": "easy" if i else "hard",
            "public_test_cases": tests, "Pred_Answer": program or "", "Metrics": {"pass@1": float(i == 0)},
            "Output": f"so\n```python\n{program}\n```" if program else "I give up", "Results": [[1]],
        }
        for i, program in enumerate(programs)
    ]  # fmt: skip


def plain(path: Path, *outputs: Any, **more: Any) -> Path:
    return write_lines(path, [{"id": f"q{i}", "output": o, "answers": ["7"], **more} for i, o in enumerate(outputs)])


def questions(path: Path, count: int = 4) -> Path:
    return write_lines(
        path,
        [
            {"id": f"q{i}", "question": "?", "answers": ["7"], "type": "even" if i % 2 == 0 else "odd"}
            for i in range(count)
        ],
    )
