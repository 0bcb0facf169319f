from __future__ import annotations

import importlib
import math
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metrics
from metrics import HEADLINE, official, strict
from metrics.scorer import TASKS, score, score_async
from signatures.errors import OptionError
from signatures.markup import BEGIN_SEARCH_RESULT, END_SEARCH_RESULT, MARKERS

KINDS = ("qa", "choice", "math")
ANSWERS = ["Paris", "B", "73", "073", "\\text{B}", "A or B", "yes", "1/2", "", "Lyon", "\\frac12", "(B)", "{", "5 cm"]
LABELS = ["Paris", "B", "73", "yes", "\\frac{1}{2}", "C", "Lyon", "5"]

answers = st.sampled_from(ANSWERS)
label_lists = st.lists(st.sampled_from(LABELS), max_size=4)
stretches = st.one_of(
    answers.map(lambda answer: f" so \\boxed{{{answer}}} "),
    st.sampled_from(["text ", "\n", "<think>", "</think>", "{x} ", "\\boxed{", "Paris "]),
)
pages = st.lists(st.one_of(stretches, st.text(max_size=10)), max_size=4).map("".join).filter(
    lambda page: not any(marker in page for marker in MARKERS)
)  # fmt: skip


def test_a_task_is_scored_by_its_scorer() -> None:
    result = score(r"\boxed{Paris}", ["Lyon", "Paris"], "open_qa")
    assert result.to_dict() == {
        "official": {"em": 1.0, "acc": 1.0, "f1": 1.0, "valid": 1.0},
        "strict": {"em": 1.0, "acc": 1.0, "f1": 1.0, "valid": 1.0},
        "official_answer": "Paris",
        "strict_answer": "Paris",
        "headline": "em",
    }


def test_every_scorer_reports_its_headline_in_both_families() -> None:
    for task in TASKS:
        result = score("", ["x"], task)
        assert result.headline == HEADLINE[task]
        assert result.headline in result.official
        assert result.headline in result.strict


def test_the_headlines_are_the_papers() -> None:
    assert HEADLINE == {"open_qa": "em", "multiple_choice": "em", "math": "math_equal", "code": "pass@1"}


def test_the_families_disagree_where_the_published_scorer_reads_a_page() -> None:
    chain = f"\\boxed{{\\text{{(B)}}}}\n{BEGIN_SEARCH_RESULT}\\boxed{{C}}{END_SEARCH_RESULT}"
    result = score(chain, "B", "choice")
    assert (result.official_answer, result.strict_answer) == ("C", "B")
    assert (result.official["em"], result.strict["em"]) == (0.0, 1.0)


async def test_scoring_beside_an_event_loop_gives_the_same_score() -> None:
    assert await score_async(r"\boxed{073}", 73, "math") == score(r"\boxed{073}", 73, "math")


def test_a_single_string_is_one_label_and_not_its_letters() -> None:
    for family in (official, strict):
        assert family.score("qa", r"\boxed{P}", "Paris").em == 0.0
        assert family.score("qa", r"\boxed{Paris}", "Paris").em == 1.0


@pytest.mark.parametrize("name", ["poetry", "code"])
def test_a_task_without_a_scorer_is_named_with_those_that_have_one(name: str) -> None:
    for call in (score, lambda chain, labels, kind: official.score(kind, chain, labels)):
        with pytest.raises(OptionError, match=r"code.*qa"):
            call("", [], name)
    with pytest.raises(OptionError, match=r"code.*qa"):
        strict.metric(name)


BAD_OUTPUTS = {
    "nothing": "",
    "None": None,
    "NaN": math.nan,
    "no box": "The answer is Paris, B, 73.",
    "a box that never closes": "\\boxed{Paris " * 50,
    "braces that close nothing": "}" * 50,
    "a megabyte of prose": "word " * 200_000,
    "a megabyte of opened boxes": "\\boxed{" * 140_000,
}


