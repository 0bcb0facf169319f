"""Retrieval servers of Search-R1, FlashRAG and ReCall: every reply they give becomes hits that bring their text."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.backends.retriever import RetrieverSearch
from retrieval.backends.retriever_replies import make_hits, split_reply
from retrieval.base import Hit, Search
from retrieval.cache import Cache
from retrieval.cached import CachedSearch
from retrieval.http.client import Limits
from signatures.errors import OptionError, SearchError
from tests.servers.retriever_server import RetrieverServer, document
from tests.servers.web import Answer

QUICK = Limits(connect_s=2, read_s=2, total_s=5, attempts=2, backoff_s=0.01)
ADA = document("7", "Ada Lovelace", "Ada wrote programs.")
BOB = document("a/b 8", '"Heroes" (song)', "A song by Bowie.\nIt is from 1977.")
DOCUMENTS = {"who": [ADA, BOB], "ada": [ADA], "heroes": [BOB]}


def make(server: RetrieverServer, path: str = "", **options: Any) -> RetrieverSearch:
    return RetrieverSearch(server.url + path, limits=QUICK, **options)


def host(server: RetrieverServer) -> str:
    return server.url.removeprefix("http://")


def ada(server: RetrieverServer) -> Hit:
    text = "Ada wrote programs."
    return Hit("Ada Lovelace", f"retriever://{host(server)}/7", text, text=text)


async def answer(reply: Any, k: int = 10, path: str = "/retrieve") -> list[Hit]:
    with RetrieverServer({}) as server:
        server.script(path, Answer(json.dumps(reply), content_type="application/json"))
        return await make(server, path).search("who", k)


async def test_a_dense_server_of_search_r1() -> None:
    with RetrieverServer(DOCUMENTS) as server:
        search = make(server)
        assert isinstance(search, Search)
        text = "A song by Bowie.\nIt is from 1977."
        heroes = Hit('"Heroes" (song)', f"retriever://{host(server)}/a%2Fb%208", text, text=text)
        assert await search.search("who", 5) == [ada(server), heroes]
        assert server.bodies == [{"queries": ["who"], "topk": 5, "return_scores": True}]
        assert await search.search("nothing", 5) == []


async def test_a_bm25_server_of_search_r1_has_no_ids() -> None:
    with RetrieverServer(DOCUMENTS, "bm25") as server:
        first, second = await make(server).search("who", 5)
        assert (first.title, first.text) == ("Ada Lovelace", "Ada wrote programs.")
        assert (second.title, second.text) == ('"Heroes" (song)', "A song by Bowie.\nIt is from 1977.")
        assert first.url.startswith(f"retriever://{host(server)}/")
        assert len(first.url.rpartition("/")[2]) == 16
        assert first.url != second.url
        (again,) = await make(server).search("ada", 5)
        assert again.url == first.url


async def test_the_online_servers_of_search_r1_have_no_scores() -> None:
    with RetrieverServer(DOCUMENTS, "google") as server:
        assert [hit.title for hit in await make(server).search("who", 1)] == ["Ada Lovelace"]
        assert [hit.text for hit in await make(server).search("ada", 5)] == ["Ada wrote programs."]


async def test_the_reranking_server_of_search_r1_gives_texts_and_counts_in_its_own_way() -> None:
    with RetrieverServer(DOCUMENTS, "rerank") as server:
        search = make(server, style="search_r1_rerank")
        assert [hit.title for hit in await search.search("who", 5)] == ["Ada Lovelace", '"Heroes" (song)']
        body = {"queries": ["who"], "topk_retrieval": 10, "topk_rerank": 5, "return_scores": True}
        assert server.bodies == [body]
        assert await search.search("nothing", 5) == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/search", {"query": "who", "top_n": 5, "return_score": False}),
        ("/batch_search", {"query": ["who"], "top_n": 5, "return_score": False}),
    ],
)
async def test_the_servers_of_flashrag_and_recall(path: str, body: dict[str, Any]) -> None:
    with RetrieverServer(DOCUMENTS, "flashrag") as server:
        assert [hit.title for hit in await make(server, path).search("who", 5)] == ["Ada Lovelace", '"Heroes" (song)']
        assert server.bodies == [body]
        assert await make(server, path).search("nothing", 5) == []


@pytest.mark.parametrize(
    "reply",
    [
        {"result": [[{"document": ADA, "score": 0.5}]]},
        {"result": [[ADA]]},
        {"result": [ADA]},
        {"result": [{"document": ADA, "score": 0.5}]},
        {"result": [[{"document": ADA["contents"], "score": 0.5}]]},
        {"result": [[ADA["contents"]]]},
        {"result": [[{"document": {**ADA, "id": 7}}]]},
        {"result": [[{"document": {"id": "7", "content": ADA["contents"]}}]]},
        {"result": [[{"title": "Ada Lovelace", "text": "Ada wrote programs."}]]},
        {"result": [[ADA, ADA]]},
        {"result": [[ADA, {"id": "9", "contents": " "}]]},
        [ADA],
        [[ADA]],
        [[ADA], [0.5]],
        [[ADA], [None]],
        [[[ADA]], [[0.5]]],
    ],
)
async def test_every_shape_of_one_hit(reply: Any) -> None:
    (hit,) = await answer(reply)
    assert (hit.title, hit.text, hit.snippet) == ("Ada Lovelace", "Ada wrote programs.", "Ada wrote programs.")


@pytest.mark.parametrize("reply", [{"result": []}, {"result": [[]]}, [], [[]], [[], []], [[[]], [[]]]])
async def test_every_shape_of_no_hit(reply: Any) -> None:
    assert await answer(reply) == []


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ({"detail": "busy"}, "no list"),
        ({"result": None}, "no list"),
        ({"result": {"documents": []}}, "no list"),
        ("invalid query", "no list"),
        (3, "no list"),
        ({"result": [[ADA], [BOB]]}, "several lists"),
        ({"result": [[ADA], "error"]}, "one list"),
        ({"result": [3]}, "neither a text nor an object"),
        ({"result": [[{"document": 3}]]}, "neither a text nor an object"),
        ({"result": [[{"id": "7", "passage": "x"}]]}, "no `contents` and no `text`, only 'id', 'passage'"),
        ({"result": [[{"contents": None}, {}]]}, "no `contents` and no `text`, only nothing"),
    ],
)
async def test_another_shape_is_a_failure_that_says_why(reply: Any, why: str) -> None:
    with pytest.raises(SearchError, match=f"shape of a retrieval server: .*{why}") as caught:
        await answer(reply)
    assert caught.value.status == 200


async def test_more_hits_than_asked_for_are_cut() -> None:
    reply = {"result": [[document(str(n), f"T{n}", "x") for n in range(20)]]}
    assert [hit.title for hit in await answer(reply, k=3)] == ["T0", "T1", "T2"]


@pytest.mark.parametrize(
    ("contents", "title", "text"),
    [
        ('"Ada"\nShe wrote.', "Ada", "She wrote."),
        ('""Ada""\nShe wrote.', "Ada", "She wrote."),
        ('""Heroes" (song)"\nIt is.', '"Heroes" (song)', "It is."),
        ("Ada\nShe wrote.\nMore.", "Ada", "She wrote.\nMore."),
        ("Only one line.", "Only one line.", "Only one line."),
        ('"Ada"\n ', "Ada", '"Ada"'),
        ("word " * 60 + "\nMore.", ("word " * 40).strip(), "word " * 60 + "\nMore."),
        ('"""\n"', '"', '"'),
    ],
)
def test_the_first_line_is_the_title(contents: str, title: str, text: str) -> None:
    (hit,) = make_hits([{"contents": contents}], "h", "", 5)
    assert (hit.title, hit.text) == (title, text)


