"""Several backends as one: fusion by rank, one hit a page, failures that show, and a reader for all of it."""

from __future__ import annotations

import asyncio
import copy
import itertools
import pickle
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.backends.bing import BingSearch
from retrieval.backends.retriever import RetrieverSearch
from retrieval.base import BackendFailure, Hit, Search
from retrieval.cache import Cache
from retrieval.cached import CachedSearch
from retrieval.canonical_url import canonical_url
from retrieval.corpus.index import build_index
from retrieval.corpus.local import LocalSearch
from retrieval.fused import FusedSearch, fuse
from retrieval.http.client import Limits
from retrieval.readers.web import WebReader
from signatures.errors import DataError, OptionError, ReadError, SearchError
from tests.servers.retriever_server import RetrieverServer, document
from tests.servers.web import SEARCH_PATH, Answer, WebServer

QUICK = Limits(connect_s=2, read_s=2, total_s=5, attempts=1, backoff_s=0.01)


class Listed:
    """A backend with a fixed list of hits, or an error."""

    def __init__(self, name: str, hits: Sequence[Hit | str] = (), error: Exception | None = None) -> None:
        self.name = name
        self.hits = [Hit(f"{name} {h}", f"https://{h}.example/", h) if isinstance(h, str) else h for h in hits]
        self.error = error
        self.asked: list[tuple[str, int]] = []

    async def search(self, query: str, k: int) -> list[Hit]:
        self.asked.append((query, k))
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return self.hits[:k]

    def identity(self) -> str:
        return f"{self.name}:1"


def order(*rankings: str) -> str:
    """Fuse rankings of one-letter pages."""
    return "".join(
        hit.url[8] for hit in fuse([[Hit("", f"https://{letter}.example/") for letter in r] for r in rankings])
    )


@pytest.mark.parametrize(
    ("rankings", "expected"),
    [
        (["abc"], "abc"),
        (["abc", "xyz"], "axbycz"),
        (["abc", "b"], "bac"),
        (["abc", "cba"], "acb"),
        (["ab", "ba", ""], "ab"),
        (["abc", "bca", "cab"], "abc"),
        (["aab", "b"], "ba"),
        ([], ""),
    ],
)
def test_ranks_are_fused(rankings: list[str], expected: str) -> None:
    assert order(*rankings) == expected


def test_equal_scores_are_equal_in_any_order_of_backends() -> None:
    # Ranks 1, 7, 2 and 2, 1, 7: added up in that order, floating-point sums would differ.
    assert order("xy", "yabcdex", "fxghijy").startswith("xy")


def test_a_small_constant_lets_first_ranks_win() -> None:
    hits = {letter: Hit(letter, f"https://{letter}.example/") for letter in "abcd"}
    rankings = [[hits[letter] for letter in ranking] for ranking in ("abcd", "cbd", "ddb")]
    assert [hit.title for hit in fuse(rankings, 0)] != [hit.title for hit in fuse(rankings, 60)]


def test_hits_of_one_page_become_one() -> None:
    one = Hit("", "http://www.example.org/a/", "short", site="One")
    two = Hit("Two", "https://example.org/a?utm_source=x", "a longer snippet", "2024", "Two", "The text.")
    assert fuse([[one], [two]]) == [Hit("Two", one.url, "a longer snippet", "2024", "One", "The text.")]


def test_passages_of_one_page_are_put_together() -> None:
    first, second, part = (Hit("A", "https://a.example/", text=text) for text in ("One.", "Two.", "Tw"))
    (hit,) = fuse([[first, second], [part]])
    assert hit.text == "One.\n\nTwo."


async def test_all_backends_are_asked_for_the_same() -> None:
    one, two = Listed("one", ["a", "b", "c"]), Listed("two", ["b", "d"])
    fused = FusedSearch([one, two])
    assert isinstance(fused, Search)
    assert [hit.title for hit in await fused.search("q", 3)] == ["one b", "one a", "two d"]
    assert one.asked == two.asked == [("q", 3)]
    assert (fused.name, fused.identity()) == ("one+two", "fused:60(one:1|two:1)")


async def test_a_backend_that_fails_is_left_out_and_named() -> None:
    broken = Listed("broken", error=SearchError("broken: the query 'q' failed: 503", provider="broken"))
    report = await FusedSearch([broken, Listed("fine", ["a"])]).search_with_report("q", 5)
    assert [hit.title for hit in report.hits] == ["fine a"]
    assert report.failures == (BackendFailure("broken", "broken: the query 'q' failed: 503"),)
    assert report.cached is False
    empty = await FusedSearch([broken, Listed("empty")]).search_with_report("q", 5)
    assert (empty.hits, len(empty.failures)) == ([], 1)


async def test_the_text_of_a_foreign_error_is_not_shown() -> None:
    foreign = Listed("foreign", error=ValueError("the-key"))
    report = await FusedSearch([foreign, Listed("fine", ["a"])]).search_with_report("q", 5)
    assert report.failures == (BackendFailure("foreign", "foreign: the search failed with ValueError."),)


