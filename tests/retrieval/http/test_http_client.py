from __future__ import annotations

import asyncio
import copy
import email.utils
import gc
import gzip
import pickle
import socket
import time
import warnings
from typing import Any

import pytest

from retrieval.http.client import HttpClient, Limits, Reply
from retrieval.http.failures import Failure, retry_after_seconds, to_error
from retrieval.http.sessions import session
from signatures.errors import ReadError, SearchError
from tests.servers.web import Answer, WebServer

QUICK = Limits(connect_s=2, read_s=0.3, total_s=2, attempts=3, backoff_s=0.01, max_bytes=100_000, max_redirects=3)


async def get(url: str, limits: Limits = QUICK, error: Any = ReadError, **options: Any) -> Reply:
    return await HttpClient("test", error, limits=limits).request("GET", url, what="the page", **options)


async def failure(url: str, limits: Limits = QUICK, **options: Any) -> ReadError:
    with pytest.raises(ReadError) as caught:
        await get(url, limits, **options)
    return caught.value


async def test_a_reply_comes_with_status_headers_and_body() -> None:
    with WebServer(pages={"/a": Answer("hé", headers={"X-Y": "1"})}) as server:
        reply = await get(server.url + "/a", params={"q": "x y"}, headers={"X-Me": "2"})
        assert (reply.status, reply.body, reply.content_type) == (200, "hé".encode(), "text/html")
        assert (reply.headers["x-y"], reply.url) == ("1", server.url + "/a?q=x+y")
        asked = server.requests[0]
        assert (asked.query, asked.headers["x-me"], asked.method) == ({"q": "x y"}, "2", "GET")
        assert asked.headers["user-agent"].startswith("search-o1")


async def test_json_goes_out_and_comes_in() -> None:
    with WebServer(pages={"/j": Answer('{"a": [1]}', content_type="application/json")}) as server:
        client = HttpClient("test", SearchError, limits=QUICK)
        assert await client.request_json("POST", server.url + "/j", what="it", json_body={"b": 2}) == {"a": [1]}
        assert (server.requests[0].method, server.requests[0].body) == ("POST", b'{"b": 2}')


async def test_forms_and_bytes_go_out() -> None:
    with WebServer(pages={"/f": "fine"}) as server:
        client = HttpClient("test", SearchError, limits=QUICK)
        await client.request("POST", server.url + "/f", what="it", data={"q": "a b", "n": "1"})
        await client.request("POST", server.url + "/f", what="it", data=b"raw")
        form, raw = server.requests
        assert (form.body, form.headers["content-type"]) == (b"q=a+b&n=1", "application/x-www-form-urlencoded")
        assert raw.body == b"raw"


async def test_a_reply_that_is_no_json_is_an_error() -> None:
    with WebServer(pages={"/j": Answer("oops my-key", content_type="application/json")}) as server:
        client = HttpClient("test", SearchError, limits=QUICK)
        with pytest.raises(SearchError, match=r"not valid JSON: oops \*\*\*") as caught:
            await client.request_json("GET", server.url + "/j", what="it", secrets=("my-key",))
        assert (caught.value.status, caught.value.body) == (200, "oops ***")


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 520, 529])
async def test_a_passing_failure_is_tried_again(status: int) -> None:
    with WebServer(pages={"/": [Answer(status=status), Answer("fine")]}) as server:
        assert (await get(server.url + "/")).body == b"fine"
        assert server.count("/") == 2


async def test_a_connection_that_breaks_is_tried_again() -> None:
    broken = [Answer("x" * 5000, close_after=0), Answer("x" * 5000, close_after=100), Answer("fine")]
    with WebServer(pages={"/": broken}) as server:
        assert (await get(server.url + "/")).body == b"fine"
        assert server.count("/") == 3


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (400, "http"),
        (401, "blocked"),
        (402, "http"),
        (403, "blocked"),
        (404, "not_found"),
        (410, "not_found"),
        (501, "http"),
    ],
)
async def test_a_lasting_failure_is_not_tried_again(status: int, reason: str) -> None:
    with WebServer(pages={"/": Answer("why it failed", status=status)}) as server:
        error = await failure(server.url + "/")
        assert (error.status, error.reason, error.provider, error.body) == (status, reason, "test", "why it failed")
        assert f"answered {status}" in str(error)
        assert server.count("/") == 1