def test_a_title_of_its_own_wins() -> None:
    (hit,) = make_hits([{"title": "Ada", "contents": "First line.\nSecond."}], "h", "", 5)
    assert (hit.title, hit.text) == ("Ada", "First line.\nSecond.")


def test_the_snippet_is_cut_at_a_word() -> None:
    (hit,) = make_hits([{"id": "1", "contents": "T\n" + "word " * 100}], "h", "", 5)
    assert (len(hit.snippet), hit.snippet[-5:]) == (299, " word")
    assert hit.text == ("word " * 100).strip()
    (hit,) = make_hits([{"contents": "T\n" + "x" * 400}], "h", "", 5)
    assert hit.snippet == "x" * 300


def test_a_document_with_an_address_keeps_it() -> None:
    documents = [{**ADA, "url": "https://example.org/ada"}, {**BOB, "url": " "}]
    assert [hit.url for hit in make_hits(documents, "h", "", 5)] == [
        "https://example.org/ada",
        "retriever://h/a%2Fb%208",
    ]


def test_passages_under_one_id_get_addresses_of_their_own() -> None:
    first, second = make_hits([ADA, {**ADA, "contents": '"Ada Lovelace"\nAnother part.'}], "h", "", 5)
    assert first.url == "retriever://h/7"
    assert second.url.startswith("retriever://h/")
    assert second.url != first.url


