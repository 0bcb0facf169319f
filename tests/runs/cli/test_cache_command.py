"""`search-o1 cache` and the functions behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrieval.cache import Cache
from runs.caching import cache_stats, parse_age, parse_bytes
from runs.cli.cache import command as cache_command
from runs.home import Home
from signatures.errors import OptionError, SearchO1Error
from tests.runs.world import command


def cache(home: Path, *arguments: str) -> str:
    result = command(*arguments, home=home, verb=cache_command)
    assert result.exit_code == 0, result.output
    return result.output


def filled(home: Path, count: int = 3) -> Home:
    found = Home(home)
    store = Cache(found.cache)
    for i in range(count):
        store.put("searches", {"query": str(i)}, [], "serper")
        store.put("pages", {"url": str(i)}, {"text": "x" * 5_000}, "web")
    store.close()
    return found


def test_stats_show_kinds_providers_and_sizes(tmp_path: Path) -> None:
    filled(tmp_path)
    shown = cache(tmp_path, "stats")
    assert "cache.sqlite" in shown
    for words in (["searches", "serper", "3"], ["pages", "web", "3"], ["all", "6"]):
        assert any(all(word in line.split() for word in words) for line in shown.splitlines()), shown


def test_a_cache_travels_in_one_file(tmp_path: Path) -> None:
    filled(tmp_path / "here")
    file = tmp_path / "trip.cache"
    assert "search-o1 cache import trip.cache" in cache(tmp_path / "here", "export", str(file))
    filled(tmp_path / "there", 1)
    shown = cache(tmp_path / "there", "import", str(file))
    assert "Added: 2 searches, 2 pages. Replaced by a newer one: nothing." in shown
    assert "Kept, as new or newer: 1 searches, 1 pages." in shown
    assert sum(part.entries for part in cache_stats(home=Home(tmp_path / "there"))) == 6


def test_prune_takes_kinds_ages_and_sizes(tmp_path: Path) -> None:
    filled(tmp_path)
    assert "Removed: nothing." in cache(tmp_path, "prune", "--older-than", "30d", "--kind", "pages,searches")
    assert "Removed: 3 pages." in cache(tmp_path, "prune", "--kinds", "pages", "--provider", "web")
    assert "Removed: 3 searches." in cache(tmp_path, "prune", "--max-bytes", "1")
    assert "It is empty." in cache(tmp_path, "stats")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["stats"], "There is no cache at"),
        (["export", "x.cache"], "There is no cache at"),
        (["import", "nowhere.cache"], "There is no file nowhere.cache"),
        (["prune"], "Nothing says what to remove"),
        (["prune", "--older-than", "soon"], "'soon' is no age"),
        (["prune", "--max-bytes", "much"], "'much' is no size"),
        (["prune", "--kind", "cookies"], "keeps no 'cookies'"),
    ],
)
def test_mistakes_are_explained(tmp_path: Path, arguments: list[str], complaint: str) -> None:
    with pytest.raises(SearchO1Error, match=complaint):
        command(*arguments, home=tmp_path, verb=cache_command)
    assert not list(tmp_path.iterdir())


def test_ages_and_sizes_are_read() -> None:
    assert [parse_age(a) for a in ("30d", "12h", "1.5m", "90", "2w", 7, "3 D")] == [
        2_592_000, 43_200, 90, 90, 1_209_600, 7, 259_200,
    ]  # fmt: skip
    assert [parse_bytes(b) for b in ("500MB", "2g", "10", 7, "1.5kB", "1 TB")] == [
        500_000_000, 2_000_000_000, 10, 7, 1_500, 10**12,
    ]  # fmt: skip
    for bad in ("", "d", "-1d", "1y", "∞"):
        with pytest.raises(OptionError):
            parse_age(bad)


def test_a_size_beyond_all_disks_removes_nothing(tmp_path: Path) -> None:
    filled(tmp_path)
    assert "Removed: nothing" in cache(tmp_path, "prune", "--max-bytes", "9" * 400 + "GB")
    assert "Removed: nothing" in cache(tmp_path, "prune", "--older-than", "9" * 400 + "w")