async def test_all_failing_is_a_failure_with_every_reason() -> None:
    backends = [Listed(name, error=SearchError(f"{name}: down.", provider=name)) for name in ("one", "two")]
    with pytest.raises(
        SearchError, match=r"one\+two: the query 'q' failed in every backend. one: down. two: down."
    ) as e:
        await FusedSearch(backends).search("q", 5)
    assert e.value.provider == "one+two"


@pytest.mark.parametrize("error", [OptionError("wrong"), DataError("broken cache")])
async def test_what_is_no_failure_of_a_backend_is_raised(error: Exception) -> None:
    with pytest.raises(type(error)):
        await FusedSearch([Listed("one", error=error), Listed("two", ["a"])]).search("q", 5)


async def test_cached_only_if_all_were_and_a_failure_is_asked_again(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache.sqlite")
    one, two = Listed("one", ["a"]), Listed("two", ["b"], error=SearchError("two: down.", provider="two"))
    fused = FusedSearch([CachedSearch(one, cache), CachedSearch(two, cache)])
    assert [(await fused.search_with_report("q", 5)).cached for _ in range(2)] == [False, False]
    two.error = None
    whole = [await fused.search_with_report("q", 5) for _ in range(2)]
    assert [(report.cached, len(report.hits), report.failures) for report in whole] == [(False, 2, ()), (True, 2, ())]
    assert (len(one.asked), len(two.asked)) == (1, 3)


async def test_real_backends_together() -> None:
    hits = {"who": [{"title": "Web", "url": "https://en.m.wikipedia.org/wiki/Ada", "snippet": "Ada on the web"}]}
    page = {**document("7", "Ada", "Ada wrote programs."), "url": "https://en.wikipedia.org/wiki/Ada"}
    with WebServer(hits=hits) as web, RetrieverServer({"who": [page]}) as server:
        fused = FusedSearch(
            [BingSearch(web.search_url, "key", limits=QUICK), RetrieverSearch(server.url, limits=QUICK)]
        )
        (hit,) = await fused.search("who", 5)
        assert hit == Hit(
            "Web", "https://en.m.wikipedia.org/wiki/Ada", "Ada wrote programs.", text="Ada wrote programs."
        )
        web.script(SEARCH_PATH, Answer(status=429))
        report = await fused.search_with_report("who", 5)
        assert [hit.title for hit in report.hits] == ["Ada"]
        assert "rate limited" in report.failures[0].reason


@pytest.fixture
def corpora(tmp_path: Path) -> list[LocalSearch]:
    for name, text in (("first", "Ada wrote programs."), ("second", "Bob sang songs.")):
        (tmp_path / f"{name}.jsonl").write_text(f'{{"id": "{name}-1", "title": "T", "text": "{text}"}}\n')
        build_index([tmp_path / f"{name}.jsonl"], tmp_path / name, name)
    return [LocalSearch(tmp_path / name) for name in ("first", "second")]


async def test_each_document_goes_to_the_reader_of_its_backend(corpora: list[LocalSearch], tmp_path: Path) -> None:
    cached = CachedSearch(corpora[1], Cache(tmp_path / "cache.sqlite"))
    with WebServer(
        pages={"/a": "<html><body><p>A page of the web with enough words to count.</p></body></html>"}
    ) as web:
        reader = FusedSearch([corpora[0], Listed("web"), cached]).reader(WebReader(allow_private=True))
        assert (await reader.read("corpus://first/first-1")).text == "Ada wrote programs."
        assert (await reader.read("corpus://second/second-1")).text == "Bob sang songs."
        assert "A page of the web" in (await reader.read(web.url + "/a")).text
        with pytest.raises(ReadError) as caught:
            await reader.read("corpus://third/1")
        assert caught.value.reason == "not_found"


def test_without_a_reader_of_its_own_the_web_is_read() -> None:
    assert FusedSearch([Listed("one")]).reader().name == "web"


def test_impossible_options_are_refused() -> None:
    with pytest.raises(OptionError, match="at least one"):
        FusedSearch([])
    with pytest.raises(OptionError, match="at least 0, not -1"):
        FusedSearch([Listed("one")], rank_constant=-1)


async def test_it_survives_pickling_and_deepcopy(corpora: list[LocalSearch]) -> None:
    fused = FusedSearch(corpora)
    hits = await fused.search("programs songs", 5)
    assert len(hits) == 2
    for twin in (pickle.loads(pickle.dumps(fused)), copy.deepcopy(fused)):
        assert await twin.search("programs songs", 5) == hits


RANKINGS = st.lists(st.lists(st.sampled_from("abcdef"), max_size=6).map("".join), max_size=4)


@given(RANKINGS)
def test_every_page_comes_once_and_ahead_of_what_no_backend_prefers(rankings: list[str]) -> None:
    fused = order(*rankings)
    assert sorted(fused) == sorted(set("".join(rankings)))
    for better, worse in itertools.permutations(fused, 2):
        if all(better in r and (worse not in r or r.index(better) < r.index(worse)) for r in rankings):
            assert fused.index(better) < fused.index(worse)


@given(st.lists(st.lists(st.builds(Hit, st.text(), st.text(), st.text(), text=st.text()), max_size=4), max_size=3))
def test_any_hits_are_fused(rankings: list[list[Hit]]) -> None:
    fused = fuse(rankings)
    assert len(fused) == len({canonical_url(hit.url) for ranking in rankings for hit in ranking})