async def test_the_corpus_names_addresses_site_and_identity() -> None:
    with RetrieverServer(DOCUMENTS) as server:
        search = make(server, corpus="wiki 18/e5")
        (hit,) = await search.search("ada", 5)
        assert (hit.url, hit.site) == ("retriever://wiki%2018%2Fe5/7", "wiki 18/e5")
        assert search.identity() == RetrieverSearch("http://other:1/retrieve", corpus="wiki 18/e5").identity()


@pytest.mark.parametrize(
    ("endpoint", "style", "identity"),
    [
        ("http://Host:8000", "auto", "search_r1:http://host:8000/retrieve"),
        ("http://host:8000/", "auto", "search_r1:http://host:8000/retrieve"),
        ("host:8000", "auto", "search_r1:http://host:8000/retrieve"),
        ("https://host/retrieve/", "auto", "search_r1:https://host/retrieve/"),
        ("http://host/v1/search", "auto", "flashrag:http://host/v1/search"),
        ("http://host/batch_search", "auto", "flashrag_batch:http://host/batch_search"),
        ("http://host/find", "auto", "search_r1:http://host/find"),
        ("http://host", "flashrag", "flashrag:http://host/search"),
        ("http://host", "flashrag_batch", "flashrag_batch:http://host/batch_search"),
        ("http://host/retrieve", "flashrag", "flashrag:http://host/retrieve"),
        ("http://me:secret@host/retrieve", "auto", "search_r1:http://host/retrieve"),
    ],
)
def test_path_and_style_complete_each_other(endpoint: str, style: str, identity: str) -> None:
    assert RetrieverSearch(endpoint, style).identity() == f"retriever:{identity}"


def test_identity_tells_query_strings_apart_without_showing_them() -> None:
    one, other = RetrieverSearch("http://h/retrieve?key=one"), RetrieverSearch("http://h/retrieve?key=two")
    assert one.identity() != other.identity()
    assert "one" not in one.identity()


async def test_the_address_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RETRIEVER_URL", raising=False)
    assert RetrieverSearch().identity() == "retriever:auto:"
    with pytest.raises(SearchError, match="RETRIEVER_URL is not set"):
        await RetrieverSearch().search("x", 1)
    with RetrieverServer(DOCUMENTS) as server:
        monkeypatch.setenv("RETRIEVER_URL", server.url)
        assert await RetrieverSearch(limits=QUICK).search("ada", 1) == [ada(server)]