async def test_attempts_end_and_are_counted() -> None:
    with WebServer(pages={"/": Answer("busy", status=503)}) as server:
        error = await failure(server.url + "/")
        assert "tried 3 times" in str(error)
        assert server.count("/") == 3


async def test_retry_after_is_waited_for() -> None:
    with WebServer(pages={"/": [Answer(status=429, headers={"Retry-After": "1"}), Answer("fine")]}) as server:
        began = time.monotonic()
        assert (await get(server.url + "/")).body == b"fine"
        assert time.monotonic() - began >= 1


async def test_a_retry_after_that_is_too_long_is_told_at_once() -> None:
    with WebServer(pages={"/": Answer(status=429, headers={"Retry-After": "3600"})}) as server:
        error = await failure(server.url + "/")
        assert "rate limited" in str(error)
        assert "asks to wait 3600 s" in str(error)
        assert server.count("/") == 1


def test_retry_after_is_read_as_seconds_or_date() -> None:
    assert retry_after_seconds({"retry-after": " 7 "}) == 7
    later = email.utils.formatdate(time.time() + 60, usegmt=True)
    assert 55 <= (retry_after_seconds({"retry-after": later}) or 0) <= 61
    assert retry_after_seconds({"retry-after": email.utils.formatdate(0, usegmt=True)}) == 0
    assert retry_after_seconds({"retry-after": "1.5"}) == 1.5
    # Without a zone a date is meant in GMT, wherever this machine is.
    assert 55 <= (retry_after_seconds({"retry-after": later.replace("GMT", "-0000")}) or 0) <= 61
    for nonsense in ("", "soon", "-1", "²", "Mon, 99 Foo 9999 99:99:99 GMT"):
        assert retry_after_seconds({"retry-after": nonsense}) is None
    assert retry_after_seconds({}) is None


async def test_a_stalled_reply_is_a_time_out_and_not_tried_again() -> None:
    with WebServer(pages={"/": Answer("late", latency_s=1)}) as server:
        error = await failure(server.url + "/")
        assert (error.reason, server.count("/")) == ("timeout", 1)
        assert "no byte for 0.3 s" in str(error)


async def test_a_slow_drip_ends_at_the_total_time() -> None:
    with WebServer(pages={"/": Answer("x" * 100, drip_s=0.05)}) as server:
        error = await failure(server.url + "/", Limits(read_s=1, total_s=0.3, attempts=3))
        assert error.reason == "timeout"
        assert "not complete within 0.3 s" in str(error)


async def test_a_body_without_end_is_cut_off() -> None:
    with WebServer(pages={"/": Answer("x" * 50_000, endless=True)}) as server:
        error = await failure(server.url + "/")
        assert error.reason == "too_large"
        assert "longer than 100000 bytes" in str(error)


async def test_a_gzip_bomb_is_cut_off() -> None:
    with WebServer(pages={"/": Answer(b"0" * 50_000_000, compress=True)}) as server:
        assert (await failure(server.url + "/")).reason == "too_large"


async def test_gzip_is_decompressed_and_false_gzip_is_binary() -> None:
    false = Answer(b"not gzip at all", headers={"Content-Encoding": "gzip"})
    with WebServer(pages={"/good": Answer("fine", compress=True), "/bad": false}) as server:
        assert (await get(server.url + "/good")).body == b"fine"
        error = await failure(server.url + "/bad")
        assert error.reason == "binary"


async def test_a_length_that_lies_is_a_lost_connection() -> None:
    with WebServer(pages={"/": Answer("short", claimed_length=5000)}) as server:
        error = await failure(server.url + "/")
        assert error.reason == "connection"
        assert "in the middle of the reply" in str(error)


async def test_redirects_are_followed_and_the_last_address_told() -> None:
    pages = {"/a": Answer(redirect="/b"), "/b": Answer(redirect="/c?x=1", status=307), "/c": "end"}
    with WebServer(pages=pages) as server:
        reply = await get(server.url + "/a", params={"once": "1"})
        assert (reply.body, reply.url) == (b"end", server.url + "/c?x=1")
        assert [request.query for request in server.requests] == [{"once": "1"}, {}, {"x": "1"}]


async def test_a_redirect_loop_ends() -> None:
    with WebServer(pages={"/a": Answer(redirect="/a")}) as server:
        error = await failure(server.url + "/a")
        assert "more than 3 redirects" in str(error)
        assert server.count("/a") == 4


