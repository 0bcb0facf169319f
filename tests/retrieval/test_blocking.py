"""Hits and pages of benchmark mirrors are kept out, whatever stands behind the guard."""

from __future__ import annotations

import copy
import pickle

import pytest

from retrieval.backends.bing import BingSearch
from retrieval.base import BackendFailure, Hit, Page, Reader, Search, SearchReport, report_search
from retrieval.blocking import SPARE_HITS, BlockBenchmarkHosts, BlockBenchmarkPages
from retrieval.cache import Cache
from retrieval.cached import CachedReader, CachedSearch
from retrieval.corpus.index import build_index
from retrieval.corpus.local import LocalSearch
from retrieval.readers.web import WebReader
from signatures.errors import ReadError, SearchError
from tests.servers.web import SEARCH_PATH, Answer, WebServer

MIRROR = "https://huggingface.co/datasets/a/gpqa"


class Ranked:
    """A backend with fixed hits that notes what it was asked for; it can fail from some call on."""

    name = "ranked"

    def __init__(self, urls: list[str], fails_from: int = 99) -> None:
        self.urls = urls
        self.fails_from = fails_from
        self.asked: list[int] = []

    async def search_with_report(self, query: str, k: int) -> SearchReport:
        self.asked.append(k)
        if len(self.asked) >= self.fails_from:
            raise SearchError("ranked: gone", provider="ranked")
        return SearchReport([Hit(u, u) for u in self.urls[:k]], True, (BackendFailure("other", "slow"),))

    async def search(self, query: str, k: int) -> list[Hit]:
        return (await self.search_with_report(query, k)).hits

    def identity(self) -> str:
        return "ranked:1"


def urls(count: int, *mirrors: int) -> list[str]:
    return [f"{MIRROR}/{i}" if i in mirrors else f"https://site{i}.example.org/" for i in range(count)]


async def test_removed_hits_are_made_up_for_from_further_down() -> None:
    inner = Ranked(urls(30, 0, 3, 11))
    report = await BlockBenchmarkHosts(inner).search_with_report("q", 10)
    assert [h.url for h in report.hits] == [urls(30)[i] for i in (1, 2, 4, 5, 6, 7, 8, 9, 10, 12)]
    assert report.removed == (f"{MIRROR}/0", f"{MIRROR}/3", f"{MIRROR}/11")
    assert inner.asked == [10, 10 + 2 + SPARE_HITS]
    assert (report.cached, report.failures) == (True, (BackendFailure("other", "slow"),))


async def test_nothing_is_asked_twice_when_nothing_was_removed_or_nothing_more_is_there() -> None:
    plain = Ranked(urls(30))
    assert len(await BlockBenchmarkHosts(plain).search("q", 10)) == 10
    assert plain.asked == [10]
    short = Ranked(urls(4, 1))
    report = await BlockBenchmarkHosts(short).search_with_report("q", 10)
    assert ([h.url for h in report.hits], short.asked) == ([urls(4)[i] for i in (0, 2, 3)], [10])


async def test_a_second_call_that_fails_leaves_what_the_first_gave() -> None:
    report = await BlockBenchmarkHosts(Ranked(urls(30, 2), fails_from=2)).search_with_report("q", 5)
    assert (len(report.hits), len(report.removed)) == (4, 1)
    with pytest.raises(SearchError, match="ranked: gone"):
        await BlockBenchmarkHosts(Ranked(urls(30), fails_from=1)).search("q", 5)


async def test_a_cache_behind_it_spares_both_calls_the_second_time(tmp_path, monkeypatch) -> None:
    hits = [{"title": str(i), "url": f"{MIRROR}/{i}" if i == 1 else f"/{i}", "snippet": "…"} for i in range(20)]
    with WebServer(hits={"q": hits}) as server:
        search = BlockBenchmarkHosts(
            CachedSearch(BingSearch(endpoint=server.search_url, key="k"), Cache(tmp_path / "c"))
        )
        first, second = [await report_search(search, "q", 4) for _ in range(2)]
        assert [h.title for h in first.hits] == [h.title for h in second.hits] == ["0", "2", "3", "4"]
        assert (first.cached, second.cached, server.count(SEARCH_PATH)) == (False, True, 2)


async def test_a_blocked_page_is_refused_before_it_is_asked_for_and_after_a_redirect(tmp_path) -> None:
    with WebServer(pages={"/page": "<html><body><p>" + "A page about trees. " * 20 + "</p></body></html>"}) as server:
        copy_url = server.url + "/datasets/x/hotpotqa"
        server.script("/moved", Answer(redirect=copy_url))
        server.script("/datasets/x/hotpotqa", "<html><body><p>" + "Question, answer. " * 20 + "</p></body></html>")
        reader = BlockBenchmarkPages(CachedReader(WebReader(allow_private=True), Cache(tmp_path / "c")))
        page, cached = await reader.read_with_origin(server.url + "/page")
        assert ("trees" in page.text, cached) == (True, False)
        assert (await reader.read_with_origin(server.url + "/page"))[1] is True
        for url in (copy_url, server.url + "/moved"):
            with pytest.raises(ReadError, match=r"copy of a data set hub, and benchmark hosts are\s+blocked") as caught:
                await reader.read(url)
            assert (caught.value.reason, caught.value.provider) == ("blocked", "web")
        assert server.count("/datasets/x/hotpotqa") == 1


async def test_the_reader_that_comes_with_a_search_refuses_too(tmp_path) -> None:
    corpus = tmp_path / "c.jsonl"
    corpus.write_text('{"id": "a", "title": "Oak", "text": "An oak is a tree."}\n')
    build_index([corpus], tmp_path / "index", "trees")
    search = BlockBenchmarkHosts(LocalSearch(tmp_path / "index"))
    reader = search.reader()
    (hit,) = await search.search("oak", 3)
    assert (await reader.read(hit.url)).text == "An oak is a tree."
    with pytest.raises(ReadError, match="data set hub"):
        await reader.read(MIRROR)


def test_what_is_blocked_is_part_of_the_identity() -> None:
    search, reader = BlockBenchmarkHosts(Ranked([])), BlockBenchmarkPages(WebReader())
    assert isinstance(search, Search)
    assert isinstance(reader, Reader)
    assert (search.name, reader.name) == ("ranked", "web")
    for outer, inner in ((search, search.inner), (reader, reader.inner)):
        assert outer.identity() != inner.identity()
        assert inner.identity() in outer.identity()


async def test_copies_work_as_the_original() -> None:
    for made in (copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))):
        search, reader = made(BlockBenchmarkHosts(Ranked(urls(3, 1)))), made(BlockBenchmarkPages(Fixed()))
        assert len(await search.search("q", 3)) == 2
        assert (await reader.read("https://a.org/")).text == "text"
        with pytest.raises(ReadError):
            await reader.read(MIRROR)


class Fixed:
    name = "fixed"

    async def read(self, url: str) -> Page:
        return Page(url, "text")

    def identity(self) -> str:
        return "fixed"
