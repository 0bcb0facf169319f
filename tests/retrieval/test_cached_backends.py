from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from pathlib import Path

import pytest

from retrieval.base import Hit, Page, Reader, Search
from retrieval.cache import Cache
from retrieval.cached import CachedReader, CachedSearch
from signatures.errors import ReadError, SearchError


class SlowSearch:
    name = "slow"

    def __init__(self, version: str = "1", delay: float = 0.05) -> None:
        self.version = version
        self.delay = delay
        self.asked: list[tuple[str, int]] = []
        self.failures = 0

    async def search(self, query: str, k: int) -> list[Hit]:
        self.asked.append((query, k))
        await asyncio.sleep(self.delay)
        if self.failures:
            self.failures -= 1
            raise SearchError("no luck", provider=self.name)
        return [Hit("T", f"https://example.org/{query}", "s", "2020", "site")][:k]

    def identity(self) -> str:
        return f"slow:{self.version}"


class OnePage:
    name = "one"

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def read(self, url: str) -> Page:
        self.asked.append(url)
        if url == "bad":
            raise ReadError("bad", reason="empty")
        return Page(url, "text", "title", 200, {"final_url": url})

    def identity(self) -> str:
        return "one"


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache.sqlite")


async def test_a_search_is_made_once_and_its_origin_told(cache: Cache) -> None:
    inner = SlowSearch()
    search = CachedSearch(inner, cache)
    assert isinstance(search, Search)
    first, first_cached = await search.search_with_origin("q", 3)
    second, second_cached = await search.search_with_origin("q", 3)
    assert first == second == await search.search("q", 3)
    assert (first_cached, second_cached) == (False, True)
    assert (search.calls, search.hits, inner.asked) == (1, 2, [("q", 3)])
    assert (search.name, search.identity()) == ("slow", "slow:1")


async def test_everything_that_changes_the_answer_is_in_the_key(cache: Cache) -> None:
    one, two = SlowSearch("1"), SlowSearch("2")
    for inner, query, k in ((one, "q", 1), (one, "q", 0), (one, "r", 1), (two, "q", 1)):
        assert (await CachedSearch(inner, cache).search_with_origin(query, k))[1] is False
    assert len(one.asked) == 3
    assert len(two.asked) == 1


async def test_an_honest_empty_result_is_kept(cache: Cache) -> None:
    search = CachedSearch(SlowSearch(), cache)
    assert await search.search_with_origin("q", 0) == ([], False)
    assert await search.search_with_origin("q", 0) == ([], True)


async def test_failures_are_not_kept(cache: Cache) -> None:
    inner = SlowSearch()
    inner.failures = 1
    search = CachedSearch(inner, cache)
    with pytest.raises(SearchError):
        await search.search("q", 1)
    assert (await search.search_with_origin("q", 1))[1] is False


async def test_the_same_question_at_the_same_time_is_asked_once(cache: Cache) -> None:
    inner = SlowSearch()
    search = CachedSearch(inner, cache)
    twin = copy.deepcopy(CachedSearch(inner, cache))
    answers = await asyncio.gather(search.search("q", 1), search.search("q", 1), twin.search("q", 1))
    assert answers[0] == answers[1] == answers[2]
    assert len(inner.asked) == 1
    assert twin.hits == 1


def test_it_is_asked_once_from_several_event_loops(cache: Cache) -> None:
    inner = SlowSearch(delay=0.3)
    search = CachedSearch(inner, cache)
    threads = [threading.Thread(target=lambda: asyncio.run(search.search("q", 1))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(inner.asked), search.calls, search.hits) == (1, 1, 2)


async def test_those_who_wait_share_a_failure(cache: Cache) -> None:
    inner = SlowSearch()
    inner.failures = 1
    search = CachedSearch(inner, cache)
    answers = await asyncio.gather(*(search.search("q", 1) for _ in range(3)), return_exceptions=True)
    assert all(isinstance(answer, SearchError) for answer in answers)
    assert len(inner.asked) == 1


async def test_when_the_caller_is_cancelled_another_takes_over(cache: Cache) -> None:
    inner = SlowSearch()
    search = CachedSearch(inner, cache)
    leader = asyncio.create_task(search.search("q", 1))
    await asyncio.sleep(0.01)
    follower = asyncio.create_task(search.search_with_origin("q", 1))
    await asyncio.sleep(0.01)
    leader.cancel()
    assert (await follower)[1] is False
    assert len(inner.asked) == 2
    assert leader.cancelled()


async def test_a_waiter_that_is_cancelled_disturbs_nobody(cache: Cache) -> None:
    search = CachedSearch(SlowSearch(), cache)
    leader = asyncio.create_task(search.search("q", 1))
    await asyncio.sleep(0.01)
    waiters = [asyncio.create_task(search.search("q", 1)) for _ in range(2)]
    await asyncio.sleep(0.01)
    waiters[0].cancel()
    assert await leader == await waiters[1]


async def test_an_answer_that_cannot_be_stored_is_still_given(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class FullDisk(Cache):
        def _execute(self, statement: str, values: tuple[object, ...], one: bool = False) -> object:
            if statement.startswith("INSERT"):
                self.path = tmp_path / "missing" / "no"
                (tmp_path / "missing").write_text("")
                self.close()
            return super()._execute(statement, values, one)

    search = CachedSearch(SlowSearch(), FullDisk(tmp_path / "cache.sqlite"))
    assert len(await search.search("q", 1)) == 1
    assert "cannot be used" in caplog.text


async def test_a_page_is_read_once(cache: Cache) -> None:
    inner = OnePage()
    reader = CachedReader(inner, cache)
    assert isinstance(reader, Reader)
    first = await reader.read("u")
    assert await reader.read_with_origin("u") == (first, True)
    assert (reader.calls, reader.hits, reader.name, reader.identity()) == (1, 1, "one", "one")
    for _ in range(2):
        with pytest.raises(ReadError):
            await reader.read("bad")
    assert inner.asked == ["u", "bad", "bad"]


async def test_cached_backends_survive_pickling(cache: Cache) -> None:
    search, reader = CachedSearch(SlowSearch(), cache), CachedReader(OnePage(), cache)
    hits, page = await search.search("q", 1), await reader.read("u")
    assert await pickle.loads(pickle.dumps(search)).search_with_origin("q", 1) == (hits, True)
    assert await pickle.loads(pickle.dumps(reader)).read_with_origin("u") == (page, True)
