from __future__ import annotations

import asyncio
import contextlib
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.base import Page, Reader
from retrieval.http.client import Limits
from retrieval.readers.extraction import VERSION, Unreadable, decode, extract
from retrieval.readers.web import WebReader
from signatures.errors import ReadError
from tests.servers.pdf import make_pdf
from tests.servers.web import Answer, WebServer

QUICK = Limits(connect_s=2, read_s=0.5, total_s=2, attempts=2, backoff_s=0.01, max_bytes=300_000)
PARAGRAPH = (
    "The Eiffel Tower is a wrought-iron lattice tower in Paris, built from 1887 to 1889 by Gustave Eiffel's firm. "
)
ARTICLE = f"""<!doctype html><html><head><title>Eiffel &amp; Tower</title></head><body>
<nav><a href="/">Home</a> <a href="/about">About us</a></nav>
<article><h1>Eiffel Tower</h1><p>{PARAGRAPH * 3}</p><p>It was criticised at first. {PARAGRAPH}</p></article>
<script>var tracking = "do not read me";</script><footer>Cookie settings</footer></body></html>"""


async def read(server: WebServer, path: str, **options: object) -> Page:
    return await WebReader(allow_private=True, limits=QUICK, **options).read(server.url + path)  # type: ignore[arg-type]


async def failure(server: WebServer, path: str) -> ReadError:
    with pytest.raises(ReadError) as caught:
        await read(server, path)
    assert caught.value.provider == "web"
    return caught.value


async def test_the_main_text_and_title_of_an_article_are_read() -> None:
    with WebServer(pages={"/a": ARTICLE}) as server:
        page = await read(server, "/a")
        assert isinstance(WebReader(), Reader)
        assert PARAGRAPH.strip() in page.text
        assert "criticised" in page.text
        assert "tracking" not in page.text
        assert "Eiffel" in page.title
        assert (page.url, page.status) == (server.url + "/a", 200)
        assert page.meta == {"final_url": server.url + "/a", "content_type": "text/html"}


async def test_a_very_short_page_is_read_too() -> None:
    with WebServer(
        pages={"/a": "<html><head><title>T &amp;\n t</title></head><body>Just this.</body></html>"}
    ) as server:
        page = await read(server, "/a")
        assert (page.text, page.title) == ("Just this.", "T & t")


async def test_plain_text_is_read_as_it_is() -> None:
    with WebServer(pages={"/a": "line one\nline <b>two</b>\n"}) as server:
        assert (await read(server, "/a")).text == "line one\nline <b>two</b>"


async def test_json_is_text() -> None:
    with WebServer(pages={"/a": Answer('{"a": 1}', content_type="application/json")}) as server:
        assert (await read(server, "/a")).text == '{"a": 1}'


async def test_a_pdf_is_read_with_its_title() -> None:
    with WebServer(pages={"/a.pdf": make_pdf("Hello (world)\nsecond line", "page two", title="My Paper")}) as server:
        page = await read(server, "/a.pdf")
        assert page.text == "Hello (world)\nsecond line\n\npage two"
        assert page.title == "My Paper"


async def test_a_pdf_is_known_by_its_bytes_whatever_it_is_called() -> None:
    with WebServer(pages={"/a": Answer(make_pdf("Hello"), content_type="text/html")}) as server:
        assert (await read(server, "/a")).text == "Hello"


async def test_pdfs_are_read_by_several_tasks_at_once() -> None:
    with WebServer(pages={"/a.pdf": make_pdf(*["some words"] * 30)}) as server:
        pages = await asyncio.gather(*(read(server, "/a.pdf") for _ in range(6)))
        assert {page.text.count("some words") for page in pages} == {30}


async def test_a_pdf_is_read_no_further_than_needed() -> None:
    with WebServer(pages={"/a.pdf": make_pdf(*["twenty characters ok"] * 50)}) as server:
        assert (await read(server, "/a.pdf", page_chars=30)).text == "twenty characters ok\n\ntwenty c"


@pytest.mark.parametrize("damaged", [b"%PDF-1.4 broken", make_pdf("x")[:60]])
async def test_a_damaged_pdf_is_binary(damaged: bytes) -> None:
    with WebServer(pages={"/a.pdf": damaged}) as server:
        error = await failure(server, "/a.pdf")
        assert (error.reason, error.status) == ("binary", 200)


