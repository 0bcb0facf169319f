"""What a cache holds, and removing some of it."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

import pytest

from retrieval.cache import Cache
from retrieval.caching.upkeep import export_store, holdings, prune
from signatures.errors import DataError, OptionError

DAY = 86_400.0


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    """Ten pages from each of two readers and ten searches, one a day, the last one now."""
    cache = Cache(tmp_path / "cache.sqlite")
    for i in range(10):
        cache.put("pages", {"reader": "web", "url": f"u{i}"}, {"text": str(i) * 20_000}, "web")
        cache.put("pages", {"reader": "jina", "url": f"u{i}"}, {"text": "x"}, "jina")
        cache.put("searches", {"query": f"q{i}"}, [], "bing")
    with sqlite3.connect(cache.path) as connection:
        for kind in ("pages", "searches"):
            for i in range(10):
                connection.execute(
                    f"UPDATE {kind} SET created = ? WHERE parts LIKE ? OR parts LIKE ?",
                    (time.time() - (9 - i) * DAY, f'%"u{i}"%', f'%"q{i}"%'),
                )
    connection.close()
    return cache


def test_holdings_tell_entries_bytes_and_age_by_kind_and_provider(cache: Cache) -> None:
    found = {(h.kind, h.provider): h for h in holdings(cache.path)}
    assert set(found) == {("pages", "web"), ("pages", "jina"), ("searches", "bing")}
    web = found["pages", "web"]
    assert web.entries == 10
    assert web.bytes > found["pages", "jina"].bytes > 0
    assert web.newest - web.oldest == pytest.approx(9 * DAY, abs=60)


def test_old_entries_of_one_kind_and_provider_are_removed(cache: Cache) -> None:
    done = prune(cache.path, older_than_s=4.5 * DAY, kinds=["pages"], providers=["web"])
    assert done.removed == {"pages": 5}
    assert done.shrunk
    assert {(h.kind, h.provider, h.entries) for h in holdings(cache.path)} == {
        ("pages", "web", 5),
        ("pages", "jina", 10),
        ("searches", "bing", 10),
    }
    assert cache.get("pages", {"reader": "web", "url": "u4"}) is None
    assert cache.get("pages", {"reader": "web", "url": "u5"}) is not None


def test_whole_kinds_and_providers_can_go(cache: Cache) -> None:
    assert prune(cache.path, kinds=["searches"]).removed == {"searches": 10}
    assert prune(cache.path, providers=["jina"]).removed == {"pages": 10}
    assert prune(cache.path, providers=["nobody"]).removed == {}


def test_the_oldest_go_until_the_rest_fits(cache: Cache) -> None:
    for i in range(10):
        cache.put("pages", {"reader": "big", "url": f"b{i}"}, {"text": str(time.perf_counter_ns()) * 5_000}, "big")
    before = sum(h.bytes for h in holdings(cache.path))
    done = prune(cache.path, max_bytes=before // 2)
    after = holdings(cache.path)
    assert sum(h.bytes for h in after) <= before // 2
    assert done.bytes_after < done.bytes_before
    # What was stored last is there still.
    assert cache.get("pages", {"reader": "big", "url": "b9"}) is not None
    assert cache.get("pages", {"reader": "web", "url": "u0"}) is None
    assert prune(cache.path, max_bytes=before).removed == {}


def test_a_size_alone_removes_nothing_that_fits(cache: Cache) -> None:
    assert prune(cache.path, max_bytes=10**9, kinds=["pages"]).removed == {}


def test_pruning_without_a_rule_or_of_an_unknown_kind_is_refused(cache: Cache) -> None:
    with pytest.raises(OptionError, match="Nothing says what to remove"):
        prune(cache.path)
    with pytest.raises(OptionError, match=r"keeps no 'page'; it keeps: searches, pages"):
        prune(cache.path, kinds=["page"])  # type: ignore[list-item]


def test_a_cache_in_use_is_pruned_and_shrinks_later(cache: Cache) -> None:
    with sqlite3.connect(cache.path) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM pages LIMIT 1").fetchall()
        done = prune(cache.path, kinds=["pages"])
        assert done.removed == {"pages": 20}
        assert not done.shrunk
        reader.rollback()
    reader.close()
    assert cache.get("pages", {"reader": "web", "url": "u1"}) is None


def test_no_cache_is_said_so_and_none_is_made(tmp_path: Path) -> None:
    for look in (holdings, lambda p: prune(p, kinds=["pages"]), lambda p: export_store(p, tmp_path / "out")):
        with pytest.raises(DataError, match="There is no cache at"):
            look(tmp_path / "none.sqlite")
    assert not list(tmp_path.iterdir())


def test_an_export_is_one_whole_file_while_others_write(cache: Cache, tmp_path: Path) -> None:
    stop = threading.Event()

    def write() -> None:
        own, i = Cache(cache.path), 0
        while not stop.is_set():
            # The second entry is never there without the first.
            own.put("replies", {"first": i}, i)
            own.put("turns", {"second": i}, i)
            i += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for number in range(5):
            target = tmp_path / "out" / f"{number}.cache"
            target.parent.mkdir(exist_ok=True)
            held = {(h.kind, h.provider): h.entries for h in export_store(cache.path, target)}
            assert held["pages", "web"] == 10
            assert held.get(("replies", ""), 0) - held.get(("turns", ""), 0) in (0, 1)
    finally:
        stop.set()
        thread.join()
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [f"{n}.cache" for n in range(5)]


def test_an_export_writes_over_nothing_unless_told(cache: Cache, tmp_path: Path) -> None:
    target = tmp_path / "mine.txt"
    target.write_text("mine")
    with pytest.raises(DataError, match="is there already; choose another name, or give --force"):
        export_store(cache.path, target)
    assert target.read_text() == "mine"
    assert export_store(cache.path, target, replace=True)
    with pytest.raises(DataError, match="cannot be written"):
        export_store(cache.path, tmp_path / "no" / "such" / "folder")
