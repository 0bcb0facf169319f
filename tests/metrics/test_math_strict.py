from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from metrics.math_strict import same_value, strict_math
from metrics.math_text import tidy, value

PIECES = [
    "\\frac", "\\dfrac12", "\\sqrt", "{", "}", "1", "23", ",", "234", " ", ".", "=", "/", "x", "\\text{ cm}", "\\%",
    "%", "^\\circ", "\\left(", "\\right)", "-", "$", "\\$", "\\\\ ", "\\!", "\\,", "½", "π", "°", "_8", "²", "[",
]  # fmt: skip
latex = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
fractions = st.fractions(min_value=-1000, max_value=1000, max_denominator=1000)


@given(latex | st.text(max_size=20))
@example("\\dfrac12$1")
def test_tidying_again_changes_nothing(text: str) -> None:
    assert tidy(tidy(text)) == tidy(text)


@given(fractions, st.sampled_from(["{n}/{d}", "\\frac{{{n}}}{{{d}}}", "\\dfrac{{{n}}}{{{d}}}", "x = {n}/{d}"]))
def test_a_fraction_reads_as_its_exact_value_in_every_dress(number: Fraction, dress: str) -> None:
    read = value(tidy(dress.format(n=number.numerator, d=number.denominator)))
    assert read is not None
    assert read.number == number


@given(st.decimals(-10_000, 10_000, places=3), st.sampled_from(["{}", "${}$", "{}^\\circ", "{}\\text{{ cm}}", "\\${}"]))
def test_a_decimal_reads_as_its_exact_value_in_every_dress(number: object, dress: str) -> None:
    read = value(tidy(dress.format(number)))
    assert read is not None
    assert read.number == Fraction(str(number))


@given(fractions, fractions)
def test_numbers_are_equal_exactly_when_they_are_the_same_number(first: Fraction, second: Fraction) -> None:
    assert same_value(str(first), str(second)) == ("equal" if first == second else "different")


@pytest.mark.parametrize(
    ("text", "tidied"),
    [
        ("\\left( 3, \\dfrac\\pi2 \\right)", "(3, \\frac\\pi2)"),
        ("11,\\! 111,\\! 111,\\! 100", "11111111100"),
        ("1, 234", "1, 234"),
        ("(1,234)", "(1, 234)"),
        ("\\begin{pmatrix} 1 \\\\ -2 \\end{pmatrix}", "\\begin{pmatrix}1\\\\-2\\end{pmatrix}"),
        ("\\left.x\\right|_0", "\\left.x|_0"),
        ("27.", "27"),
    ],
)
def test_an_answer_becomes_one_plain_line(text: str, tidied: str) -> None:
    assert tidy(text) == tidied


@pytest.mark.parametrize(
    "text", ["1 2", "1,2", "5 cm 3", "1/0", "\\frac{1}{0}", "1--2", "1\\frac{-1}{2}", "x", "", "٣"]
)
def test_what_is_not_just_one_number_has_no_value(text: str) -> None:
    assert value(tidy(text)) is None


def test_the_metrics_of_an_equal_value_in_another_writing() -> None:
    assert strict_math("2/4", ["\\frac{1}{2}"]) == {
        "em": 0.0, "acc": 0.0, "f1": pytest.approx(0.2), "math_equal": 1.0, "valid": 1.0, "undecided": 0.0,
    }  # fmt: skip


@given(latex)
def test_the_same_answer_is_always_equal_to_itself(text: str) -> None:
    expected = "equal" if tidy(text) else "different"
    assert same_value(text, text) == expected
    assert strict_math(text, [text])["em"] == float(bool(tidy(text)))


def test_a_megabyte_of_latex_is_different_at_once() -> None:
    assert same_value("\\frac{1}{" * 100_000, "5") == "different"
    assert strict_math("x" * 1_000_000, ["x"]) == {
        "em": 0.0, "acc": 0.0, "f1": 0.0, "math_equal": 0.0, "valid": 1.0, "undecided": 0.0,
    }  # fmt: skip
