from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics import strict
from metrics.choice import choice_letter, official_choice, strict_choice

CHOICES = ["10 kJ", "42 kJ", "Paris", "vitamin C"]
pieces = st.lists(
    st.sampled_from([*"ABCDabc().:,\\{} $*", "\\text{", "\\left(", "or", "Option ", "42 kJ"]), max_size=12
)


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("42 kJ", "B"),
        ("42\\,\\mathrm{kJ}", "B"),
        ("PARIS", "C"),
        ("B. 42 kJ", "B"),
        ("\\text{(B)}~42 kJ", "B"),
        ("B. 10 kJ", ""),
        ("B. something else", "B"),
        ("D", "D"),
        ("E", ""),
        ("E. coli", ""),
        ("Lyon", ""),
        ("", ""),
    ],
)
def test_known_choices_decide_what_a_box_names(answer: str, letter: str) -> None:
    assert choice_letter(answer, CHOICES) == letter


def test_a_text_that_two_choices_share_names_neither() -> None:
    assert choice_letter("x", ["x", "X", "y"]) == ""


def test_an_essay_names_no_choice_and_costs_no_time() -> None:
    began = time.process_time()
    assert choice_letter("\\text{" * 40_000 + "B" + "}" * 40_000, CHOICES) == ""
    assert time.process_time() - began < 5


def test_without_known_choices_a_text_names_none() -> None:
    assert choice_letter("42 kJ") == ""


def test_choices_reach_the_scorer() -> None:
    assert strict.score("choice", "\\boxed{42 kJ}", "B", choices=CHOICES).em == 1.0
    assert strict.score("choice", "\\boxed{B}", "42 kJ", choices=CHOICES).em == 1.0
    assert strict.score("choice", "\\boxed{42 kJ}", "B").valid is False


@given(pieces.map("".join))
def test_whatever_is_in_the_box_at_most_one_letter_comes_out(answer: str) -> None:
    letter = choice_letter(answer)
    assert letter == "" or (len(letter) == 1 and "A" <= letter <= "Z")
    assert not letter or letter in answer.upper()


@given(pieces.map("".join), st.sampled_from("ABCD"))
def test_a_strict_choice_is_right_or_wrong_in_every_metric_alike(answer: str, label: str) -> None:
    numbers = strict_choice(answer, [label])
    assert len({numbers[name] for name in ("em", "acc", "f1", "math_equal")}) == 1
    assert numbers["em"] <= numbers["valid"]


@pytest.mark.parametrize(("answer", "valid"), [("B", 1), ("b", 1), ("1", 1), ("", 0), ("B.", 0), ("BC", 0)])
def test_an_official_choice_is_valid_when_it_is_one_character(answer: str, valid: float) -> None:
    assert official_choice(answer, ["B"])["valid"] == valid


def test_an_essay_in_the_box_is_no_choice() -> None:
    assert choice_letter("B. " + "x" * 3_000) == ""
