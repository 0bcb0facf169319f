from __future__ import annotations

import contextlib
import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.base import Page, Reader
from retrieval.http.client import Limits
from retrieval.http.rates import forget_buckets
from retrieval.readers.jina import ENDPOINT, JinaReader
from retrieval.readers.jina_reply import JinaFailure, JinaPage, parse_reply
from signatures.errors import OptionError, ReadError
from tests.servers.jina_server import JinaAnswer, JinaServer, jina_error, jina_page

QUICK = Limits(connect_s=2, read_s=2, total_s=3, attempts=2, backoff_s=0.01, retry_after_s=1)
URL = "https://example.org/a"
TEXT = "# Lakes\n\nLake Oirn is a small lake in the north. It is fed by the Sarn and drains into the sea."


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JINA_API_KEY", raising=False)
    monkeypatch.delenv("JINA_URL", raising=False)
    forget_buckets()


def make(server: JinaServer, **options: Any) -> JinaReader:
    return JinaReader(endpoint=server.url, limits=QUICK, **{"requests_per_minute": 6000, **options})


async def failure(answer: JinaAnswer | list[JinaAnswer], **options: Any) -> ReadError:
    with JinaServer({URL: answer}) as server, pytest.raises(ReadError) as caught:
        await make(server, **options).read(URL)
    assert caught.value.provider == "jina"
    assert URL in str(caught.value)
    return caught.value


async def test_a_page_is_read_as_markdown_with_its_title() -> None:
    with JinaServer({URL: jina_page(TEXT, "Lakes", url="https://example.org/lakes")}) as server:
        reader = make(server)
        assert isinstance(reader, Reader)
        meta = {"final_url": "https://example.org/lakes", "content_type": "text/markdown"}
        assert await reader.read(URL) == Page(URL, TEXT, "Lakes", 200, meta)
        assert server.requests[0].headers["accept"] == "application/json"


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/a?b=c&d=%2Fe%20f#part",
        "https://example.org/%E4%B8%AD?q=a+b",
        "https://example.org/a//b/https://example.net/",
        "http://example.org:8080/#/route",
    ],
)
async def test_an_address_arrives_exactly_as_it_is(url: str) -> None:
    with JinaServer({url: jina_page(TEXT)}) as server:
        assert (await make(server).read(url)).url == url
        assert [request.url for request in server.requests] == [url]


@pytest.mark.parametrize("key", [None, "", "  ", "None", "none", "null"])
@pytest.mark.parametrize("given_as", ["argument", "environment"])
async def test_without_a_key_no_authorization_is_sent(
    key: str | None, given_as: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if given_as == "environment" and key is not None:
        monkeypatch.setenv("JINA_API_KEY", key)
    with JinaServer({URL: jina_page(TEXT)}) as server:
        await make(server, key=key if given_as == "argument" else None).read(URL)
        assert "authorization" not in server.requests[0].headers


async def test_key_and_endpoint_come_from_arguments_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with JinaServer({URL: jina_page(TEXT)}) as server:
        monkeypatch.setenv("JINA_API_KEY", " from-environment ")
        monkeypatch.setenv("JINA_URL", server.url)
        reader = JinaReader(limits=QUICK)
        await reader.read(URL)
        await make(server, key="given").read(URL)
        sent = [request.headers["authorization"] for request in server.requests]
        assert sent == ["Bearer from-environment", "Bearer given"]
        assert server.url in reader.identity()
        monkeypatch.delenv("JINA_URL")
        assert ENDPOINT in reader.identity()


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/a",
        "http://10.1.2.3/a",
        "http://[::ffff:192.168.0.1]/",
        "http://2130706433/",
        "http://localhost:8000/",
        "http://printer.local/",
        "http://169.254.169.254/latest/meta-data/",
        "file:///etc/passwd",
        "corpus://wiki/1",
        "ftp://example.org/a",
        "not an address",
        "",
    ],
)
async def test_an_address_that_must_not_be_fetched_never_reaches_the_service(url: str) -> None:
    with JinaServer({url: jina_page(TEXT)}) as server:
        with pytest.raises(ReadError) as caught:
            await make(server).read(url)
        assert caught.value.reason == "refused"
        assert server.requests == []


