from __future__ import annotations

import asyncio
import time
import zlib

import pytest

from retrieval.http.client import Limits
from retrieval.readers.extraction import extract
from retrieval.readers.html_text import MAX_CHARS, MAX_TAGS, bounded_html, html_text, html_title, og_title
from retrieval.readers.pdf_text import PdfError, PdfLimits, pdf_text
from retrieval.readers.web import WebReader
from signatures.errors import ReadError
from tests.servers.pdf import make_pdf
from tests.servers.web import Answer, WebServer

QUICK = Limits(connect_s=2, read_s=5, total_s=20, attempts=1)
TALK = "It was built from 1887 to 1889 by the firm of Gustave Eiffel."
HOSTILE = {
    "deep nesting": "<div>" * 300_000,
    "nested tables": "<table><tr><td>" * 100_000,
    "attributes": "<div " + " ".join(f"a{number}=1" for number in range(300_000)) + ">",
    "unclosed titles": "<title>" * 400_000,
    "unclosed scripts": "<script>" * 400_000,
    "unclosed comments": "<!--" * 700_000,
    "comments": "<!-- x -->" * 300_000,
    "bare brackets": "<" * 3_000_000,
    "line breaks": "<br>" * 700_000,
    "one word": "<p>" + "x" * 3_000_000,
    "wide cells": "<table>" + "<tr><td colspan=1000 rowspan=1000>x</td></tr>" * 60_000,
    "metas": '<meta name="a" content="b">' * 120_000,
    "entities": "<p>" + "&amp;" * 600_000,
    "half entities": "<p>" + "&" * 3_000_000,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_markup_is_cut_to_what_a_parser_can_afford(kind: str) -> None:
    bounded = bounded_html(f"<html><body>{HOSTILE[kind]}")
    assert len(bounded) <= MAX_CHARS
    assert bounded.count("<") <= MAX_TAGS
    assert len(bounded) < 100_000 or "span=1000" not in bounded


@pytest.mark.parametrize("kind", ["deep nesting", "line breaks", "unclosed titles", "wide cells"])
def test_hostile_markup_is_extracted_in_bounded_time(kind: str) -> None:
    began = time.process_time()
    html_text(f"<html><body>{HOSTILE[kind]}")
    # A generous bound for a busy machine; without the caps these take minutes.
    assert time.process_time() - began < 30


def test_scripts_in_front_do_not_use_up_the_page() -> None:
    script = f"<script>{'var a = 1 < 2;' * 400_000}</SCRIPT ><style>{'p{}' * 900_000}</style><!-- {'<x>' * 99_999} -->"
    title, text = html_text(f"<html><head><title>T</title>{script}</head><body><p>{TALK}</p></body></html>")
    assert (title, text) == ("T", TALK)


def test_titles_are_found_without_the_site_s_name_where_the_page_gives_one() -> None:
    page = "<head><meta property='og:title' content='Eiffel &amp; Tower'><title>Eiffel\n Tower - Site</title></head>"
    assert (og_title(page), html_title(page)) == ("Eiffel & Tower", "Eiffel Tower - Site")
    assert html_text(page)[0] == "Eiffel & Tower"
    assert (og_title("<title>x"), html_title("<title>x")) == ("", "x")


async def test_a_refresh_in_the_page_is_not_followed() -> None:
    refresh = '<html><head><meta http-equiv="refresh" content="0;url=/b"></head><body></body></html>'
    with WebServer(pages={"/a": refresh, "/b": TALK}) as server:
        with pytest.raises(ReadError, match="refers to '/b'") as caught:
            await WebReader(allow_private=True, limits=QUICK).read(server.url + "/a")
        assert caught.value.reason == "empty"
        assert server.count("/b") == 0


def content_pdf(content: bytes) -> bytes:
    """A PDF of one page, with the given content stream."""
    stream = zlib.compress(content, 9)
    page = make_pdf("x")
    start = page.index(b"5 0 obj")
    end = page.index(b"endobj", start)
    obj = b"5 0 obj\n<< /Length %d /Filter /FlateDecode >>\nstream\n" % len(stream) + stream + b"\nendstream\n"
    # PDFium rebuilds the cross-reference table when its offsets are wrong.
    return page[:start] + obj + page[end:]


def bomb(size: int) -> bytes:
    packer = zlib.compressobj(1)
    spaces = b"".join(packer.compress(b" " * 10_000_000) for _ in range(size // 10_000_000)) + packer.flush()
    empty = zlib.compress(b"x", 9)
    return content_pdf(b"x").replace(empty, spaces).replace(b"/Length %d " % len(empty), b"/Length %d " % len(spaces))


def test_a_pdf_that_unpacks_to_more_than_the_memory_fails() -> None:
    data = bomb(300_000_000)
    assert len(data) < 3_000_000
    with pytest.raises(PdfError) as caught:
        pdf_text(data, 100, PdfLimits(memory_bytes=400_000_000))
    assert caught.value.reason == "too_large"


async def test_a_pdf_that_keeps_a_processor_busy_fails_and_others_are_read_meanwhile() -> None:
    data = content_pdf(b"q " * 30_000_000)
    slow = asyncio.create_task(asyncio.to_thread(pdf_text, data, 100, PdfLimits(cpu_s=1)))
    with WebServer(pages={"/good": make_pdf("Hello")}) as server:
        page = await WebReader(allow_private=True, limits=QUICK).read(server.url + "/good")
    assert page.text == "Hello"
    with pytest.raises(PdfError) as caught:
        await slow
    assert caught.value.reason == "too_large"


def test_a_content_stream_is_read_whatever_its_size_says() -> None:
    content = b"BT /F1 11 Tf 40 780 Td (Hello there) Tj ET"
    assert extract(content_pdf(content), "application/pdf", 100)[1] == "Hello there"


def test_a_pdf_that_takes_too_long_is_given_up() -> None:
    with pytest.raises(PdfError, match="longer than") as caught:
        pdf_text(make_pdf("Hello"), 100, PdfLimits(wall_s=0.001))
    assert caught.value.reason == "too_large"


def test_a_pdf_is_read_no_further_than_its_first_pages() -> None:
    assert pdf_text(make_pdf(*["page"] * 9), 10_000, PdfLimits(pages=3))[1] == "page\n\npage\n\npage"


@pytest.mark.parametrize(
    ("page", "content_type", "text"),
    [
        ("<meta charset=windows-1251><p>Озеро Байкал</p>".encode("cp1251"), "text/html", "Озеро Байкал"),
        ("<meta charset=utf-8><p>Озеро Байкал</p>".encode("cp1251"), "text/html; charset=windows-1251", "Озеро Байкал"),
        ("<meta charset=iso-8859-1><p>Озеро Байкал</p>".encode(), "text/html; charset=latin-1", "Озеро Байкал"),
        ("<p>Озеро Байкал</p>".encode("utf-16"), "text/html; charset=utf-8", "Озеро Байкал"),
        ("<meta charset=no-such><p>Озеро Байкал</p>".encode(), "text/html; charset=x-unknown", "Озеро Байкал"),
        ('{"a": "Озеро"}'.encode(), "application/json", '{"a": "Озеро"}'),
        (b"<rss><channel><item><title>A</title></item></channel></rss>", "application/rss+xml", "<rss>"),
        (b"<?xml version='1.0'?><a>b</a>", "application/xml", "<a>b</a>"),
    ],
)
async def test_charsets_and_kinds_of_text(page: bytes, content_type: str, text: str) -> None:
    with WebServer(pages={"/a": Answer(page, content_type=content_type)}) as server:
        assert text in (await WebReader(allow_private=True, limits=QUICK).read(server.url + "/a")).text
