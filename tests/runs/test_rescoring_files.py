"""Files of predictions: what kind of task they are about, and what is refused with which words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runs.rescoring import rescore
from signatures.errors import DataError, OptionError, SearchO1Error
from tests.runs.prediction_files import code_items, gpqa_items, listed, plain, questions
from tests.runs.world import write_lines


@pytest.mark.parametrize(
    ("items", "kind", "reason"),
    [
        ([{"id": 1, "output": "x", "answer": "5", "solution": "s"}], "math", "have a solution"),
        ([{"id": 1, "output": "x", "answer": ["5"]}], "open_qa", "labels are lists"),
        (
            [{"id": 1, "output": "x", "answer": "5"}, {"id": 2, "output": "x", "answer": "\\pi"}],
            "math",
            "numbers or LaTeX",
        ),
        ([{"id": 1, "output": "x", "answer": "Paris"}], "open_qa", "nothing says otherwise"),
        ([{"id": 1, "output": "x", "answer": "B", "choices": ["u", "v"]}], "multiple_choice", "its fields say so"),
    ],
)
def test_the_kind_is_told_by_the_fields(tmp_path: Path, items: list[Any], kind: str, reason: str) -> None:
    found = rescore(write_lines(tmp_path / "p.jsonl", items))
    assert found.kind == kind
    assert reason in found.reason


@pytest.mark.parametrize(
    ("folder", "kind"), [("aime.qwq.direct", "math"), ("runs.qa/2wiki.qwq.direct", "open_qa"), ("amc.qwq.x", "math")]
)
def test_the_kind_is_told_by_the_authors_folder_names(tmp_path: Path, folder: str, kind: str) -> None:
    item = {"id": 1, "Question": "q", "answer": "Paris", "Output": "x"}
    assert rescore(listed(tmp_path / folder / "test.1.2,3:4.json", [item])).kind == kind


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty"),
        (" \n ", "is empty"),
        ("[]", "holds no item"),
        ("{", "line 1: not JSON"),
        ('[{"id": 1}', "is not valid JSON"),
        ('{"id": 1, "output": "x"}\nnonsense\n', "line 2: not JSON"),
        ("[1, 2]", "item 1: expected an object, found int"),
        ('{"overall": {"em": 0.5}, "per_domain": {}}', r"holds the authors' averages, not their outputs"),
        ('{\n "overall": {"em": 0.5}\n}', r"holds the authors' averages, not their outputs"),
        ('{\n "a": 1\n}', "holds one JSON object"),
        ('[{"id": 1, "text": "x"}]', "no item has an output; .*Its fields are: id, text"),
        ('[{"id": 1, "output": "x"}, {"id": 2, "Output": "x"}]', "mixes predictions with id and output and"),
        ('[{"id": 1, "output": "x", "Output": "y"}]', "item 1 has several outputs"),
        ('[{"output": "x", "answers": ["a"]}]', "item 1 has no id"),
        ('[{"id": 1, "output": ["x"], "answers": ["a"]}]', "item 1: an output must be text, not list"),
        ('[{"id": 1, "output": 7, "answers": ["a"]}]', "an output must be text, not int"),
        ('[{"id": 1, "output": "x", "answers": ["a"], "sample": -1}]', "sample is -1"),
        ('[{"id": 1, "output": "x", "answers": [{}]}]', "a label must be text or a number"),
        ('[{"id": 1, "output": "x", "answers": []}]', "no answer"),
        ('[{"id": 1, "output": "x"}, {"id": 2, "output": "x", "answers": ["a"]}]', "1 of 2 items have no label"),
        ('[{"id": 1, "output": "x", "answer": "a"}, {"id": 1, "output": "y", "answer": "a"}]', "1 items repeat an id"),
        ('[{"id": 1, "Output": "x", "answer": "a", "Metrics": {"em": NaN}}]', "its stored em is nan"),
        ('[{"id": 1, "Output": "x", "answer": "a", "Metrics": {"em": "1"}}]', "its stored em is '1'"),
        (
            '[{"id": 1, "Output": "x", "answer": "a"}, {"id": 2, "Output": "x", "Correct Choice": "A"}]',
            "mixes tasks",
        ),
        ('{"chain": "x", "finish": "answered"}', "the record has no id, answers, groups"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_with_the_place_and_the_way_out(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "p.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=complaint):
        rescore(file)


def test_other_mistakes_are_told(tmp_path: Path) -> None:
    file = plain(tmp_path / "p.jsonl", "\\boxed{7}")
    with pytest.raises(DataError, match="There is no file"):
        rescore(tmp_path / "nowhere.json")
    with pytest.raises(DataError, match="There is no question file"):
        rescore(file, data=tmp_path / "nowhere.json")
    with pytest.raises(OptionError, match="no scorer for task 'poetry'"):
        rescore(file, kind="poetry")
    with pytest.raises(DataError, match="needs the problems' tests"):
        rescore(file, kind="code")
    with pytest.raises(DataError, match="so it is code, not qa"):
        rescore(listed(tmp_path / "code.json", code_items()), kind="qa")
    with pytest.raises(DataError, match="cannot be written"):
        rescore(file, output=file / "scores.json")
    (tmp_path / "latin.json").write_bytes(b'[{"id": "\xff"}]')
    with pytest.raises(DataError, match="UTF-8"):
        rescore(tmp_path / "latin.json")


def test_ids_that_the_data_do_not_have_are_counted(tmp_path: Path) -> None:
    rows = [{"id": f"q{i}", "output": "x"} for i in (0, 1, 7, 8, 9)]
    file = write_lines(tmp_path / "p.jsonl", rows)
    with pytest.raises(DataError, match=r"3 of 5 ids in .* are not in .*: 'q7', 'q8', 'q9'"):
        rescore(file, data=questions(tmp_path / "data.jsonl"))


def test_order_does_not_matter_and_scoring_is_repeatable(tmp_path: Path) -> None:
    forward = rescore(listed(tmp_path / "a.json", gpqa_items())).to_dict()
    backward = rescore(listed(tmp_path / "b.json", reversed(gpqa_items()))).to_dict()
    assert forward["overall"] == backward["overall"]
    assert forward["per_group"] == backward["per_group"]
    assert forward == {**rescore(tmp_path / "a.json").to_dict()}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    ["id", "output", "Output", "answers", "answer", "Metrics", "sample", "chain", "finish", "groups", "Correct Choice",
     "choices", "public_test_cases", "direct_chain", "official", "strict", "level", "Question"]
)  # fmt: skip


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.dictionaries(FIELDS, VALUES, max_size=4), max_size=3), st.booleans())
def test_no_file_however_odd_ends_in_anything_but_scores_or_an_error_of_ours(
    tmp_path: Path, items: list[Any], sound: bool
) -> None:
    base: dict[str, Any] = {"output": "\\boxed{x}", "answers": ["x"]} if sound else {}
    file = tmp_path / "odd.json"
    file.write_text(json.dumps([{**base, "id": i, **item} for i, item in enumerate(items)]), encoding="utf-8")
    try:
        found = rescore(file, kind="qa")
    except SearchO1Error as error:
        told = str(error)
    else:
        told = json.dumps(found.to_dict(), allow_nan=False)
        assert found.total.questions == len({i.id for i in found.items})
    assert told
