"""Bringing one cache into another: the newer wins, and a bad file changes nothing."""

from __future__ import annotations

import hashlib
import json
import random
import sqlite3
import time
import zlib
from pathlib import Path
from typing import Any

import pytest

from retrieval.cache import Cache, cache_key
from retrieval.caching import store
from retrieval.caching.merging import import_store
from retrieval.caching.upkeep import export_store
from signatures.errors import DataError


@pytest.fixture
def ours(tmp_path: Path) -> Cache:
    cache = Cache(tmp_path / "ours.sqlite")
    cache.put("pages", {"url": "both"}, "ours", "web")
    cache.put("pages", {"url": "mine"}, "ours", "web")
    return cache


def exported(folder: Path, entries: dict[str, Any], name: str = "theirs") -> Path:
    cache = Cache(folder / f"{name}.sqlite")
    for url, value in entries.items():
        cache.put("pages", {"url": url}, value, "web")
    cache.put("failures", {"failed": "pages", "for": "", "url": "gone"}, {"message": "gone"}, "web")
    export_store(cache.path, folder / f"{name}.cache", replace=True)
    cache.close()
    return folder / f"{name}.cache"


def age(path: Path, seconds: float) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE pages SET created = created - ?", (seconds,))
    connection.close()


def content(path: Path) -> str:
    with sqlite3.connect(path) as connection:
        text = "\n".join(connection.iterdump())
    connection.close()
    return hashlib.sha256(text.encode()).hexdigest()


def test_the_newer_of_two_wins_and_all_is_counted(ours: Cache, tmp_path: Path) -> None:
    source = exported(tmp_path, {"both": "theirs", "new": "theirs"})
    done = import_store(ours.path, source)
    assert (done.added, done.replaced, done.kept, done.damaged) == (
        {"pages": 1, "failures": 1},
        {"pages": 1},
        {},
        0,
    )
    assert ours.get("pages", {"url": "both"}) == "theirs"
    assert ours.get("pages", {"url": "mine"}) == "ours"
    again = import_store(ours.path, source)
    assert (again.added, again.replaced, again.kept) == ({}, {}, {"pages": 2, "failures": 1})
    age(source, 3_600)
    ours.put("pages", {"url": "both"}, "ours again")
    import_store(ours.path, source)
    assert ours.get("pages", {"url": "both"}) == "ours again"


def test_it_goes_into_a_new_file(tmp_path: Path) -> None:
    source = exported(tmp_path, {"a": "text"})
    import_store(tmp_path / "home" / "cache.sqlite", source)
    assert Cache(tmp_path / "home" / "cache.sqlite").get("pages", {"url": "a"}) == "text"


def test_a_file_of_version_0_1_is_taken(ours: Cache, tmp_path: Path) -> None:
    old = tmp_path / "old.sqlite"
    with sqlite3.connect(old) as connection:
        connection.execute("CREATE TABLE pages (key TEXT PRIMARY KEY, value BLOB, created REAL) WITHOUT ROWID")
        packed = zlib.compress(b'"old"')
        connection.execute("INSERT INTO pages VALUES (?, ?, 1.0)", (cache_key({"url": "old"}), packed))
    connection.close()
    before = content(old)
    assert import_store(ours.path, old).added == {"pages": 1}
    assert ours.get("pages", {"url": "old"}) == "old"
    assert content(old) == before


def test_files_that_are_no_cache_are_refused_and_change_nothing(ours: Cache, tmp_path: Path) -> None:
    before = content(ours.path)
    text = tmp_path / "notes.txt"
    text.write_text("not a database at all, and long enough to be looked at " * 50)
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE runs (id TEXT)")
    connection.close()
    for source, complaint in (
        (text, "is no cache that can be read"),
        (empty, "is an SQLite file but no cache"),
        (other, "is an SQLite file but no cache"),
        (tmp_path / "missing", "There is no file"),
        (tmp_path, "There is no file"),
        (ours.path, "is the cache itself"),
    ):
        with pytest.raises(DataError, match=complaint):
            import_store(ours.path, source)
        assert content(ours.path) == before


@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_file_is_refused_whole_or_taken_without_what_is_damaged(
    ours: Cache, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    # What hardly compresses fills pages of the file, so that damage hits something.
    values = {f"u{i}": rng.randbytes(3_000).hex() for i in range(60)}
    source = exported(tmp_path, values)
    data = bytearray(source.read_bytes())
    for _ in range(200):
        data[rng.randrange(100, len(data))] ^= rng.randrange(1, 256)
    source.write_bytes(data[: len(data) // 2] if seed % 4 == 3 else data)
    before = content(ours.path)
    refused = ""
    try:
        done = import_store(ours.path, source)
    except DataError as error:
        refused = str(error)
    if refused:
        assert "hanged" in refused
        assert content(ours.path) == before
        return
    assert done.damaged > 0
    found = {u: ours.get("pages", {"url": u}) for u in values}
    assert all(text in (None, values[u]) for u, text in found.items())


def put_raw(path: Path, key: Any, value: Any, created: Any, parts: Any = "{}") -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO pages VALUES (?, ?, ?, ?, 'web')", (key, value, created, parts))
    connection.close()


def test_hostile_rows_are_left_out(ours: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_BYTES", 1_000_000)
    source = exported(tmp_path, {"good": "text"})
    good = zlib.compress(b'"x"')
    key = iter(f"{i:064x}" for i in range(100))
    now = time.time()
    bomb = zlib.compress(b"[" + b"0" * 2_000_000)
    for row in (
        ("short", good, now),
        ("g" * 64, good, now),
        (next(key), b"\x80\x04pickle", now),
        (next(key), zlib.compress(b"not json"), now),
        (next(key), zlib.compress(b"null"), now),
        (next(key), zlib.compress(b"[" * 100_000), now),
        (next(key), bomb, now),
        (next(key), "text", now),
        (next(key), None, now),
        (next(key), good, "yesterday"),
        (next(key), good, None),
        (next(key), good, float("inf")),
        # A time to come would win over everything stored from now on.
        (next(key), good, now + 30 * 86_400),
        (next(key), good, now, "[]"),
        (next(key), good, now, "{"),
        (next(key), good, now, json.dumps({"x": "y" * 2_000_000})),
    ):
        put_raw(source, *row)
    done = import_store(ours.path, source)
    assert (done.damaged, done.added) == (16, {"pages": 1, "failures": 1})


def test_views_and_triggers_of_a_crafted_file_do_nothing(ours: Cache, tmp_path: Path) -> None:
    source = exported(tmp_path, {"good": "text"})
    with sqlite3.connect(source) as connection:
        connection.execute("DROP TABLE searches")
        connection.execute("CREATE VIEW searches AS SELECT key, value, created, parts, provider FROM pages")
        connection.execute("CREATE TRIGGER t AFTER INSERT ON pages BEGIN DELETE FROM pages; END")
    connection.close()
    assert import_store(ours.path, source).added == {"pages": 1, "failures": 1}
    with sqlite3.connect(ours.path) as connection:
        assert connection.execute(
            "SELECT COUNT(*) FROM sqlite_master WHERE type != 'table' AND sql IS NOT NULL"
        ).fetchone() == (0,)
    connection.close()
    assert ours.stats()["searches"] == 0
