from __future__ import annotations

import re
import string
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.qa import official_qa, strict_qa
from metrics.scorer import score
from signatures.markup import BEGIN_SEARCH_RESULT, END_SEARCH_RESULT

answers = st.lists(
    st.sampled_from(["the", "a", "an", "Paris", "par", "is", "yes", "no", ".", "-", "two", "2", "北京", "é"]),
    max_size=5,
).map(" ".join)


def published_qa(prediction: str, labels: list[str]) -> dict[str, float]:
    """The rule as DESIGN states it, written out label by label."""

    def normal(text: str) -> str:
        kept = "".join(c for c in text.lower() if c not in string.punctuation)
        return " ".join(re.sub(r"\b(a|an|the)\b", " ", kept).split())

    result = {"em": 0.0, "acc": 0.0, "f1": 0.0, "valid": float(bool(prediction))}
    for label in map(normal, labels):
        shared = (Counter(normal(prediction).split()) & Counter(label.split())).total()
        if shared == 0:
            continue
        precision, recall = shared / len(normal(prediction).split()), shared / len(label.split())
        result["em"] = max(result["em"], float(label == normal(prediction)))
        result["acc"] = max(result["acc"], float(label in normal(prediction)))
        result["f1"] = max(result["f1"], 2 * precision * recall / (precision + recall))
    return result


@given(answers, st.lists(answers, max_size=3))
def test_the_official_family_is_the_published_rule(prediction: str, labels: list[str]) -> None:
    assert official_qa(prediction, labels) == pytest.approx(published_qa(prediction, labels))


@pytest.mark.parametrize(
    ("prediction", "labels", "em", "acc", "f1"),
    [
        ("The Beatles!", ["beatles"], 1, 1, 1),
        ("Paris, France", ["Lyon", "Paris"], 0, 1, 2 / 3),
        ("Parisian", ["Paris"], 0, 0, 0),
        ("Parisian is Paris", ["Paris"], 0, 1, 0.5),
        ("", ["Paris"], 0, 0, 0),
        ("the", ["a"], 0, 0, 0),
        ("x", [], 0, 0, 0),
        ("twenty-one", ["21"], 0, 0, 0),
    ],
)
def test_official_edge_cases(prediction: str, labels: list[str], em: float, acc: float, f1: float) -> None:
    expected = {"em": em, "acc": acc, "f1": f1, "valid": float(prediction != "")}
    assert official_qa(prediction, labels) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("prediction", "labels", "em", "acc", "f1"),
    [
        ("Beyonce", ["Beyoncé"], 1, 1, 1),
        ("twenty-one", ["21"], 1, 1, 1),
        ("second", ["2nd"], 1, 1, 1),
        ("1,234,567", ["1234567"], 1, 1, 1),
        ("3.14", ["314"], 0, 0, 0),
        ("-5", ["5"], 0, 0, 0),
        ("Parisian is", ["Paris"], 0, 0, 0),
        ("Paris in France", ["Lyon", "Paris"], 0, 1, 0.5),
        ("York, New", ["New York"], 0, 0, 1),
        ("yes", ["yes"], 1, 1, 1),
        ("Yes, both are American", ["yes"], 1, 1, 1),
        ("True", ["yes"], 1, 1, 1),
        ("false", ["No"], 1, 1, 1),
        ("no", ["yes"], 0, 0, 0),
        ("yes and no", ["yes"], 0, 0, 0),
        ("both are American", ["yes"], 0, 0, 0),
        ("", ["no"], 0, 0, 0),
        ("No Doubt", ["No Doubt"], 1, 1, 1),
        ("北 京", ["北京"], 1, 1, 1),
        ("北京市", ["北京"], 0, 1, 0.8),
        ("vitamin A", ["vitamin"], 0, 1, 2 / 3),
        ("!!!", ["!!!"], 1, 1, 1),
        ("x", [""], 0, 0, 0),
        ("", [""], 0, 0, 0),
        ("x", [], 0, 0, 0),
    ],
)
def test_strict_edge_cases(prediction: str, labels: list[str], em: float, acc: float, f1: float) -> None:
    expected = {"em": em, "acc": acc, "f1": f1, "valid": float(prediction != "")}
    assert strict_qa(prediction, labels) == pytest.approx(expected)


@given(answers, st.lists(answers, max_size=3), answers)
def test_more_labels_never_lower_a_score(prediction: str, labels: list[str], more: str) -> None:
    for family in (official_qa, strict_qa):
        fewer, all_of_them = family(prediction, labels), family(prediction, [*labels, more])
        assert all(0 <= fewer[name] <= all_of_them[name] <= 1 + 1e-12 for name in fewer)
        assert all_of_them["em"] <= min(all_of_them["acc"], all_of_them["f1"] + 1e-12)


def test_the_families_read_their_own_answer() -> None:
    chain = f"\\boxed{{Paris}}\n{BEGIN_SEARCH_RESULT}\\boxed{{Lyon}}{END_SEARCH_RESULT}"
    result = score(chain, ["Paris"], "open_qa")
    assert (result.official_answer, result.strict_answer, result.headline) == ("Lyon", "Paris", "em")
    assert (result.official["em"], result.strict["em"]) == (0.0, 1.0)


def test_a_chain_without_an_answer_is_wrong_and_not_valid() -> None:
    result = score("", ["Paris"], "open_qa")
    assert result.official == result.strict == {"em": 0.0, "acc": 0.0, "f1": 0.0, "valid": 0.0}
