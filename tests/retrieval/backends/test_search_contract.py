"""What every search backend over HTTP has to keep, whoever the provider is."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from retrieval.backends.brave import BraveSearch
from retrieval.backends.litellm_search import LitellmSearch
from retrieval.backends.searxng import SearxngSearch
from retrieval.backends.serper import SerperSearch
from retrieval.backends.tavily import TavilySearch
from retrieval.base import Hit, Search
from retrieval.http.client import Limits
from signatures.errors import OptionError, SearchError
from tests.servers.search_apis import Api, ApiServer, Brave, Exa, Searxng, Serper, Tavily, json_answer
from tests.servers.web import Answer

QUICK = Limits(connect_s=5, read_s=1, total_s=10, attempts=2, backoff_s=0.01, retry_after_s=5)
RECORDS = [
    {"title": f"Page {number}", "url": f"https://example.org/{number}", "snippet": f"Snippet {number}"}
    for number in range(1, 6)
]
HITS = [(record["title"], record["url"], record["snippet"]) for record in RECORDS]


@dataclass(frozen=True)
class Case:
    """One backend with its provider."""

    api: Callable[..., Api]
    search: Callable[..., Any]
    address_variable: str
    key_variable: str = ""

    def make(self, server: ApiServer, **options: Any) -> Any:
        if self.key_variable:
            options = {"key": server.api.key, **options}
        return self.search(**{"endpoint": server.url, "limits": QUICK, "requests_per_second": None, **options})


CASES = {
    "serper": Case(Serper, SerperSearch, "SERPER_URL", "SERPER_API_KEY"),
    "brave": Case(Brave, BraveSearch, "BRAVE_URL", "BRAVE_API_KEY"),
    "tavily": Case(Tavily, TavilySearch, "TAVILY_URL", "TAVILY_API_KEY"),
    "searxng": Case(Searxng, SearxngSearch, "SEARXNG_URL"),
    "litellm": Case(
        Exa,
        lambda **options: LitellmSearch(provider="exa_ai", **options),
        "LITELLM_SEARCH_BASE_URL",
        "EXA_API_KEY",
    ),
}
KEYED = [name for name, case in CASES.items() if case.key_variable]


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def parts(hits: Sequence[Hit]) -> list[tuple[str, str, str]]:
    return [(hit.title, hit.url, hit.snippet) for hit in hits]


async def test_hits_are_found(case: Case) -> None:
    with ApiServer(case.api(hits=RECORDS)) as server:
        search = case.make(server)
        assert isinstance(search, Search)
        assert parts(await search.search("who", 10)) == HITS


async def test_no_more_hits_come_back_than_asked_for(case: Case) -> None:
    with ApiServer(case.api(hits=RECORDS)) as server:
        assert parts(await case.make(server).search("who", 2)) == HITS[:2]


async def test_an_empty_result_is_no_failure(case: Case) -> None:
    with ApiServer(case.api()) as server:
        assert await case.make(server).search("who", 5) == []


async def test_a_server_that_ignores_the_number_asked_for_is_cut(case: Case) -> None:
    with ApiServer(case.api(hits=RECORDS)) as server:
        generous = server.api.answer

        def answer(request: Any) -> Answer:
            changed = request.body.replace(b'"num": 1', b'"num": 9').replace(b'"max_results": 1', b'"max_results": 9')
            changed = changed.replace(b'"numResults":1', b'"numResults":9')
            query = {**request.query, **({"count": "9"} if "count" in request.query else {})}
            return generous(type(request)(request.method, request.path, query, request.headers, changed))

        server.api.answer = answer  # type: ignore[method-assign]
        assert parts(await case.make(server).search("who", 1)) == HITS[:1]


@pytest.mark.parametrize("body", ["", "no JSON", '{"results": [', "<html>down</html>", "\xff"])
async def test_a_reply_that_is_no_json_is_a_failure(case: Case, body: str) -> None:
    with ApiServer(case.api(hits=RECORDS)) as server:
        server.faults = [Answer(body.encode("latin-1"), content_type="application/json")]
        with pytest.raises(SearchError) as caught:
            await case.make(server).search("who", 5)
        assert "'who'" in str(caught.value)
        assert len(server.requests) == 1


@pytest.mark.parametrize("value", [[], 3, "x", None, {"results": 3, "organic": 3, "web": 3}])
async def test_json_of_another_shape_is_a_failure(case: Case, value: Any) -> None:
    with ApiServer(case.api(hits=RECORDS)) as server:
        server.faults = [json_answer(value)]
        with pytest.raises(SearchError, match=r"does not have the shape of|shape that LiteLLM expects"):
            await case.make(server).search("who", 5)


# LiteLLM itself takes any object without results for an empty result.
@pytest.mark.parametrize("name", [name for name in CASES if name != "litellm"])
async def test_an_object_that_is_no_search_reply_is_a_failure(name: str) -> None:
    with ApiServer(CASES[name].api(hits=RECORDS)) as server:
        server.faults = [json_answer({"error": "changed"})]
        with pytest.raises(SearchError, match="does not have the shape of"):
            await CASES[name].make(server).search("who", 5)


async def test_a_rate_limit_is_waited_for(case: Case) -> None:
    with ApiServer(case.api(hits=RECORDS)) as server:
        server.faults = [json_answer({"error": "slow down"}, 429, {"Retry-After": "1"})]
        assert parts(await case.make(server).search("who", 5)) == HITS
        assert len(server.requests) == 2


async def test_a_lasting_rate_limit_is_a_failure_that_says_so(case: Case) -> None:
    with ApiServer(case.api(hits=RECORDS)) as server:
        server.faults = [json_answer({"error": "slow down"}, 429) for _ in range(2)]
        with pytest.raises(SearchError, match="rate limited") as caught:
            await case.make(server).search("who", 5)
        assert caught.value.status == 429
        assert caught.value.provider.startswith(case.make(server).name)


async def test_a_server_error_is_tried_again(case: Case) -> None:
    with ApiServer(case.api(hits=RECORDS)) as server:
        server.faults = [Answer("down", status=503)]
        assert parts(await case.make(server).search("who", 5)) == HITS
        server.faults = [Answer("down", status=502), Answer("down", status=502)]
        with pytest.raises(SearchError, match="502") as caught:
            await case.make(server).search("who", 5)
        assert caught.value.status == 502


async def test_a_lost_connection_is_tried_again(case: Case) -> None:
    with ApiServer(case.api(hits=RECORDS)) as server:
        server.faults = [Answer(close_after=0)]
        assert parts(await case.make(server).search("who", 5)) == HITS


@pytest.mark.parametrize("name", KEYED)
async def test_a_refused_key_names_its_variable_and_never_shows(name: str) -> None:
    case = CASES[name]
    with ApiServer(case.api(hits=RECORDS)) as server:
        with pytest.raises(SearchError, match=f"the key is not accepted; check {case.key_variable}"):
            await case.make(server, key="wrong-key-5678").search("who", 5)
        assert len(server.requests) == 1
        for status in (401, 403):
            server.faults = [json_answer({"error": f"no such key: {server.api.key}"}, status)]
            search = case.make(server)
            with pytest.raises(SearchError, match="the key is not accepted") as caught:
                await search.search("who", 5)
            shown = str(caught.value) + repr(caught.value) + caught.value.body + search.identity() + repr(search)
            assert server.api.key not in shown
            assert caught.value.status == status


@pytest.mark.parametrize("name", KEYED)
async def test_a_missing_key_names_its_variable(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    monkeypatch.delenv(case.key_variable, raising=False)
    with ApiServer(case.api(hits=RECORDS)) as server:
        with pytest.raises(SearchError, match=f"{case.key_variable} is not set; set it to your .*https://"):
            await case.make(server, key=None).search("who", 5)
        assert server.requests == []
        monkeypatch.setenv(case.key_variable, server.api.key)
        assert parts(await case.make(server, key=None).search("who", 5)) == HITS


async def test_the_address_comes_from_the_environment_or_an_argument(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ApiServer(case.api(hits=RECORDS)) as server, ApiServer(case.api(hits=RECORDS[:1])) as other:
        monkeypatch.setenv(case.address_variable, other.url)
        assert parts(await case.make(server, endpoint=None).search("who", 5)) == HITS[:1]
        assert parts(await case.make(server).search("who", 5)) == HITS
        assert other.url in case.make(server, endpoint=None).identity()
        assert server.url in case.make(server).identity()


async def test_the_route_may_be_part_of_the_address(case: Case) -> None:
    with ApiServer(case.api(hits=RECORDS)) as server:
        search = case.make(server, endpoint=server.url + server.api.path)
        assert parts(await search.search("who", 5)) == HITS


async def test_it_survives_pickling_and_deepcopy(case: Case) -> None:
    with ApiServer(case.api(hits=RECORDS)) as server:
        search = case.make(server, requests_per_second=1000.0)
        for twin in (pickle.loads(pickle.dumps(search)), copy.deepcopy(search)):
            assert parts(await twin.search("who", 5)) == HITS
            assert twin.identity() == search.identity()


def test_a_password_in_the_address_stays_out_of_the_identity(case: Case) -> None:
    with ApiServer(case.api()) as server:
        search = case.make(server, endpoint="http://me:hidden@example.org/search?token=hidden")
        assert "hidden" not in search.identity()
        assert "example.org" in search.identity()


@pytest.mark.parametrize("rate", [0, -1.0, float("nan"), float("inf")])
def test_an_impossible_rate_is_refused(case: Case, rate: float) -> None:
    with ApiServer(case.api()) as server, pytest.raises(OptionError, match="requests_per_second"):
        case.make(server, requests_per_second=rate)