async def test_see_other_turns_a_post_into_a_get() -> None:
    with WebServer(pages={"/a": Answer(redirect="/b", status=303), "/b": "end"}) as server:
        await HttpClient("test", ReadError, limits=QUICK).request("POST", server.url + "/a", what="x", json_body={})
        assert [request.method for request in server.requests] == ["POST", "GET"]


async def test_a_body_is_not_sent_on_to_another_server() -> None:
    with WebServer(pages={"/b": "end"}) as other, WebServer() as server:
        server.script("/a", Answer(redirect=other.url + "/b", status=307))
        client = HttpClient("test", ReadError, limits=QUICK)
        for body in ({"json_body": {"api_key": "secret"}}, {"data": {"api_key": "secret"}}):
            with pytest.raises(ReadError, match="redirects to another one"):
                await client.request("POST", server.url + "/a", what="x", **body)  # type: ignore[arg-type]
        assert other.requests == []
        server.script("/a", Answer(redirect="/b", status=307))
        server.script("/b", Answer("end"))
        await client.request("POST", server.url + "/a", what="x", json_body={"q": "x"})
        assert (server.requests[-1].method, server.requests[-1].body) == ("POST", b'{"q": "x"}')


async def test_what_is_accepted_follows_a_redirect() -> None:
    with WebServer(pages={"/b": "end"}) as other, WebServer() as server:
        server.script("/a", Answer(redirect=other.url + "/b"))
        await get(server.url + "/a", headers={"Accept": "text/html", "Authorization": "Bearer secret"})
        assert other.requests[0].headers["accept"] == "text/html"
        assert other.requests[0].headers["accept-encoding"] == "gzip, deflate"
        assert "authorization" not in other.requests[0].headers


async def test_the_password_of_an_endpoint_is_sent_and_never_shown() -> None:
    with WebServer(pages={"/": Answer("wrong: pass%2Fword pass/word", status=401)}) as server:
        error = await failure(server.url.replace("//", "//user:pass%2Fword@") + "/")
        assert server.requests[0].headers["authorization"].startswith("Basic ")
        assert "word" not in f"{error}{error!r}{error.body}"


async def test_keys_do_not_follow_a_redirect_to_another_server() -> None:
    with WebServer(pages={"/b": "end"}) as other, WebServer() as server:
        server.script("/a", Answer(redirect=other.url + "/b"))
        await get(server.url + "/a", headers={"X-Key": "secret"})
        assert server.requests[0].headers["x-key"] == "secret"
        assert "x-key" not in other.requests[0].headers


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://example.org/", "corpus://demo/1"])
async def test_every_redirect_is_checked(target: str) -> None:
    with WebServer(pages={"/": Answer(redirect=target)}) as server:
        assert (await failure(server.url + "/")).reason == "refused"


async def test_a_redirect_to_no_address_is_told() -> None:
    with WebServer(pages={"/": Answer(redirect="http://[::1")}) as server:
        error = await failure(server.url + "/")
        assert "redirects to 'http://[::1', which is no address" in str(error)


async def test_the_guard_refuses_before_anything_is_sent() -> None:
    with WebServer(pages={"/": "secret"}) as server:
        for url in (server.url, f"http://localhost:{server.port}", f"http://2130706433:{server.port}"):
            with pytest.raises(ReadError, match=r"not a public address|local name") as caught:
                await HttpClient("test", ReadError, guarded=True).request("GET", url, what="the page")
            assert caught.value.reason == "refused"
        assert server.requests == []


async def test_no_server_and_no_such_host_are_lost_connections() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        for url in (f"http://127.0.0.1:{free.getsockname()[1]}/", "http://no-such-host.invalid/"):
            error = await failure(url)
            assert (error.reason, error.status) == ("connection", None)
            assert "no connection" in str(error)


