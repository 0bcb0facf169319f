"""A user's own benchmark: one small file, shown, loaded and refused when it is wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from runs.benchmarks.registry import find_benchmark, load_questions
from signatures.errors import DataError
from tests.runs.world import command

GUIDE = Path(__file__).parents[3] / "docs" / "your_own_benchmark.md"
HEAD = "from runs.benchmarks.question import Question\nfrom runs.benchmarks.spec import Benchmark\n"


@pytest.fixture
def own(tmp_path) -> Path:
    """Write the guide's own example with its data."""
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    rows = [f"Who made product {i}?\tTeam {i}\ttools" for i in range(20)]
    (tmp_path / "dev.tsv").write_text("\n".join(rows), encoding="utf-8")
    (tmp_path / "test.tsv").write_text("\n".join(rows[:2]), encoding="utf-8")
    path = tmp_path / "my_set.py"
    path.write_text(code, encoding="utf-8")
    return path


def test_the_guides_example_works_as_it_stands(own) -> None:
    chosen = load_questions(str(own), split="dev")
    assert (chosen.name, chosen.split, len(chosen.questions), chosen.task) == ("my_set", "dev", 20, "open_qa")
    assert chosen.benchmark.corpus == own.parent / "corpus.jsonl"
    assert len(load_questions(str(own)).questions) == 2
    shown = command("benchmarks", "show", str(own), "--limit", "1", "--json")
    assert json.loads(shown.stdout) == {
        "id": "test-0", "question": "Who made product 0?", "answers": ["Team 0"], "groups": {"topic": "tools"},
    }  # fmt: skip


def test_the_number_of_questions_is_checked(own) -> None:
    (own.parent / "dev.tsv").write_text("Who?\tAda\tpeople")
    with pytest.raises(DataError, match="my_set, split dev: found 1 questions, expected 20"):
        load_questions(str(own), split="dev")


def test_a_benchmark_object_needs_no_file(own) -> None:
    benchmark = find_benchmark(str(own))
    assert load_questions(benchmark, limit=1).questions[0].id == "test-0"


def test_it_can_take_its_questions_from_a_file(own, tmp_path) -> None:
    data = tmp_path / "others.jsonl"
    data.write_text('{"question": "Who?", "answer": "Ada"}')
    chosen = load_questions(str(own), data=data)
    assert (chosen.name, len(chosen.questions), chosen.benchmark.options) == ("my_set", 1, {"top_k": 5})


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "No benchmark file at .*mine.py"),
        ("x = 1\n", r"mine\.py must define BENCHMARK = Benchmark\(...\); it is nothing"),
        ("BENCHMARK = 3\n", r"must define BENCHMARK = Benchmark\(...\); it is a int"),
        ("import nowhere\n", "mine.py failed while it was read: ModuleNotFoundError"),
        ("def (:\n", "mine.py failed while it was read: SyntaxError"),
        (
            HEAD + "BENCHMARK = Benchmark('m', '', '', 'open_qa', 'em', {'dev': 1}, 'test', lambda split: [])\n",
            "default_split 'test' is none of its splits: dev",
        ),
        (
            HEAD + "BENCHMARK = Benchmark('m', '', '', 'math', 'em', {'dev': None}, 'dev',\n"
            "    lambda split: [Question('1', 'Q?', ('A',), task='multiple_choice')])\n",
            "m: its fields say multiple_choice, but m is math",
        ),
    ],
)
def test_a_wrong_file_is_told_with_the_way_out(tmp_path, content, complaint) -> None:
    path = tmp_path / "mine.py"
    if content is not None:
        path.write_text(content)
    with pytest.raises(DataError, match=complaint):
        load_questions(str(path))
    done = command("benchmarks", "show", str(path))
    assert (done.exit_code, "Traceback" in done.output) == (2, False)
