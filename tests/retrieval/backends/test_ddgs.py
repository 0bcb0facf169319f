from __future__ import annotations

import copy
import logging
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from retrieval.backends.ddgs import DdgsSearch
from retrieval.base import Hit, Search
from retrieval.http.client import Limits
from signatures.errors import OptionError, SearchError
from tests.servers.engine_proxy import (
    DUCKDUCKGO,
    MOJEEK,
    WIKIPEDIA,
    EngineProxy,
    duckduckgo_page,
    duckduckgo_puzzle,
    mojeek_page,
)
from tests.servers.web import Answer

QUICK = Limits(read_s=5, total_s=30, attempts=2, backoff_s=0.01, retry_after_s=5)
RECORDS = [
    {"title": "The Eiffel Tower", "url": "https://example.org/1", "snippet": "Eiffel built the tower."},
    {"title": "Eiffel &amp; Co", "url": "https://example.org/2", "snippet": "Eiffel as a company."},
]
HITS = [
    Hit("The Eiffel Tower", "https://example.org/1", "Eiffel built the tower."),
    Hit("Eiffel & Co", "https://example.org/2", "Eiffel as a company."),
]


def make(proxy: EngineProxy, **options: Any) -> DdgsSearch:
    options = {"backend": "mojeek", "limits": QUICK, "requests_per_second": None, **options}
    return DdgsSearch(proxy=proxy.url, ca_file=str(proxy.ca_file), **options)


def engines(folder: Path, answers: Mapping[str, list[Answer]]) -> EngineProxy:
    return EngineProxy(folder, answers)


async def test_hits_of_an_engine_are_found(tmp_path: Path) -> None:
    with engines(tmp_path, {MOJEEK: [mojeek_page(*RECORDS)]}) as proxy:
        search = make(proxy)
        assert isinstance(search, Search)
        assert await search.search("eiffel tower", 10) == HITS
        assert await search.search("eiffel tower", 1) == HITS[:1]
        assert proxy.asked[0].startswith("www.mojeek.com/search?q=eiffel+tower")


async def test_several_engines_are_asked(tmp_path: Path) -> None:
    answers = {MOJEEK: [mojeek_page(RECORDS[0])], DUCKDUCKGO: [duckduckgo_page(*RECORDS)]}
    with engines(tmp_path, answers) as proxy:
        assert set(await make(proxy, backend="mojeek, duckduckgo").search("eiffel", 10)) == set(HITS)
        assert (proxy.count(MOJEEK), proxy.count(DUCKDUCKGO)) == (1, 1)


async def test_options_reach_the_engines(tmp_path: Path) -> None:
    with engines(tmp_path, {DUCKDUCKGO: [duckduckgo_page(*RECORDS)]}) as proxy:
        await make(proxy, backend="duckduckgo", region="de-de", timelimit="m").search("eiffel", 10)
        (asked,) = proxy.asked
        assert "l=de-de" in asked
        assert "df=m" in asked


async def test_nothing_found_is_an_empty_result(tmp_path: Path) -> None:
    answers = {MOJEEK: [mojeek_page()], DUCKDUCKGO: [duckduckgo_page()]}
    with engines(tmp_path, answers) as proxy:
        assert await make(proxy, backend="mojeek,duckduckgo").search("xyzzy", 5) == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer("forbidden", 403), "mojeek answered 403"),
        (Answer("slow down", 429), r"mojeek answered 429 \(rate limited\)"),
        (Answer("down", 503), "mojeek answered 503"),
        (Answer("<html>Please solve the CAPTCHA</html>"), "mojeek showed a robot check"),
        (Answer("<html>Our systems have detected unusual traffic</html>"), "mojeek showed a robot check"),
    ],
)
async def test_a_block_is_never_an_empty_result(tmp_path: Path, answer: Answer, words: str) -> None:
    with (
        engines(tmp_path, {MOJEEK: [answer], DUCKDUCKGO: [duckduckgo_page()]}) as proxy,
        pytest.raises(SearchError, match=f"no engine gave results: {words}"),
    ):
        await make(proxy, backend="mojeek,duckduckgo").search("eiffel", 5)


async def test_duckduckgos_puzzle_is_a_rate_limit(tmp_path: Path) -> None:
    with engines(tmp_path, {DUCKDUCKGO: [duckduckgo_puzzle()]}) as proxy:
        with pytest.raises(SearchError, match=r"duckduckgo answered 202 \(rate limited\)") as caught:
            await make(proxy, backend="duckduckgo").search("eiffel", 5)
        assert caught.value.status == 429
        assert proxy.count(DUCKDUCKGO) == 1


async def test_a_rate_limit_is_waited_for(tmp_path: Path) -> None:
    answers = {MOJEEK: [Answer("slow down", 429, headers={"Retry-After": "1"}), mojeek_page(*RECORDS)]}
    with engines(tmp_path, answers) as proxy:
        assert await make(proxy).search("eiffel", 5) == HITS
        assert proxy.count(MOJEEK) == 2


async def test_a_server_error_is_tried_again(tmp_path: Path) -> None:
    with engines(tmp_path, {MOJEEK: [Answer("down", 502), mojeek_page(*RECORDS)]}) as proxy:
        assert await make(proxy).search("eiffel", 5) == HITS


