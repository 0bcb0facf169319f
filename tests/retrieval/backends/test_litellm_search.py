from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings

from retrieval.backends.litellm_search import KEY_VARIABLES, LitellmSearch
from retrieval.base import Hit
from retrieval.http.client import Limits
from signatures.errors import OptionError, SearchError
from tests.servers.search_apis import ApiServer, Exa, json_answer
from tests.servers.web import Answer, WebServer
from tests.servers.wild_json import replies

QUICK = Limits(connect_s=5, read_s=2, total_s=10, attempts=2, backoff_s=0.01)
RECORD = {"title": "A", "url": "https://example.org/a", "snippet": "Text", "date": "2020-05-01"}


def make(server: WebServer, provider: str = "exa_ai", **options: Any) -> LitellmSearch:
    options = {"endpoint": server.url, "key": "the-key-1234", "limits": QUICK, "requests_per_second": None, **options}
    return LitellmSearch(provider, **options)


async def test_hits_are_parsed() -> None:
    with ApiServer(Exa(hits=[RECORD], key="the-key-1234")) as server:
        search = make(server)
        assert search.name == "litellm:exa_ai"
        assert await search.search("who", 500) == [Hit("A", "https://example.org/a", "Text", "2020-05-01")]
        asked = json.loads(server.requests[0].body)
        assert (asked["query"], asked["numResults"]) == ("who", 20)


async def test_a_provider_that_is_asked_by_get_works_too(monkeypatch: pytest.MonkeyPatch) -> None:
    reply = {"organic_results": [{"title": "A", "link": "https://example.org/a", "snippet": "Text"}]}
    with WebServer(pages={"/": json_answer(reply)}) as server:
        assert await make(server, "searchapi").search("who", 3) == [Hit("A", "https://example.org/a", "Text")]
        assert server.requests[0].method == "GET"
        server.script("/", json_answer({"error": "bad key the-key-1234"}, 401))
        with pytest.raises(SearchError, match="the key is not accepted; check SEARCHAPI_API_KEY") as caught:
            await make(server, "searchapi").search("who", 3)
        assert "the-key-1234" not in str(caught.value) + caught.value.body


async def test_a_key_from_the_environment_goes_to_a_server_we_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERPLEXITYAI_API_KEY", "from-environment")
    reply = {"results": [{"title": "A", "url": "https://example.org/a", "snippet": "Text", "date": "2020-05-01"}]}
    with WebServer(pages={"/search": json_answer(reply)}) as server:
        assert len(await make(server, "perplexity", key=None).search("who", 3)) == 1
        assert server.requests[0].headers["authorization"] == "Bearer from-environment"


def test_an_unknown_provider_lists_the_known_ones() -> None:
    with pytest.raises(OptionError, match=r"Unknown search provider 'altavista'.*exa_ai.*perplexity"):
        LitellmSearch("altavista")


def test_litellm_knows_every_provider_in_the_table_of_keys() -> None:
    from litellm.types.utils import SearchProviders

    assert set(KEY_VARIABLES) <= {provider.value for provider in SearchProviders}


def test_litellm_is_not_imported_before_it_is_used() -> None:
    code = (
        "import sys; from retrieval.backends.litellm_search import LitellmSearch; "
        "LitellmSearch('exa_ai').identity(); print('litellm' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


async def test_what_litellm_misses_is_told_in_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOOGLE_PSE_ENGINE_ID", raising=False)
    with WebServer() as server, pytest.raises(SearchError, match="GOOGLE_PSE_ENGINE_ID is not set") as caught:
        await make(server, "google_pse").search("who", 3)
    assert "Traceback" not in str(caught.value)


async def test_nothing_is_printed_for_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    with ApiServer(Exa()) as server:
        server.faults = [json_answer({"error": "no"}, 400)]
        with pytest.raises(SearchError, match="answered 400"):
            await make(server).search("who", 3)
    assert capsys.readouterr().out == ""


async def test_a_slow_provider_is_a_failure() -> None:
    with ApiServer(Exa(key="the-key-1234")) as server:
        server.faults = [Answer("late", latency_s=3)]
        with pytest.raises(SearchError, match=r"not complete within 0\.5 s"):
            await make(server, limits=Limits(total_s=0.5, attempts=1)).search("who", 3)


async def test_a_server_that_is_not_there_is_a_failure() -> None:
    with WebServer() as server:
        search = make(server)
    with pytest.raises(SearchError, match="the connection failed"):
        await search.search("who", 3)


def test_the_identity_tells_what_changes_the_answer() -> None:
    searches = [
        LitellmSearch("exa_ai"),
        LitellmSearch("linkup"),
        LitellmSearch("exa_ai", endpoint="http://localhost:1"),
        LitellmSearch("exa_ai", country="DE"),
    ]
    assert len({search.identity() for search in searches}) == len(searches)


@settings(max_examples=25)
@given(replies("results", "title", "url", "text", "publishedDate", "highlights"))
def test_any_json_is_parsed_or_refused(reply: Any) -> None:
    async def search() -> list[Hit]:
        with ApiServer(Exa()) as server:
            server.faults = [json_answer(reply)]
            return await make(server).search("who", 3)

    try:
        hits = asyncio.run(search())
    except SearchError:
        return
    assert all(isinstance(value, str) for hit in hits for value in hit.to_dict().values())
