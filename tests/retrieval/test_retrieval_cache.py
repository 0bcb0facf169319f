from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retrieval.cache import KINDS, Cache, cache_key
from signatures.errors import DataError

json_values = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "sub" / "cache.sqlite")


def test_what_was_put_is_got_by_any_order_of_the_key(cache: Cache) -> None:
    cache.put("searches", {"query": "x", "k": 3}, [{"title": "a"}])
    assert cache.get("searches", {"k": 3, "query": "x"}) == [{"title": "a"}]
    assert cache.get("searches", {"k": 4, "query": "x"}) is None
    assert cache.get("pages", {"k": 3, "query": "x"}) is None


def test_a_later_value_replaces_an_earlier_one(cache: Cache) -> None:
    cache.put("replies", {"p": 1}, "old")
    cache.put("replies", {"p": 1}, "new")
    assert cache.get("replies", {"p": 1}) == "new"
    assert cache.stats()["replies"] == 1


def test_empty_values_are_values(cache: Cache) -> None:
    for number, value in enumerate([[], {}, "", 0, False]):
        cache.put("pages", {"n": number}, value)
        assert cache.get("pages", {"n": number}) == value


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(key=st.dictionaries(st.text(), json_values, max_size=4), value=json_values)
def test_any_json_comes_back_as_it_went_in(cache: Cache, key: dict[str, Any], value: Any) -> None:
    cache.put("replies", key, value)
    assert cache.get("replies", key) == value


def test_stats_count_each_kind_and_the_bytes(cache: Cache) -> None:
    assert {kind: cache.stats()[kind] for kind in KINDS} == dict.fromkeys(KINDS, 0)
    cache.put("searches", {"a": 1}, 1)
    stats = cache.stats()
    assert (stats["searches"], stats["pages"], stats["replies"]) == (1, 0, 0)
    assert stats["bytes"] > 0


def test_entries_outlive_the_object(cache: Cache) -> None:
    cache.put("pages", {"u": 1}, "text")
    cache.close()
    cache.close()
    assert cache.get("pages", {"u": 1}) == "text"
    assert Cache(cache.path).get("pages", {"u": 1}) == "text"


def test_copies_open_the_same_file(cache: Cache) -> None:
    cache.put("pages", {"u": 1}, "text")
    for other in (copy.deepcopy(cache), pickle.loads(pickle.dumps(cache))):
        assert other.get("pages", {"u": 1}) == "text"


def test_an_unknown_kind_is_refused(cache: Cache) -> None:
    with pytest.raises(DataError, match="keeps: searches, pages, replies"):
        cache.get("others", {})  # type: ignore[arg-type]


def test_a_file_that_is_no_cache_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    path.write_text("this is no database, and it is long enough to be looked at" * 20)
    with pytest.raises(DataError, match=r"cache\.sqlite cannot be used"):
        Cache(path).get("pages", {})


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="Is its folder writable"):
        Cache(tmp_path / "file" / "cache.sqlite").put("pages", {}, 1)


def test_a_damaged_entry_counts_as_missing(cache: Cache) -> None:
    cache.put("pages", {"u": 1}, "text")
    with sqlite3.connect(cache.path) as connection:
        connection.execute("UPDATE pages SET value = ?", (b"garbage",))
    connection.close()
    assert cache.get("pages", {"u": 1}) is None


def test_keys_are_hashes_of_canonical_json() -> None:
    assert cache_key({"a": 1, "b": "é"}) == cache_key({"b": "é", "a": 1})
    assert cache_key({"a": 1}) != cache_key({"a": "1"})
    assert len(cache_key({})) == 64


def test_threads_share_a_cache(cache: Cache) -> None:
    def work(number: int) -> None:
        for i in range(50):
            cache.put("replies", {"n": number, "i": i}, i)
            assert cache.get("replies", {"n": number, "i": i}) == i

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.stats()["replies"] == 200


def _put_many(path: str, number: int) -> None:
    cache = Cache(path)
    for i in range(50):
        cache.put("searches", {"n": number, "i": i}, [i] * 100)


def test_processes_write_to_one_new_file_at_once(tmp_path: Path) -> None:
    path = str(tmp_path / "cache.sqlite")
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        pool.starmap(_put_many, [(path, number) for number in range(4)], chunksize=1)
    assert Cache(path).stats()["searches"] == 200


def test_a_forked_child_opens_its_own_connection(cache: Cache) -> None:
    cache.put("pages", {"u": 1}, "parent")
    child = os.fork()
    if child == 0:
        try:
            cache.put("pages", {"u": 2}, cache.get("pages", {"u": 1}))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert cache.get("pages", {"u": 2}) == "parent"
