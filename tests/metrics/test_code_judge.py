from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.code_judge import official_output_matches, strict_output_matches, value_matches

BOTH = [
    ("3\n", "3\n", True),
    ("3", "3\n", True),
    ("  3 \n\n", "3", True),
    ("1 2\n3 4\n", "1 2\n3 4", True),
    ("1 2 \n 3 4\n", "1 2\n3 4\n", True),
    ("1 2\r\n3 4\r\n", "1 2\n3 4\n", True),
    ("", "", True),
    ("\n\n", "", True),
    ("4\n", "3\n", False),
    ("", "3\n", False),
    ("3\n", "", False),
    ("Yes", "YES", False),
    ("3 4", "3\n4", False),
    ("1 2", "2 1", False),
    ("[1, 2]", "[1,2]", False),
    ("3 ", "33", False),
    ("1\n2\n3\n", "1\n2\n", False),
    ("0.5\n", "0.50\n", True),
    ("1e2\n", "100.0\n", True),
    ("nan", "1.0", False),
    ("50000000000000000", "50000000000000001", False),
]


@pytest.mark.parametrize(("printed", "expected", "right"), BOTH)
def test_both_families_agree(printed: str, expected: str, right: bool) -> None:
    assert official_output_matches(printed, expected) is right
    assert strict_output_matches(printed, expected) is right


@pytest.mark.parametrize(
    ("printed", "expected", "official", "strict"),
    [
        # Blank lines between others.
        ("1\n\n2\n", "1\n2\n", True, False),
        ("1\n2\n", "1\n\n2\n", True, False),
        # One number a line within 1e-5; several a line are compared as text there, as exact numbers here.
        ("0.333333", "0.3333333333", True, False),
        ("1.5\n0.3333333", "1.5\n0.3333334", True, False),
        ("0.50 1.0", "0.5 1", False, True),
        ("1.0", "1", True, True),
        ("01", "1", False, True),
        ("+1", "1", True, True),
        ("inf", "inf", True, True),
        ("1e400", "1e500", True, False),
        ("1_0.0", "10.0", True, True),
        ("nan", "NaN", False, False),
        ("sNaN", "sNaN1", False, False),
        # Vertical tab and form feed break lines there.
        ("1\x0b2", "1\n2", True, False),
    ],
)
def test_where_the_families_differ(printed: str, expected: str, official: bool, strict: bool) -> None:
    assert official_output_matches(printed, expected) is official
    assert strict_output_matches(printed, expected) is strict


@pytest.mark.parametrize(
    ("returned", "expected", "right"),
    [
        ("3", "3", True),
        ("3.0", "3", True),
        ("true", "true", True),
        ("[1, [2, 3]]", "[1,[2,3]]", True),
        ('"a"', '"a"', True),
        ("null", "null", True),
        ("0.1", "0.10000001", False),
        ("[1, 2]", "[2, 1]", False),
        ('"3"', "3", False),
        ("null", "0", False),
        ("[]", "null", False),
        ("NaN", "NaN", False),
        ('{"not plain data": "set"}', "[1]", False),
        ("not json", "1", False),
        ("[" * 100_000, "[]", False),
        (None, "null", False),
        ("1" * 5000, "1" * 5000, True),
        ("1" * 5000, "1" * 4999 + "2", False),
    ],
)
def test_returned_values(returned: str | None, expected: str, right: bool) -> None:
    assert value_matches(returned, expected) is right


# The published runner breaks printed lines, but not expected ones, at rarer line separators too.
@given(st.text(st.characters(exclude_categories=["Cc", "Zl", "Zp", "Cs"]) | st.sampled_from("\n\t"), max_size=40))
def test_what_is_expected_is_always_right(text: str) -> None:
    assert official_output_matches(text, text)
    assert strict_output_matches(text, text)


@given(st.text(max_size=30), st.text(max_size=30))
def test_white_space_at_the_ends_never_matters(printed: str, expected: str) -> None:
    for matches in (official_output_matches, strict_output_matches):
        assert matches(f"\n {printed}\n\n", expected) == matches(printed, expected)


@given(st.recursive(st.integers() | st.text(max_size=5) | st.booleans() | st.none(), st.lists, max_leaves=10))
def test_a_value_equals_itself(value: object) -> None:
    assert value_matches(json.dumps(value), json.dumps(value))