async def test_credentials_in_an_address_are_neither_sent_nor_shown() -> None:
    with JinaServer({}) as server:
        with pytest.raises(ReadError, match="user name or password") as caught:
            await make(server).read("https://ada:hunter2@example.org/")
        assert caught.value.reason == "refused"
        assert "hunter2" not in str(caught.value)
        assert server.requests == []


async def test_private_addresses_are_sent_when_allowed() -> None:
    with JinaServer({"http://127.0.0.1/a": jina_page(TEXT)}) as server:
        assert (await make(server, allow_private=True).read("http://127.0.0.1/a")).text == TEXT


async def test_a_spent_balance_and_a_rate_limit_are_told_apart() -> None:
    said = "Account balance not enough to run this query, please recharge."
    spent = await failure(jina_error(402, "InsufficientBalanceError", said), key="the-key")
    assert (spent.reason, spent.status) == ("quota", 402)
    assert said in str(spent)
    assert "unset JINA_API_KEY" in str(spent)
    limited = await failure(jina_error(429, "RateLimitTriggeredError", "Per IP rate limit exceeded"))
    assert (limited.reason, limited.status) == ("rate_limited", 429)
    assert "tried 2 times" in str(limited)
    assert "requests_per_minute" in str(limited)
    assert "JINA_API_KEY" in str(limited)


async def test_a_rate_limit_is_waited_out_when_the_service_says_how_long() -> None:
    busy = jina_error(429, "RateLimitTriggeredError", "slow down", headers={"Retry-After": "0"})
    with JinaServer({URL: [busy, jina_page(TEXT)]}) as server:
        assert (await make(server).read(URL)).text == TEXT
        assert len(server.requests) == 2


@pytest.mark.parametrize("status", [None, 200])
@pytest.mark.parametrize(
    ("code", "name", "said", "reason", "way_out"),
    [
        (401, "AuthenticationRequiredError", "Authentication is required", "unauthorized", "set JINA_API_KEY"),
        (403, "AbuseAlleviationError", "Anonymous access to domain blocked", "blocked", "another reader"),
        (451, "SecurityCompromiseError", "Domain example.org blocked until 2039", "blocked", "another reader"),
        (402, "InsufficientBalanceError", "please recharge", "quota", "JINA_API_KEY"),
        (429, "RateLimitTriggeredError", "too many", "rate_limited", "requests_per_minute"),
        (422, "SubmittedDataMalformedError", "Domain 'x' could not be resolved", "connection", "check the address"),
        (422, "AssertionFailureError", "Failed to goto x: TimeoutError: Navigation timeout", "timeout", "in time"),
        (422, "AssertionFailureError", "No content available for URL x", "empty", "no content"),
        (422, "AssertionFailureError", "Something else", "http", "could not load"),
        (413, "TargetFileTooLargeError", "too large", "too_large", "too large"),
        (500, "ApplicationError", "oops", "http", "500"),
        (404, "NotFound", "no such route", "not_found", "404"),
    ],
)
async def test_errors_are_told_by_status_or_by_code_in_a_success(
    code: int, name: str, said: str, reason: str, way_out: str, status: int | None
) -> None:
    error = await failure(jina_error(code, name, said, status=status))
    assert error.status == code
    assert reason == error.reason or (code, status, error.reason) == (404, 200, "http")
    assert way_out in str(error)
    assert said in str(error)


async def test_the_key_never_shows_in_an_error() -> None:
    error = await failure(jina_error(401, "AuthenticationFailedError", "Invalid API key the-key"), key="the-key")
    assert error.reason == "unauthorized"
    assert "the-key" not in str(error) + error.body + repr(error)
    assert "check JINA_API_KEY" in str(error)
    assert "the-key" not in make_key_reader().identity() + repr(make_key_reader())


def make_key_reader() -> JinaReader:
    return JinaReader(key="the-key")


@pytest.mark.parametrize(
    ("warning", "reason", "status"),
    [
        ("Target URL returned error 404: Not Found", "not_found", 404),
        ("Target URL returned error 410: Gone", "not_found", 410),
        ("Target URL returned error 403: Forbidden", "blocked", 403),
        ("Target URL returned error 451", "blocked", 451),
        ("Target URL returned error 429: Too Many Requests", "rate_limited", 429),
        ("Target URL returned error 503: Service Unavailable", "http", 503),
        ("This is a cached snapshot of the original page.\nTarget URL returned error 500: x", "http", 500),
    ],
)
async def test_an_error_of_the_site_behind_the_service_is_a_failure(warning: str, reason: str, status: int) -> None:
    error = await failure(jina_page(TEXT, "Error", warning))
    assert (error.reason, error.status) == (reason, status)


