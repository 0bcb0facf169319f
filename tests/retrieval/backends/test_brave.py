from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.backends.brave import SERVER, BraveSearch, pace
from retrieval.base import Hit
from retrieval.http.client import Limits
from signatures.errors import SearchError
from tests.servers.search_apis import ApiServer, Brave, json_answer
from tests.servers.wild_json import replies

QUICK = Limits(connect_s=5, read_s=2, total_s=10, attempts=2, backoff_s=0.01)
MANY = [{"title": f"{n}", "url": f"https://example.org/{n}", "snippet": "s"} for n in range(500)]


def make(server: ApiServer, **options: Any) -> BraveSearch:
    options = {"endpoint": server.url, "key": server.api.key, "limits": QUICK, "requests_per_second": None, **options}
    return BraveSearch(**options)


async def test_the_request_has_braves_shape() -> None:
    with ApiServer(Brave()) as server:
        await make(server, country="DE", search_lang="de", extra_snippets=True).search("who", 5)
        (request,) = server.requests
        assert (request.method, request.path) == ("GET", "/res/v1/web/search")
        assert request.headers["x-subscription-token"] == server.api.key
        assert request.query == {
            "q": "who",
            "count": "5",
            "offset": "0",
            "country": "DE",
            "search_lang": "de",
            "result_filter": "web",
            "text_decorations": "false",
            "extra_snippets": "true",
        }


async def test_html_is_taken_out() -> None:
    record = {
        "title": "The <strong>Tower</strong> &amp; more",
        "url": "https://example.org/a",
        "snippet": "Built in <strong>1889</strong> &#x27;by&#x27; a &lt; b",
        "date": "2020-05-01",
        "site": "Example",
    }
    with ApiServer(Brave(hits=[record])) as server:
        expected = Hit("The Tower & more", "https://example.org/a", "Built in 1889 'by' a < b", "2020-05-01", "Example")
        assert await make(server).search("x", 5) == [expected]
        (hit,) = await make(server, extra_snippets=True).search("x", 5)
        assert hit.snippet == "Built in 1889 'by' a < b One more. And another."


async def test_the_host_stands_for_a_missing_name_of_the_site() -> None:
    with ApiServer(Brave(hits=MANY[:1])) as server:
        assert [hit.site for hit in await make(server).search("x", 5)] == ["example.org"]


@pytest.mark.parametrize(("k", "requests"), [(1, 1), (20, 1), (21, 2), (45, 3), (200, 10), (1000, 10)])
async def test_more_than_twenty_hits_come_in_pages(k: int, requests: int) -> None:
    with ApiServer(Brave(hits=MANY)) as server:
        hits = await make(server).search("x", k)
        assert [hit.url for hit in hits] == [record["url"] for record in MANY[: min(k, 200)]]
        assert [request.query["offset"] for request in server.requests] == [str(n) for n in range(requests)]


async def test_paging_stops_where_there_is_no_more() -> None:
    with ApiServer(Brave(hits=MANY[:30])) as server:
        assert len(await make(server).search("x", 100)) == 30
        assert len(server.requests) == 2


async def test_a_long_query_is_cut_to_characters_and_words() -> None:
    with ApiServer(Brave(hits=MANY)) as server:
        assert len(await make(server).search("a " * 300, 5)) == 5
        assert len(await make(server).search("abcdefghijklmno " * 40, 5)) == 5
        assert [len(request.query["q"].split()) for request in server.requests] == [50, 25]


async def test_a_wrong_token_is_told_though_the_status_is_422() -> None:
    with ApiServer(Brave()) as server:
        with pytest.raises(SearchError, match="the key is not accepted; check BRAVE_API_KEY") as caught:
            await make(server, key="wrong").search("x", 5)
        assert caught.value.status == 422


async def test_a_wrong_parameter_is_no_wrong_token() -> None:
    with ApiServer(Brave()) as server:
        server.faults = [Brave.error(422, "VALIDATION", "Unable to validate request parameter(s)")]
        with pytest.raises(SearchError, match="VALIDATION") as caught:
            await make(server).search("x", 5)
        assert "key" not in str(caught.value)


