from __future__ import annotations

import asyncio
import copy
import json
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import threading
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retrieval.cache import KINDS, Cache, CachePolicy, cache_key
from retrieval.caching import store
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
    cache.policy = CachePolicy(3.0, replay=True)
    for other in (copy.deepcopy(cache), pickle.loads(pickle.dumps(cache))):
        assert other.get("pages", {"u": 1}) == "text"
        assert other.policy == CachePolicy(3.0, replay=True)


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


_MANY = """
import sys
from retrieval.cache import Cache

cache, number = Cache(sys.argv[1]), int(sys.argv[2])
for i in range(100):
    cache.put("searches", {"n": number, "i": i}, [i] * 100)
    # All of them want this one as well, and all must end with the same.
    kept = cache.keep("pages", {"i": i}, {"from": number})
    assert cache.get("pages", {"i": i}) == kept
"""


def test_eight_processes_write_to_one_new_file_at_once(tmp_path: Path) -> None:
    path = str(tmp_path / "cache.sqlite")
    root = Path(__file__).parents[2]
    processes = [subprocess.Popen([sys.executable, "-c", _MANY, path, str(number)], cwd=root) for number in range(8)]
    assert [process.wait(120) for process in processes] == [0] * 8
    cache = Cache(path)
    assert (cache.stats()["searches"], cache.stats()["pages"]) == (800, 100)
    assert all(cache.get("searches", {"n": n, "i": 99}) == [99] * 100 for n in range(8))
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


_WRITER = """
import asyncio, sys
from retrieval.cache import Cache

async def main():
    cache = Cache(sys.argv[1])
    for i in range(100_000):
        await cache.off_loop(cache.keep, "replies", {"i": i}, {"text": "x" * 5_000, "i": i})
        print(i, flush=True)

asyncio.run(main())
"""


def test_a_process_killed_while_it_writes_loses_nothing_it_was_told_is_there(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    assert writer.stdout is not None
    seen = [writer.stdout.readline() for _ in range(200)]
    writer.send_signal(signal.SIGKILL)
    seen += writer.stdout.readlines()
    writer.wait(30)
    writer.stdout.close()
    told = [int(line) for line in seen if line.endswith("\n")]
    cache = Cache(path)
    assert all(cache.get("replies", {"i": i}) == {"text": "x" * 5_000, "i": i} for i in told)
    # One more may have been in flight.
    assert len(told) <= cache.stats()["replies"] <= len(told) + 1
    cache.put("replies", {"i": -1}, "still writable")


def test_a_reader_does_not_wait_for_a_writer(cache: Cache) -> None:
    cache.put("pages", {"u": 1}, "text")
    with sqlite3.connect(cache.path) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("DELETE FROM pages")
        assert cache.get("pages", {"u": 1}) == "text"
        other.rollback()
    other.close()


async def test_the_event_loop_goes_on_while_the_file_is_locked(cache: Cache) -> None:
    cache.put("pages", {"u": 1}, "text")
    other = sqlite3.connect(cache.path, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    writing = asyncio.create_task(cache.off_loop(cache.put, "pages", {"u": 2}, "later"))
    for _ in range(20):
        await asyncio.sleep(0.005)
    assert not writing.done()
    assert cache.get("pages", {"u": 1}) == "text"
    other.rollback()
    other.close()
    await writing
    assert cache.get("pages", {"u": 2}) == "later"


async def test_a_caller_that_is_cancelled_does_not_lose_the_write(cache: Cache) -> None:
    tasks = [asyncio.create_task(cache.off_loop(cache.put, "pages", {"u": i}, "text")) for i in range(20)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await cache.off_loop(cache.put, "pages", {"u": "last"}, "text")
    assert cache.stats()["pages"] == 21


def make_old_file(path: Path) -> None:
    """Write a cache as version 0.1 did."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        for kind in ("searches", "pages", "replies"):
            connection.execute(f"CREATE TABLE {kind} (key TEXT PRIMARY KEY, value BLOB, created REAL) WITHOUT ROWID")
            packed = zlib.compress(json.dumps({"kind": kind}).encode())
            connection.execute(f"INSERT INTO {kind} VALUES (?, ?, 1.0)", (cache_key({"a": kind}), packed))
    connection.close()


def test_a_file_of_version_0_1_keeps_all_it_has_and_takes_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    make_old_file(path)
    cache = Cache(path)
    for kind in ("searches", "pages", "replies"):
        assert cache.get(kind, {"a": kind}) == {"kind": kind}
        assert cache.keep(kind, {"a": kind}, "newer") == {"kind": kind}
        cache.put(kind, {"b": 1}, "new", "someone")
    cache.put("failures", {"c": 1}, {"message": "x"})
    assert Cache(path).stats()["pages"] == 2


def test_a_newer_value_is_kept_out_unless_the_old_one_is_too_old(cache: Cache) -> None:
    assert cache.keep("pages", {"u": 1}, "first") == "first"
    assert cache.keep("pages", {"u": 1}, "second") == "first"
    assert cache.keep("pages", {"u": 1}, "second", max_age_s=3600) == "first"
    assert cache.keep("pages", {"u": 1}, "second", max_age_s=-1) == "second"
    assert cache.get("pages", {"u": 1}) == "second"


def test_a_value_that_unpacks_without_end_is_damaged(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put("pages", {"u": 1}, "x" * 10_000)
    monkeypatch.setattr(store, "MOST_BYTES", 1_000)
    assert cache.get("pages", {"u": 1}) is None


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


@pytest.mark.parametrize("gone", ["removed", "moved"])
def test_what_is_stored_after_the_file_was_moved_away_is_in_the_new_one(cache: Cache, gone: str) -> None:
    cache.put("replies", {"p": 1}, "before")
    assert cache.get("replies", {"p": 1}) == "before"
    files = [cache.path, *(cache.path.with_name(cache.path.name + end) for end in ("-wal", "-shm"))]
    for file in files:
        if gone == "removed":
            file.unlink()
        else:
            file.rename(file.with_name("old-" + file.name))
    cache.put("replies", {"p": 2}, "after")
    assert (cache.get("replies", {"p": 1}), cache.get("replies", {"p": 2})) == (None, "after")
    cache.put("replies", {"p": 3}, "later")
    cache.close()
    assert {n: Cache(cache.path).get("replies", {"p": n}) for n in (1, 2, 3)} == {1: None, 2: "after", 3: "later"}
    if gone == "moved":
        assert Cache(cache.path.with_name("old-" + cache.path.name)).get("replies", {"p": 1}) == "before"
