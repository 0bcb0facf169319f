"""Train, validation and test questions stay apart, by id and by text, wherever they come from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runs.benchmarks.question import Question
from runs.benchmarks.registry import data_folder, load_questions
from runs.optimizing.examples import to_example, to_examples
from runs.optimizing.settings import OptimizeSettings
from runs.optimizing.splits import Split, check_sizes, split_examples
from signatures.errors import DataError, OptionError
from tests.runs.world import write_lines


def rows(*names: str, **more: Any) -> list[dict[str, Any]]:
    return [{"id": name, "question": f"Who made {name}?", "answers": ["Ada"], **more} for name in names]


def split(**settings: Any) -> Split:
    return split_examples(OptimizeSettings(**settings))


def ids(questions: list[Question]) -> list[str]:
    return [question.id for question in questions]


@pytest.fixture
def train(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "train.jsonl", rows(*"abcdefghij"))


def test_a_benchmarks_own_splits_are_taken_and_checked_against_its_test_rows() -> None:
    found = split(benchmark="quickstart")
    assert (len(found.train), len(found.val), found.dropped, found.leaked, found.warning) == (185, 79, 0, (), "")
    assert found.checked_against == "the 212 rows of quickstart test"
    assert (found.train_from, found.val_from) == ("quickstart train", "quickstart validation")
    assert (found.name, found.task, found.benchmark.name) == ("quickstart", "open_qa", "quickstart")
    assert len(found.questions) == 185 + 79
    assert split() == found


def test_limits_take_the_first_questions() -> None:
    found = split(train_limit=3, val_limit=2)
    assert ids(found.train) == ids(list(load_questions("quickstart", split="train", limit=3).questions))
    assert len(found.val) == 2


def test_a_fifth_of_the_training_questions_is_split_off_where_no_validation_set_is(train: Path) -> None:
    found = split(train=train)
    assert (len(found.train), len(found.val), found.val_from) == (8, 2, "a fifth of train.jsonl")
    assert sorted(ids(found.train) + ids(found.val)) == list("abcdefghij")
    # It goes by the id, so the order of the file is no matter.
    turned = write_lines(train.with_name("turned.jsonl"), reversed(rows(*"abcdefghij")))
    assert set(ids(split(train=turned).val)) == set(ids(found.val))
    assert any(set(ids(split(train=train, seed=seed).val)) != set(ids(found.val)) for seed in range(1, 5))
    assert len(split(train=train, train_limit=2).val) == 1


def test_a_question_in_both_sets_is_dropped_from_training_by_id_and_by_text(tmp_path: Path) -> None:
    given = [*rows("a", "b", "c"), {"id": "other", "question": "who made  D", "answers": ["Ada"]}]
    train = write_lines(tmp_path / "train.jsonl", [*given, {"id": "again", "question": "WHO MADE A", "answers": ["x"]}])
    val = write_lines(
        tmp_path / "val.jsonl", [*rows("D"), {"id": "b", "question": "Something else?", "answers": ["x"]}]
    )
    found = split(train=train, val=val)
    assert (ids(found.train), ids(found.val), found.dropped) == (["a", "c"], ["D", "b"], 3)


def test_row_numbers_are_no_ids_between_files(tmp_path: Path) -> None:
    # Rows without an id are numbered from 0 in every file: every training row would have been dropped.
    train = write_lines(tmp_path / "train.jsonl", [{"question": f"Train {i}?", "answer": "x"} for i in range(4)])
    val = write_lines(tmp_path / "val.jsonl", [{"question": f"Val {i}?", "answer": "x"} for i in range(2)])
    found = split(train=train, val=val)
    assert (ids(found.train), ids(found.val), found.dropped) == (["train-0", "train-1", "2", "3"], ["0", "1"], 0)
    assert len(found.questions) == 6


def test_learning_from_the_test_split_is_refused_unless_the_user_knows() -> None:
    with pytest.raises(DataError, match=r"212 of the 212 training questions are test rows .*quickstart test.*--i-know"):
        split(benchmark="quickstart", train_split="test")
    with pytest.raises(DataError, match="5 of the 5 validation questions"):
        split(benchmark="quickstart", val_split="test", val_limit=5)
    found = split(benchmark="quickstart", train_split="test", train_limit=2, i_know=True)
    assert found.leaked == tuple(ids(found.train))


def test_a_test_row_in_a_file_is_found_by_its_text(tmp_path: Path) -> None:
    test = load_questions("quickstart", limit=1).questions[0]
    told = {"id": "mine", "question": test.question.upper().replace("?", " ?"), "answers": ["x"]}
    train = write_lines(tmp_path / "train.jsonl", [*rows("a", "b"), told])
    with pytest.raises(DataError, match=f"1 of the 3 training questions are test rows.*'{test.id}' for one"):
        split(benchmark="quickstart", train=train)
    found = split(benchmark="quickstart", train=train, i_know=True)
    assert (found.leaked, found.val_from) == ((test.id,), "quickstart validation")


def test_a_benchmarks_test_file_is_recognised_by_its_marks() -> None:
    file = data_folder("quickstart") / "test.jsonl"
    with pytest.raises(DataError, match="marked test"):
        split(train=file)


def test_a_file_with_marked_splits_gives_all_three(tmp_path: Path) -> None:
    three = [*rows("a", "b", split="train"), *rows("c", split="dev"), *rows("d", split="test")]
    data = write_lines(tmp_path / "all.jsonl", three)
    found = split(benchmark="mine", train=data, train_split="train", val_split="dev")
    assert (ids(found.train), ids(found.val), found.name) == (["a", "b"], ["c"], "mine")
    assert (found.checked_against, found.warning) == ("the 1 rows of all.jsonl marked test", "")
    with pytest.raises(
        DataError, match=r"no rows of split 'validation' \(--val-split\); its rows name: train, dev, test"
    ):
        split(train=data, train_split="train", val_split="validation")
    with pytest.raises(DataError, match="1 of the 3 training"):
        split(train=data)


def test_a_set_without_known_test_rows_says_that_it_was_not_checked(train: Path) -> None:
    found = split(train=train)
    assert found.checked_against == ""
    assert found.warning.startswith("Not checked for test rows")
    assert "train.jsonl" in found.warning


def test_an_unreachable_hub_is_said_and_stops_nothing(
    train: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    found = split(benchmark="hotpotqa", train=train)
    assert (found.checked_against, found.task) == ("", "open_qa")
    assert found.warning.startswith("Not checked against the test rows of hotpotqa dev: ")
    assert "cannot be fetched" in found.warning


def test_what_is_not_there_is_named(tmp_path: Path, train: Path) -> None:
    with pytest.raises(DataError, match=r"hotpotqa has no training split \(it has: dev\).*--train FILE"):
        split(benchmark="hotpotqa")
    with pytest.raises(OptionError, match="no split 'tarin'"):
        split(benchmark="quickstart", train_split="tarin")
    with pytest.raises(OptionError, match="Unknown benchmark 'nothing'"):
        split(benchmark="nothing")
    with pytest.raises(DataError, match=r"No question file at .*gone.jsonl; check the path given with --val"):
        split(train=train, val=tmp_path / "gone.jsonl")


def test_sets_of_two_task_kinds_are_refused(tmp_path: Path, train: Path) -> None:
    choice = {"id": "c", "question": "Which?", "choices": ["x", "y"], "answer": "A"}
    val = write_lines(tmp_path / "val.jsonl", [choice])
    with pytest.raises(DataError, match="training questions are open_qa, the validation questions multiple_choice"):
        split(train=train, val=val)


def test_too_few_questions_are_refused_with_both_numbers(tmp_path: Path, train: Path) -> None:
    found = split(train=train)
    check_sizes("gepa", 8, 2, found)
    with pytest.raises(
        DataError, match=r"Optimizer simba needs at least 32 training questions; found 8 in train.jsonl"
    ):
        check_sizes("simba", 32, 0, found)
    with pytest.raises(DataError, match=r"needs at least 3 validation questions; found 2 in a fifth of train.jsonl"):
        check_sizes("miprov2", 1, 3, found)
    one = split(train=write_lines(tmp_path / "one.jsonl", rows("a")))
    assert (len(one.train), len(one.val)) == (0, 1)
    twice = [*rows("a", "b"), {"id": "c", "question": "who made b", "answers": ["x"]}]
    doubled = split(train=write_lines(tmp_path / "twice.jsonl", twice))
    with pytest.raises(DataError, match=r"found 1 in twice.jsonl \(1 left out as duplicates\)"):
        check_sizes("copro", 2, 0, doubled)


def test_a_users_own_benchmark_file_is_checked_against_its_default_split(tmp_path: Path) -> None:
    own = tmp_path / "my_set.py"
    own.write_text(
        "from runs.benchmarks.question import Question\n"
        "from runs.benchmarks.spec import Benchmark\n"
        "def load(split):\n"
        "    return [Question(f'{split}-{i}', f'What is {i + (split == \"test\") * 3}?', ('x',)) for i in range(5)]\n"
        "BENCHMARK = Benchmark('my_set', '', '', 'open_qa', 'em', {'train': 5, 'test': 5}, 'test', load)\n"
    )
    with pytest.raises(DataError, match=r"1 of the 4 training questions and 1 of the 1 validation"):
        split(benchmark=str(own))
    assert sorted(split(benchmark=str(own), i_know=True).leaked) == ["test-0", "test-1"]


def test_an_example_holds_inputs_for_the_program_and_labels_for_the_metric() -> None:
    plain = Question("q", "Who?", ("Ada", "Ada L."))
    example = to_example(plain)
    assert example.inputs().toDict() == {"question": "Who?"}
    assert (example.id, example.answers) == ("q", ["Ada", "Ada L."])
    choice = to_example(Question("c", "Which?", ("B",), choices=("x", "y")))
    assert (choice.choices, list(choice.inputs().keys())) == (["x", "y"], ["question"])
    code = Question("p", "Square it.", (), inputs={"question_title": "Square", "starter_code": "def f(): ..."})
    assert to_examples([code])[0].inputs().toDict() == code.to_inputs()
    # Optimizers put examples into their prompts.
    assert json.dumps(example.toDict())
