from __future__ import annotations

import itertools
import time
from collections.abc import Iterable

import pytest

from retrieval.http.client import HttpClient, Limits, Reply
from signatures.errors import ReadError
from tests.servers.names import ScriptedNames
from tests.servers.proxy import ProxyServer
from tests.servers.raw import raw_server
from tests.servers.web import Answer, WebServer

QUICK = Limits(connect_s=2, read_s=0.3, total_s=1, attempts=1, max_bytes=100_000, max_redirects=3)
HEAD = b"HTTP/1.1 200 OK\r\n"


class Endless:
    """The same piece for ever, for every connection anew, after a beginning."""

    def __init__(self, piece: bytes, beginning: bytes = b"") -> None:
        self.piece, self.beginning = piece, beginning

    def __iter__(self) -> Iterable[bytes]:
        return itertools.chain([self.beginning], itertools.repeat(self.piece))


async def get(url: str, limits: Limits = QUICK, **options: object) -> Reply:
    return await HttpClient("web", ReadError, limits=limits).request("GET", url, what="the page", **options)  # type: ignore[arg-type]


async def failure(pieces: Iterable[bytes], limits: Limits = QUICK, keep_open_s: float = 0.0) -> ReadError:
    async with raw_server(pieces, keep_open_s) as url:
        with pytest.raises(ReadError) as caught:
            await get(url, limits)
    return caught.value


@pytest.mark.parametrize(
    "pieces",
    [
        Endless(b"X-Field: 1\r\n" * 50, HEAD),
        Endless(b"x" * 5000, HEAD + b"X-Field: "),
        Endless(b"x" * 5000, HEAD),
        Endless(b"x" * 5000, b"HTTP/1.1 200 "),
        Endless(b"x" * 5000),
        Endless(b"\0" * 5000),
    ],
    ids=["fields", "field value", "field name", "reason", "no http", "zeros"],
)
async def test_a_head_without_end_is_cut_off(pieces: Iterable[bytes]) -> None:
    error = await failure(pieces)
    assert (error.reason, "not proper HTTP" in str(error)) == ("connection", True)


async def test_interim_replies_without_end_stop_at_the_total_time() -> None:
    error = await failure(Endless(b"HTTP/1.1 102 Processing\r\n\r\n" * 20))
    assert (error.reason, "not complete within 1 s" in str(error)) == ("timeout", True)


@pytest.mark.parametrize(
    "body",
    [
        b"Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n5\r\nhelloXX5\r\nhello\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFFF\r\nhello",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello",
        b"Content-Length: -5\r\n\r\nhello",
        b"Content-Length: five\r\n\r\nhello",
        b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"Content-Length: 500\r\n\r\nhello",
        b"Content-Length: 5\r\n\r\nhello and more",
    ],
)
async def test_garbled_framing_is_a_failure(body: bytes) -> None:
    assert (await failure([HEAD + body])).reason == "connection"


@pytest.mark.parametrize("head", [b"", b"\r\n", b"HTTP/9.9 200 OK\r\n\r\n", b"200 OK\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n"])
async def test_what_is_no_reply_is_a_failure(head: bytes) -> None:
    assert (await failure([head])).reason == "connection"


async def test_a_chunk_as_large_as_it_likes_is_capped() -> None:
    error = await failure(Endless(b"x" * 5000, HEAD + b"Transfer-Encoding: chunked\r\n\r\n7FFFFFFF\r\n"))
    assert (error.reason, error.status) == ("too_large", 200)


async def test_a_body_that_claims_too_much_is_not_even_read() -> None:
    error = await failure(
        [HEAD + b"Content-Length: 1000000000000\r\n\r\n"], Limits(read_s=9, attempts=1), keep_open_s=9
    )
    assert (error.reason, "longer than 10000000 bytes" in str(error)) == ("too_large", True)


async def test_a_server_that_says_nothing_is_a_time_out() -> None:
    assert (await failure([], keep_open_s=3)).reason == "timeout"
    assert (await failure([HEAD + b"Content-Length: 9\r\n\r\nx"], keep_open_s=3)).reason == "timeout"


