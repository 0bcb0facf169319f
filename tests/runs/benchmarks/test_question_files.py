"""Question files of every accepted shape, and bad ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runs.benchmarks.question import Question, dataset_hash
from runs.benchmarks.question_files import read_questions
from runs.benchmarks.registry import find_benchmark, load_questions
from signatures.errors import DataError, OptionError

OURS = {
    "id": "a1", "question": "Who?", "answers": ["Ada", "Ada L."], "gold_titles": ["Ada"], "type": "single",
    "split": "test",
}  # fmt: skip
FLASHRAG = {"id": "test_0", "question": "Who?", "golden_answers": ["Ada"], "metadata": {"x": 1}}
AUTHORS = {"id": 7, "Question": "Who?", "answer": ["Ada"]}
MATH = {"problem": "1 + 1?", "answer": "2", "level": 3, "subject": "Algebra"}
CODE = {
    "question_content": "Add.", "answer": "3", "question_title": "Sum", "starter_code": "def f(): ...",
    "difficulty": "easy",
}  # fmt: skip


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (OURS, Question("a1", "Who?", ("Ada", "Ada L."), ("Ada",), {"type": "single"}, "test")),
        (FLASHRAG, Question("test_0", "Who?", ("Ada",))),
        (AUTHORS, Question("7", "Who?", ("Ada",))),
        (MATH, Question("0", "1 + 1?", ("2",), groups={"level": "3", "subject": "Algebra"})),
        (
            CODE,
            Question(
                "0",
                "Add.",
                ("3",),
                groups={"difficulty": "easy"},
                inputs={"question_title": "Sum", "starter_code": "def f(): ..."},
            ),
        ),
        ({"id": None, "question": "Who?", "answer": 0}, Question("0", "Who?", ("0",))),
        ({"question": "Who?", "answers": [], "golden_answers": ["", None, "Ada"]}, Question("0", "Who?", ("Ada",))),
    ],
)
@pytest.mark.parametrize("form", ["json", "jsonl", "jsonl with a mark and blank lines"])
def test_rows_of_all_shapes_are_read_from_lists_and_lines(tmp_path, row, expected, form) -> None:
    path = tmp_path / "questions.json"
    text = json.dumps(row, ensure_ascii=False)
    path.write_text({"json": f" [\n{text}\n]", "jsonl": text}.get(form, f"\ufeff\n\n{text}\n\n"), encoding="utf-8")
    assert read_questions(path) == [expected]


def test_a_question_gives_its_program_all_inputs() -> None:
    question = Question("1", "Add.", ("3",), inputs={"question_title": "Sum"})
    assert question.to_inputs() == {"question": "Add.", "question_title": "Sum"}


def test_unusual_line_separators_inside_a_question_do_not_end_its_line(tmp_path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(
        json.dumps({"question": "One\u2028two\x85three", "answer": "x"}, ensure_ascii=False), encoding="utf-8"
    )
    assert read_questions(path)[0].question == "One\u2028two\x85three"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, r"No question file at .*bad\.jsonl; check the path given with --data"),
        (b"\xff\xfe", r"bad\.jsonl cannot be read.*UTF-8"),
        (b"", r"bad\.jsonl holds no question"),
        (b"[]", r"bad\.jsonl holds no question"),
        (b"[{]", r"bad\.jsonl is not valid JSON"),
        (b'\n{"question": "Who?", "answer": "x"}\n{oops\n', r"bad\.jsonl, line 3: not JSON"),
        (
            b'{"question": "Who?", "answer": "x"}\n\n{"answer": "x"}\n',
            r"bad\.jsonl, line 3: no question; expected one of",
        ),
        (b'[{"question": "Who?", "answer": "x"}, {"question": " ", "answer": "x"}]', r"bad\.jsonl, row 2: no question"),
        (b'{"question": "Who?"}', r"bad\.jsonl, line 1: no answer; expected one of the fields answers, golden_answers"),
        (b'{"question": "Who?", "answers": ["", " ", null]}', r"bad\.jsonl, line 1: no answer"),
        (b"[3]", r"bad\.jsonl, row 1: expected an object, found int"),
        (
            b'{"id": 1, "question": "A?", "answer": "x"}\n\n{"id": "1", "question": "B?", "answer": "x"}',
            r"bad\.jsonl, line 3: the id '1' stands in line 1 already",
        ),
    ],
)
def test_a_bad_file_is_named_with_the_place(tmp_path, content, complaint) -> None:
    path = tmp_path / "bad.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=complaint):
        read_questions(path)


def test_the_data_hash_changes_with_what_a_score_is_measured_on() -> None:
    base = [Question("1", "Who?", ("Ada",)), Question("2", "When?", ("1843",))]
    changed = [
        [Question("1", "Who?", ("Ada", "A.")), base[1]],
        [Question("1", "Who is it?", ("Ada",)), base[1]],
        [Question("3", "Who?", ("Ada",)), base[1]],
        [Question("1", "Who?", ("Ada",), inputs={"starter_code": "x"}), base[1]],
        base[::-1],
        base[:1],
    ]
    assert len({dataset_hash(questions) for questions in [base, *changed]}) == 7
    assert dataset_hash([Question("1", "Who?", ("Ada",), ("Title",), {"type": "x"}), base[1]]) == dataset_hash(base)


@pytest.fixture
def data(tmp_path):
    rows = [{"id": f"r{i}", "question": f"Q{i}?", "answer": "x", "split": "dev" if i % 2 else "test"} for i in range(6)]
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def test_a_file_is_named_after_itself_or_its_label_and_cut_by_split_limit_and_ids(data) -> None:
    assert (load_questions(data=data).name, len(load_questions(data=data).questions)) == ("mine", 6)
    chosen = load_questions("label", data=data, split="dev", limit=2)
    assert (chosen.name, chosen.split, [q.id for q in chosen.questions]) == ("label", "dev", ["r1", "r3"])
    assert [q.id for q in load_questions(data=data, ids=["r4", "r0"]).questions] == ["r0", "r4"]
    with pytest.raises(OptionError, match="No question with id 'r9' in mine"):
        load_questions(data=data, ids=["r9"])
    with pytest.raises(OptionError, match="No questions left in mine"):
        load_questions(data=data, split="nowhere")


def test_an_unknown_benchmark_names_the_known_ones() -> None:
    assert find_benchmark("quickstart").licence == "CC0-1.0"
    with pytest.raises(OptionError, match=r"Unknown benchmark 'gpqa-2'; known: quickstart.*--data FILE"):
        find_benchmark("gpqa-2")


def test_what_goes_wrong_in_a_benchmark_of_ones_own_is_told_in_a_line(tmp_path: Path) -> None:
    own = tmp_path / "my_set.py"
    own.write_text(
        "from runs.benchmarks.spec import Benchmark\n"
        "BENCHMARK = Benchmark('mine', 's', 'l', 'open_qa', 'em', {'dev': 2}, 'dev', lambda split: open('gone.tsv'))\n"
    )
    with pytest.raises(DataError, match=r"mine, split dev: it cannot be loaded \(FileNotFoundError: .*gone\.tsv"):
        load_questions(str(own))
