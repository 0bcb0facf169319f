"""Questions of every task kind, from file to score: choice, mathematics and code beside open questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runs import evaluate
from runs.evaluation import Evaluation
from runs.home import Home
from tests.runs.world import write_lines
from tests.servers.lm import LMServer

CHOICES = {
    f"Choice {letter}": text for letter, text in zip("ABCD", ("a quark", "a lepton", "a boson", "none"), strict=True)
}
CHOICE = {"Question": "What is an electron?", "Correct Choice": "B", **CHOICES, "domain": "Physics"}
MATH = {"problem": "What is one half plus one quarter?", "answer": "\\frac{3}{4}", "level": 2, "subject": "Algebra"}
CODE = {
    "question_title": "Sum",
    "question_content": "Read two integers and print their sum.",
    "starter_code": "",
    "difficulty": "easy",
    "public_test_cases": json.dumps(
        [
            {"input": "1 2\n", "output": "3\n", "testtype": "stdin"},
            {"input": "5 6\n", "output": "11\n", "testtype": "stdin"},
        ]
    ),
}
SUM = "```python\na, b = map(int, input().split())\nprint(a + b)\n```"


def run(folder: Path, row: dict[str, Any], says: str, **settings: Any) -> Evaluation:
    data = write_lines(folder / "set.jsonl", [row])
    with LMServer([("", says)]) as server:
        (done,) = evaluate(
            home=Home(folder / "home"), data=data, model=f"hosted_vllm/{server.model}", base_url=server.base_url,
            methods=("direct",), track=False, progress=False, **settings,
        )  # fmt: skip
    return done


@pytest.mark.parametrize(
    ("row", "says", "headline", "right"),
    [
        (CHOICE, "It is \\boxed{\\text{B}}", "em", 1.0),
        (CHOICE, "It is \\boxed{a lepton}", "em", 1.0),
        (CHOICE, "It is \\boxed{C}", "em", 0.0),
        (MATH, "That makes \\boxed{0.75}", "math_equal", 1.0),
        (MATH, "That makes \\boxed{\\frac34}", "math_equal", 1.0),
        (MATH, "That makes \\boxed{0.5}", "math_equal", 0.0),
        (CODE, SUM, "pass@1", 1.0),
        (CODE, SUM.replace("a + b", "a * b"), "pass@1", 0.0),
        (CODE, "I do not know.", "pass@1", 0.0),
    ],
)
def test_each_kind_is_recognised_and_judged_by_its_headline(
    tmp_path: Path, row: dict[str, Any], says: str, headline: str, right: float
) -> None:
    # Nothing in such a file tells mathematics from an open question; a benchmark's name does.
    named = {"benchmark": "math500"} if row is MATH else {}
    done = run(tmp_path, row, says, **named)
    assert done.summary.headline == headline
    assert done.summary.scores["strict"][headline].mean == right
    assert done.records[0]["headline"] == headline


def test_a_failed_program_says_why_and_which_tests_there_were(tmp_path: Path) -> None:
    record = run(tmp_path, CODE, SUM.replace("a + b", "1 / 0")).records[0]
    assert record["verdict"] == "runtime_error"
    assert record["coverage"] == "public only"
    assert record["groups"]["difficulty"] == "easy"


def test_choices_are_recorded_as_they_were_shown(tmp_path: Path) -> None:
    record = run(tmp_path, CHOICE, "\\boxed{B}").records[0]
    assert record["choices"] == ["a quark", "a lepton", "a boson", "none"]
    assert record["groups"]["domain"] == "Physics"


def test_a_task_the_user_names_wins_over_what_the_file_tells(tmp_path: Path) -> None:
    done = run(tmp_path, {"question": "What is 2 + 2?", "answer": "4"}, "\\boxed{4.0}", options={"task": "math"})
    assert done.summary.scores["strict"]["math_equal"].mean == 1.0