@pytest.mark.parametrize(
    "endpoint", ["ftp://h/retrieve", "http://", "http://h:x/", "http://[::1/", "me:secret@http://"]
)
async def test_a_bad_address_is_named(endpoint: str) -> None:
    with pytest.raises(SearchError, match=r"no address of a server; write RETRIEVER_URL like") as caught:
        await RetrieverSearch(endpoint).search("x", 1)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"style": "searchr1"}, "unknown style 'searchr1'; known are: auto, search_r1, "),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"batch_wait_ms": -1}, "batch_wait_ms at least 0"),
        ({"requests_per_second": 0}, "requests_per_second is 0"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        RetrieverSearch("http://h", **options)


@pytest.mark.parametrize(("path", "status"), [("/retrieve", 422), ("/find", 404)])
async def test_the_wrong_route_or_style_is_explained(path: str, status: int) -> None:
    with RetrieverServer(DOCUMENTS) as server:
        with pytest.raises(SearchError, match=rf"answered {status}.*path of RETRIEVER_URL.*'flashrag'") as caught:
            await make(server, path, style="flashrag").search("who", 1)
        assert caught.value.status == status


async def test_failures_of_the_server_are_no_empty_results() -> None:
    with RetrieverServer(DOCUMENTS, poison="bad") as server:
        with pytest.raises(SearchError, match=r"the query 'bad' failed: the server answered 500, tried 2 times"):
            await make(server).search("bad", 1)
        server.script("/retrieve", Answer("no json"))
        with pytest.raises(SearchError, match="not valid JSON"):
            await make(server).search("who", 1)
        server.script("/retrieve", Answer(status=429, headers={"Retry-After": "3600"}))
        with pytest.raises(SearchError, match="rate limited"):
            await make(server).search("who", 1)


async def test_queries_of_one_moment_go_in_one_request() -> None:
    with RetrieverServer(DOCUMENTS, latency_s=0.05) as server:
        search = make(server, batch_wait_ms=50)
        found = await asyncio.gather(*(search.search(query, 2) for query in ("who", "heroes", "nothing", "ada")))
        assert [[hit.title for hit in hits] for hits in found] == [
            ["Ada Lovelace", '"Heroes" (song)'],
            ['"Heroes" (song)'],
            [],
            ["Ada Lovelace"],
        ]
        assert [body["queries"] for body in server.bodies] == [["who", "heroes", "nothing", "ada"]]


async def test_a_batch_has_its_size_and_one_number_of_hits() -> None:
    with RetrieverServer(DOCUMENTS) as server:
        search = make(server, batch_size=2, batch_wait_ms=200)
        await asyncio.gather(*(search.search(f"q{n}", 1 + n // 4) for n in range(6)))
        sizes = sorted((body["topk"], len(body["queries"])) for body in server.bodies)
        assert sizes == [(1, 2), (1, 2), (2, 2)]
        alone = make(server, batch_size=1)
        server.requests.clear()
        await asyncio.gather(alone.search("a", 1), alone.search("b", 1))
        assert len(server.bodies) == 2


async def test_flashrag_takes_several_queries_at_its_batch_route_only() -> None:
    with RetrieverServer(DOCUMENTS, "flashrag") as server:
        for path, requests in (("/search", 2), ("/batch_search", 1)):
            server.requests.clear()
            search = make(server, path, batch_wait_ms=50)
            ada_hits, heroes_hits = await asyncio.gather(search.search("ada", 2), search.search("heroes", 2))
            assert (ada_hits, heroes_hits[0].title) == ([ada(server)], '"Heroes" (song)')
            assert len(server.requests) == requests


async def test_one_bad_query_costs_the_others_of_its_batch_nothing() -> None:
    with RetrieverServer(DOCUMENTS, poison="bad") as server:
        search = make(server, batch_wait_ms=50)
        good, bad = await asyncio.gather(search.search("ada", 1), search.search("bad", 1), return_exceptions=True)
        assert good == [ada(server)]
        assert isinstance(bad, SearchError)
        assert "the query 'bad' failed" in str(bad)


async def test_a_batch_that_fails_for_another_reason_fails_as_one() -> None:
    with RetrieverServer(DOCUMENTS) as server:
        server.script("/retrieve", Answer(status=429, headers={"Retry-After": "3600"}))
        search = make(server, batch_wait_ms=50)
        failures = await asyncio.gather(search.search("a", 1), search.search("b", 1), return_exceptions=True)
        assert all(isinstance(failure, SearchError) for failure in failures)
        assert "the query 'a' and 1 more in the same request failed" in str(failures[1])
        assert len(server.requests) == 1


async def test_a_server_that_mixes_the_queries_of_a_batch_is_asked_one_by_one() -> None:
    with RetrieverServer(DOCUMENTS, "rerank") as server:
        search = make(server, batch_wait_ms=50)
        for _ in range(2):
            found = await asyncio.gather(search.search("ada", 3), search.search("heroes", 3), search.search("none", 3))
            assert [[hit.title for hit in hits] for hits in found] == [["Ada Lovelace"], ['"Heroes" (song)'], []]
        assert [len(body["queries"]) for body in server.bodies] == [3, 1, 1, 1, 1, 1, 1]


async def test_who_gives_up_takes_nothing_from_the_others() -> None:
    with RetrieverServer(DOCUMENTS, latency_s=0.1) as server:
        search = make(server, batch_wait_ms=50)
        first, second = (asyncio.create_task(search.search(query, 1)) for query in ("who", "ada"))
        await asyncio.sleep(0)
        first.cancel()
        assert await second == [ada(server)]
        assert first.cancelled()
        lonely = asyncio.create_task(search.search("heroes", 1))
        await asyncio.sleep(0)
        lonely.cancel()
        await asyncio.wait([lonely])
        assert len(await search.search("who", 1)) == 1
        assert [body["queries"] for body in server.bodies] == [["who", "ada"], ["who"]]


def test_event_loops_do_not_share_batches() -> None:
    with RetrieverServer(DOCUMENTS) as server:
        search = make(server)
        for _ in range(2):
            assert asyncio.run(search.search("ada", 1)) == [ada(server)]


async def test_it_survives_pickling_and_deepcopy() -> None:
    with RetrieverServer(DOCUMENTS) as server:
        search = make(server, corpus="wiki", requests_per_second=100)
        hits = await search.search("ada", 1)
        for twin in (pickle.loads(pickle.dumps(search)), copy.deepcopy(search)):
            assert await twin.search("ada", 1) == hits
            assert twin.identity() == search.identity()


async def test_a_replayed_search_still_brings_the_texts(tmp_path: Path) -> None:
    with RetrieverServer(DOCUMENTS) as server:
        search = make(server)
        hits = await CachedSearch(search, Cache(tmp_path / "cache.sqlite")).search("who", 5)
    again = CachedSearch(RetrieverSearch(server.url), Cache(tmp_path / "cache.sqlite"))
    assert await again.search_with_origin("who", 5) == (hits, True)
    assert [hit.text for hit in hits] == ["Ada wrote programs.", "A song by Bowie.\nIt is from 1977."]


KEYS = ["result", "document", "contents", "content", "text", "title", "id", "url", "score"]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["", "T\nx", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
)


@given(JSON, st.integers(1, 3))
def test_any_json_is_parsed_or_refused(reply: Any, queries: int) -> None:
    try:
        found = split_reply(reply, queries)
    except ValueError:
        return
    assert all(isinstance(documents, list) for documents in found)


@given(st.lists(JSON, max_size=4), st.integers(0, 3))
def test_any_documents_become_hits_or_are_refused(documents: list[Any], k: int) -> None:
    try:
        hits = make_hits(documents, "h", "", k)
    except ValueError:
        return
    assert len(hits) <= k
    for hit in hits:
        assert hit.text
        assert hit.url
        assert len(hit.snippet) <= 300
        "".join(hit.to_dict().values()).encode()
