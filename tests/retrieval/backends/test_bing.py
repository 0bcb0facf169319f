from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.backends.bing import BingSearch
from retrieval.base import Hit, Search
from retrieval.http.client import Limits
from signatures.errors import SearchError
from tests.servers.web import SEARCH_PATH, Answer, WebServer

QUICK = Limits(connect_s=2, read_s=1, total_s=2, attempts=2, backoff_s=0.01)
HITS = {
    "eiffel": [
        {
            "title": "The <b>Eiffel</b> Tower",
            "url": "https://example.org/eiffel",
            "snippet": "Built in <b>1889</b> by Tom &amp; Co.",
            "date": "2020-05-01",
            "site": "Example",
        },
        {"title": "Second", "url": "/second", "snippet": "…"},
        {"title": "No address", "url": ""},
    ]
}


def make(server: WebServer, **options: Any) -> BingSearch:
    return BingSearch(endpoint=server.search_url, key="the-key", limits=QUICK, **options)


async def test_hits_are_parsed_and_cleaned() -> None:
    with WebServer(hits=HITS) as server:
        search = make(server)
        assert isinstance(search, Search)
        assert await search.search("eiffel", 10) == [
            Hit(
                "The Eiffel Tower",
                "https://example.org/eiffel",
                "Built in 1889 by Tom & Co.",
                "2020-05-01",
                "Example",
            ),
            Hit("Second", server.url + "/second", "…"),
        ]


async def test_the_request_has_the_v7_shape() -> None:
    with WebServer(hits=HITS) as server:
        assert len(await make(server, market="zh-CN").search("eiffel", 1)) == 1
        await make(server).search("x", 500)
        first, second = server.requests
        assert first.path == SEARCH_PATH
        assert first.headers["ocp-apim-subscription-key"] == "the-key"
        assert first.query == {
            "q": "eiffel",
            "mkt": "zh-CN",
            "setLang": "zh",
            "count": "1",
            "textDecorations": "true",
            "textFormat": "HTML",
        }
        assert (second.query["count"], second.query["mkt"], second.query["setLang"]) == ("50", "en-US", "en")


async def test_no_results_are_no_failure() -> None:
    with WebServer() as server:
        assert await make(server).search("nothing", 5) == []
        server.script(SEARCH_PATH, Answer('{"webPages": {"value": null}}'), Answer('{"webPages": null}'))
        assert await make(server).search("nothing", 5) == []
        assert await make(server).search("nothing", 5) == []


async def test_endpoint_and_key_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BING_ENDPOINT", raising=False)
    monkeypatch.delenv("BING_KEY", raising=False)
    with WebServer(hits=HITS) as server:
        with pytest.raises(SearchError, match="BING_ENDPOINT is not set"):
            await BingSearch().search("eiffel", 1)
        monkeypatch.setenv("BING_ENDPOINT", server.search_url)
        with pytest.raises(SearchError, match="BING_KEY is not set"):
            await BingSearch().search("eiffel", 1)
        monkeypatch.setenv("BING_KEY", "from-environment")
        assert len(await BingSearch().search("eiffel", 1)) == 1
        assert server.requests[0].headers["ocp-apim-subscription-key"] == "from-environment"
        assert server.search_url in BingSearch().identity()


async def test_a_retired_endpoint_is_told_so() -> None:
    with WebServer() as server:
        server.script(SEARCH_PATH, Answer("gone", status=410))
        with pytest.raises(SearchError, match=r"it is retired .* Set BING_ENDPOINT") as caught:
            await make(server).search("x", 1)
        assert caught.value.status == 410


async def test_the_key_never_shows_in_an_error() -> None:
    with WebServer() as server:
        server.script(SEARCH_PATH, Answer("Access denied for the-key", status=401))
        with pytest.raises(SearchError, match="answered 401") as caught:
            await make(server).search("x", 1)
        assert "the-key" not in str(caught.value) + caught.value.body + repr(caught.value)
        assert "Access denied for ***" in str(caught.value)


async def test_rate_limits_are_failures_not_empty_results() -> None:
    with WebServer() as server:
        server.script(SEARCH_PATH, Answer(status=429), Answer(status=429))
        with pytest.raises(SearchError, match=r"rate limited\), tried 2 times"):
            await make(server).search("x", 1)
        assert await make(server).search("x", 1) == []