async def test_an_error_keeps_its_status_whatever_its_body_does() -> None:
    bodies = {
        "/endless": Answer("busy " * 1000, status=503, endless=True),
        "/cut": Answer("busy" * 100, status=503, close_after=20),
        "/false": Answer("busy", status=503, headers={"Content-Encoding": "gzip"}),
        "/foreign": Answer("busy", status=503, headers={"Content-Encoding": "br"}),
        "/large": Answer("busy " * 100_000, status=503),
    }
    with WebServer(pages=bodies) as server:
        for path in bodies:
            with pytest.raises(ReadError, match="answered 503") as caught:
                await get(server.url + path)
            assert (caught.value.status, len(caught.value.body) <= 200) == (503, True)


async def test_a_rate_limit_that_drips_is_still_a_rate_limit() -> None:
    drip = Answer("wait " * 1000, status=429, drip_s=0.1, headers={"Retry-After": "3600"})
    with WebServer(pages={"/": drip}) as server:
        began = time.monotonic()
        with pytest.raises(ReadError, match="asks to wait 3600 s") as caught:
            await get(server.url + "/", Limits(read_s=30, total_s=30))
        assert caught.value.reason == "rate_limited"
        assert time.monotonic() - began < 20


@pytest.mark.parametrize("value", ["a\r\nX-Injected: 1", "a\nb", "a\0b", "\x1b[2J"])
async def test_a_header_field_cannot_be_broken_up(value: str) -> None:
    with WebServer(pages={"/": "fine"}) as server:
        with pytest.raises(ReadError, match="'X-Key' holds a line break or control character") as caught:
            await get(server.url + "/", headers={"X-Key": value})
        assert value not in str(caught.value)
        assert server.requests == []


@pytest.mark.parametrize("path", ["/\r\nX-Injected: 1", "/\x00", "/\n", "/\tx"])
async def test_an_address_cannot_break_the_request_up(path: str) -> None:
    with WebServer(pages={"/": "fine"}) as server:
        with pytest.raises(ReadError, match="control character") as caught:
            await get(server.url + path)
        assert (caught.value.reason, server.requests) == ("refused", [])


@pytest.mark.parametrize(
    "target",
    [
        "file:///etc/passwd",
        "ftp://public.example/",
        "data:text/html,<b>x</b>",
        "javascript:alert(1)",
        "blob:http://public.example/x",
        "corpus://demo/1",
        "http://127.0.0.1:{port}/secret",
        "http://2130706433:{port}/secret",
        "http://[::ffff:127.0.0.1]:{port}/secret",
        "//127.0.0.1:{port}/secret",
        "http://localhost:{port}/secret",
        "http://inside.example:{port}/secret",
        "http://both.example:{port}/secret",
        "http://169.254.169.254/latest/meta-data/",
        "http://user:pw@public.example:{port}/secret",
        "http://public.example@127.0.0.1:{port}/secret",
        "http://public.example:22/",
        "http://public.example/" + "a" * 8190,
    ],
)
async def test_no_redirect_leads_a_guarded_request_inside(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    # Only through a proxy can a test server on this machine pass for a public one.
    names = ScriptedNames(
        {"public.example": ["8.8.8.8"], "inside.example": ["10.0.0.1"], "both.example": ["8.8.8.8", "127.0.0.1"]}
    )
    with WebServer(pages={"/secret": "secret"}) as server:
        ways = dict.fromkeys(names.table, ("127.0.0.1", server.port))
        server.script("/go", Answer(redirect="/next"))
        server.script("/next", Answer(redirect=target.format(port=server.port)))
        with ProxyServer(ways) as proxy:
            monkeypatch.setenv("HTTP_PROXY", proxy.url)
            monkeypatch.delenv("NO_PROXY", raising=False)
            client = HttpClient("web", ReadError, limits=Limits(attempts=1), guarded=True, resolver=names)
            with pytest.raises(ReadError) as caught:
                await client.request("GET", "http://public.example/go", what="the page")
            assert caught.value.reason in ("refused", "connection")
            assert "not proper HTTP" in str(caught.value) or caught.value.reason == "refused"
            assert [request.path for request in server.requests] == ["/go", "/next"]
