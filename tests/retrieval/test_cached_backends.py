from __future__ import annotations

import asyncio
import copy
import pickle
import sqlite3
import threading
from pathlib import Path

import pytest

from retrieval.base import Hit, Page, Reader, Search
from retrieval.cache import Cache, CachePolicy
from retrieval.cached import CachedReader, CachedSearch
from retrieval.caching.replay import ReplayMiss, asking_for, take_missing
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


def make_older(cache: Cache, kind: str, seconds: float) -> None:
    with sqlite3.connect(cache.path) as connection:
        connection.execute(f"UPDATE {kind} SET created = created - ?", (seconds,))
    connection.close()


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


async def test_a_cache_that_cannot_be_used_costs_no_answer_and_complains_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    search = CachedSearch(SlowSearch(), Cache(tmp_path / "file" / "cache.sqlite"))
    for _ in range(3):
        assert len(await search.search("q", 1)) == 1
    assert caplog.text.count("cannot be used") == 1
    assert search.calls == 3


async def test_an_old_answer_is_asked_for_again_and_replaced(cache: Cache) -> None:
    inner = SlowSearch()
    await CachedSearch(inner, cache).search("q", 1)
    make_older(cache, "searches", 100.0)
    patient = CachedSearch(inner, Cache(cache.path, CachePolicy(max_age_s=200.0)))
    assert (await patient.search_with_origin("q", 1))[1] is True
    hurried = CachedSearch(inner, Cache(cache.path, CachePolicy(max_age_s=50.0)))
    assert (await hurried.search_with_origin("q", 1))[1] is False
    assert (await hurried.search_with_origin("q", 1))[1] is True
    assert len(inner.asked) == 2


async def test_nothing_ages_in_a_replay(cache: Cache) -> None:
    inner = OnePage()
    await CachedReader(inner, cache).read("u")
    make_older(cache, "pages", 1e6)
    replay = CachedReader(inner, Cache(cache.path, CachePolicy(max_age_s=1.0, replay=True)))
    assert (await replay.read("u")).text == "text"
    assert inner.asked == ["u"]


async def test_a_replay_calls_nobody_and_names_what_is_missing(cache: Cache) -> None:
    inner, replaying = SlowSearch(), Cache(cache.path, CachePolicy(replay=True))
    take_missing(cache.path)
    for _ in range(2):
        with pytest.raises(
            ReplayMiss, match=r"the search 'q' for 3 hits \(slow:1\) is not in the cache .*cache\.sqlite"
        ):
            await CachedSearch(inner, replaying).search("q", 3)
    with pytest.raises(ReplayMiss, match=r"the page 'https://a\.example/' "):
        await CachedReader(OnePage(), replaying).read("https://a.example/")
    assert inner.asked == []
    missing = take_missing(cache.path)
    assert missing.counts() == {"searches": 1, "pages": 1}
    assert missing.report().startswith("Replay: missing in the cache: 1 search, 1 page. the search 'q'")


async def test_what_failed_in_the_recording_fails_again_in_the_replay(cache: Cache) -> None:
    inner, replaying = SlowSearch(), Cache(cache.path, CachePolicy(replay=True))
    inner.failures = 1
    with pytest.raises(SearchError) as told:
        await CachedSearch(inner, cache).search("q", 1)
    with pytest.raises(SearchError) as repeated:
        await CachedSearch(inner, replaying).search("q", 1)
    assert (str(repeated.value), repeated.value.provider) == (str(told.value), "slow")
    with pytest.raises(ReadError):
        await CachedReader(OnePage(), cache).read("bad")
    with pytest.raises(ReadError) as unread:
        await CachedReader(OnePage(), replaying).read("bad")
    assert unread.value.reason == "empty"
    # A success after the failure is what the last run saw.
    assert await CachedSearch(inner, cache).search("q", 1) == await CachedSearch(inner, replaying).search("q", 1)


async def test_a_page_that_failed_for_one_question_and_not_for_the_next_does_so_again(cache: Cache) -> None:
    inner, replaying = SlowSearch(), Cache(cache.path, CachePolicy(replay=True))
    inner.failures = 1
    search, replay = CachedSearch(inner, cache), CachedSearch(inner, replaying)
    with asking_for("one"), pytest.raises(SearchError):
        await search.search("q", 1)
    with asking_for("two"):
        await search.search("q", 1)
    for _ in range(2):
        with asking_for("one"), pytest.raises(SearchError):
            await replay.search("q", 1)
        with asking_for("two"):
            assert await replay.search("q", 1)
    with asking_for("one"):
        assert await search.search("q", 1)
        assert await replay.search("q", 1)


async def test_everyone_who_waited_for_a_failure_meets_it_again(cache: Cache) -> None:
    inner = SlowSearch()
    inner.failures = 1
    search = CachedSearch(inner, cache)

    async def ask(name: str, of: CachedSearch) -> object:
        with asking_for(name):
            return await of.search("q", 1)

    await asyncio.gather(ask("one", search), ask("two", search), return_exceptions=True)
    assert await ask("three", search)
    replay = CachedSearch(inner, Cache(cache.path, CachePolicy(replay=True)))
    for name in ("one", "two"):
        with pytest.raises(SearchError):
            await ask(name, replay)
    assert await ask("three", replay)


async def test_two_processes_that_asked_at_once_go_on_with_one_answer(cache: Cache) -> None:
    class Slower(SlowSearch):
        async def search(self, query: str, k: int) -> list[Hit]:
            found = await super().search(query, k)
            # Another process stores its own answer while this one is waiting for the backend.
            theirs = {"backend": "slow:1", "query": query, "k": k}
            Cache(cache.path).put("searches", theirs, [{"title": "theirs", "url": "u", "unknown": 1}])
            return found

    assert await CachedSearch(Slower(), cache).search("q", 1) == [Hit("theirs", "u")]


async def test_records_of_other_versions_are_understood(cache: Cache) -> None:
    cache.put("searches", {"backend": "slow:1", "query": "q", "k": 1}, [{"title": "T", "url": "u", "later": [1]}])
    cache.put("pages", {"reader": "one", "url": "u"}, {"url": "u", "text": "t", "later": {}})
    assert await CachedSearch(SlowSearch(), cache).search("q", 1) == [Hit("T", "u")]
    assert await CachedReader(OnePage(), cache).read("u") == Page("u", "t")


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