@pytest.mark.parametrize("body", ["[]", "3", '"x"', '{"webPages": 3}', '{"webPages": {"value": [1]}}', "null"])
async def test_a_reply_of_another_shape_is_a_failure(body: str) -> None:
    with WebServer() as server:
        server.script(SEARCH_PATH, Answer(body, content_type="application/json"))
        with pytest.raises(SearchError, match="shape of Bing v7"):
            await make(server).search("x", 1)


async def test_fields_of_the_wrong_type_are_empty() -> None:
    record = '{"name": 1, "url": "https://example.org/", "snippet": null, "datePublished": [], "siteName": {}}'
    with WebServer() as server:
        server.script(SEARCH_PATH, Answer(f'{{"webPages": {{"value": [{record}]}}}}'))
        assert await make(server).search("x", 1) == [Hit("", "https://example.org/")]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["webPages", "value", "name", "url", "snippet", "datePublished"]), inner, max_size=4
            )
        ),
    )
)
def test_any_json_is_parsed_or_refused(reply: Any) -> None:
    try:
        hits = BingSearch("http://x/", "k")._parse(reply, "it")
    except SearchError:
        return
    assert all(isinstance(value, str) for hit in hits for value in hit.to_dict().values())


async def test_identity_tells_market_and_endpoint_but_no_key() -> None:
    one, other = BingSearch("http://x/", "the-key"), BingSearch("http://x/", "the-key", market="de-DE")
    assert one.identity() != other.identity()
    assert "the-key" not in one.identity()


async def test_marks_tags_and_entities_are_taken_out_once() -> None:
    name = "\ue000The\ue001 &lt;b&gt; tag &amp;amp; <b>more</b>"
    snippet = "a &lt; b <br/> R&amp;D\u00a0x"
    reply = {"webPages": {"value": [{"name": name, "url": "https://example.org/", "snippet": snippet}]}}
    with WebServer() as server:
        server.script(SEARCH_PATH, Answer(json.dumps(reply)))
        assert await make(server).search("x", 1) == [
            Hit("The <b> tag &amp; more", "https://example.org/", "a < b  R&D x")
        ]


def test_a_password_in_the_address_stays_out_of_the_identity() -> None:
    identity = BingSearch("https://me:hidden@proxy.example/v7.0/search?token=hidden", "k").identity()
    assert "proxy.example/v7.0/search" in identity
    assert "hidden" not in identity


async def test_it_survives_pickling_and_deepcopy() -> None:
    with WebServer(hits=HITS) as server:
        search = make(server, requests_per_second=1000.0)
        hits = await search.search("eiffel", 1)
        assert await pickle.loads(pickle.dumps(search)).search("eiffel", 1) == hits
        assert await copy.deepcopy(search).search("eiffel", 1) == hits


async def test_only_pages_of_the_web_are_hits_and_each_once() -> None:
    addresses = ["https://a.example/1"] * 1000 + ["javascript:alert(1)", "corpus://notes/1", "file:///etc/passwd", ""]
    hits = [{"title": "t", "url": url, "snippet": "s"} for url in [*addresses, "HTTPS://b.example"]]
    value = [{"name": h["title"], "url": h["url"], "snippet": h["snippet"]} for h in hits]
    with WebServer() as server:
        server.script(SEARCH_PATH, Answer(json.dumps({"webPages": {"value": value}}), content_type="application/json"))
        found = await make(server).search("q", 5)
    assert [hit.url for hit in found] == ["https://a.example/1", "HTTPS://b.example"]


async def test_half_surrogate_pairs_reach_no_file() -> None:
    half = "half \\ud800 pair"
    record = f'{{"name": "{half}", "url": "https://a.example/\\ud800", "snippet": "{half}", "siteName": "{half}"}}'
    with WebServer() as server:
        server.script(SEARCH_PATH, Answer(f'{{"webPages": {{"value": [{record}]}}}}', content_type="application/json"))
        (hit,) = await make(server).search("q", 5)
    assert all(value.isascii() for value in hit.to_dict().values())


@pytest.mark.parametrize("body", ['{"message": "quota exceeded"}', "{}", '{"organic": []}'])
async def test_a_complaint_with_status_200_is_no_empty_result(body: str) -> None:
    with WebServer() as server:
        server.script(SEARCH_PATH, Answer(body, content_type="application/json"))
        with pytest.raises(SearchError, match="does not have the shape of Bing v7"):
            await make(server).search("q", 5)


async def test_a_refused_key_names_its_variable() -> None:
    with WebServer() as server:
        server.script(SEARCH_PATH, Answer('{"error": "no"}', status=401))
        with pytest.raises(SearchError, match="the key is not accepted; check BING_KEY"):
            await make(server).search("q", 5)
