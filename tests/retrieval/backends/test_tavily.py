from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from retrieval.backends.tavily import SERVER, TavilySearch
from retrieval.base import Hit
from retrieval.http.client import Limits
from signatures.errors import SearchError
from tests.servers.search_apis import ApiServer, Tavily, json_answer
from tests.servers.wild_json import replies

QUICK = Limits(connect_s=5, read_s=2, total_s=10, attempts=2, backoff_s=0.01)
RECORD = {"title": "A", "url": "https://example.org/a", "snippet": "Text", "date": "2020-05-01T10:00:00Z"}


def make(server: ApiServer, **options: Any) -> TavilySearch:
    options = {"endpoint": server.url, "key": server.api.key, "limits": QUICK, "requests_per_second": None, **options}
    return TavilySearch(**options)


async def test_the_request_has_tavilys_shape() -> None:
    with ApiServer(Tavily()) as server:
        await make(server).search("who", 500)
        await make(server, search_depth="advanced", topic="news").search("who", 3)
        first, second = server.requests
        assert (first.method, first.headers["authorization"]) == ("POST", f"Bearer {server.api.key}")
        asked = {"query": "who", "max_results": 20, "search_depth": "basic", "topic": "general"}
        assert json.loads(first.body) == asked
        assert json.loads(second.body) == {**asked, "max_results": 3, "search_depth": "advanced", "topic": "news"}


async def test_content_is_the_snippet() -> None:
    with ApiServer(Tavily(hits=[RECORD])) as server:
        assert await make(server).search("x", 5) == [Hit("A", "https://example.org/a", "Text", "2020-05-01")]


async def test_hits_without_an_address_are_dropped() -> None:
    results = [{"title": "A", "url": None, "content": "x"}, {"title": "B"}, {"title": "C", "url": "https://c.example"}]
    with ApiServer(Tavily()) as server:
        server.faults = [json_answer({"results": results})]
        assert [hit.title for hit in await make(server).search("x", 5)] == ["C"]


@pytest.mark.parametrize("query", ["word " * 200, "x" * 1000, "é" * 401, "a " + "b" * 500, " " * 500 + "end"])
async def test_a_long_query_is_cut(query: str) -> None:
    with ApiServer(Tavily(hits=[RECORD])) as server:
        assert len(await make(server).search(query, 5)) == 1
        asked = json.loads(server.requests[0].body)["query"]
        assert 0 < len(asked) <= 400
        assert query.strip().startswith(asked)


@pytest.mark.parametrize(
    ("status", "words"),
    [(432, "usage limit of the key or of the plan is reached"), (433, "pay-as-you-go use is reached")],
)
async def test_spent_plans_are_told(status: int, words: str) -> None:
    with ApiServer(Tavily()) as server:
        server.faults = [Tavily.error(status, "This request exceeds your plan's set usage limit.")]
        with pytest.raises(SearchError, match=words) as caught:
            await make(server).search("x", 5)
        assert caught.value.status == status
        assert "exceeds your plan" in str(caught.value)
        assert len(server.requests) == 1


def test_the_identity_tells_what_changes_the_answer() -> None:
    one = TavilySearch(key="k")
    assert one.identity() == f"tavily:{SERVER}:basic:general"
    others = [
        TavilySearch(search_depth="advanced"),
        TavilySearch(topic="news"),
        TavilySearch(endpoint="https://p.example"),
    ]
    assert len({one.identity(), *(other.identity() for other in others)}) == 4


@given(replies("results", "title", "url", "content", "published_date"))
def test_any_json_is_parsed_or_refused(reply: Any) -> None:
    try:
        hits = TavilySearch(key="k")._parse(reply, "it", 5)
    except SearchError:
        return
    assert len(hits) <= 5
    assert all(isinstance(value, str) for hit in hits for value in hit.to_dict().values())
