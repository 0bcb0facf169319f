"""Rows under the names of the hub and of the paper's authors, gaps in them, and what kind of task they tell."""

from __future__ import annotations

import json
from string import ascii_uppercase

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.benchmarks.choices import lay_out, shown_choices, shuffled
from runs.benchmarks.question import dataset_hash
from runs.benchmarks.question_files import read_questions
from runs.benchmarks.registry import load_questions
from runs.benchmarks.rows import Row, question_of
from signatures.errors import DataError
from tests.runs.benchmarks.hub_world import code_row

AUTHORS_CHOICE = {
    "id": 0,
    "Question": "Which one? Choices:\n(A) salt\n(B) sugar\nin water\n(C) None\n(D) sand\n",
    "Correct Choice": "B",
    "High-level domain": "Chemistry",
}
TESTS = json.dumps([{"input": "2\n", "output": "4\n", "testtype": "stdin"}])
AUTHORS_CODE = {"id": 0, "Question": "Square it.", "question_title": "Square", "difficulty": "easy"}


def parse(row):
    return question_of(Row("rows.json, row 1", row), 0)


def write(folder, rows, name="test.json"):
    path = folder / name
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def test_an_authors_choice_keeps_its_text_and_letter() -> None:
    question = parse(AUTHORS_CHOICE)
    assert (question.task, question.answers) == ("multiple_choice", ("B",))
    assert question.question == AUTHORS_CHOICE["Question"]
    assert question.choices == ("salt", "sugar\nin water", "None", "sand")
    assert question.groups == {"domain": "Chemistry"}


@pytest.mark.parametrize(
    ("row", "letter"),
    [
        ({"Question": "Q?", "Choice A": "x", "Choice B": "y", "Correct Choice": "b"}, "B"),
        ({"Question": "Q?\nA. x\nB. y", "Correct Choice": ["A"]}, "A"),
        ({"question": "Q?", "choices": ["x", "y"], "answer": "B"}, "B"),
        ({"question": "Q?", "choices": ["x", "y"], "answer": ["y"]}, "B"),
        ({"question": "Q?", "choices": ["x", "y"], "answer": 0}, "A"),
        ({"question": "Q?", "choices": [1, 0], "answer": 0}, "B"),
        ({"question": "Q?", "choices": ["b", "a"], "answer": "A"}, "A"),
    ],
)
def test_the_right_choice_is_told_by_letter_text_or_place(row, letter) -> None:
    question = parse(row)
    assert (question.task, question.answers) == ("multiple_choice", (letter,))


def test_choices_in_fields_of_their_own_are_laid_out_in_their_order() -> None:
    assert parse({"question": "Q?", "choices": ["x", "y"], "answer": "B"}).question == "Q? Choices:\n(A) x\n(B) y\n"
    columns = {"Question": "Q?", "Choice A": "x", "Choice B": "y", "Correct Choice": "B"}
    assert parse(columns).question == "Q? Choices:\n(A) x\n(B) y\n"