async def test_what_does_not_speak_http_is_told() -> None:
    async def babble(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(babble, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        assert "not proper HTTP" in str(await failure(f"http://127.0.0.1:{port}/"))
        assert "no secure connection" in str(await failure(f"https://127.0.0.1:{port}/"))


async def test_a_connection_that_is_never_accepted_times_out() -> None:
    full = socket.socket()
    full.bind(("127.0.0.1", 0))
    full.listen(0)
    fillers = [socket.socket() for _ in range(4)]
    for filler in fillers:
        filler.setblocking(False)
        filler.connect_ex(full.getsockname())
    try:
        limits = Limits(connect_s=0.2, attempts=2, backoff_s=0.01)
        error = await failure(f"http://127.0.0.1:{full.getsockname()[1]}/", limits)
        assert "no connection within 0.2 s, tried 2 times" in str(error)
    finally:
        for opened in (*fillers, full):
            opened.close()


async def test_an_address_that_is_none_is_refused() -> None:
    for url in ("", "no url", "http://", "http://[::1", "corpus://a/b"):
        assert (await failure(url)).reason == "refused"


async def test_requests_to_a_host_are_capped_and_waiting_does_not_count_as_time() -> None:
    with WebServer(pages={"/": Answer("x", latency_s=0.1)}) as server:
        limits = Limits(per_host=2, total_s=0.35)
        await asyncio.gather(*(get(server.url + "/", limits) for _ in range(10)))
        assert server.most_in_flight == 2


async def test_many_slow_pages_are_fetched_at_once() -> None:
    with WebServer(pages={"/": Answer("x", latency_s=0.3)}) as server:
        began = time.monotonic()
        await asyncio.gather(*(get(server.url + "/", Limits(per_host=200)) for _ in range(120)))
        assert server.most_in_flight > 100
        assert time.monotonic() - began < 5


async def test_secrets_are_blacked_out_in_message_and_body() -> None:
    with WebServer(
        pages={"/": Answer("bad key s3cret/x or s3cret%2Fx " + "." * 163 + "s3cret/x", status=400)}
    ) as server:
        error = await failure(server.url + "/", secrets=("s3cret/x", ""))
        assert "s3cret" not in str(error) + error.body
        assert error.body.startswith("bad key *** or ***")
        assert len(error.body) <= 200


def test_a_search_failure_is_a_search_error() -> None:
    error = to_error(Failure("http", "it broke", 500, "<html>"), SearchError, "serper", "the query 'x'")
    assert isinstance(error, SearchError)
    assert str(error) == "serper: the query 'x' failed: it broke."
    assert (error.status, error.body) == (500, "<html>")


async def test_a_client_survives_pickling_and_deepcopy_when_used() -> None:
    with WebServer(pages={"/": "x"}) as server:
        client = HttpClient("test", ReadError, limits=QUICK)
        await client.request("GET", server.url, what="x")
        for other in (copy.deepcopy(client), pickle.loads(pickle.dumps(client))):
            assert (await other.request("GET", server.url, what="x")).body == b"x"


def test_each_loop_has_its_session_which_ends_with_it() -> None:
    seen = []

    async def use(url: str) -> None:
        await get(url)
        seen.append(session(False))

    gc.collect()  # what other tests left is not this one's
    with WebServer(pages={"/": "x"}) as server, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            asyncio.run(use(server.url))
        gc.collect()
    assert seen[0] is not seen[1]
    assert all(one.closed for one in seen)
    assert [str(one.message) for one in caught if issubclass(one.category, ResourceWarning)] == []


async def test_a_closed_session_is_replaced() -> None:
    first = session(False)
    await first.close()
    assert not session(False).closed


def test_gzip_of_the_scripted_server_is_real() -> None:
    assert gzip.decompress(Answer("abc", compress=True).data) == b"abc"


async def test_a_key_in_a_configured_address_never_shows_in_an_error() -> None:
    with WebServer(pages={"/s": Answer("no service for code=s3cret%2Fkey, s3cret/key", status=400)}) as server:
        client = HttpClient("test", SearchError, limits=QUICK)
        with pytest.raises(SearchError) as caught:
            await client.request("GET", server.url + "/s?code=s3cret%2Fkey&v=7", what="the query")
    assert "s3cret" not in str(caught.value) + caught.value.body
    assert "no service for code=***" in str(caught.value)


@pytest.mark.parametrize(
    ("body", "text"),
    [("", "the reply is empty"), (" \n", "the reply is empty"), ("<html>Log in</html>", "a login or error page")],
)
async def test_a_reply_in_place_of_json_is_told_for_what_it_is(body: str, text: str) -> None:
    with WebServer(pages={"/j": Answer(body)}) as server, pytest.raises(SearchError, match=text):
        await HttpClient("test", SearchError, limits=QUICK).request_json("GET", server.url + "/j", what="it")