@pytest.mark.parametrize("output", BAD_OUTPUTS.values(), ids=BAD_OUTPUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_output_without_an_answer_is_wrong_and_not_valid(kind: str, output: Any) -> None:
    for family in (official, strict):
        scores = family.score(kind, output, ["Paris", "B", "73"])
        assert scores.to_dict() == {
            "em": 0.0, "acc": 0.0, "f1": 0.0, "math_equal": 0.0, "prediction": "", "valid": False, "undecided": False,
        }  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_of_fifty_boxes_the_last_one_counts(kind: str) -> None:
    output = "\n".join(f"\\boxed{{{n}}}" for n in range(49)) + "\n\\boxed{B}"
    for family in (official, strict):
        assert family.score(kind, output, "B").em == 1.0
        assert family.score(kind, output, "7").em == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_megabyte_in_the_box_is_an_answer_and_a_wrong_one(kind: str) -> None:
    for family in (official, strict):
        scores = family.score(kind, f"\\boxed{{{'x ' * 500_000}}}", "73")
        assert (scores.em, scores.math_equal) == (0.0, 0.0)
        assert scores.valid == (kind != "choice")


@pytest.mark.parametrize("labels", [None, math.nan, "", [], [None, ""]])
@pytest.mark.parametrize("kind", KINDS)
def test_without_a_label_no_answer_is_right(kind: str, labels: Any) -> None:
    for family in (official, strict):
        for output in ("\\boxed{B}", "\\boxed{nan}", ""):
            scores = family.score(kind, output, labels)
            assert scores.em == scores.acc == scores.f1 == scores.math_equal == 0.0
            assert scores.valid == bool(output) or kind == "choice"


@settings(max_examples=300)
@given(st.lists(stretches, max_size=5), pages, st.data())
def test_an_injected_search_result_never_changes_a_strict_score(own: list[str], page: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(own)))
    kind, labels = data.draw(st.sampled_from(KINDS)), data.draw(label_lists)
    block = f"\n\n{BEGIN_SEARCH_RESULT}{page}{END_SEARCH_RESULT}\n\n"
    before, after = "".join(own[:place]), "".join(own[place:])
    if before.count("{") != before.count("}"):
        # A search cannot be asked for in the middle of a box; what would then be one box is not read as one.
        before = before.replace("\\boxed{", "").replace("{", "")
    assert strict.score(kind, before + block + after, labels) == strict.score(kind, before + after, labels)


@given(st.sampled_from(KINDS), answers, label_lists, st.randoms(use_true_random=False))
def test_scoring_is_deterministic_and_the_order_of_labels_does_not_matter(
    kind: str, answer: str, labels: list[str], chance: Any
) -> None:
    output = f"so \\boxed{{{answer}}}"
    shuffled = chance.sample(labels, len(labels))
    for family in (official, strict):
        scores = family.score(kind, output, labels)
        assert scores == family.score(kind, output, labels) == family.score(kind, output, shuffled)
        assert scores.em <= max(scores.f1, scores.math_equal)


@given(st.sampled_from(KINDS), st.sampled_from([answer for answer in ANSWERS if answer != "{"]), label_lists)
def test_an_answer_scores_as_the_output_that_boxes_it(kind: str, answer: str, labels: list[str]) -> None:
    boxed = strict.score(kind, f"\\boxed{{{answer}}}", labels)
    assert strict.score_answer(kind, boxed.prediction, labels) == boxed


def test_scoring_imports_neither_dspy_nor_computer_algebra() -> None:
    code = (
        "import sys\n"
        "from metrics import official, strict\n"
        "official.score('math', r'\\boxed{1/2}', '0.5'), strict.score('math', r'\\boxed{1/2}', '0.5')\n"
        "strict.metric('choice'), strict.feedback('qa', '', 'x')\n"
        "print([m for m in ('dspy', 'sympy', 'math_verify', 'numpy', 'scipy', 'datasets') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_package_offers_every_name_it_lists() -> None:
    for name in metrics.__all__:
        found = getattr(metrics, name)
        assert found is not importlib.import_module("metrics")
        assert isinstance(found, ModuleType) == (name in ("official", "strict"))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        metrics.nothing  # noqa: B018
