from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.backends.environment import rate_of, route_url, shown_url
from retrieval.backends.shape import cut_query, day, text_field, web_hits
from retrieval.base import Hit
from retrieval.http.client import Rate
from signatures.errors import OptionError


@given(st.text(), st.integers(1, 30), st.none() | st.integers(1, 5))
def test_a_cut_query_is_short_enough_and_a_beginning(query: str, characters: int, words: int | None) -> None:
    cut = cut_query(query, characters, words)
    assert len(cut) <= characters
    assert words is None or len(cut.split()) <= words
    assert " ".join(query.split()).startswith(" ".join(cut.split()))
    assert bool(cut) == bool(query.strip())


@pytest.mark.parametrize(
    ("query", "cut"),
    [
        ("one two three", "one two"),
        ("one twothree", "one"),
        ("one two", "one two"),
        ("onetwothree", "onetwoth"),
        ("one two t", "one two"),
        ("  one   ", "one"),
        ("问题问题问题问题问题", "问题问题问题问题"),
    ],
)
def test_a_query_is_cut_between_words_where_that_is_possible(query: str, cut: str) -> None:
    assert cut_query(query, 8) == cut


def test_hits_keep_their_order_once_each() -> None:
    hits = [Hit("a", "https://a"), Hit("b", "ftp://b"), Hit("c", "HTTP://c"), Hit("again", "https://a"), Hit("d", "")]
    assert [hit.title for hit in web_hits(hits, 10)] == ["a", "c"]
    assert [hit.title for hit in web_hits(hits, 1)] == ["a"]
    assert web_hits(hits, 0) == []


@given(st.text() | st.none() | st.integers() | st.lists(st.text()))
def test_a_field_is_text_that_can_be_stored(value: object) -> None:
    text_field({"x": value}, "x").encode()


@pytest.mark.parametrize(
    ("date", "expected"),
    [("2024-05-01T10:00:00Z", "2024-05-01"), ("2024-05-01", "2024-05-01"), ("Tue, 5 Nov", "Tue, 5 Nov"), ("", "")],
)
def test_the_day_of_a_date_is_kept(date: str, expected: str) -> None:
    assert day(date) == expected


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("https://proxy.example", "https://proxy.example/search"),
        ("https://proxy.example/", "https://proxy.example/search"),
        ("https://proxy.example/my/route", "https://proxy.example/my/route"),
        ("http://proxy.example:8080?x=1", "http://proxy.example:8080/search?x=1"),
    ],
)
def test_an_address_without_a_route_gets_one(address: str, url: str) -> None:
    assert route_url(address, "/search") == url


def test_an_address_is_shown_without_its_secrets() -> None:
    assert shown_url("https://me:word@host.example:1/a?key=word#word") == "https://host.example:1/a"
    with pytest.raises(OptionError, match="not a valid URL"):
        shown_url("http://[me:word")


def test_a_rate_is_a_number_of_requests_a_second() -> None:
    assert rate_of(None, "x") is None
    assert rate_of(0.5, "x") == Rate(0.5)
    with pytest.raises(OptionError, match="x: requests_per_second is -1"):
        rate_of(-1, "x")
