"""The same question is known again however a file writes it, and another one is not taken for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.optimizing.question_text import normalised_question, question_key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Who directed Arrival?", "who  directed\n“Arrival”"),
        ("Who wrote Ｄｕｎｅ？", "Who wrote Dune?"),
        ("Who played Spider-Man?", "Who played Spider Man?"),
        ("Wer war Käthe?", "Wer war Ka\u0308the"),
        ("谁导演了《降临》？", "谁导演了《降临》?"),
        ("Which? Choices:\n(A) red\n(B) blue\n", "Which?  choices:\n(A) Blue\n(B) Red."),
    ],
)
def test_form_makes_no_other_question(one: str, other: str) -> None:
    assert normalised_question(one) == normalised_question(other)
    assert question_key(one) == question_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is 3+4?", "What is 3-4?"),
        ("What is $8/2$?", "What is $8*2$?"),
        ("Simplify x+y.", "Simplify x-y."),
        ("Solve x-1 = 0", "Solve x+1 = 0"),
        ("Is 3.5 more?", "Is 35 more?"),
        ("Which? Choices:\n(A) red\n(B) blue\n", "Which? Choices:\n(A) red\n(B) green\n"),
        ("What is C++?", "What is C?"),
        ("???", "!!!"),
    ],
)
def test_meaning_makes_another_question(one: str, other: str) -> None:
    assert normalised_question(one) != normalised_question(other)


def test_a_key_is_sixteen_hex_digits_of_the_folded_texts_sha_256() -> None:
    # The key is written into compiled programs, so it must not change from one version to the next.
    assert normalised_question("Who directed Arrival?") == "who directed arrival"
    assert question_key("Who directed Arrival?") == "96428700b820c401"
    assert len(question_key("a lone \ud800 surrogate")) == 16


@given(st.text(max_size=60))
def test_folding_twice_changes_nothing_more(text: str) -> None:
    once = normalised_question(text)
    assert normalised_question(once) == once
    assert bool(once) == bool(text.strip())