async def test_text_is_cut_to_page_chars() -> None:
    with WebServer(pages={"/a": "x" * 100_000}) as server:
        assert len((await read(server, "/a")).text) == 50_000
        assert len((await read(server, "/a", page_chars=10)).text) == 10


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(""), "empty"),
        (Answer(" \n "), "empty"),
        (Answer("<html><body><script>app()</script></body></html>"), "empty"),
        (Answer(make_pdf(""), content_type="application/pdf"), "empty"),
        (Answer(bytes(range(256)) * 20, content_type="text/plain"), "binary"),
        (Answer(b"\x89PNG\r\n\x1a\n" + bytes(500), content_type="image/png"), "unsupported"),
        (Answer(b"PK\x03\x04" + bytes(500), content_type="application/zip"), "binary"),
        (Answer("plain words", content_type="application/x-unknown"), "unsupported"),
        (Answer("gone", status=404), "not_found"),
        (Answer("no", status=403), "blocked"),
        (Answer("late", latency_s=1.2), "timeout"),
        (Answer("x" * 400_000), "too_large"),
        (Answer(close_after=0), "connection"),
        (Answer(redirect="file:///etc/passwd"), "refused"),
    ],
)
async def test_what_cannot_be_read_is_a_failure_with_its_reason(answer: Answer, reason: str) -> None:
    with WebServer(pages={"/a": answer}) as server:
        error = await failure(server, "/a")
        assert error.reason == reason
        assert server.url + "/a" in str(error)


async def test_the_guard_is_on_by_default() -> None:
    with WebServer(pages={"/a": ARTICLE}) as server:
        with pytest.raises(ReadError, match="not a public address") as caught:
            await WebReader().read(server.url + "/a")
        assert caught.value.reason == "refused"
        assert server.requests == []


async def test_redirects_are_followed() -> None:
    with WebServer(pages={"/a": Answer(redirect="/b"), "/b": ARTICLE}) as server:
        page = await read(server, "/a")
        assert page.url == server.url + "/a"
        assert page.meta["final_url"] == server.url + "/b"


async def test_compressed_pages_are_read() -> None:
    with WebServer(pages={"/a": Answer(ARTICLE * 1, compress=True)}) as server:
        assert PARAGRAPH.strip() in (await read(server, "/a")).text


async def test_long_pages_are_extracted_beside_the_loop() -> None:
    long = ARTICLE.replace("<article>", "<article>" + "".join(f"<p>{PARAGRAPH} {i}</p>" for i in range(500)))
    with WebServer(pages={"/a": long}) as server:
        assert len((await read(server, "/a")).text) > 40_000


@pytest.mark.parametrize(
    ("data", "content_type"),
    [
        ("Café déjà vu".encode(), "text/html; charset=utf-8"),
        ("Café déjà vu".encode(), "text/html; charset=iso-8859-1"),
        ("Café déjà vu".encode(), "text/html"),
        ("Café déjà vu".encode("latin-1"), "text/html; charset=ISO-8859-1"),
        ("Café déjà vu".encode("latin-1"), 'text/html; charset="latin-1"'),
        ("Café déjà vu".encode("utf-8-sig"), "text/html; charset=latin-1"),
        ("Café déjà vu".encode("utf-16"), "text/html"),
        ("Café déjà vu".encode("utf-32"), "text/html"),
        ("Café déjà vu".encode("utf-16-le"), "text/html; charset=utf-16-le"),
        ("Café déjà vu est une phrase française.".encode("cp1252"), "text/html; charset=no-such-charset"),
        ("Café déjà vu est une phrase française écrite à Évian, où il fait très beau.".encode("cp1252"), ""),
    ],
)
def test_text_is_decoded_by_what_it_is(data: bytes, content_type: str) -> None:
    assert decode(data, content_type).startswith("Café déjà vu")


def test_the_page_itself_may_declare_its_charset() -> None:
    page = '<html><head><meta http-equiv="Content-Type" content="text/html; charset=gb2312"></head>你好，世界</html>'
    assert "你好，世界" in decode(page.encode("gb2312"), "text/html")
    assert decode("こんにちは".encode("iso2022_jp"), "text/html; charset=iso-2022-jp") == "こんにちは"


@settings(deadline=None, max_examples=60)
@given(
    body=st.binary(max_size=300) | st.text(max_size=200).map(lambda text: f"<html><body>{text}".encode()),
    content_type=st.sampled_from(["", "text/html", "text/plain; charset=x", "application/pdf", "image/png", ";;"]),
)
def test_any_bytes_are_read_or_refused(body: bytes, content_type: str) -> None:
    with contextlib.suppress(Unreadable):
        _, text = extract(body, content_type, 1000)
        assert text.strip()


async def test_it_survives_pickling_and_tells_its_identity() -> None:
    with WebServer(pages={"/a": ARTICLE}) as server:
        reader = WebReader(allow_private=True, limits=QUICK)
        page = await reader.read(server.url + "/a")
        assert await pickle.loads(pickle.dumps(reader)).read(server.url + "/a") == page
    assert f":v{VERSION}" in WebReader().identity()
    assert WebReader().identity() == WebReader(allow_private=True).identity() != WebReader(page_chars=8000).identity()
