from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.normalise import normalise_official, normalise_strict, strict_tokens
from metrics.number_words import digits_for_number_words

WORDS = (
    "a an the and one two ten twenty hundred thousand million first second thousandth 1.5 2 1,000 3.0"
    " u. s. ' - + # / ^ ² ½ é ß が 北 + c++ % & \\text{ } ( )"
)
phrases = st.lists(st.sampled_from(WORDS.split()), max_size=8).flatmap(
    lambda w: st.sampled_from([" ".join(w), "".join(w), "-".join(w)])
)


@given(st.text(max_size=30) | phrases)
def test_normalising_again_changes_nothing(text: str) -> None:
    once = normalise_strict(text)
    assert normalise_strict(once) == once
    assert once == " ".join(once.split())


@given(st.text(max_size=30))
def test_official_normalising_settles_at_once_but_for_odd_letters(text: str) -> None:
    once = normalise_official(text)
    assert normalise_official(once) == once or once.lower() != once


@given(st.lists(st.sampled_from(WORDS.split()), max_size=10))
def test_number_words_go_in_one_pass(tokens: list[str]) -> None:
    once = digits_for_number_words(tokens)
    assert digits_for_number_words(once) == once


@given(st.text(max_size=30))
def test_no_answer_that_shows_something_vanishes(text: str) -> None:
    assert bool(strict_tokens(text)) == bool(normalise_strict(text))


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The  Beatles!", "beatles"),
        ("twenty-one", "twentyone"),
        ("U.S.", "us"),
        ("A theory of an atom", "theory of atom"),
        ("a", ""),
        ("Éa", "éa"),
    ],
)
def test_official_edge_cases(text: str, normal: str) -> None:
    assert normalise_official(text) == normal


@pytest.mark.parametrize(
    "same",
    [
        ("Beyoncé", "BEYONCE", "Beyonce\u0301", "Ｂｅｙｏｎｃé"),
        ("Straße", "STRASSE"),
        ("Łódź", "lodz"),
        ("the U.S.", "US", "U. S."),
        ("J. R. R. Tolkien", "J.R.R. Tolkien", "JRR Tolkien"),
        ("O'Neill", "O’Neill", "ONeill"),
        ("Jay-Z", "Jay Z", "jay‐z"),
        ("R&B", "R and B"),
        ("50%", "50 percent", "fifty percent"),
        ("1,234,567", "1234567", "1\u00a0234\u00a0567", "1{,}234{,}567", "1\\,234\\,567"),
        ("twenty-one", "21", "21.0", "twenty one"),
        ("2nd", "second"),
        ("twenty-first", "21st"),
        ("one hundred and five", "105", "a hundred and five"),
        ("two thousand and twenty-four", "2,024"),
        ("1.5 million", "1,500,000", "1500 thousand"),
        ("three million two hundred thousand and four", "3200004"),
        ("one hundred twelfth", "112th"),
        ("thousandth", "1000th"),
        ("one hundred and third", "103rd"),
        ("−5", "-5", "(-5)"),
        ("2½", "2 1/2", "2 ½"),
        (r"\text{New York} City", "new york city"),
        ("がく", "か\u3099く"),
    ],
)
def test_what_means_the_same_reads_the_same(same: tuple[str, ...]) -> None:
    assert len({normalise_strict(text) for text in same}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3.14", "314"), ("-5", "5"), ("10²", "102"), ("2½", "21/2"), ("C++", "C"), ("F#", "F"), ("1/2", "12"),
        ("vitamin A", "vitamin"), ("がく", "かく"), ("3.10", "3.1"), ("two three", "23"), ("twenty zero", "20"),
        ("one thousand two million", "2001000"),
    ],
)  # fmt: skip
def test_what_does_not_stays_apart(one: str, other: str) -> None:
    assert normalise_strict(one) != normalise_strict(other)


def test_chinese_characters_and_kana_are_units_and_hangul_words_are_words() -> None:
    assert strict_tokens("北京 City がく 한국") == ["北", "京", "city", "が", "く", "한국"]


def test_an_answer_of_punctuation_or_articles_keeps_something() -> None:
    assert normalise_strict("!!!") == "!!!"
    assert normalise_strict("The The") == "the"
    assert normalise_strict("zero\u200bwidth") == "zerowidth"
