"""Addresses of one page become equal, others stay apart, and nothing makes it raise."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from retrieval.canonical_url import canonical_url

SAME = [
    ("https://example.org/a", "http://example.org/a"),
    ("https://example.org/a", "HTTPS://Example.ORG/a"),
    ("https://example.org/a", "https://www.example.org/a"),
    ("https://example.org/a", "https://example.org./a"),
    ("https://example.org/a", "https://example.org/a/"),
    ("https://example.org/a", "  https://example.org/a\n"),
    ("https://example.org/a", "https://example.org:443/a"),
    ("https://example.org/a", "http://example.org:80/a"),
    ("https://example.org/a", "https://example.org/a#section"),
    ("https://example.org/a", "https://example.org/a#:~:text=marked%20words"),
    ("https://example.org/a", "https://example.org/a#section:~:text=x"),
    ("https://example.org/a", "https://example.org/a?"),
    ("https://example.org/a", "https://example.org/b/../a"),
    ("https://example.org/a", "https://example.org/%2E/a"),
    ("https://example.org/a", "https://m.example.org/a"),
    ("https://example.org", "https://example.org/"),
    ("https://example.org/", "http://www.example.org/index.html"),
    ("https://example.org/docs", "https://example.org/docs/index.htm"),
    ("https://example.org/docs", "https://example.org/docs/INDEX.HTML"),
    ("https://example.org/a?b=2&c=1", "https://example.org/a?c=1&b=2"),
    ("https://example.org/a?q=x%20y", "https://example.org/a?q=x+y"),
    ("https://example.org/a?b=1", "https://example.org/a?utm_source=x&b=1&UTM_Medium=y&gclid=z&fbclid=w"),
    ("https://example.org/a", "https://example.org/a?msclkid=1&mc_eid=2&igshid=3&srsltid=4&_ga=5"),
    ("https://example.org/é", "https://example.org/%c3%A9"),
    ("https://example.org/~me/(x)", "https://example.org/%7Eme/%28x%29"),
    ("https://en.wikipedia.org/wiki/Arrival_(film)", "http://en.m.wikipedia.org/wiki/Arrival_%28film%29#Plot"),
    ("https://en.wiktionary.org/wiki/a", "https://en.m.wiktionary.org/wiki/a"),
    ("https://www.wikidata.org/", "https://wikidata.org/"),
    ("https://m.youtube.com/watch?v=1", "https://www.youtube.com/watch?v=1"),
    ("https://bücher.example/", "https://xn--bcher-kva.example/"),
    ("https://example.org/#!/a", "http://example.org#!/a"),
    ("http://[2001:DB8::1]/a", "https://[2001:db8::1]:443/a/"),
]
APART = [
    ("https://example.org/a", "https://example.org/A"),
    ("https://example.org/a", "https://example.org/b"),
    ("https://example.org/a", "https://example.org:8080/a"),
    ("https://example.org/a", "https://sub.example.org/a"),
    ("https://example.org/a?b=1", "https://example.org/a?b=2"),
    ("https://example.org/a?ref=main", "https://example.org/a"),
    ("https://example.org/a%2Fb", "https://example.org/a/b"),
    ("https://example.org/a?b=c%26d=e", "https://example.org/a?b=c&d=e"),
    ("https://example.org/a?q=x%2By", "https://example.org/a?q=x+y"),
    ("https://example.org/a%3Fb", "https://example.org/a?b"),
    ("https://example.org/#!/a", "https://example.org/#!/b"),
    ("https://en.wikipedia.org/wiki/A", "https://de.m.wikipedia.org/wiki/A"),
    ("https://m.me/a", "https://me/a"),
    ("https://www.com/", "https://com/"),
    ("https://example.org/my-index.html", "https://example.org/my-"),
]
UNTOUCHED = [
    "",
    "   ",
    "no address",
    "/relative/",
    "//example.org/a/",
    "corpus://Wiki/Some%20Id/",
    "retriever://HOST:8000/1/",
    "ftp://www.example.org/a/",
    "javascript:alert(1)",
    "http://",
    "http:///a/",
    "http://example.org:99999/",
    "http://example.org:x/",
    "http://[::1/",
    "http://[fe80::1%25eth0]/",
    "http://user:secret@example.org/a/",
    "http://exa mple.org/",
    "http://a\\b/",
    "http://\u2100.example/",
    "http://" + "ü" * 300 + "/",
    "\ud800",
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_spellings_of_one_page_are_equal(one: str, other: str) -> None:
    assert canonical_url(one) == canonical_url(other)


@pytest.mark.parametrize(("one", "other"), APART)
def test_other_pages_stay_apart(one: str, other: str) -> None:
    assert canonical_url(one) != canonical_url(other)


@pytest.mark.parametrize("url", UNTOUCHED)
def test_what_is_no_web_address_is_returned_as_it_is(url: str) -> None:
    assert canonical_url(url) == url


def test_the_canonical_form_can_be_read() -> None:
    given = "HTTP://www.Example.org:80/a/./b/../c/index.html?z=1&utm_source=x&a=%7e#top"
    assert canonical_url(given) == "https://example.org/a/c?a=~&z=1"


WORDS = (
    "www. m. . example.org en.m.wikipedia.org ü.de İ :80 :443 : @ [::1] / // .. %2e %2E%2e % %2 %%32%35 %3A~%3A %c3%a9 "
    "é index.html a ? & = + %2B utm_x=1 %75tm_x # ! %21 :~: ; %26 %23 %00"
)
PIECES = st.sampled_from([*WORDS.split(), " ", "\t", "\\", "\ud800", "\u3002"])


@given(st.text() | st.builds("".join, st.lists(PIECES)).map(lambda rest: f"https://{rest}"))
@example("http://www.www.www.example.org//index.html//index.php/")
@example("http://a#!x%3A~%3Ay#z")
@example("http://x:443/")
@example("http://a\u3002\u3002/")
def test_any_text_is_taken_and_the_result_is_its_own_canonical_form(url: str) -> None:
    once = canonical_url(url)
    assert canonical_url(once) == once
    assert once == url or once.startswith("https://")
