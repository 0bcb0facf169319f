from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.math_official import official_math, rewrite, same_string

PIECES = ["\\frac", "\\sqrt", "{", "}", "1", "2", " ", ".", "=", "/", "x", "\\text{ ", "\\%", "^\\circ", "\\left", "-"]
latex = st.lists(st.sampled_from(PIECES), max_size=10).map("".join)


@pytest.mark.parametrize(
    ("text", "rewritten"),
    [
        ("", ""),
        ("\\%", ""),
        ("\\dfrac12", "\\frac{1}{2}"),
        ("\\frac1{72}", "\\frac{1}{72}"),
        ("\\frac12 + \\frac3", "\\frac12+\\frac3"),
        ("\\sqrt 3", "\\sqrt{}3"),
        ("x = 5", "5"),
        ("xy=5", "5"),
        ("xyz=5", "xyz=5"),
        ("x=y=5", "x=y=5"),
        (".5", "\\frac{1}{2}"),
        ("0.50", "0.50"),
        ("-1/2", "\\frac{-1}{2}"),
        ("01/2", "01/2"),
        ("1/2/3", "1/2/3"),
        ("5\\text{ cm}", "5"),
        ("\\left(1,\\ 2\\right)", "(1,\\2)"),
        ("9" * 5_000 + "/2", "9" * 5_000 + "/2"),
    ],
)
def test_an_answer_is_rewritten_as_the_math_dataset_does(text: str, rewritten: str) -> None:
    assert rewrite(text) == rewritten


@pytest.mark.parametrize("text", ["\\sqrt", "2\\sqrt", "\\frac", "1+\\frac", "5\\text{ a}\\text{ b}"])
def test_what_cannot_be_rewritten_must_be_the_same_to_the_letter(text: str) -> None:
    with pytest.raises(ValueError, match=r"root|fraction|unit"):
        rewrite(text)
    assert same_string(text, text)
    assert not same_string(text, f"{text} ")


@given(latex, latex)
def test_string_equivalence_is_symmetric_and_every_answer_equals_itself(first: str, second: str) -> None:
    assert same_string(first, first)
    assert same_string(first, second) == same_string(second, first)


@given(latex, st.lists(latex.filter(str.strip), max_size=3))
def test_the_best_label_counts_whatever_the_order(answer: str, labels: list[str]) -> None:
    numbers = official_math(answer, labels)
    assert numbers == official_math(answer, labels[::-1])
    assert numbers["em"] <= min(numbers["acc"], numbers["math_equal"]) or not labels