async def test_a_wall_is_more_telling_than_the_status_it_came_with() -> None:
    content = "example.org\n\nVerifying you are human. This may take a few seconds.\n\nRay ID: `8f00baa7cafe0001`"
    error = await failure(jina_page(content, "Just a moment...", "Target URL returned error 403: Forbidden"))
    assert (error.reason, error.status) == ("bot_wall", 403)
    assert (await failure(jina_page("", "x", "Target URL returned error 404: Not Found"))).reason == "not_found"


CAPTCHA = "This page maybe requiring CAPTCHA, please make sure you are authorized to access this page."


async def test_a_captcha_warning_counts_unless_there_are_sentences() -> None:
    assert (await failure(jina_page("Slide to the right", "Check", CAPTCHA))).reason == "bot_wall"
    with JinaServer({URL: jina_page(TEXT, "Lakes", CAPTCHA)}) as server:
        page = await make(server).read(URL)
        assert (page.text, page.meta["warnings"]) == (TEXT, [CAPTCHA])


@pytest.mark.parametrize(
    "warning",
    [
        "This is a cached snapshot of the original page, consider retry with caching opt-out.",
        "This page maybe not yet fully loaded, consider explicitly specify a timeout.",
        "This page contains iframe that are currently hidden, consider enabling iframe processing.",
        "This page contains shadow DOM that are currently hidden, consider enabling shadow DOM processing.",
        "Something new",
    ],
)
async def test_harmless_warnings_are_kept(warning: str) -> None:
    with JinaServer({URL: jina_page(TEXT, warning=f"{warning}\n")}) as server:
        assert (await make(server).read(URL)).meta["warnings"] == [warning]


async def test_an_empty_page_is_a_failure() -> None:
    assert (await failure(jina_page("  "))).reason == "empty"


@pytest.mark.parametrize(
    "body", [b"not json", b"", b"[1]", b"{}", b'{"code": 200, "data": null}', b'{"code":200,"data":{"content":7}}']
)
async def test_a_reply_of_another_shape_is_a_failure(body: bytes) -> None:
    assert (await failure(JinaAnswer(body))).reason == "http"


async def test_text_is_cut_to_page_chars() -> None:
    with JinaServer({URL: jina_page("A sentence of words. " * 5000)}) as server:
        assert len((await make(server).read(URL)).text) == 50_000
        assert len((await make(server, page_chars=100).read(URL)).text) == 100


@pytest.mark.parametrize("rpm", [0, -1, float("nan"), float("inf")])
def test_a_rate_that_makes_no_sense_is_refused(rpm: float) -> None:
    with pytest.raises(OptionError, match="requests_per_minute"):
        JinaReader(requests_per_minute=rpm)


async def test_it_survives_copies_and_tells_its_identity() -> None:
    with JinaServer({URL: jina_page(TEXT)}) as server:
        reader = make(server, key="k")
        page = await reader.read(URL)
        assert await pickle.loads(pickle.dumps(reader)).read(URL) == page
        assert await copy.deepcopy(reader).read(URL) == page
    assert JinaReader(key="a").identity() == JinaReader().identity() != JinaReader(page_chars=8000).identity()
    assert JinaReader(endpoint="https://u:secret@proxy.example/").identity() != JinaReader().identity()
    assert "secret" not in JinaReader(endpoint="https://u:secret@proxy.example/").identity()


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)
_reply = st.fixed_dictionaries(
    {},
    optional={
        "code": _json | st.integers(100, 600),
        "message": _json,
        "data": _json
        | st.fixed_dictionaries(
            {"content": _json | st.text(max_size=60)},
            optional={"title": _json, "url": _json, "warning": _json | st.just("Target URL returned error 404: x")},
        ),
    },
)


@given(reply=_json | _reply, has_key=st.booleans())
def test_any_json_is_a_page_or_a_failure(reply: Any, has_key: bool) -> None:
    with contextlib.suppress(JinaFailure):
        page = parse_reply(reply, has_key)
        assert isinstance(page, JinaPage)
        assert all(isinstance(text, str) for text in (page.title, page.text, page.url, *page.warnings))
        assert page.failure is not None or page.status == 200
