"""Questions of every task kind, from file to score: choice, mathematics and code beside open questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runs import evaluate
from runs.benchmarks.problem_tests import ProblemTests
from runs.benchmarks.question import Question
from runs.evaluation import Evaluation
from runs.home import Home
from runs.reporting import report
from runs.scoring import score_of_nothing, score_question
from signatures.errors import DataError
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
    done = run(tmp_path, CODE, SUM.replace("a + b", "1 / 0"))
    record = done.records[0]
    assert record["verdict"] == "runtime_error"
    assert record["coverage"] == "public only"
    assert done.summary.metrics()["public_tests_only"] == 1
    for paper in (False, True):
        assert "1 of 1 answers were judged on public tests only" in report([done.folder], paper=paper).text
    assert record["groups"]["difficulty"] == "easy"


def test_a_question_that_cannot_be_scored_fails_alone_is_counted_and_tried_again(tmp_path: Path) -> None:
    damaged = {**CODE, "question_content": "Add two integers.", "private_test_cases": "no tests at all"}
    data = write_lines(tmp_path / "set.jsonl", [damaged, CODE])
    with LMServer([("", SUM)]) as server:
        settings = {
            "home": Home(tmp_path / "home"), "data": data, "model": f"hosted_vllm/{server.model}",
            "base_url": server.base_url, "methods": ("direct",), "track": False, "progress": False,
        }  # fmt: skip
        (done,), (again,) = evaluate(**settings), evaluate(**settings)
        assert len(server.calls) == 2
    assert (done.summary.questions, done.summary.failures) == (2, {"data": 1})
    assert done.summary.scores["strict"]["pass@1"].mean == 0.5
    failed, right = done.records
    assert "Private tests are damaged" in failed["error"]
    # What was paid for is kept.
    assert "print(a + b)" in failed["chain"]
    assert failed["strict"].keys() == right["strict"].keys()
    assert (again.answered, again.summary.failures) == (1, {"data": 1})


def test_code_without_tests_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Question '0' has no tests to run its program on"):
        run(tmp_path, {"question": "Print 4.", "answer": "4"}, SUM, options={"task": "code"})


@pytest.mark.parametrize("task", ["open_qa", "multiple_choice", "math", "code"])
async def test_what_is_not_scored_has_the_metrics_of_what_is_scored_as_wrong(task: str) -> None:
    tests = ProblemTests.of_row(CODE) if task == "code" else None
    wrong = await score_question(Question("q", "?", ("B",), tests=tests), "", task)
    nothing = score_of_nothing(task)
    assert (nothing.official, nothing.strict) == (wrong.official, wrong.strict)
    assert not any(nothing.strict.values())


def test_choices_are_recorded_as_they_were_shown(tmp_path: Path) -> None:
    record = run(tmp_path, CHOICE, "\\boxed{B}").records[0]
    assert record["choices"] == ["a quark", "a lepton", "a boson", "none"]
    assert record["groups"]["domain"] == "Physics"


def test_a_task_the_user_names_wins_over_what_the_file_tells(tmp_path: Path) -> None:
    done = run(tmp_path, {"question": "What is 2 + 2?", "answer": "4"}, "\\boxed{4.0}", options={"task": "math"})
    assert done.summary.scores["strict"]["math_equal"].mean == 1.0
