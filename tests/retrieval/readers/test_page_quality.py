from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.http.client import Limits
from retrieval.readers.html_text import bounded_html, html_title, visible_text
from retrieval.readers.page_quality import error_page_problem, page_problem
from retrieval.readers.web import WebReader
from retrieval.readers.word_list import is_word_list
from signatures.errors import ReadError
from tests.servers.web import Answer, WebServer

PAGES = Path(__file__).parents[2] / "servers" / "pages"
BAD = sorted((PAGES / "bad").iterdir())
GOOD = sorted((PAGES / "good").iterdir())
REASONS = ("bot_wall", "cookie_wall", "login_wall", "empty", "binary", "word_list")
QUICK = Limits(connect_s=2, read_s=2, total_s=5, attempts=1)


async def read(page: bytes, content_type: str = "text/html", status: int = 200) -> str:
    with WebServer(pages={"/a": Answer(page, content_type=content_type, status=status)}) as server:
        return (await WebReader(allow_private=True, limits=QUICK).read(server.url + "/a")).text


def test_there_are_two_pages_for_each_kind_and_many_good_ones() -> None:
    for reason in REASONS:
        assert sum(path.name.startswith(reason) for path in BAD) >= 2, reason
    assert len(GOOD) >= 12


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
async def test_what_is_served_in_a_page_s_place_is_a_failure_with_its_reason(path: Path) -> None:
    with pytest.raises(ReadError) as caught:
        await read(path.read_bytes())
    assert path.name.startswith(caught.value.reason)
    assert caught.value.status == 200


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
async def test_good_pages_are_read(path: Path) -> None:
    assert len(await read(path.read_bytes())) > 80


@pytest.mark.parametrize("path", [path for path in BAD if "wall" in path.name], ids=lambda path: path.stem)
def test_walls_are_told_from_markdown_alone(path: Path) -> None:
    page = path.read_text()
    problem = page_problem(visible_text(page), html_title(page))
    # The login pages of forums speak too little for Markdown alone; a miss there is better than a good page lost.
    assert problem is not None or path.stem in ("login_wall_forum", "bot_wall_baidu")
    assert problem is None or path.name.startswith(problem.reason)


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_good_pages_stay_good_when_everything_visible_is_their_text(path: Path) -> None:
    page = path.read_text()
    assert page_problem(visible_text(page), html_title(page)) is None


@pytest.mark.parametrize("status", [403, 429, 503])
@pytest.mark.parametrize("name", ["cloudflare_challenge", "anubis", "akamai", "datadome", "perimeterx"])
async def test_a_wall_with_an_error_status_is_told_too(name: str, status: int) -> None:
    page = (PAGES / "bad" / f"bot_wall_{name}.html").read_bytes()
    with pytest.raises(ReadError) as caught:
        await read(page, status=status)
    assert (caught.value.reason, caught.value.status) == ("bot_wall", status)


async def test_other_pages_with_an_error_status_keep_their_reason() -> None:
    with pytest.raises(ReadError) as caught:
        await read(b"<html><title>Members only</title><p>This page is for members.</p></html>", status=403)
    assert caught.value.reason == "blocked"
    assert error_page_problem("<html><title>Down for maintenance</title>") is None
    assert error_page_problem("") is None


@pytest.mark.parametrize(
    ("text", "title", "reason"),
    [
        ("Access Denied", "", None),
        ("Access Denied", "Access Denied", None),
        ("Sorry, you have been blocked", "", "bot_wall"),
        ("Please enable JS and disable any ad blocker", "shop.example", "bot_wall"),
        ("You've been blocked by network security.\n\nTo continue, log in to your account.", "", "bot_wall"),
        ("Please enable JavaScript to view this page.", "Maps", "empty"),
        ("请先登录，登录后即可查看。", "登录", "login_wall"),
        ("Log in to continue", "Log in", "login_wall"),
        ("", "Only a title", "empty"),
        ("\x00\x01\x02\ufffd" * 50, "", "binary"),
        ("Yes.", "", None),
        ("42", "Answer", None),
        ("Just a moment... is a song of 1953. It was a hit.", "Just a moment", None),
        ('The error "Access Denied" means that a file cannot be opened. Ask its owner.', "Access denied", None),
    ],
)
def test_short_texts(text: str, title: str, reason: str | None) -> None:
    problem = page_problem(text, title)
    assert (problem.reason if problem else None) == reason


def test_long_pages_are_never_walls() -> None:
    wall = (PAGES / "bad" / "bot_wall_cloudflare_blocked.html").read_text()
    article = "The service checks every visitor, and shows this when it doubts him. " * 100
    assert (
        page_problem(article + " Sorry, you have been blocked. Why have I been blocked?", "Access Denied", wall) is None
    )


def test_a_shell_that_only_refers_elsewhere_says_where() -> None:
    problem = page_problem("", "Moved", '<meta http-equiv="refresh" content="0; url=https://example.org/new">')
    assert problem is not None
    assert problem.reason == "empty"
    assert "https://example.org/new" in problem.text


def test_names_facts_and_verse_are_no_word_lists() -> None:
    names = "\n".join(f"- {name}" for name in ["Ada Lovelace", "Alan Turing", "Grace Hopper", "Emmy Noether"] * 40)
    assert not is_word_list(names)
    assert not is_word_list("\n".join(f"{year} {name}" for year, name in enumerate(["gold", "silver"] * 100, 1800)))
    assert not is_word_list("word " * 40)
    assert not is_word_list("the cat sat on the mat and looked at the moon\n" * 30)
    assert is_word_list("\n".join(["abbey", "abbot", "abide", "abode"] * 50))
    assert is_word_list(" ".join(["abbey", "abbot", "abide", "abode"] * 50))


@given(text=st.text(max_size=400), title=st.text(max_size=40), markup=st.text(max_size=200))
def test_any_text_is_judged(text: str, title: str, markup: str) -> None:
    problem = page_problem(text, title, markup)
    assert problem is None or problem.reason in REASONS
    assert problem is not None or text.strip()


@given(st.lists(st.sampled_from(["<div>", "<script>", "</script>", "<!--", "-->", "<style", "x", "<title>", "é"])))
def test_bounded_html_keeps_what_is_no_script(pieces: list[str]) -> None:
    page = "".join(pieces)
    kept = bounded_html(page)
    assert len(kept) <= len(page)
    if "<script" not in page and "<style" not in page and "<!--" not in page:
        assert kept == page