async def test_a_key_without_subscription_is_told() -> None:
    with ApiServer(Brave()) as server:
        server.faults = [Brave.error(404, "SUBSCRIPTION_NOT_FOUND", "No subscription found.")]
        with pytest.raises(SearchError, match="no subscription to web search"):
            await make(server).search("x", 5)


async def test_a_spent_month_is_an_error_at_once() -> None:
    with ApiServer(Brave(hits=MANY)) as server:
        server.faults = [Brave.quota_spent()]
        with pytest.raises(SearchError, match=r"monthly quota of the plan is spent.*4\.9 days") as caught:
            await make(server).search("x", 5)
        assert caught.value.status == 429
        with pytest.raises(SearchError, match="monthly quota"):
            await make(server).search("y", 5)
        assert len(server.requests) == 1


async def test_a_spent_month_is_told_without_header_fields_too() -> None:
    with ApiServer(Brave()) as server:
        server.faults = [Brave.error(429, "QUOTA_LIMITED", "Request quota limit exceeded for plan.") for _ in range(2)]
        with pytest.raises(SearchError, match="monthly quota of the plan is spent"):
            await make(server).search("x", 5)


async def test_the_last_search_of_the_month_still_counts() -> None:
    headers = {"X-RateLimit-Limit": "1, 2000", "X-RateLimit-Remaining": "0, 0", "X-RateLimit-Reset": "1, 100000"}
    with ApiServer(Brave(hits=MANY, rate_headers=headers)) as server:
        assert len(await make(server).search("x", 5)) == 5
        with pytest.raises(SearchError, match="monthly quota"):
            await make(server).search("y", 5)


async def test_a_spent_second_is_waited_for() -> None:
    headers = {"X-RateLimit-Limit": "1, 2000", "X-RateLimit-Remaining": "0, 7", "X-RateLimit-Reset": "1, 100000"}
    with ApiServer(Brave(hits=MANY, rate_headers=headers)) as server:
        for query in ("x", "y"):
            assert len(await make(server).search(query, 5)) == 5
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("limit", "remaining", "reset", "seconds"),
    [
        ("1, 15000", "1, 1234", "1, 419704", None),
        ("1, 15000", "0, 1234", "1, 419704", 1.0),
        ("1, 15000", "1, 0", "1, 419704", 419704.0),
        ("1, 15000", "0, 0", "1, 419704", 419704.0),
        ("50, 0", "0, 0", "1, 419704", 1.0),
        ("50, 0", "49, 0", "1, 419704", None),
        ("1", "0", "3", 3.0),
        ("", "", "", None),
        ("1, 2", "0", "5, 6", 5.0),
        ("a, b", "0, 0", "1, 2", None),
        ("1", "-1", "5", None),
        ("²", "0", "5", None),
    ],
)
def test_both_windows_are_read(limit: str, remaining: str, reset: str, seconds: float | None) -> None:
    headers = {"x-ratelimit-limit": limit, "x-ratelimit-remaining": remaining, "x-ratelimit-reset": reset}
    assert pace(headers) == seconds
    assert pace({}) is None


@given(st.fixed_dictionaries({f"x-ratelimit-{name}": st.text(max_size=12) for name in ("limit", "remaining", "reset")}))
def test_any_header_fields_can_be_read(headers: dict[str, str]) -> None:
    seconds = pace(headers)
    assert seconds is None or seconds > 0


def test_the_identity_tells_what_changes_the_answer() -> None:
    one = BraveSearch(key="k")
    assert one.identity() == f"brave:{SERVER}:US:en"
    others = [BraveSearch(country="DE"), BraveSearch(search_lang="de"), BraveSearch(extra_snippets=True)]
    assert len({one.identity(), *(other.identity() for other in others)}) == 4


async def test_a_missing_web_part_is_an_empty_result() -> None:
    with ApiServer(Brave()) as server:
        server.faults = [json_answer({"type": "search", "query": {"original": "x"}, "web": None})]
        assert await make(server).search("x", 5) == []


@given(
    replies(
        "web", "query", "results", "more_results_available", "title", "url", "description", "extra_snippets", "profile"
    )
)
def test_any_json_is_parsed_or_refused(reply: Any) -> None:
    try:
        hits, more = BraveSearch(key="k")._parse(reply, "it")
    except SearchError:
        return
    assert isinstance(more, bool)
    assert all(isinstance(value, str) for hit in hits for value in hit.to_dict().values())
