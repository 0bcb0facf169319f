from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from retrieval.backends.searxng import MOST_PAGES, SearxngSearch
from retrieval.base import Hit
from retrieval.http.client import Limits
from signatures.errors import SearchError
from tests.servers.search_apis import ApiServer, Searxng, json_answer
from tests.servers.web import Answer
from tests.servers.wild_json import replies

QUICK = Limits(connect_s=5, read_s=2, total_s=10, attempts=2, backoff_s=0.01)
MANY = [{"title": f"{n}", "url": f"https://example.org/{n}", "snippet": "s"} for n in range(300)]


def make(server: ApiServer, **options: Any) -> SearxngSearch:
    return SearxngSearch(**{"endpoint": server.url, "limits": QUICK, "requests_per_second": None, **options})


async def test_the_request_has_searxngs_shape() -> None:
    with ApiServer(Searxng()) as server:
        await make(server).search("who", 5)
        await make(
            server,
            engines="mojeek,qwant",
            categories="science",
            language="de",
            safesearch=2,
            time_range="month",
        ).search("who", 5)
        first, second = server.requests
        assert (first.method, first.path) == ("GET", "/search")
        asked = {"q": "who", "format": "json", "pageno": "1", "language": "en", "safesearch": "0"}
        assert first.query == asked
        assert second.query == {
            **asked,
            "engines": "mojeek,qwant",
            "categories": "science",
            "language": "de",
            "safesearch": "2",
            "time_range": "month",
        }


async def test_hits_are_parsed() -> None:
    record = {"title": "A", "url": "https://example.org/a", "snippet": "a < b", "date": "2020-05-01"}
    with ApiServer(Searxng(hits=[record])) as server:
        assert await make(server).search("x", 5) == [Hit("A", "https://example.org/a", "a < b", "2020-05-01")]


async def test_an_instance_without_json_is_told_how_to_mend_it() -> None:
    with ApiServer(Searxng(formats=("html",))) as server:
        with pytest.raises(
            SearchError, match=r"formats: \[html, json\]` under `search:` in its settings\.yml"
        ) as caught:
            await make(server).search("x", 5)
        assert caught.value.status == 403


async def test_a_page_instead_of_json_is_told_likewise() -> None:
    with ApiServer(Searxng()) as server:
        server.faults = [Answer("<!DOCTYPE html><html><body>results</body></html>")]
        with pytest.raises(SearchError, match="does not give JSON"):
            await make(server).search("x", 5)


async def test_the_limiter_is_told_apart() -> None:
    with ApiServer(Searxng()) as server:
        server.faults = [Answer("Too Many Requests", status=429) for _ in range(2)]
        with pytest.raises(SearchError, match=r"rate limited by the instance's limiter.*limiter\.toml"):
            await make(server).search("x", 5)


async def test_engines_that_did_not_answer_are_no_empty_result() -> None:
    unresponsive = [["google", "Suspended: too many requests"], ["brave", "timeout"], ["qwant"]]
    with ApiServer(Searxng(unresponsive=unresponsive)) as server:
        with pytest.raises(SearchError, match="did not answer") as caught:
            await make(server).search("x", 5)
        for words in ("google (Suspended: too many requests)", "brave (timeout)", "qwant (no reason given)"):
            assert words in str(caught.value)


async def test_some_engines_are_enough() -> None:
    with ApiServer(Searxng(hits=MANY[:3], unresponsive=[["google", "timeout"]])) as server:
        assert len(await make(server).search("x", 5)) == 3


@pytest.mark.parametrize(("k", "pages"), [(5, 1), (10, 1), (11, 2), (25, 3), (1000, MOST_PAGES)])
async def test_further_pages_are_asked_for_until_there_are_enough(k: int, pages: int) -> None:
    with ApiServer(Searxng(hits=MANY)) as server:
        hits = await make(server).search("x", k)
        assert [hit.url for hit in hits] == [record["url"] for record in MANY[: min(k, 10 * MOST_PAGES)]]
        assert [request.query["pageno"] for request in server.requests] == [str(n + 1) for n in range(pages)]


async def test_a_page_that_brings_nothing_new_is_the_last() -> None:
    with ApiServer(Searxng(hits=[*MANY[:10], *MANY[:10], *MANY[10:20]])) as server:
        assert len(await make(server).search("x", 15)) == 10
        assert len(server.requests) == 2


async def test_other_addresses_than_of_web_pages_are_dropped() -> None:
    records = [{"title": "m", "url": "magnet:?xt=1", "snippet": ""}, *MANY[:1]]
    with ApiServer(Searxng(hits=records)) as server:
        assert [hit.url for hit in await make(server).search("x", 5)] == ["https://example.org/0"]


async def test_a_missing_address_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEARXNG_URL", raising=False)
    with pytest.raises(SearchError, match="SEARXNG_URL is not set; set it to the URL of your SearXNG instance"):
        await SearxngSearch().search("x", 5)


@pytest.mark.parametrize("address", ["", "/", "/search", "/search/"])
async def test_the_address_may_end_as_people_write_it(address: str) -> None:
    with ApiServer(Searxng(hits=MANY)) as server:
        assert len(await make(server, endpoint=server.url + address).search("x", 5)) == 5
    with ApiServer(Searxng(hits=MANY, path="/sub/search")) as server:
        assert len(await make(server, endpoint=server.url + "/sub" + address).search("x", 5)) == 5


def test_the_identity_tells_what_changes_the_answer() -> None:
    at = {"endpoint": "http://localhost:8080"}
    searches = [
        SearxngSearch(**at),
        SearxngSearch(endpoint="http://localhost:8081"),
        SearxngSearch(**at, engines="a"),
        SearxngSearch(**at, categories="a"),
        SearxngSearch(**at, language="de"),
        SearxngSearch(**at, safesearch=1),
        SearxngSearch(**at, time_range="day"),
    ]
    assert len({search.identity() for search in searches}) == len(searches)


@pytest.mark.parametrize("engines", [None, 3, "x", {}, []])
async def test_an_odd_list_of_engines_is_no_failure(engines: Any) -> None:
    with ApiServer(Searxng()) as server:
        server.faults = [json_answer({"results": [], "unresponsive_engines": engines})]
        assert await make(server).search("x", 5) == []


@given(replies("results", "title", "url", "content", "publishedDate", "unresponsive_engines"))
def test_any_json_is_parsed_or_refused(reply: Any) -> None:
    search = SearxngSearch("http://localhost:8080")
    try:
        hits = search._parse(reply, "it")
        search._check_engines(reply, "it")
    except SearchError:
        return
    assert all(isinstance(value, str) for hit in hits for value in hit.to_dict().values())