async def test_one_engine_that_answers_is_enough(tmp_path: Path) -> None:
    answers = {MOJEEK: [Answer("forbidden", 403)], DUCKDUCKGO: [duckduckgo_page(*RECORDS)]}
    with engines(tmp_path, answers) as proxy:
        assert await make(proxy, backend="mojeek,duckduckgo").search("eiffel", 5) == HITS


async def test_hits_of_an_encyclopaedia_alone_are_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    titles = '["eiffel", ["Eiffel Tower"], [""], ["https://en.wikipedia.org/wiki/Eiffel_Tower"]]'
    text = '{"query": {"pages": {"1": {"extract": "A tower in Paris."}}}}'
    answers = {MOJEEK: [Answer("forbidden", 403)], WIKIPEDIA: [Answer(titles), Answer(text)]}
    with engines(tmp_path, answers) as proxy, caplog.at_level(logging.WARNING):
        (hit,) = await make(proxy, backend="wikipedia,mojeek").search("eiffel", 5)
        assert (hit.title, hit.snippet) == ("Eiffel Tower", "A tower in Paris.")
        assert "only encyclopaedias gave results for 'eiffel': mojeek answered 403" in caplog.text


async def test_a_slow_engine_is_a_failure(tmp_path: Path) -> None:
    with engines(tmp_path, {MOJEEK: [Answer("late", latency_s=3)]}) as proxy:
        limits = Limits(read_s=1, total_s=30, attempts=1)
        with pytest.raises(SearchError, match="mojeek gave no answer in time"):
            await make(proxy, limits=limits).search("eiffel", 5)


async def test_the_whole_search_has_its_time(tmp_path: Path) -> None:
    with engines(tmp_path, {MOJEEK: [Answer("late", latency_s=2)]}) as proxy:
        limits = Limits(read_s=3, total_s=0.5, attempts=1)
        with pytest.raises(SearchError, match=r"not complete within 0\.5 s"):
            await make(proxy, limits=limits).search("eiffel", 5)


async def test_an_untrusted_certificate_is_a_failure(tmp_path: Path) -> None:
    with engines(tmp_path, {MOJEEK: [mojeek_page(*RECORDS)]}) as proxy:
        search = DdgsSearch("mojeek", proxy=proxy.url, limits=QUICK, requests_per_second=None)
        with pytest.raises(SearchError, match="mojeek could not be reached"):
            await search.search("eiffel", 5)


async def test_a_proxys_password_never_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDGS_PROXY", "http://me:hidden-word@127.0.0.1:1")
    search = DdgsSearch("mojeek", limits=QUICK, requests_per_second=None)
    with pytest.raises(SearchError, match="mojeek could not be reached") as caught:
        await search.search("eiffel", 5)
    assert "hidden-word" not in str(caught.value) + search.identity() + repr(search)


async def test_the_proxy_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with engines(tmp_path, {MOJEEK: [mojeek_page(*RECORDS)]}) as proxy:
        monkeypatch.setenv("DDGS_PROXY", proxy.url)
        search = DdgsSearch("mojeek", ca_file=str(proxy.ca_file), limits=QUICK, requests_per_second=None)
        assert await search.search("eiffel", 5) == HITS


@pytest.mark.parametrize("page", ["", "{", "[]", "null", '{"results": 3}', "<html", "<ul class='results'><li><h2>"])
async def test_a_page_without_sense_never_crashes(tmp_path: Path, page: str) -> None:
    answers = {MOJEEK: [Answer(page)], WIKIPEDIA: [Answer(page)], "grokipedia.com": [Answer(page)]}
    with engines(tmp_path, answers) as proxy:
        try:
            hits = await make(proxy, backend="mojeek,wikipedia,grokipedia").search("eiffel", 5)
        except SearchError:
            return
        assert hits == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"backend": "altavista"}, "unknown engine 'altavista'; known are: auto, .*mojeek"),
        ({"backend": "mojeek,"}, "unknown engine ''"),
        ({"region": "english"}, "the region is 'english'"),
        ({"safesearch": "maybe"}, "safesearch is 'maybe'; choose from"),
        ({"timelimit": "century"}, "timelimit is 'century'"),
        ({"requests_per_second": 0}, "requests_per_second"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        DdgsSearch(**options)


async def test_it_survives_pickling_and_deepcopy(tmp_path: Path) -> None:
    with engines(tmp_path, {MOJEEK: [mojeek_page(*RECORDS)]}) as proxy:
        search = make(proxy)
        for twin in (pickle.loads(pickle.dumps(search)), copy.deepcopy(search)):
            assert await twin.search("eiffel", 5) == HITS
            assert twin.identity() == search.identity()


def test_the_identity_tells_what_changes_the_answer() -> None:
    searches = [
        DdgsSearch(),
        DdgsSearch(backend="mojeek"),
        DdgsSearch(region="de-de"),
        DdgsSearch(safesearch="off"),
        DdgsSearch(timelimit="d"),
    ]
    assert len({search.identity() for search in searches}) == len(searches)