def test_the_hubs_choice_columns_are_shuffled_by_the_record() -> None:
    row = {
        "Question": "Q?",
        "Correct Answer": "r",
        "Record ID": "rec1",
        **{f"Incorrect Answer {i}": f"w{i}" for i in (1, 2, 3)},
    }
    question = parse(row)
    assert question.choices["ABCD".index(question.answers[0])] == "r"
    assert question.choice_order == shuffled(4, "rec1")
    # The authors' files keep these columns beside the choices already laid out, whose letter then counts.
    assert parse({**row, **AUTHORS_CHOICE}).question == AUTHORS_CHOICE["Question"]


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (
            {"Question": "Q?", "Choice A": "x", "Choice B": "y", "Correct Choice": "C"},
            r"\['C'\] is none of its 2 choices",
        ),
        ({"question": "Q?", "choices": ["x", "y"], "answer": 5}, r"\['5'\] is none of its 2 choices.*from A to B"),
        ({"question": "Q?", "choices": ["x", "x"], "answer": "x"}, r"\['x'\] is none of its 2 choices"),
        ({"question": "Q?", "choices": ["x", "y"]}, r"\[\] is none of its 2 choices"),
        ({"question": "Q?", "choices": ["x", "y"], "answer": ["A", "B"]}, r"\['A', 'B'\] is none of its 2 choices"),
        ({"question": "Q?", "choices": ["c"] * 30, "answer": "A"}, r"30 choices; there are letters for 26"),
        ({"question": "Q?", "choices": ["x", "y"], "answer": {"a": 1}}, r"row 1, answer: a label must be text"),
        ({"question": "Q?", "answer": float("nan")}, r"row 1: no answer; .*\(here answer is nan\)"),
        ({"question": "Q?", "answers": [], "answer": None}, r"\(here answers is \[\], answer is None\)"),
        ({"question": "Q?", "answer": [["x"]]}, r"row 1, answer: a label must be text or a number, not list"),
        ({"Question": float("nan"), "answer": "x"}, r"row 1: no question"),
    ],
)
def test_a_bad_label_is_named_with_its_place(row, complaint) -> None:
    with pytest.raises(DataError, match=complaint):
        parse(row)


@pytest.mark.parametrize(
    ("row", "answers"),
    [
        ({"answer": "Ada"}, ("Ada",)),
        ({"answer": ["Ada", "A. L.", None]}, ("Ada", "A. L.")),
        ({"answer": 73.0}, ("73",)),
        ({"answer": 7.5}, ("7.5",)),
        ({"golden_answers": "Ada"}, ("Ada",)),
        ({"answer": float("nan"), "solution": r"so $\boxed{\frac{1}{2}}$"}, (r"\frac{1}{2}",)),
    ],
)
def test_labels_are_read_whether_listed_or_not(row, answers) -> None:
    assert parse({"question": "Q?", **row}).answers == answers


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"id": 3.0}, "3"),
        ({"id": float("nan"), "unique_id": "test/1.json"}, "test/1.json"),
        ({"question_id": "abc_a"}, "abc_a"),
        ({"_id": "5a7"}, "5a7"),
        ({}, "0"),
    ],
)
def test_ids_have_several_names_and_gaps(row, name) -> None:
    assert parse({"question": "Q?", "answer": "x", **row}).id == name


@pytest.mark.parametrize("tests", [TESTS, json.loads(TESTS)])
def test_a_row_with_tests_is_a_code_problem(tests) -> None:
    question = parse({**AUTHORS_CODE, "public_test_cases": tests})
    assert (question.task, question.answers, question.inputs) == ("code", (), {"question_title": "Square"})
    assert (len(question.tests.read().public), question.tests.read().coverage) == (1, "public only")


def test_private_tests_of_a_lines_file_stay_in_it(tmp_path) -> None:
    path = tmp_path / "problems.jsonl"
    rows = [code_row(i, "2024-09-01T00:00:00") for i in range(3)]
    path.write_text("\ufeff" + "\n\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    questions = read_questions(path)
    assert [dict(q.tests.fields) for q in questions] == [{}, {}, {}]
    assert [len(q.tests.read().all) for q in questions] == [4, 4, 4]


def test_what_is_tested_enters_the_hash_and_nothing_else_new_does(tmp_path) -> None:
    rows = [{**AUTHORS_CODE, "public_test_cases": TESTS}]
    plain = dataset_hash(read_questions(write(tmp_path, rows)))
    assert plain == dataset_hash(read_questions(write(tmp_path, [{**rows[0], "platform": "atcoder", "url": "x"}])))
    changed = [{**rows[0], "public_test_cases": TESTS.replace("4", "5")}]
    assert plain != dataset_hash(read_questions(write(tmp_path, changed)))
    # The hash of open questions that earlier runs were recorded under.
    known = [{"id": "1", "question": "Who?", "answers": ["Ada"]}]
    found = dataset_hash(read_questions(write(tmp_path, known)))
    assert found == "7fb56d642ba524d447b63bb836cce2d76d7d9d9405697aab6b1f2c5162fc3b9d"


def test_a_parquet_file_is_read_by_its_first_bytes(tmp_path) -> None:
    path = tmp_path / "questions.data"
    rows = [
        {"question": "Who?", "answers": ["Ada", "A."], "level": 2.0, "answer": None},
        {"question": "Why?", "answers": ["x"]},
    ]
    pq.write_table(pa.Table.from_pylist(rows), path)
    questions = read_questions(path)
    assert [(q.id, q.answers) for q in questions] == [("0", ("Ada", "A.")), ("1", ("x",))]
    assert [dict(q.groups) for q in questions] == [{"level": "2"}, {}]
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"questions\.data is not valid Parquet"):
        read_questions(path)


