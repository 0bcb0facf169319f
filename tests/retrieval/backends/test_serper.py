from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from retrieval.backends.serper import SERVER, SerperSearch
from retrieval.base import Hit
from retrieval.http.client import Limits
from signatures.errors import SearchError
from tests.servers.search_apis import ApiServer, Serper, json_answer
from tests.servers.wild_json import replies

QUICK = Limits(connect_s=5, read_s=2, total_s=10, attempts=2, backoff_s=0.01)
RECORD = {
    "title": "Use of <b> in HTML & more",
    "url": "https://example.org/a",
    "snippet": "x < y",
    "date": "May 1, 2020",
}


def make(server: ApiServer, **options: Any) -> SerperSearch:
    return SerperSearch(**{"endpoint": server.url, "key": server.api.key, "limits": QUICK, **options})


async def test_the_request_has_serpers_shape() -> None:
    with ApiServer(Serper()) as server:
        await make(server, country="de", language="fr").search("  who is it ", 5)
        await make(server).search("x", 500)
        first, second = server.requests
        assert (first.method, first.path, first.headers["x-api-key"]) == ("POST", "/search", server.api.key)
        assert json.loads(first.body) == {"q": "who is it", "num": 5, "gl": "de", "hl": "fr"}
        assert json.loads(second.body) == {"q": "x", "num": 100, "gl": "us", "hl": "en"}


async def test_plain_text_is_left_as_it_is() -> None:
    with ApiServer(Serper(hits=[RECORD])) as server:
        assert await make(server).search("x", 5) == [
            Hit("Use of <b> in HTML & more", "https://example.org/a", "x < y", "May 1, 2020")
        ]


async def test_answer_box_and_knowledge_graph_are_no_hits() -> None:
    more = {
        "answerBox": {"title": "Answer", "answer": "42", "link": "https://example.org/box"},
        "knowledgeGraph": {"title": "Douglas Adams", "type": "Author", "website": "https://example.org/kg"},
        "peopleAlsoAsk": [{"question": "Why?", "snippet": "…", "title": "T", "link": "https://example.org/paa"}],
        "relatedSearches": [{"query": "towel"}],
    }
    with ApiServer(Serper(more=more)) as server:
        assert await make(server).search("x", 5) == []
    with ApiServer(Serper(hits=[RECORD], more=more)) as server:
        assert [hit.url for hit in await make(server).search("x", 5)] == ["https://example.org/a"]


async def test_spent_credits_are_told() -> None:
    with ApiServer(Serper()) as server:
        server.faults = [Serper.no_credits()]
        with pytest.raises(SearchError, match=r"no credits left; buy more at https://serper\.dev") as caught:
            await make(server).search("x", 5)
        assert caught.value.status == 400
        assert len(server.requests) == 1


async def test_another_bad_request_is_told_in_the_servers_words() -> None:
    with ApiServer(Serper()) as server:
        server.faults = [json_answer({"message": "Query not allowed", "statusCode": 400}, 400)]
        with pytest.raises(SearchError, match="Query not allowed") as caught:
            await make(server).search("x", 5)
        assert "credits" not in str(caught.value)


async def test_a_long_query_is_cut_between_words() -> None:
    with ApiServer(Serper()) as server:
        await make(server).search("word " * 1000, 5)
        asked = json.loads(server.requests[0].body)["q"]
        assert 2000 < len(asked) <= 2048
        assert asked.endswith("word")


async def test_the_same_page_comes_once_and_pages_without_an_address_not_at_all() -> None:
    records = [RECORD, RECORD, {**RECORD, "url": ""}, {**RECORD, "url": "javascript:alert(1)"}]
    with ApiServer(Serper(hits=records)) as server:
        assert [hit.url for hit in await make(server).search("x", 10)] == ["https://example.org/a"]


def test_the_identity_tells_what_changes_the_answer() -> None:
    one = SerperSearch(key="k")
    assert one.identity() == f"serper:{SERVER}:us:en"
    others = [SerperSearch(country="de"), SerperSearch(language="de"), SerperSearch(endpoint="https://proxy.example")]
    assert len({one.identity(), *(other.identity() for other in others)}) == 4


@given(replies("organic", "searchParameters", "title", "link", "snippet", "date"))
def test_any_json_is_parsed_or_refused(reply: Any) -> None:
    try:
        hits = SerperSearch(key="k")._parse(reply, "it", 5)
    except SearchError:
        return
    assert len(hits) <= 5
    assert all(isinstance(value, str) for hit in hits for value in hit.to_dict().values())