def test_a_bad_row_of_a_parquet_file_is_named(tmp_path) -> None:
    path = tmp_path / "questions.parquet"
    pq.write_table(pa.Table.from_pylist([{"id": "a", "question": "Who?", "answer": "x"}] * 2), path)
    with pytest.raises(DataError, match=r"questions\.parquet, row 2: the id 'a' stands in row 1 already"):
        read_questions(path)


def test_the_fields_tell_the_task_of_a_file(tmp_path) -> None:
    choice, code = write(tmp_path, [AUTHORS_CHOICE], "a.json"), write(tmp_path, [code_row(1, "x")], "b.json")
    plain = write(tmp_path, [{"Question": "1+1", "answer": "2"}], "c.json")
    assert [load_questions(data=path).task for path in (choice, code, plain)] == ["multiple_choice", "code", "open_qa"]
    assert load_questions("math500", data=plain).task == "math"
    assert load_questions("mine", data=plain).benchmark is None


def test_a_known_name_gives_a_file_its_benchmark(tmp_path) -> None:
    path = write(tmp_path, [{"Question": "1+1", "answer": "2", "level": 1}])
    chosen = load_questions("math500", data=path)
    assert (chosen.name, chosen.benchmark.metric, chosen.revision) == ("math500", "math_equal", "")
    assert load_questions("quickstart", data=path).benchmark.default_limit is None


@pytest.mark.parametrize(
    ("name", "row", "complaint"),
    [
        ("math500", AUTHORS_CHOICE, "fields say multiple_choice, but math500 is math"),
        ("gpqa", {"question": "Q?", "answer": "x"}, "fields say neither choice nor code, but gpqa is multiple_choice"),
        ("nq", {**AUTHORS_CODE, "public_test_cases": TESTS}, "fields say code, but nq is open_qa"),
    ],
)
def test_a_file_of_another_task_is_refused(tmp_path, name, row, complaint) -> None:
    with pytest.raises(DataError, match=complaint):
        load_questions(name, data=write(tmp_path, [row]))


def test_a_file_of_mixed_tasks_is_refused(tmp_path) -> None:
    rows = [AUTHORS_CHOICE, {"id": 1, "question": "Q?", "answer": "x"}]
    with pytest.raises(
        DataError, match=r"row 2: its fields say neither choice nor code, but those of .*row 1 say multi"
    ):
        read_questions(write(tmp_path, rows))


texts = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=20).filter(lambda s: "(" not in s)


@given(st.lists(texts, min_size=1, max_size=26))
def test_choices_laid_out_are_read_back(choices) -> None:
    shown = shown_choices(lay_out("Which?", choices))
    assert shown == tuple(choice.strip() for choice in choices)


@given(st.integers(1, 26), st.text())
def test_an_order_holds_every_choice_once_and_never_changes(count, record) -> None:
    order = shuffled(count, record)
    assert sorted(order) == list(range(count))
    assert order == shuffled(count, record)
    assert len(ascii_uppercase) >= count


def test_orders_recorded_once_stay_as_they_are() -> None:
    assert [shuffled(4, f"rec{i}") for i in range(3)] == [(2, 1, 3, 0), (0, 1, 3, 2), (0, 3, 2, 1)]
